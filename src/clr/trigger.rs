//! The event that stops a recording: `PROVIDER/EVENT`, `PROVIDER/EVENT:TEXT` or `PROVIDER/EVENT[FIELD=VALUE,..]`.

use std::fmt;

use super::events;

/// A stop event: provider, event and condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    provider: String,
    event: EventSelector,
    condition: Condition,
}

/// Condition on the payload of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    Always,
    /// Text that must occur anywhere in the payload.
    Text(String),
    /// Fields with their required values.
    Fields(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EventSelector {
    Id(u32),
    Name(String),
    Any,
}

impl Trigger {
    /// Parses `PROVIDER/EVENT`, where the event is an ID, a name or `*` for any; `PROVIDER/EVENT:TEXT`, with text that the payload must
    /// contain; or `PROVIDER/EVENT[FIELD=VALUE,..]`, with fields that must all have the given values.
    ///
    /// # Errors
    /// Returns a sentence with the expected syntax.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected PROVIDER/EVENT, PROVIDER/EVENT:TEXT or PROVIDER/EVENT[FIELD=VALUE,..], such as \
             Microsoft-Windows-DotNETRuntime/ExceptionThrown:Timeout";
        let (provider, rest) = text.split_once('/').ok_or(EXPECTED)?;
        let (event, condition) = match (rest.find(['[', ':']), rest.strip_suffix(']')) {
            (Some(at), Some(whole)) if rest[at..].starts_with('[') => (&rest[..at], Condition::fields(&whole[at + 1..]).ok_or(EXPECTED)?),
            (Some(at), _) if rest[at..].starts_with(':') && at + 1 < rest.len() => {
                (&rest[..at], Condition::Text(rest[at + 1..].to_owned()))
            }
            (Some(_), _) => return Err(EXPECTED.to_owned()),
            (None, _) => (rest, Condition::Always),
        };
        let (provider, event) = (provider.trim(), event.trim());
        if provider.is_empty() || event.is_empty() {
            return Err(EXPECTED.to_owned());
        }
        let event = match event {
            "*" => EventSelector::Any,
            _ => event.parse().map_or_else(|_| EventSelector::Name(event.to_owned()), EventSelector::Id),
        };
        Ok(Self { provider: provider.to_owned(), event, condition })
    }

    /// Returns the provider of the event.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the condition on the payload.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Returns whether provider and event match, regardless of the payload. Names are compared case-insensitively; `name` may be empty if the
    /// stream has none. `Request/Start`, the form of TraceEvent, is also the event `RequestStart`.
    pub fn matches_event(&self, provider: &str, event_id: u32, name: &str) -> bool {
        let name = if name.is_empty() { events::name(provider, event_id).unwrap_or_default() } else { name };
        self.provider.eq_ignore_ascii_case(provider)
            && match &self.event {
                EventSelector::Any => true,
                EventSelector::Id(id) => *id == event_id,
                EventSelector::Name(wanted) => wanted.eq_ignore_ascii_case(name) || wanted.replacen('/', "", 1).eq_ignore_ascii_case(name),
            }
    }
}

impl Condition {
    fn fields(text: &str) -> Option<Self> {
        let field = |part: &str| part.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        let fields: Vec<_> = text.split(',').map(field).collect::<Option<_>>()?;
        fields.iter().all(|(name, _)| !name.is_empty()).then_some(Self::Fields(fields))
    }
}

/// Formats the trigger as [`Trigger::parse`] accepts it.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.provider)?;
        match &self.event {
            EventSelector::Any => f.write_str("*")?,
            EventSelector::Id(id) => write!(f, "{id}")?,
            EventSelector::Name(name) => f.write_str(name)?,
        }
        match &self.condition {
            Condition::Always => Ok(()),
            Condition::Text(text) => write!(f, ":{text}"),
            Condition::Fields(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_round_trip() {
        for text in [
            "P/80",
            "Microsoft-Windows-DotNETRuntime/ExceptionThrown:a: b",
            "P/Request/Start",
            "P/Stop:x",
            "P/Stop:[a]",
            "P/GCEnd[Depth=2,Count=]",
            "P/*",
        ] {
            assert_eq!(Trigger::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "P", "P/", "/80", "P/80:", " / ", "P/80[", "P/80[]", "P/80[a]", "P/80[=1]", "P/80[a=1]b", "P/[a=1]"] {
            assert!(Trigger::parse(wrong).unwrap_err().starts_with("expected PROVIDER/EVENT"), "{wrong}");
        }
    }

    #[test]
    fn events_match_by_id_or_name() {
        let table = [
            ("p/80", "P", 80, "", true),
            ("p/80", "P", 81, "", false),
            ("p/*", "P", 81, "", true),
            ("q/*", "P", 81, "", false),
            ("Q/80", "P", 80, "", false),
            ("P/stop", "P", 2, "Stop", true),
            ("P/stop", "P", 2, "", false),
            ("P/Request/Start", "P", 2, "RequestStart", true),
            ("P/Request/Start", "P", 2, "Request/Start", true),
            ("P/Request/Start", "P", 2, "RequestStop", false),
            ("Microsoft-Windows-DotNETRuntime/exceptionthrown", "Microsoft-Windows-DotNETRuntime", 80, "", true),
            ("Microsoft-Windows-DotNETRuntime/GCStart", "Microsoft-Windows-DotNETRuntime", 80, "", false),
        ];
        for (trigger, provider, id, name, expected) in table {
            assert_eq!(Trigger::parse(trigger).unwrap().matches_event(provider, id, name), expected, "{trigger} {provider} {id} {name}");
        }
    }
}
