//! Counters and meters published by the process and its libraries, from a watch or a recording.

use super::cell::SortKey;
use super::overview::{histogram, rates};
use super::quantity::{SECONDS, bytes, duration, is_bytes, plain, quantity, rate};
use super::{Cell, Chart, Descriptor, Fit, Graph, Line, Role, Rows, Shows, Side, Table, View};
use crate::analysis::{CounterKind, CounterSnapshot, CounterSource, CountersSnapshot, Field, HistogramReading, Spread, without_duplicates};
use crate::app::action::Run::{Do, Emit};
use crate::app::action::{Action, Context, ENTER, Entry, char, details, places, ready_if, status};
use crate::app::text::width;
use crate::app::update::watching;
use crate::app::{Direction, Sort, State, Tab, Watch};
use crate::model::{Count, Counted, Number};
use crate::sorting::CompactSort;

/// Maximum width of a name with its tags, in a terminal with 120 columns. Wider ones show only the values of the tags, which distinguish the lines.
const MAX_NAME_WIDTH: u16 = 56;

/// The columns searched by a filter; a provider has a line of its own.
const COLUMNS: [&str; 2] = ["COUNTER", "PROVIDER"];

/// The columns by which the counters of each provider can be sorted.
const SORTABLE: [&str; 3] = ["COUNTER", "VALUE", "CHANGE"];
const BY_NAME: Sort<&str> = Sort { column: SORTABLE[0], direction: Direction::Ascending };

/// A line of the list.
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

impl CounterLine<'_> {
    fn id(&self) -> String {
        match self {
            Self::Group { name, .. } => (*name).to_owned(),
            Self::Counter(counter) => format!("{} {} {}", counter.group, counter.name, counter.tags),
        }
    }
}

/// Returns whether only increases of a counter are published. Their sum since the start of the session says little, so the rate is its value.
fn is_rate(counter: &CounterSnapshot) -> bool {
    counter.kind == CounterKind::Counter && counter.source == CounterSource::EventCounter
}

/// Returns the time unit of a counter's rate in seconds, and its suffix.
fn time_unit(counter: &CounterSnapshot) -> (f64, &'static str) {
    if matches!(counter.scaled_rate, Some((_, 60.0))) { (60.0, "/min") } else { (1.0, "/s") }
}

/// Returns the value of a counter. The first rate is unknown: it may be the sum since the start of the process.
fn current(counter: &CounterSnapshot) -> Option<f64> {
    match counter.history.as_slice() {
        [.., _, (_, rate)] if is_rate(counter) => Some(rate * time_unit(counter).0),
        _ if is_rate(counter) => None,
        _ => counter.value,
    }
}

/// Returns how much a counter changes: the rate of a sum, the difference of the last two values of a gauge or of the last two rates of a counter
/// that is one, the number of recorded values per interval of a histogram.
fn change(counter: &CounterSnapshot) -> Option<f64> {
    match counter.kind {
        CounterKind::Counter if is_rate(counter) => Some(last_step(rates(counter))? * time_unit(counter).0),
        CounterKind::Counter | CounterKind::UpDownCounter => Some(counter.rate? * time_unit(counter).0),
        CounterKind::Histogram => Some(counter.histogram.as_ref()?.count? as f64),
        CounterKind::Gauge => last_step(&counter.history),
    }
}

/// Returns the difference of the last two values.
fn last_step(history: &[(i64, f64)]) -> Option<f64> {
    match history {
        [.., (_, before), (_, last)] => Some(last - before),
        _ => None,
    }
}

/// Returns the key for sorting by value, magnitude of change, or name. Counters without the value are last.
fn sort_key(counter: &CounterSnapshot, column: &str) -> SortKey {
    let cell = match column {
        "VALUE" => Cell::known(current(counter), Role::Text),
        "CHANGE" => Cell::known(change(counter).map(f64::abs), Role::Text),
        _ => Cell::new(format!("{} {}", counter.name, counter.tags), Role::Text),
    };
    cell.into_sort_key()
}

pub(super) const TAB: Descriptor =
    Descriptor { context: |_| Context::Counters, actions: ACTIONS, ..Descriptor::new(["Counters", "Count", "Ctr"], Shows::Counters(view)) };

