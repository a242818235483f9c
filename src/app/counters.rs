//! How counters are looked at: by provider, folded away, filtered and sorted.

use std::collections::BTreeSet;

use super::recordings::Tracked;
use super::watches::Watch;
use crate::analysis::{CounterKind, CounterSnapshot};

/// How counters are looked at.
#[derive(Debug, Default)]
pub struct CounterView {
    /// Providers and meters whose counters are folded away.
    pub(super) folded: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy)]
pub enum CounterLine<'a> {
    Group {
        name: &'a str,
        /// How many counters it has.
        count: usize,
        folded: bool,
    },
    Counter(&'a CounterSnapshot),
}

/// Where the counters that are shown come from.
#[derive(Debug, Clone, Copy)]
pub enum CounterOrigin<'a> {
    Watch(&'a Watch),
    Recording(&'a Tracked),
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
