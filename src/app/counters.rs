//! How counters are looked at: by provider, folded away, filtered and sorted.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::recordings::Tracked;
use super::state::State;
use super::watches::Watch;
use crate::analysis::{CounterKind, CounterSnapshot, CountersSnapshot, told_once};
use crate::model::sanitise;

/// How counters are looked at.
#[derive(Debug, Default)]
pub struct CounterView {
    /// In what order.
    pub order: CounterOrder,
    /// Providers and meters whose counters are folded away.
    folded: BTreeSet<String>,
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
    fn step(self, forward: bool) -> Self {
        const ALL: [CounterOrder; 3] = [CounterOrder::Name, CounterOrder::Value, CounterOrder::Change];
        ALL[(self as usize + if forward { 1 } else { ALL.len() - 1 }) % ALL.len()]
    }

    fn compare(self, a: &CounterSnapshot, b: &CounterSnapshot) -> Ordering {
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
    /// What tells it from others.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Group { name, .. } => (*name).to_owned(),
            Self::Counter(counter) => format!("{} {} {}", counter.group, counter.name, counter.tags),
        }
    }

    fn group(&self) -> &str {
        match self {
            Self::Group { name, .. } => name,
            Self::Counter(counter) => &counter.group,
        }
    }
}

impl State {
    /// Where the counters of the selected process come from: it is watched, or a recording has some.
    pub fn counter_origin(&self) -> Option<CounterOrigin<'_>> {
        let watch = self.list.selected().and_then(|key| self.watches.of(key));
        watch.map(CounterOrigin::Watch).or_else(|| self.shown_recording().map(CounterOrigin::Recording))
    }

    /// The counters that are shown.
    pub fn counters(&self) -> Option<&CountersSnapshot> {
        match self.counter_origin()? {
            CounterOrigin::Watch(watch) => watch.counters.as_deref(),
            CounterOrigin::Recording(tracked) => Some(&tracked.value.findings.as_deref()?.snapshot.counters),
        }
    }

    /// The lines of the list: what the filter lets through, below the name of its provider.
    pub fn counter_lines(&self) -> Vec<CounterLine<'_>> {
        let all = self.counters().map(|snapshot| snapshot.counters.as_slice()).unwrap_or_default();
        let passes = |counter: &&CounterSnapshot| {
            let CounterSnapshot { name, display_name, tags, group, .. } = counter;
            self.passes([&format!("{name} {display_name} {tags}"), group])
        };
        let mut shown: Vec<_> = told_once(all).filter(passes).collect();
        shown.sort_by(|a, b| a.group.cmp(&b.group).then_with(|| self.views.counters.order.compare(a, b)));
        let mut lines = Vec::with_capacity(shown.len());
        for counters in shown.chunk_by(|a, b| a.group == b.group) {
            let name = counters[0].group.as_str();
            let folded = self.views.counters.folded.contains(name);
            lines.push(CounterLine::Group { name, count: counters.len(), folded });
            lines.extend(counters.iter().filter(|_| !folded).map(|counter| CounterLine::Counter(counter)));
        }
        lines
    }

    /// The line that is selected.
    pub fn counter_line(&self) -> Option<CounterLine<'_>> {
        let lines = self.counter_lines();
        lines.get(self.view_cursor(super::Tab::Counters).at.min(lines.len().checked_sub(1)?)).copied()
    }

    /// Folds the selected provider away, or shows what it has.
    pub(super) fn fold_counters(&mut self) {
        let Some(group) = self.counter_line().map(|line| line.group().to_owned()) else { return };
        self.views.select(super::Tab::Counters, group.clone());
        let folded = &mut self.views.counters.folded;
        if !folded.remove(&group) {
            folded.insert(group);
        }
    }

    pub(super) fn order_counters(&mut self, forward: bool) {
        self.views.counters.order = self.views.counters.order.step(forward);
    }

    /// The selected counter and its value, for somebody who copies it.
    pub(super) fn shown_counter(&self) -> Option<String> {
        let CounterLine::Counter(counter) = self.counter_line()? else { return None };
        let CounterSnapshot { group, name, tags, unit, value, .. } = counter;
        let tags = if tags.is_empty() { String::new() } else { format!("[{tags}]") };
        let value = value.map(|value| format!(" = {value} {unit}")).unwrap_or_default();
        Some(sanitise(format!("{group}/{name}{tags}{value}").trim_end()))
    }
}
