//! Selection of the counters to collect, in user syntax: `Provider[a,b],Meter`.

use crate::analysis::{CounterSnapshot, CountersSnapshot, RequestDurations};
use crate::clr::{COUNTERS_PROVIDER, HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER};

/// Name prefix of the instruments that the runtime publishes since .NET 9; its EventCounters do not have it.
const INSTRUMENT: &str = "dotnet.";

/// All meters (reference: .NET 9 and later).
const ALL_METERS: &str = "*";
/// Ends a name that stands for all meters whose names begin like it (reference: .NET 9 and later). Providers have no such names.
const PREFIX_END: char = '*';

/// Providers of EventCounters and meters. A name alone does not show which of the two it is, so both are requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterSelection(Vec<Group>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    name: String,
    /// Empty for all.
    counters: Vec<String>,
    kind: Kind,
}

/// Kind of counters that a name selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    /// Written as `EventCounters\NAME`.
    EventCounters,
    Meters,
}

impl CounterSelection {
    /// Selects the runtime's EventCounters, which every version since 3.0 has, those of ASP.NET Core if it is loaded (four values per
    /// interval), and, if `meters` is set, all meters.
    pub fn runtime(meters: bool) -> Self {
        let group = |name: &str, kind| Group { name: name.to_owned(), counters: Vec::new(), kind };
        let groups = [(COUNTERS_PROVIDER, Kind::EventCounters), (HOSTING_PROVIDER, Kind::EventCounters), (ALL_METERS, Kind::Meters)]
            .map(|(name, kind)| group(name, kind));
        Self(groups.into_iter().filter(|group| meters || group.kind != Kind::Meters).collect())
    }

    /// Selects one counter or instrument of a provider or meter.
    pub fn one(provider: &str, counter: &str) -> Self {
        Self(vec![Group { name: provider.to_owned(), counters: vec![counter.to_owned()], kind: Kind::Any }])
    }

    /// Returns the selection with the durations of incoming requests, outgoing requests, or both added, and with how long outgoing
    /// requests wait for a connection.
    #[must_use]
    pub fn with_request_durations(&self, served: bool, sent: bool) -> Self {
        let wanted = [RequestDurations::SERVED, RequestDurations::SENT].into_iter().zip([served, sent]).filter(|(_, is_wanted)| *is_wanted);
        // Each series of a histogram takes one of a few places that the runtime has for all of them, so this one is an EventCounter.
        let queue = Group { name: HTTP_CLIENT_PROVIDER.to_owned(), counters: Vec::new(), kind: Kind::EventCounters };
        let group = |((meter, histogram), _): ((&str, &str), bool)| Group {
            name: meter.to_owned(),
            counters: vec![histogram.to_owned()],
            kind: Kind::Meters,
        };
        Self(self.0.iter().cloned().chain(wanted.map(group)).chain(sent.then_some(queue)).collect())
    }

    /// Whether the process publishes ASP.NET Core counters.
    pub fn serves_requests(counters: &CountersSnapshot) -> bool {
        counters.counters.iter().any(|counter| counter.group == HOSTING_PROVIDER)
    }

    /// Parses the user syntax.
    ///
    /// # Errors
    /// A message that describes the syntax error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut groups = Vec::new();
        let mut rest = text;
        loop {
            let end = rest.find([',', '[']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let event_counters = name.trim().strip_prefix(r"EventCounters\");
            let (name, kind) = event_counters.map_or((name, Kind::Any), |name| (name, Kind::EventCounters));
            let (counters, behind) = match behind.strip_prefix('[') {
                None => (Vec::new(), behind),
                Some(inside) => {
                    let (list, behind) = inside.split_once(']').ok_or_else(|| format!("'{}': the '[' has no ']'", text.escape_debug()))?;
                    (list.split(',').map(checked).collect::<Result<Vec<_>, _>>()?, behind)
                }
            };
            groups.push(Group { name: checked(name)?, counters, kind });
            match behind.strip_prefix(',') {
                Some(next) => rest = next,
                None if behind.is_empty() => return Ok(Self(groups)),
                None => return Err(format!("'{}': expected a comma before '{}'", text.escape_debug(), behind.escape_debug())),
            }
        }
    }

    /// Providers whose EventCounters are to be enabled in a runtime of this major version.
    pub(super) fn event_counters(&self, major: u32) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |group| group.has_event_counters(major)).map(|group| group.name.as_str())
    }

    /// Meters and instruments in the runtime's syntax; empty if there are none.
    pub(super) fn metrics(&self, major: u32) -> String {
        let mut metrics = Vec::new();
        for group in self.0.iter().filter(|group| group.has_instruments(major)) {
            match group.counters.as_slice() {
                [] => metrics.push(group.name.clone()),
                // Included in "all meters".
                _ if self.0.iter().any(|other| other.name == ALL_METERS) && major >= 9 => {}
                counters => metrics.extend(counters.iter().map(|counter| format!(r"{}\{counter}", group.name))),
            }
        }
        metrics.join(",")
    }

    /// Whether the selection includes a counter.
    pub fn has(&self, counter: &CounterSnapshot) -> bool {
        self.0.iter().any(|group| group.is_of(&counter.group) && (group.counters.is_empty() || group.counters.contains(&counter.name)))
    }
}