const ACTIONS: &[Entry] = &[
    details(Action::Open, &[ENTER], "collapse", "Collapse or expand a provider.", places::COUNTERS, Do(State::fold_counters))
        .hint(83)
        .when(|state| ready_if(state.counter_line().is_some())),
    details(
        Action::Meters,
        &[char('m')],
        "meters",
        "Watch or unwatch all meters (.NET 9).",
        places::COUNTERS,
        Emit(watching::toggle_meters),
    )
    .hint(82)
    .changing()
    .when(status::meters),
];

/// Returns `None` if there is neither a watch nor a recording with counters.
pub(super) fn view(state: &State) -> Option<View<'_>> {
    let watch = state.selected_watch();
    if watch.is_none() && state.counters().is_none_or(|snapshot| snapshot.counters.is_empty()) {
        return None;
    }
    let lines = state.counter_lines();
    let list = rows(lines.clone(), state.views.of(Tab::Counters).sort);
    let cursor = state.views.selected(Tab::Counters, list.len(), |row| list.id(row));
    let selected = match lines.get(cursor.at) {
        Some(CounterLine::Counter(counter)) => Some(*counter),
        _ => None,
    };
    let empty = match state.views.filter(Tab::Counters).as_str() {
        "" => "Waiting for the first values …",
        _ => "No counter matches the filter.",
    };
    Some(View {
        heading: watch.map(heading),
        findings: watch.into_iter().flat_map(Watch::findings).cloned().collect(),
        side: selected.map(about),
        copy: selected.map(|counter| ("counter", to_text(counter))),
        filtered: COLUMNS.to_vec(),
        ..View::new(list, cursor, empty)
    })
}

/// Describes what is watched, and any problems.
fn heading(watch: &Watch) -> Vec<Line> {
    let what = if watch.meters { "watching counters and meters" } else { "watching counters of the runtime" };
    let count = watch.counters.as_ref().map_or(0, |snapshot| snapshot.counters.len());
    let text = |text: &str, role| (text.to_owned(), role);
    let mut lines = vec![vec![text(what, Role::Good), text("   ", Role::Dim), (count.to_string(), Role::Strong)]];
    if let Some(CountersSnapshot { notices, dropped, .. }) = watch.counters.as_deref() {
        lines.extend(notices.iter().map(|notice| vec![(format!("! {notice}"), Role::Warning)]));
        if *dropped > 0 {
            lines.push(vec![(format!("! {} left out: there are too many counters", Counted(*dropped, "value")), Role::Warning)]);
        }
    }
    lines
}

fn rows<'a>(lines: Vec<CounterLine<'a>>, sort: Option<Sort<&'static str>>) -> Rows<'a> {
    Table::new(lines, CounterLine::id)
        .column(COLUMNS[0], 0, Fit::Left, |line| match line {
            CounterLine::Group { name, count, collapsed } => {
                Cell::new(format!("{} {name} ({count})", if *collapsed { "+" } else { "-" }), Role::Accent)
            }
            CounterLine::Counter(counter) => {
                let more = if counter.tags.is_empty() { format!(" {}", display_name(counter)) } else { short_tags(counter) };
                Cell::Pieces(vec![(format!("  {} ", counter.name).into(), Role::Text), (more.into(), Role::Dim)])
            }
        })
        .column("VALUE", 9, Fit::Right, of(|counter| Cell::known(current(counter).map(|value| format_value(counter, value)), Role::Strong)))
        // By convention, units that name what is counted are in braces.
        .column(
            "UNIT",
            6,
            Fit::Left,
            of(|counter| match counter.unit.as_str() {
                unit if is_bytes(unit) || unit == SECONDS => Cell::EMPTY,
                unit => Cell::new(unit.trim_matches(['{', '}']), Role::Dim),
            }),
        )
        .column(
            "CHANGE",
            10,
            Fit::Right,
            of(|counter| {
                let change = change(counter);
                Cell::known(change.map(|change| changed(counter, change)), if change == Some(0.0) { Role::Dim } else { Role::Events })
            }),
        )
        .column("HISTORY", 24, Fit::Right, of(|counter| Cell::Bars(values(counter), Role::Bytes)))
        .sortable_by(&SORTABLE, sort.unwrap_or(BY_NAME))
        .finish()
}

