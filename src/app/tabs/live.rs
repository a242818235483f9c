//! Views of a process that is not being recorded: its counters while it is watched, and its threads from /proc.

use super::cell::nanoseconds;
use super::overview::rates;
use super::threads::{sample_age, top_frame};
use super::{Cell, Figure, Fit, Head, Line, Live, Look, Role, Table, View};
use crate::analysis::{CounterSnapshot, CountersSnapshot, ThreadId};
use crate::app::action::{Action, Status, attach};
use crate::app::health::runtime_counter;
use crate::app::live_threads::LiveThread;
use crate::app::top_frames::TopFrame;
use crate::app::{State, Tab};
use crate::diagnosis::Source;
use crate::ipc::RuntimeVersion;
use crate::model::{Bytes, Count, CountRate, Percent, ThreadUse};

/// Shows a process that is not being recorded; `None` if it cannot be attached to.
pub(super) fn view<'a>(state: &'a State, tab: Tab, live: &Live) -> Option<View<'a>> {
    let row = state.selected().filter(|_| !state.shows_files())?;
    if attach(state, row).is_some() {
        return None;
    }
    if let Some(reason) = state.native_aot_reason(tab) {
        return Some(View::without_rows(reason));
    }
    let watch = state.selected_watch();
    let counters = watch.and_then(|watch| watch.counters.as_deref());
    let findings = watch.map(|watch| watch.findings().filter(|finding| finding.tab == tab).cloned().collect()).unwrap_or_default();
    let heading = Some(vec![heading(state, tab, live, counters.is_some())]);
    Some(View { heading, findings, graphs: state.graphs_of(live.graphs), ..(live.view)(state, counters) })
}

/// Shows the same for a process whose recording contains nothing for the tab, below the reason.
pub(super) fn below<'a>(look: Look<'a>, live: &Live, counters: Option<&'a CountersSnapshot>, (reason, role): (String, Role)) -> View<'a> {
    let mut view = (live.view)(look.state, counters);
    view.head.insert(0, Head::text(reason, role));
    View { graphs: look.state.graphs_of(live.graphs), ..view }
}

/// Shows the source of the figures, and the key that records the rest.
fn heading(state: &State, tab: Tab, live: &Live, is_watched: bool) -> Line {
    let from = match (is_watched || !live.needs_counters, state.will_be_watched() || state.selected_watch().is_some()) {
        (true, _) if live.needs_counters => "live counters".to_owned(),
        (true, _) => "from /proc".to_owned(),
        (false, true) => "waiting …".to_owned(),
        (false, false) if state.options.readonly => "not watched (--readonly)".to_owned(),
        (false, false) => format!("not watched ({})", state.key(Action::Watch)),
    };
    let role = if is_watched && live.needs_counters { Role::Good } else { Role::Dim };
    if state.options.readonly {
        return vec![(from, role)];
    }
    vec![
        (from, role),
        ("   Enter ".to_owned(), Role::Accent),
        (format!("records {} ({})", state.recording_adds(tab, live), state.profiles_of_tab(tab).join(" + ")), Role::Dim),
    ]
}

/// Returns the latest value of a counter of the runtime.
pub(super) fn value(counters: Option<&CountersSnapshot>, name: &str) -> Option<f64> {
    runtime_counter(counters?, name)?.value
}

/// Returns the rate of a monotonic counter; `None` for the first interval, see [`rates`].
pub(super) fn rate(counter: &CounterSnapshot) -> Option<f64> {
    counter.rate.filter(|_| counter.history.len() > 1)
}

/// Returns the mean change of a monotonic counter per minute, over its latest minute; see [`rates`]. Collections are often seconds apart.
fn per_minute(counter: &CounterSnapshot) -> Option<f64> {
    const VALUES: usize = 60;
    let rates = rates(counter);
    let latest = &rates[rates.len().saturating_sub(VALUES)..];
    (counter.history.len() > 1).then(|| latest.iter().map(|(_, rate)| rate).sum::<f64>() * 60.0 / latest.len() as f64)
}

