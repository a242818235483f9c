//! An event to wait for: `PROVIDER/EVENT`, `PROVIDER/EVENT:TEXT`, `PROVIDER/EVENT[FIELD=VALUE,..]`, `exception` or `exception:TEXT`; optionally
//! `N times in TIME`.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::{RUNTIME_PROVIDER, events};

/// What stands for the runtime's event of a thrown exception.
const EXCEPTION: &str = "exception";
/// Its name.
const EXCEPTION_THROWN: &str = "ExceptionThrown";
/// Follows the number of occurrences.
const TIMES: &str = " times";
/// Follows it, before the time.
const IN: &str = " in ";
/// Maximum number of occurrences: the time of each is remembered.
const MAX_COUNT: u32 = 100_000;

/// An event to wait for: provider, event and condition, and how often it must occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    provider: String,
    event: EventSelector,
    condition: Condition,
    repetition: Repetition,
}

/// How often an event must occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// Number of occurrences, at least 1.
    pub count: u32,
    /// The time within which they must occur, if that matters.
    pub within: Option<Duration>,
}

/// Why a text is not an event to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TriggerError {
    /// It has another form.
    #[error(
        "expected PROVIDER/EVENT, PROVIDER/EVENT:TEXT or PROVIDER/EVENT[FIELD=VALUE,..], such as \
         Microsoft-Windows-DotNETRuntime/GCStart[Depth=2], or exception or exception:TEXT; with \" N times in TIME\" if it must occur more than once"
    )]
    Syntax,
    /// It must occur never, or too often.
    #[error("the number of times must be between 1 and {MAX_COUNT}")]
    Times,
    /// A provider whose events are known has no such event.
    #[error("{provider} has no event {name}; did you mean {nearest}? Events that dn-top does not know are given by their ID")]
    UnknownEvent {
        /// The provider.
        provider: &'static str,
        /// The name.
        name: String,
        /// The most similar one.
        nearest: &'static str,
    },
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
    /// contain; or `PROVIDER/EVENT[FIELD=VALUE,..]`, with fields that must all have the given values. `exception` stands for the runtime's
    /// `ExceptionThrown`. Followed by `N times` or `N times in TIME` if it must occur more than once.
    ///
    /// # Errors
    /// [`TriggerError`]; also if the events of the provider are known, and there is no such event: it would never occur.
    pub fn parse(text: &str) -> Result<Self, TriggerError> {
        const SYNTAX: TriggerError = TriggerError::Syntax;
        let (text, repetition) = Repetition::split(text);
        if !(1..=MAX_COUNT).contains(&repetition.count) {
            return Err(TriggerError::Times);
        }
        let exception = text.strip_prefix(EXCEPTION).filter(|rest| rest.is_empty() || rest.starts_with(':'));
        let expanded = exception.map(|rest| format!("{RUNTIME_PROVIDER}/{EXCEPTION_THROWN}{rest}"));
        let (provider, rest) = expanded.as_deref().unwrap_or(text).split_once('/').ok_or(SYNTAX)?;
        let (event, condition) = match (rest.find(['[', ':']), rest.strip_suffix(']')) {
            (Some(at), Some(whole)) if rest[at..].starts_with('[') => (&rest[..at], Condition::fields(&whole[at + 1..]).ok_or(SYNTAX)?),
            (Some(at), _) if rest[at..].starts_with(':') && !rest[at + 1..].trim_start().is_empty() => {
                (&rest[..at], Condition::Text(rest[at + 1..].trim_start().to_owned()))
            }
            (Some(_), _) => return Err(SYNTAX),
            (None, _) => (rest, Condition::Always),
        };
        let (provider, event) = (provider.trim(), event.trim());
        // With a space, it is a wrong number of times rather than a name.
        if provider.is_empty() || event.is_empty() || event.contains(' ') {
            return Err(SYNTAX);
        }
        let event = match event {
            "*" => EventSelector::Any,
            _ => event.parse().map_or_else(|_| EventSelector::Name(event.to_owned()), EventSelector::Id),
        };
        let trigger = Self { provider: provider.to_owned(), event, condition, repetition };
        trigger.unknown_event().map_or(Ok(()), Err)?;
        Ok(trigger)
    }

    /// Returns an event that is the load of the last of this many assemblies.
    pub fn assembly_loads(count: u32) -> Self {
        Self {
            provider: RUNTIME_PROVIDER.to_owned(),
            event: EventSelector::Name("AssemblyLoad".to_owned()),
            condition: Condition::Always,
            repetition: Repetition { count, within: None },
        }
    }

    /// Returns the provider of the event.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the condition on the payload.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Returns how often the event must occur.
    pub fn repetition(&self) -> Repetition {
        self.repetition
    }

    /// Returns a specification of the provider, as [`parse_provider`](super::parse_provider) reads it. Only the group of events with the name
    /// is enabled if it is one of those that are often waited for: the others would only cost time.
    pub fn provider_spec(&self) -> String {
        const GROUPS: [(&str, &str); 4] =
            [("exception", "exception"), ("gc", "gc"), ("contention", "contention"), ("threadpool", "threading")];
        if !self.provider.eq_ignore_ascii_case(RUNTIME_PROVIDER) {
            return format!("{}::verbose", self.provider);
        }
        let name = if let EventSelector::Name(name) = &self.event { name.to_ascii_lowercase() } else { String::new() };
        let keyword = GROUPS.iter().find(|(begin, _)| name.starts_with(begin)).map_or("", |(_, keyword)| keyword);
        format!("{}:{keyword}", self.provider)
    }

    /// Returns whether a text must occur in the payload.
    pub fn has_text(&self) -> bool {
        matches!(self.condition, Condition::Text(_))
    }

    /// Returns the error if this is a name that no event of a provider has whose events are known.
    fn unknown_event(&self) -> Option<TriggerError> {
        let EventSelector::Name(name) = &self.event else { return None };
        let provider = events::providers().find(|known| known.eq_ignore_ascii_case(&self.provider))?;
        let names = || events::names(provider).map(|(_, known)| known);
        if names().any(|known| self.matches_event(provider, 0, known)) {
            return None;
        }
        let similarity = |known: &&str| strsim::jaro_winkler(&known.to_ascii_lowercase(), &name.to_ascii_lowercase());
        let nearest = names().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
        Some(TriggerError::UnknownEvent { provider, name: name.clone(), nearest })
    }

    fn is_exception(&self) -> bool {
        self.provider == RUNTIME_PROVIDER && self.event == EventSelector::Name(EXCEPTION_THROWN.to_owned())
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

impl Repetition {
    const ONCE: Self = Self { count: 1, within: None };

    /// Splits ` N times in TIME` from the end of a text. Anything else belongs to the text.
    fn split(text: &str) -> (&str, Self) {
        let split = || {
            let (counted, after) = text.rsplit_once(TIMES)?;
            let (event, count) = counted.rsplit_once(' ')?;
            let within = match after.strip_prefix(IN) {
                Some(time) => Some(humantime::parse_duration(time.trim()).ok()?),
                None => after.trim().is_empty().then_some(None)?,
            };
            let count = count.parse().ok()?;
            Some((event.trim_end(), if count == 1 { Self::ONCE } else { Self { count, within } }))
        };
        split().unwrap_or((text, Self::ONCE))
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
        let provider = &self.provider;
        match &self.event {
            _ if self.is_exception() => f.write_str(EXCEPTION)?,
            EventSelector::Any => write!(f, "{provider}/*")?,
            EventSelector::Id(id) => write!(f, "{provider}/{id}")?,
            EventSelector::Name(name) => write!(f, "{provider}/{name}")?,
        }
        match &self.condition {
            Condition::Always => {}
            Condition::Text(text) => write!(f, ":{text}")?,
            Condition::Fields(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))?;
            }
        }
        let Repetition { count, within } = self.repetition;
        if count > 1 {
            write!(f, " {count}{TIMES}")?;
        }
        within.map_or(Ok(()), |time| write!(f, "{IN}{}", humantime::format_duration(time)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_round_trip() {
        for text in [
            "P/80",
            "P/ExceptionThrown:a: b",
            "P/Request/Start",
            "P/Stop:x",
            "P/Stop:[a]",
            "P/GCEnd[Depth=2,Count=]",
            "P/*",
            "P/80 3 times",
            "P/GCEnd[Depth=2] 2 times in 1m 30s",
            "P/*:a b 100000 times in 500ms",
            "P/*:three times in 5s",
            "P/*:3 times in a row",
            "P/*:3 timestamps",
        ] {
            assert_eq!(Trigger::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "P",
            "P/",
            "/80",
            "P/80:",
            "P/80: ",
            " / ",
            "P/80[",
            "P/80[]",
            "P/80[a]",
            "P/80[=1]",
            "P/80[a=1]b",
            "P/[a=1]",
            "P/80 times",
            "P/80[a=1] 2 times in",
            " 2 times",
        ] {
            assert_eq!(Trigger::parse(wrong), Err(TriggerError::Syntax), "{wrong}");
        }
    }

    #[test]
    fn number_of_times_is_limited() {
        assert_eq!(Trigger::parse("P/80 1 times in 5s"), Trigger::parse("P/80"));
        for text in ["P/80 0 times", "exception:a 100001 times in 1m"] {
            assert_eq!(Trigger::parse(text), Err(TriggerError::Times));
        }
    }

    #[test]
    fn event_of_a_known_provider_must_exist() {
        for (provider, event, expected) in [
            (RUNTIME_PROVIDER, "gcstrt", "GCStart"),
            (RUNTIME_PROVIDER, "ExceptionThrow:a", "ExceptionThrown"),
            (RUNTIME_PROVIDER, "GC/Strt[Depth=2]", "GCStart"),
            ("microsoft-dotnetcore-sampleprofiler", "Sample", "ThreadSample"),
            ("Microsoft-Windows-DotNETRuntimeRundown", "MethodDCEndVerbos", "MethodDCEndVerbose"),
        ] {
            let Err(TriggerError::UnknownEvent { nearest, .. }) = Trigger::parse(&format!("{provider}/{event}")) else { panic!("{event}") };
            assert_eq!(nearest, expected, "{event}");
        }
        for event in ["GC/Start", "gcstart", "4711", "*"] {
            assert!(Trigger::parse(&format!("{RUNTIME_PROVIDER}/{event}")).is_ok(), "{event}");
        }
    }

    #[test]
    fn exception_stands_for_its_event() {
        for (text, expected) in [
            ("Microsoft-Windows-DotNETRuntime/ExceptionThrown:a: b", "exception:a: b"),
            ("exception:[a]", "exception:[a]"),
            ("exception: a b", "exception:a b"),
            ("exception", "exception"),
        ] {
            assert_eq!(Trigger::parse(text).unwrap().to_string(), expected);
            assert_eq!(Trigger::parse(text), Trigger::parse(expected));
        }
    }

    #[test]
    fn provider_of_an_event_is_enabled_as_far_as_needed() {
        for (text, expected) in [
            ("exception:a", "Microsoft-Windows-DotNETRuntime:exception"),
            ("Microsoft-Windows-DotNETRuntime/GCStart[Depth=2]", "Microsoft-Windows-DotNETRuntime:gc"),
            ("Microsoft-Windows-DotNETRuntime/ThreadPoolWorkerThreadStart", "Microsoft-Windows-DotNETRuntime:threading"),
            ("Microsoft-Windows-DotNETRuntime/80", "Microsoft-Windows-DotNETRuntime:"),
            ("My-Source/GCStart", "My-Source::verbose"),
        ] {
            let spec = Trigger::parse(text).unwrap().provider_spec();
            assert_eq!(spec, expected);
            assert!(crate::clr::parse_provider(&spec).is_ok(), "{spec}");
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
