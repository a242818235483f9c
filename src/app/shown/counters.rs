//! The counters that are shown: by provider, those that the filter lets through.

use crate::analysis::{CounterSnapshot, CountersSnapshot, told_once};
use crate::app::counters::{CounterLine, CounterOrigin};
use crate::app::pane::Tab;
use crate::app::state::State;
use crate::model::{Number, sanitise};

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
        lines.get(self.view_cursor(Tab::Counters).at.min(lines.len().checked_sub(1)?)).copied()
    }

    /// Folds the selected provider away, or shows what it has.
    pub(in crate::app) fn fold_counters(&mut self) {
        let Some(group) = self.counter_line().map(|line| line.group().to_owned()) else { return };
        self.views.select(Tab::Counters, group.clone());
        let folded = &mut self.views.counters.folded;
        if !folded.remove(&group) {
            folded.insert(group);
        }
    }

    pub(in crate::app) fn order_counters(&mut self, forward: bool) {
        self.views.counters.order = self.views.counters.order.step(forward);
    }

    /// The selected counter and its value, for somebody who copies it.
    pub(in crate::app) fn shown_counter(&self) -> Option<String> {
        let CounterLine::Counter(counter) = self.counter_line()? else { return None };
        let CounterSnapshot { group, name, tags, unit, value, .. } = counter;
        let tags = if tags.is_empty() { String::new() } else { format!("[{tags}]") };
        let value = value.map(|value| format!(" = {} {unit}", Number(value))).unwrap_or_default();
        Some(sanitise(format!("{group}/{name}{tags}{value}").trim_end()))
    }
}