/// Returns the collections of each generation only: the counter of a generation includes those of older ones.
fn collections_per_minute(counted: [Option<f64>; 3]) -> [Option<f64>; 3] {
    let older = [counted[1], counted[2], Some(0.0)];
    std::array::from_fn(|generation| Some((counted[generation]? - older[generation]?).max(0.0)))
}

/// Shows the heap by generation.
pub(super) fn gc<'a>(state: &'a State, counters: Option<&'a CountersSnapshot>) -> View<'a> {
    const PARTS: [(&str, &str); 5] =
        [("gen 0", "gen-0-size"), ("gen 1", "gen-1-size"), ("gen 2", "gen-2-size"), ("LOH", "loh-size"), ("POH", "poh-size")];
    let of = |name: &str| runtime_counter(counters?, name);
    let collections =
        collections_per_minute(["gen-0-gc-count", "gen-1-gc-count", "gen-2-gc-count"].map(|name| of(name).and_then(per_minute)));
    let collections = collections.into_iter().chain(std::iter::repeat(None));
    let rows: Vec<_> = PARTS.into_iter().zip(collections).filter_map(|((part, size), mean)| Some((part, of(size)?, mean))).collect();
    // Sizes are those after the latest collection. Before the first one, the runtime publishes 0 for all of them.
    let has_collected = rows.iter().any(|(_, size, _)| size.value.is_some_and(|bytes| bytes > 0.0));
    let sizes =
        move |size: &CounterSnapshot| if has_collected { size.history.iter().map(|(_, value)| *value).collect() } else { Vec::new() };
    let table = Table::new(rows, |(part, _, _): &(&str, &CounterSnapshot, Option<f64>)| (*part).to_owned())
        .column("HEAP", 5, Fit::Left, |(part, _, _)| Cell::new(part, Role::Text))
        .column("SIZE", 8, Fit::Right, move |(_, size, _)| match size.value {
            Some(bytes) if has_collected => Cell::new(Bytes(bytes as u64), Role::Strong),
            _ => Cell::Unknown,
        })
        .column("COLLECTIONS", 11, Fit::Right, |(_, _, mean)| {
            mean.map_or(Cell::EMPTY, |mean| {
                let digits = usize::from(mean > 0.0 && mean < 9.95);
                Cell::Number(mean, format!("{mean:.digits$}/min").into(), Role::Events)
            })
        })
        .column("HISTORY", 0, Fit::Right, move |(_, size, _)| Cell::Bars(sizes(size), Role::Bytes));
    let mut figures = Vec::new();
    let megabytes = |name| of(name).and_then(|counter| counter.value).map(|mb| Bytes((mb * 1e6) as u64));
    figures.extend(megabytes("gc-heap-size").map(|bytes| Figure::new("heap", bytes, Role::Strong)));
    if has_collected {
        figures.extend(megabytes("gc-committed").map(|bytes| Figure::new("committed", bytes, Role::Text)));
        let fragmentation = of("gc-fragmentation").and_then(|counter| counter.value);
        figures.extend(fragmentation.map(|percent| Figure::new("fragmentation", Percent(percent / 100.0), Role::Text)));
    }
    View { head: vec![Head::Figures(figures)], ..table.place(state, Tab::Gc).view("") }
}

pub(super) fn exceptions<'a>(_: &'a State, counters: Option<&'a CountersSnapshot>) -> View<'a> {
    let mut figures = Vec::new();
    if let Some(counter) = counters.and_then(|counters| runtime_counter(counters, "exception-count"))
        && let Some(rate) = rate(counter)
    {
        let peak = rates(counter).iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        figures.extend([Figure::new("rate", CountRate(rate), Role::Strong), Figure::new("peak", CountRate(peak), Role::Text)]);
    }
    View { head: vec![Head::Figures(figures)], ..View::without_rows("Counters do not list types.") }
}