/// Applies `cell` to counters; provider lines have an empty cell.
fn of(cell: fn(&CounterSnapshot) -> Cell) -> impl Fn(&CounterLine<'_>) -> Cell {
    move |line| match line {
        CounterLine::Group { .. } => Cell::EMPTY,
        CounterLine::Counter(counter) => cell(counter),
    }
}

fn values(counter: &CounterSnapshot) -> Vec<f64> {
    rates(counter).iter().map(|(_, value)| *value).collect()
}

/// Formats the tags of a counter, without their keys if there is no room for them.
fn short_tags(CounterSnapshot { name, tags, .. }: &CounterSnapshot) -> String {
    if width(name).saturating_add(1).saturating_add(width(tags)) <= MAX_NAME_WIDTH {
        return tags.clone();
    }
    let values = tags.split(',').map(|tag| tag.split_once('=').map_or(tag, |(_, value)| value));
    values.collect::<Vec<_>>().join(",")
}

/// Shows details of the selected counter, and its history as a graph.
fn about(counter: &CounterSnapshot) -> Side<'_> {
    let CounterSnapshot { name, tags, unit, .. } = counter;
    let head: Vec<_> = [name.as_str(), display_name(counter), tags].into_iter().filter(|text| !text.is_empty()).collect();
    let title = match counter.kind {
        CounterKind::Counter => "per second",
        CounterKind::Histogram => "highest quantile",
        CounterKind::Gauge | CounterKind::UpDownCounter => "value",
    };
    let mut text = vec![vec![(head.join("   "), Role::Strong)]];
    let spread = spread(counter);
    if !spread.is_empty() {
        text.push(vec![(spread, Role::Text)]);
    }
    let (write, name): (fn(f64) -> String, _) = match unit.as_str() {
        SECONDS => (duration, ""),
        unit if is_bytes(unit) => (bytes, ""),
        unit => (plain, unit),
    };
    let graph = counter.histogram.as_ref().and_then(|reading| histogram(&reading.history, write));
    // The axis labels omit the unit.
    let graph = graph.map(|graph| Graph { now: format!("{} {name}", graph.now).trim_end().to_owned(), ..graph });
    let chart = graph.is_none().then(|| Chart { title, role: Role::Bytes, unit: write, values: values(counter) });
    Side { chart, graph, wide: Side::WIDE_FOR_MANY_COLUMNS, ..Side::text(text) }
}

/// Returns the display name of a counter; empty if it equals the name.
fn display_name(counter: &CounterSnapshot) -> &str {
    if counter.display_name == counter.name { "" } else { &counter.display_name }
}

/// Formats the distribution of the values.
fn spread(counter: &CounterSnapshot) -> String {
    let unit = counter.unit.as_str();
    let with_unit = |value| match unit {
        _ if is_bytes(unit) || unit == SECONDS => quantity(value, unit),
        _ => format!("{} {}", plain(value), unit.trim_matches(['{', '}'])).trim_end().to_owned(),
    };
    if let Some(HistogramReading { quantiles, count, sum, total_count, total_sum, .. }) = &counter.histogram {
        let mut parts: Vec<_> = quantiles.iter().map(|(share, value)| format!("p{} {}", plain(share * 100.0), with_unit(*value))).collect();
        parts.extend(count.map(|count| format!("count {} ({} in all)", Count(count), Count(*total_count))));
        parts.extend(sum.map(|sum| format!("sum {} ({} in all)", with_unit(sum), with_unit(*total_sum))));
        return parts.join("   ");
    }
    if let Some(sum) = counter.value.filter(|_| is_rate(counter)) {
        return format!("{} since the session started", with_unit(sum));
    }
    counter.spread.map_or_else(String::new, |Spread { min, max, standard_deviation, count }| {
        let [min, max, deviation] = [min, max, standard_deviation].map(with_unit);
        format!("from {min} to {max}   standard deviation {deviation}   of {}", Counted(count, "value"))
    })
}

