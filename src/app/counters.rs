//! The counters view: grouped by provider, collapsible, filtered and sorted.

use std::collections::BTreeSet;

use super::recordings::TrackedRecording;
use super::watches::Watch;
use crate::analysis::{CounterKind, CounterSnapshot};

#[derive(Debug, Default)]
pub struct CounterView {
    /// Providers and meters whose groups are collapsed.
    pub(super) collapsed: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy)]
pub enum CounterLine<'a> {
    Group {
        name: &'a str,
        /// Number of counters in the group.
        count: usize,
        collapsed: bool,
    },
    Counter(&'a CounterSnapshot),
}

/// The source of the counters shown.
#[derive(Debug, Clone, Copy)]
pub enum CounterOrigin<'a> {
    Watch(&'a Watch),
    Recording(&'a TrackedRecording),
}

/// Returns how much a counter changes: its rate for a sum, the difference of the last two values for a gauge, the number of recorded values per
/// interval for a histogram.
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