pub(super) fn threads<'a>(state: &'a State, counters: Option<&'a CountersSnapshot>) -> View<'a> {
    let mut figures = Vec::new();
    let count = |name| value(counters, name).map(|count| Count(count.round().max(0.0) as u64));
    figures.extend(count("threadpool-thread-count").map(|count| Figure::new("thread pool threads", count, Role::Strong)));
    figures.extend(count("threadpool-queue-length").map(|count| Figure::new("queue", count, Role::Strong)));
    let rate = |name| rate(runtime_counter(counters?, name)?).map(CountRate);
    figures.extend(rate("threadpool-completed-items-count").map(|rate| Figure::new("completed", rate, Role::Text)));
    figures.extend(rate("monitor-lock-contention-count").map(|rate| Figure::new("lock contention", rate, Role::Text)));
    let known = state.details.threads.rows();
    let empty = match &known {
        None => "Listing threads …",
        Some(rows) if rows.is_empty() => "/proc does not list the threads.",
        Some(_) => "Nothing matches the filter.",
    };
    let mut head = vec![Head::Figures(figures)];
    if state.details.stacks.get().is_none() && Action::Stacks.status(state) == Status::Ready {
        head.push(Head::text(
            format!("{} samples the top frame of each thread: where it runs or waits.", state.key(Action::Stacks)),
            Role::Dim,
        ));
    }
    View { head, ..listed(state, known.unwrap_or_default()).place(state, Tab::Threads).view(empty) }
}

/// Returns the state of a thread according to the kernel.
pub(super) fn state_of(thread: &ThreadUse) -> Cell {
    let (word, role) = match thread.state {
        'R' => ("running", Role::Good),
        'S' | 'I' => ("sleeping", Role::Dim),
        'D' => ("disk wait", Role::Warning),
        'T' | 't' => ("stopped", Role::Warning),
        'Z' | 'X' => ("exited", Role::Dim),
        _ => ("", Role::Dim),
    };
    Cell::new(word, role)
}

/// A thread with its innermost method, if known.
type ThreadWithFrame<'a> = (LiveThread<'a>, Option<TopFrame<'a>>);

/// Lists the threads of a process from /proc.
pub(super) fn listed<'a>(state: &'a State, rows: Vec<LiveThread<'a>>) -> Table<'a, ThreadWithFrame<'a>> {
    let tops = state.top_frames();
    let rows = rows.into_iter().map(|row| (row, tops.get(&ThreadId::of(row.thread.thread)).copied())).collect();
    let never_has_frames = tops.is_empty() && state.gap(Source::Samples).is_some();
    Table::new(rows, |(row, _): &ThreadWithFrame<'_>| row.thread.thread.to_string())
        .column("CPU%", 6, Fit::Right, |(row, _)| {
            let role = if row.cpu.is_some_and(|share| share >= 0.005) { Role::Strong } else { Role::Dim };
            row.cpu.map_or(Cell::EMPTY, |share| Cell::Number(share, format!("{:.1}", share * 100.0).into(), role))
        })
        .column("CPU", 7, Fit::Right, |(row, _)| Cell::new(nanoseconds(row.thread.cpu), Role::Bytes))
        .column("STATE", 9, Fit::Left, |(row, _)| state_of(row.thread))
        .column("THREAD", 8, Fit::Right, |(row, _)| Cell::new(row.thread.thread, Role::Dim))
        .column("NAME", 16, Fit::Left, |(row, _)| Cell::new(&row.thread.name, Role::Text))
        .shrinking_to(10)
        .growing_to(32)
        .column_if(!never_has_frames, "TOP FRAME", 0, Fit::Name, |(_, top)| top_frame(*top))
        .column_if(!tops.is_empty(), "SAMPLED", 9, Fit::Right, |(_, top)| sample_age(*top, false))
}

impl State {
    /// Returns the profiles that record the content of a tab.
    pub fn profiles_of_tab(&self, tab: Tab) -> Vec<String> {
        let mut profiles: Vec<_> = self.sources_of(tab).map(|source| source.profile().to_owned()).collect();
        profiles.dedup();
        profiles
    }

    /// Returns why the selected process never provides a source, as a sentence without a period.
    pub(in crate::app) fn gap(&self, source: Source) -> Option<String> {
        let process = self.selected().map(|row| &row.process).filter(|process| process.native_aot)?;
        let gap = source.native_aot_gap(process.runtime.as_ref().map(RuntimeVersion::major))?;
        Some(format!("{}: {gap}", process.name))
    }