impl Group {
    /// Whether this is the name of a provider or meter, or a prefix that includes it.
    fn is_of(&self, name: &str) -> bool {
        self.name.strip_suffix(PREFIX_END).map_or(self.name == name, |prefix| name.starts_with(prefix))
    }

    fn has_event_counters(&self, major: u32) -> bool {
        match self.kind {
            Kind::Any if self.name.ends_with(PREFIX_END) => false,
            Kind::Any => self.name != COUNTERS_PROVIDER || major < 9 || self.counters.iter().any(|name| !name.starts_with(INSTRUMENT)),
            Kind::EventCounters => true,
            Kind::Meters => false,
        }
    }

    fn has_instruments(&self, major: u32) -> bool {
        match self.kind {
            Kind::Any if self.name != COUNTERS_PROVIDER => true,
            Kind::Any => major >= 9 && (self.counters.is_empty() || self.counters.iter().any(|name| name.starts_with(INSTRUMENT))),
            Kind::EventCounters => false,
            Kind::Meters => true,
        }
    }
}

/// Checks that a name has no character that would end it in the runtime's syntax.
fn checked(name: &str) -> Result<String, String> {
    let name = name.trim();
    match name.find(|c: char| c.is_control() || matches!(c, ';' | '=' | '"' | '\\' | '[' | ']')) {
        _ if name.is_empty() => Err("expected the name of a provider, a meter or a counter, found none".to_owned()),
        Some(_) => Err(format!("'{}' is not the name of a provider, a meter or a counter", name.escape_debug())),
        None => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_becomes_provider_arguments() {
        for (major, counters, event_counters, metrics) in [
            (3, "System.Runtime", &["System.Runtime"][..], ""),
            (8, "System.Runtime", &["System.Runtime"], ""),
            (9, "System.Runtime", &[], "System.Runtime"),
            // A counter that exists only as an EventCounter.
            (9, "System.Runtime[cpu-usage]", &["System.Runtime"], ""),
            (10, r"EventCounters\System.Runtime", &["System.Runtime"], ""),
            (9, "*", &[], "*"),
            (9, "App,App.*", &["App"], "App,App.*"),
            (10, "App[hits,lat],System.Runtime[dotnet.exceptions]", &["App"], r"App\hits,App\lat,System.Runtime\dotnet.exceptions"),
        ] {
            let selection = CounterSelection::parse(counters).unwrap();
            assert_eq!(selection.event_counters(major).collect::<Vec<_>>(), event_counters, "{counters}");
            assert_eq!(selection.metrics(major), metrics, "{counters}");
        }
    }

    #[test]
    fn meter_prefixes_include_the_meters_that_the_runtime_publishes_for_them() {
        for (name, meter, is_of) in [
            ("App", "App", true),
            ("App", "App.Db", false),
            ("App.*", "App.Db", true),
            ("App.*", "App", false),
            ("App.*", "Other.App.Db", false),
            ("*", "App", true),
        ] {
            assert_eq!(CounterSelection::parse(name).unwrap().0[0].is_of(meter), is_of, "{name} {meter}");
        }
    }

    #[test]
    fn counter_lists_are_parsed() {
        let group = |name: &str, counters: &[&str]| Group {
            name: name.into(),
            counters: counters.iter().map(|name| (*name).into()).collect(),
            kind: Kind::Any,
        };
        for (text, expected) in [
            ("A", vec![group("A", &[])]),
            ("A[x]", vec![group("A", &["x"])]),
            (" A [ x , y ],B,C[z]", vec![group("A", &["x", "y"]), group("B", &[]), group("C", &["z"])]),
        ] {
            assert_eq!(CounterSelection::parse(text), Ok(CounterSelection(expected)), "{text}");
        }
        for wrong in ["", ",", "A,", "A[", "A[x", "A[]", "A[x]B", "A]", "A;B", "A\\b", "A[x=y]", "A\u{1b}"] {
            assert!(CounterSelection::parse(wrong).is_err(), "{wrong}");
        }
    }
}
