//! The event that ends a recording: `PROVIDER/EVENT[:TEXT]`.

use std::fmt;

use super::events;

/// An event that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    provider: String,
    event: EventSelector,
    text: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EventSelector {
    Id(u32),
    Name(String),
    Any,
}

impl Trigger {
    /// Reads `PROVIDER/EVENT`, where the event is a number, a name or `*` for any, and `PROVIDER/EVENT:TEXT`, where the event's payload must hold the text.
    ///
    /// # Errors
    /// A sentence with what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected PROVIDER/EVENT or PROVIDER/EVENT:TEXT, such as Microsoft-Windows-DotNETRuntime/ExceptionThrown:Timeout";
        let (provider, rest) = text.split_once('/').ok_or(EXPECTED)?;
        let (event, payload) = rest.split_once(':').map_or((rest, None), |(event, payload)| (event, Some(payload)));
        let (provider, event) = (provider.trim(), event.trim());
        if provider.is_empty() || event.is_empty() || payload == Some("") {
            return Err(EXPECTED.to_owned());
        }
        let event = match event {
            "*" => EventSelector::Any,
            _ => event.parse().map_or_else(|_| EventSelector::Name(event.to_owned()), EventSelector::Id),
        };
        Ok(Self { provider: provider.to_owned(), event, text: payload.map(str::to_owned) })
    }

    /// The provider whose event it is.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The text that the payload must hold.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether events of this kind are meant, whatever they hold. Names count without regard to case; the name may be empty where the stream gives none.
    pub fn is_kind(&self, provider: &str, event_id: u32, name: &str) -> bool {
        let name = if name.is_empty() { events::name(provider, event_id).unwrap_or_default() } else { name };
        self.provider.eq_ignore_ascii_case(provider)
            && match &self.event {
                EventSelector::Any => true,
                EventSelector::Id(id) => *id == event_id,
                EventSelector::Name(wanted) => wanted.eq_ignore_ascii_case(name),
            }
    }
}

/// As it is typed.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.provider)?;
        match &self.event {
            EventSelector::Any => f.write_str("*")?,
            EventSelector::Id(id) => write!(f, "{id}")?,
            EventSelector::Name(name) => f.write_str(name)?,
        }
        self.text.as_ref().map_or(Ok(()), |text| write!(f, ":{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_back() {
        for text in ["P/80", "Microsoft-Windows-DotNETRuntime/ExceptionThrown:a: b", "P/Request/Start", "P/Stop:x", "P/*"] {
            assert_eq!(Trigger::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "P", "P/", "/80", "P/80:", " / "] {
            assert!(Trigger::parse(wrong).unwrap_err().starts_with("expected PROVIDER/EVENT"), "{wrong}");
        }
    }

    #[test]
    fn kinds_by_number_and_by_name() {
        let table = [
            ("p/80", "P", 80, "", true),
            ("p/80", "P", 81, "", false),
            ("p/*", "P", 81, "", true),
            ("q/*", "P", 81, "", false),
            ("Q/80", "P", 80, "", false),
            ("P/stop", "P", 2, "Stop", true),
            ("P/stop", "P", 2, "", false),
            ("Microsoft-Windows-DotNETRuntime/exceptionthrown", "Microsoft-Windows-DotNETRuntime", 80, "", true),
            ("Microsoft-Windows-DotNETRuntime/GCStart", "Microsoft-Windows-DotNETRuntime", 80, "", false),
        ];
        for (trigger, provider, id, name, expected) in table {
            assert_eq!(Trigger::parse(trigger).unwrap().is_kind(provider, id, name), expected, "{trigger} {provider} {id} {name}");
        }
    }
}