    /// Returns the sources of a tab that the selected process provides.
    fn sources_of(&self, tab: Tab) -> impl Iterator<Item = Source> + '_ {
        tab.sources().iter().filter_map(move |source| match source {
            source if self.gap(*source).is_none() => Some(*source),
            // The profile for allocations records collections as well.
            Source::Allocations => Some(Source::Collections),
            _ => None,
        })
    }

    /// Returns what a recording adds to a tab: as it describes itself, or the events that it can have if some are missing.
    fn recording_adds(&self, tab: Tab, live: &Live) -> String {
        let provided: Vec<_> = self.sources_of(tab).collect();
        if provided == tab.sources() {
            return live.recording_adds.to_owned();
        }
        provided.into_iter().map(Source::events).collect::<Vec<_>>().join(", ")
    }

    /// Returns why a tab has no content if the selected process is a NativeAOT program that never has any.
    pub(in crate::app) fn native_aot_reason(&self, tab: Tab) -> Option<String> {
        let gap = tab.sources().iter().find_map(|source| self.gap(*source))?;
        self.sources_of(tab).next().is_none().then(|| format!("{gap}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::{TestApp, process};
    use crate::app::{AutoWatch, Msg};
    use crate::model::Process;

    #[test]
    fn collections_of_older_generations_are_not_counted_as_younger_ones() {
        assert_eq!(collections_per_minute([Some(90.0), Some(12.0), Some(2.0)]), [Some(78.0), Some(10.0), Some(2.0)]);
        assert_eq!(collections_per_minute([Some(60.0); 3]), [Some(0.0), Some(0.0), Some(60.0)]);
        assert_eq!(collections_per_minute([Some(60.0), None, Some(2.0)]), [None, None, Some(2.0)]);
    }

    #[test]
    fn native_aot_program_is_offered_only_the_recordings_it_can_have() {
        for (version, tab, expected) in [
            ("8.0.33", ":Threads⏎", "Enter records thread pool events (threadpool)"),
            ("9.0.7", ":Threads⏎", "Enter records locks, thread pool (contention + threadpool)"),
            ("8.0.33", ":GC⏎", "Enter records collections (dotnet-common)"),
            ("9.0.7", ":GC⏎", "Enter records pauses and allocated types (gc-verbose)"),
            ("8.0.33", ":Exceptions⏎", "Enter records types, messages and stacks (exceptions)"),
        ] {
            let mut app = TestApp::new(120, 40);
            app.state.options.watch = AutoWatch::Never;
            let process = Process { native_aot: true, runtime: Some(RuntimeVersion::new(version)), ..process(7, "Shop") };
            app.send(Msg::Processes(vec![process]));
            app.press("⏎");
            app.press(tab);
            let screen = crate::ui::tests::screen(&app.state);
            assert!(screen.contains(expected), "{version} {tab}: {screen}");
            assert!(!screen.contains("TOP FRAME"), "{version} {tab}: {screen}");
        }
    }

    #[test]
    fn native_aot_program_has_no_content_to_record_in_some_tabs() {
        for (native_aot, tab, is_empty) in
            [(true, ":JIT⏎", true), (true, ":Assemblies⏎", true), (true, ":Threads⏎", false), (false, ":JIT⏎", false)]
        {
            let mut app = TestApp::new(120, 40);
            app.state.options.watch = AutoWatch::Never;
            let mut process = process(7, "Shop");
            process.native_aot = native_aot;
            app.send(Msg::Processes(vec![process]));
            app.press("⏎");
            app.press(tab);
            let screen = crate::ui::tests::screen(&app.state);
            assert_eq!(
                screen.contains("Shop: a NativeAOT program compiles no methods and loads no assemblies."),
                is_empty,
                "{tab}: {screen}"
            );
            assert_eq!(screen.contains("Enter record"), !is_empty, "{tab}: {screen}");
        }
    }
}
