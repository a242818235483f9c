//! How counters are looked at: by provider, folded away, filtered and sorted.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::recordings::Tracked;
use super::watches::Watch;
use crate::analysis::{CounterKind, CounterSnapshot};

/// How counters are looked at.
#[derive(Debug, Default)]
pub struct CounterView {
    /// In what order.
    pub order: CounterOrder,
    /// Providers and meters whose counters are folded away.
    pub(super) folded: BTreeSet<String>,
}

/// The order of the counters of one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CounterOrder {
    /// By name.
    #[default]
    Name,
    /// The largest value first.
    Value,
    /// What changes most first.
    Change,
}

/// A line of the list.
#[derive(Debug, Clone, Copy)]
pub enum CounterLine<'a> {
    /// A provider or meter.
    Group {
        /// Its name.
        name: &'a str,
        /// How many counters it has.
        count: usize,
        /// Whether they are folded away.
        folded: bool,
    },
    /// A counter.
    Counter(&'a CounterSnapshot),
}

/// Where the counters that are shown come from.
#[derive(Debug, Clone, Copy)]
pub enum CounterOrigin<'a> {
    /// The process is watched.
    Watch(&'a Watch),
    /// They are in the shown recording.
    Recording(&'a Tracked),
}

impl CounterOrder {
    pub(super) fn step(self, forward: bool) -> Self {
        const ALL: [CounterOrder; 3] = [CounterOrder::Name, CounterOrder::Value, CounterOrder::Change];
        ALL[(self as usize + if forward { 1 } else { ALL.len() - 1 }) % ALL.len()]
    }

    pub(super) fn compare(self, a: &CounterSnapshot, b: &CounterSnapshot) -> Ordering {
        let figure = |counter: &CounterSnapshot| match self {
            Self::Name => None,
            Self::Value => counter.value,
            Self::Change => change(counter).map(f64::abs),
        };
        let largest = |counter| figure(counter).unwrap_or(f64::NEG_INFINITY);
        // Where all is alike, their own order stays: it is that of names.
        largest(b).total_cmp(&largest(a))
    }
}

/// How much a counter changes: a sum by its rate, a gauge by its last two values, a histogram by how much is recorded in an interval.
pub fn change(counter: &CounterSnapshot) -> Option<f64> {
    match counter.kind {
        CounterKind::Counter | CounterKind::UpDownCounter => counter.rate,
        CounterKind::Histogram => Some(counter.histogram.as_ref()?.count? as f64),
        CounterKind::Gauge => match counter.history.as_slice() {
            [.., (_, before), (_, last)] => Some(last - before),
            _ => None,
        },
    }
}

impl CounterLine<'_> {
    /// Its identity.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Group { name, .. } => (*name).to_owned(),
            Self::Counter(counter) => format!("{} {} {}", counter.group, counter.name, counter.tags),
        }
    }

    pub(super) fn group(&self) -> &str {
        match self {
            Self::Group { name, .. } => name,
            Self::Counter(counter) => &counter.group,
        }
    }
}