/// Formats a value of a counter, with the time unit if it is a rate.
fn format_value(counter: &CounterSnapshot, value: f64) -> String {
    match counter.unit.as_str() {
        unit if !is_rate(counter) => quantity(value, unit),
        unit if is_bytes(unit) || unit == SECONDS => format!("{}{}", quantity(value, unit), time_unit(counter).1),
        // The measured length of an interval is not exact enough for many digits.
        _ => rate(value).replace("/s", time_unit(counter).1),
    }
}

/// Formats the change of a counter according to its kind.
fn changed(counter: &CounterSnapshot, change: f64) -> String {
    match counter.kind {
        CounterKind::Histogram => format!("n={}", plain(change)),
        CounterKind::Counter | CounterKind::UpDownCounter if !is_rate(counter) => {
            format!("{}{}", quantity(change, &counter.unit), time_unit(counter).1)
        }
        _ => format!("{}{}", if change > 0.0 { "+" } else { "" }, format_value(counter, change)),
    }
}

impl State {
    /// Returns the counters that are shown: those of the watch, or of the recording if the process is not watched.
    pub fn counters(&self) -> Option<&CountersSnapshot> {
        match self.selected_watch() {
            Some(watch) => watch.counters.as_deref(),
            None => Some(&self.analysis()?.snapshot.counters),
        }
    }

    /// Returns the lines of the list: the counters that pass the filter, below the name of their provider.
    pub fn counter_lines(&self) -> Vec<CounterLine<'_>> {
        let all = self.counters().map(|snapshot| snapshot.counters.as_slice()).unwrap_or_default();
        let filter = self.views.filter(Tab::Counters);
        let passes = |counter: &&CounterSnapshot| {
            let CounterSnapshot { name, display_name, tags, group, .. } = counter;
            let counter = [name, display_name, tags].map(|text| Field::text(COLUMNS[0], text));
            let [name, display_name, tags] = counter;
            filter.passes(&[name, display_name, tags, Field::text(COLUMNS[1], group)])
        };
        let sort = self.views.of(Tab::Counters).sort.unwrap_or(BY_NAME);
        let keyed = without_duplicates(all).filter(passes).map(|counter| (sort_key(counter, sort.column), counter));
        let mut shown: Vec<_> = keyed.collect();
        shown.compact_sort_by(|(a, first), (b, second)| first.group.cmp(&second.group).then_with(|| a.compare(b, sort.direction)));
        let mut lines = Vec::with_capacity(shown.len());
        for counters in shown.chunk_by(|(_, a), (_, b)| a.group == b.group) {
            let name = counters[0].1.group.as_str();
            let collapsed = self.views.collapsed_counters.contains(name);
            lines.push(CounterLine::Group { name, count: counters.len(), collapsed });
            lines.extend(counters.iter().filter(|_| !collapsed).map(|(_, counter)| CounterLine::Counter(counter)));
        }
        lines
    }

    pub fn counter_line(&self) -> Option<CounterLine<'_>> {
        let lines = self.counter_lines();
        lines.get(self.view_cursor(Tab::Counters).at.min(lines.len().checked_sub(1)?)).copied()
    }

    /// Collapses or expands the selected provider.
    pub(in crate::app) fn fold_counters(&mut self) {
        let group = match self.counter_line() {
            Some(CounterLine::Group { name, .. }) => name.to_owned(),
            Some(CounterLine::Counter(counter)) => counter.group.clone(),
            None => return,
        };
        self.views.select(Tab::Counters, group.clone());
        let collapsed = &mut self.views.collapsed_counters;
        if !collapsed.remove(&group) {
            collapsed.insert(group);
        }
    }
}

/// Formats a counter and its value as plain text.
fn to_text(counter: &CounterSnapshot) -> String {
    let CounterSnapshot { group, name, tags, unit, .. } = counter;
    let tags = if tags.is_empty() { String::new() } else { format!("[{tags}]") };
    let per = if is_rate(counter) { time_unit(counter).1 } else { "" };
    let value = current(counter).map(|value| format!(" = {} {unit}{per}", Number(value))).unwrap_or_default();
    format!("{group}/{name}{tags}{value}").trim_end().to_owned()
}
