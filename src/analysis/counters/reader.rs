//! Counters one value at a time, for what keeps no history of its own.

use crate::clr::EventKind;
use crate::nettrace::Event;

use super::super::known::{Analysis, Known};
use super::{CounterKind, Counters};

/// Reads the values of counters as they come.
#[derive(Debug, Default)]
pub struct CounterReader(Counters);

/// A value of a counter. Text is not sanitised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterValue<'a> {
    /// Provider or meter.
    pub group: &'a str,
    /// The counter's name.
    pub name: &'a str,
    /// Its tags, which distinguish it from others of its name: `k=v,k2=v2`; can be empty.
    pub tags: &'a str,
    /// What is counted; can be empty.
    pub unit: &'a str,
    /// How the value is meant.
    pub kind: CounterKind,
    /// A gauge's value, how much a counter changed a second, the highest quantile of a histogram.
    pub value: f64,
}

impl CounterReader {
    /// The value that an event of the kinds [`EventKind::EventCounter`] and [`EventKind::Metrics`] brings; `None` where it brings none. `at` is its moment in
    /// nanoseconds since the start of the session.
    pub fn read(&mut self, kind: EventKind, event: &Event<'_>, at: i64, pointer_size: u8) -> Option<CounterValue<'_>> {
        let counters = &mut self.0;
        counters.store.latest = None;
        counters.feed(&Known { kind, event, at, thread: event.thread(), pointer_size })?;
        let series = counters.store.series.get(counters.store.latest? as usize)?;
        let (_, value) = series.newest().filter(|(last, _)| *last == at)?;
        let identity = &series.identity;
        Some(CounterValue {
            group: &identity.group,
            name: &identity.name,
            tags: &identity.tags,
            unit: &identity.unit,
            kind: identity.kind,
            value,
        })
    }
}
