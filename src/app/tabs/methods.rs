//! Samples by method: as a list, a call tree or a flame graph, for all threads or one.

mod figures;

use super::threads::{ESTIMATED, core_share, may_be_waiting, threads, times};
use super::{Cell, Descriptor, Fit, Head, Line, Look, Recorded, Role, Shows, Side, TabList, Table, View};
use crate::analysis::{Counts, MethodCount, Origin, ProfileFrame, SampleCount};
use crate::app::action::Run::Do;
use crate::app::action::{Action, BACKSPACE, Context, ENTER, Entry, Status, char, details, places, ready_if};
use crate::app::call_tree::{TreeRow, short_label, short_name};
use crate::app::{FlameGraph, Sampling, Shape, State, Tab};
use crate::diagnosis::Source;
use crate::model::{CpuTime, CpuTimeUnavailable, Nanoseconds, Percent};

pub(super) const TAB: Descriptor = Descriptor {
    context: |state| {
        if state.is_flame() {
            Context::Flame
        } else if state.is_tree() {
            Context::CallTree
        } else {
            Context::Methods
        }
    },
    actions: ACTIONS,
    ..Descriptor::new(["Methods", "Methods", "Mth"], Shows::Recording(Recorded { view, sources: &[], live: None }))
};

const ACTIONS: &[Entry] = &[
    details(
        Action::Waiting,
        &[char('w')],
        "waiting",
        "Show waiting threads, or CPU time again.",
        places::METHODS,
        Do(|state| state.views.sampling.waiting = !state.views.sampling.waiting),
    )
    .hint(82)
    .when(|state| {
        // Kernel samples cover running threads; waiting threads are included only where the kernel reports their stacks.
        let has_waiting = state.analysis().is_some_and(|analysis| !analysis.profile.is_empty() || analysis.waits().is_some());
        ready_if(has_waiting && state.views.sampling.shape != Shape::Threads)
    }),
    details(
        Action::Shape,
        &[char('f')],
        "tree/flame",
        "Switch between list, call tree and flame graph.",
        places::METHODS,
        Do(State::next_shape),
    )
    .hint(83)
    .when(has_samples)
    .label_now(|state| match state.views.sampling.shape {
        Shape::List => "tree",
        Shape::Tree => "flame graph",
        Shape::Flame => "list",
        Shape::Threads => "methods",
        Shape::Callers => "tree/flame",
    }),
    details(Action::Threads, &[char('s')], "threads", "Choose a thread.", places::METHODS, Do(State::toggle_threads))
        .hint(81)
        .when(has_samples),
    details(
        Action::Open,
        &[ENTER],
        "zoom in",
        "Zoom in, or show the methods of the thread.",
        places::FLAT_METHODS,
        Do(State::enter_sampling),
    )
    .hint(84)
    .when(|state| ready_if(state.has_samples() && matches!(state.views.sampling.shape, Shape::Flame | Shape::Threads))),
    details(
        Action::Callers,
        &[char('c')],
        "callers",
        "Show the callers of the selected method, or go back.",
        places::METHODS,
        Do(State::toggle_callers),
    )
    .hint(79)
    .when(|state| ready_if(state.has_samples() && state.views.sampling.shape != Shape::Threads)),
    details(Action::Widen, &[BACKSPACE], "zoom out", "Zoom out, back from callers, or to all threads.", places::METHODS, Do(State::widen))
        .hint(83)
        .when(|state| ready_if(state.can_widen())),
];

fn has_samples(state: &State) -> Status {
    ready_if(state.has_samples())
}

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let sampling = &look.state.views.sampling;
    let counts = look.counts();
    let cpu = cpu(look);
    if counts.samples().all() == 0 && look.state.shown_thread().is_none() && cpu.is_none() {
        return View { empty: look.missing(Source::Samples), ..methods(look, &counts, Vec::new()).view("") };
    }
    let of_figures = match cpu {
        Some(cpu) if shows_waits(look) => figures::of_waits(look, &counts, cpu),
        Some(cpu) => figures::of_cpu(&counts, cpu),
        None => figures::of_thread_time(&counts),
    };
    let mut head = vec![Head::Figures(of_figures), Head::Text(description(look, &counts))];
    if let Some(CpuTimeUnavailable { why, remedy }) = &look.tracked.value.cpu_unavailable {
        let text = if remedy.is_empty() { why.to_string() } else { format!("for CPU time of all code: {remedy}") };
        head.push(Head::text(text, Role::Warning));
    }
    let named = |frame: &ProfileFrame| ("method", frame.full_name());
    let (all_samples, mut flame) = (counts.samples().all(), None);
    let (list, cursor, frame, copy) = match sampling.shape {
        Shape::List => {
            let TabList { list, cursor, selected } = methods(look, &counts, look.state.methods_of(&counts));
            let frame = selected.map(|(_, frame)| frame);
            (list, cursor, frame, frame.map(named))
        }
        Shape::Flame => {
            let TabList { list, cursor, .. } = methods(look, &counts, look.state.methods_of(&counts));
            flame = look.state.flame_of(counts);
            (list, cursor, None, flame.as_ref().and_then(FlameGraph::selected_frame).map(named))
        }
        Shape::Tree | Shape::Callers => {
            let TabList { list, cursor, selected } = tree(look, &counts);
            let frame = selected.and_then(|row| counts.profile().frame_at(row.node.frame));
            (list, cursor, frame, frame.map(named))
        }
        Shape::Threads => {
            let TabList { list, cursor, selected } = threads(look, look.state.thread_rows()).sorted_below_first(look.state, Tab::Methods);
            (list, cursor, None, selected.and_then(|row| Some(("thread", row.thread?.to_string()))))
        }
    };
    let empty = match (look.state.views.filter(Tab::Methods).is_empty(), all_samples) {
        (false, _) => "No method matches the filter.".to_owned(),
        (true, _) if shows_waits(look) => "No wait in managed code so far.".to_owned(),
        (true, 0) if cpu.is_some() => format!("No CPU time so far: all threads wait. {} shows why.", look.state.key(Action::Threads)),
        (true, 0) => "This thread has no sample here. Backspace: all threads.".to_owned(),
        (true, _) => format!("All threads wait: {} shows where.", look.state.key(Action::Waiting)),
    };
    View {
        head,
        side: frame.map(|frame| Side::footer(vec![about(frame)])),
        copy,
        flame,
        filtered: Sampling::COLUMNS.to_vec(),
        ..View::new(list, cursor, empty)
    }
}

/// Returns the CPU time, if the samples come from the kernel.
fn cpu(look: Look<'_>) -> Option<&CpuTime> {
    let sampling = &look.state.views.sampling;
    let is_of_runtime = (sampling.waiting || sampling.shape == Shape::Threads) && !shows_waits(look);
    look.analysis.cpu_time(is_of_runtime)
}

/// Returns whether the samples are waits reported by the kernel.
fn shows_waits(look: Look<'_>) -> bool {
    let sampling = &look.state.views.sampling;
    sampling.waiting && sampling.shape != Shape::Threads && look.analysis.waits().is_some()
}

/// Describes the chosen thread, and what the figures measure.
fn description(look: Look<'_>, counts: &Counts<'_>) -> Line {
    let sampling = &look.state.views.sampling;
    let mut line = Line::new();
    if let Some(thread) = look.state.shown_thread().filter(|_| sampling.shape != Shape::Threads) {
        let rows = look.state.thread_rows();
        let name = rows.iter().find(|row| row.thread == Some(thread)).map_or("", |row| row.name);
        line.push((format!(" thread {thread} {name}{}", if name.is_empty() { "" } else { " " }), Role::Chip));
        line.push(("  Backspace: all   ".to_owned(), Role::Dim));
    }
    if shows_waits(look) {
        let key = look.state.key(Action::Waiting);
        line.push((format!("blocked time by waiting method, from the kernel ({key}: CPU time)"), Role::Dim));
        return line;
    }
    if let Some(cpu) = cpu(look) {
        let (action, other) = match (look.analysis.waits(), look.analysis.profile.is_empty()) {
            (Some(_), _) => (Action::Waiting, "where threads wait"),
            (None, true) => (Action::Threads, "threads"),
            (None, false) => (Action::Waiting, "thread time, managed only"),
        };
        let key = look.state.key(action);
        let kernel_hint =
            if cpu.losses.includes_kernel || look.has_ended() { "" } else { "; kernel code not visible without root or CAP_PERFMON" };
        line.push((format!("CPU time of all code, sampled by the kernel ({key}: {other}){kernel_hint}"), Role::Dim));
        return line;
    }
    let key = look.state.key(Action::Waiting);
    let (text, role) = match (counts.distinguishes_waiting(), sampling.waiting) {
        (true, _) if sampling.shape == Shape::Threads => (format!("{}.  Enter: methods of the thread", times(look)), Role::Dim),
        (true, true) if counts.profile().has_cpu_times => {
            (format!("thread time (managed only, includes waiting; {key}: CPU only)"), Role::Dim)
        }
        (true, true) => (format!("thread time (managed only, includes waiting; {key}: without known waits)"), Role::Dim),
        (true, false) if counts.profile().has_cpu_times => (format!("{ESTIMATED} (managed only; {key}: all)"), Role::Dim),
        (true, false) => (format!("{} (managed only; {key}: all)", may_be_waiting(counts)), Role::Dim),
        // A waiting thread is recognized by the name of its method.
        (false, _) if look.has_ended() => {
            ("thread time: many names are unresolved: waiting threads count as running".to_owned(), Role::Warning)
        }
        (false, _) => ("thread time: waiting threads count as running until names are resolved".to_owned(), Role::Warning),
    };
    line.push((text, role));
    line
}

fn methods<'a>(
    look: Look<'a>,
    counts: &Counts<'a>,
    rows: Vec<(MethodCount, &'a ProfileFrame)>,
) -> TabList<'a, (MethodCount, &'a ProfileFrame)> {
    if let Some(cpu) = cpu(look) {
        let table = Table::new(rows, |(_, frame): &(MethodCount, &ProfileFrame)| frame.full_name());
        return cpu_times(look, table, cpu, ["SELF", "TOTAL"], |(method, _)| [method.own, method.total])
            .column(Sampling::COLUMNS[0], 0, Fit::Name, move |(_, frame)| match frame.is_unresolved() {
                false => Cell::new(&frame.name, role(frame.origin)),
                true => Cell::new(format!("{} {}", frame.name, look.unresolved()), Role::Dim),
            })
            .column("KIND", 9, Fit::Left, |(_, frame)| Cell::known(kind(frame), role(frame.origin)))
            .growing_to(19)
            .column(Sampling::COLUMNS[1], 22, Fit::Left, |(_, frame)| Cell::new(&frame.module, Role::Dim))
            .growing_to(48)
            .sorted_by("SELF")
            .sorted(look.state, Tab::Methods);
    }
    shares(look, counts, Table::new(rows, |(_, frame)| frame.full_name()), |(method, _)| (method.own, method.total))
        .column(Sampling::COLUMNS[0], 0, Fit::Name, move |(_, frame)| match frame.is_known() {
            true => Cell::new(&frame.name, Role::Text),
            false => Cell::new(format!("{} {}", frame.name, look.unresolved()), Role::Dim),
        })
        .column(Sampling::COLUMNS[1], 22, Fit::Left, |(_, frame)| Cell::new(&frame.module, Role::Dim))
        .growing_to(48)
        .column("TIER", 8, Fit::Left, |(_, frame)| Cell::known(kind(frame), Role::Dim))
        .growing_to(19)
        .sorted_by("SELF")
        .sorted(look.state, Tab::Methods)
}

/// Returns the highest tier of a managed method, or the origin of other code.
fn kind(frame: &ProfileFrame) -> Option<&'static str> {
    match frame.origin {
        Origin::Managed => frame.tiers.last().map(|tier| tier.name()),
        Origin::Unknown => None,
        origin => Some(origin.name()),
    }
}

/// Returns the role of code by its origin.
fn role(origin: Origin) -> Role {
    match origin {
        Origin::Managed => Role::Text,
        Origin::Native | Origin::Allocation | Origin::Exception => Role::Part(0),
        Origin::Kernel => Role::Part(1),
        Origin::Gc => Role::Part(2),
        Origin::Jit => Role::Part(3),
        Origin::Stub | Origin::Unknown => Role::Dim,
    }
}

/// Adds columns for CPU or wait time, its share of one core or thread recently and on average, and the other time.
fn cpu_times<'a, T: 'a>(
    look: Look<'a>,
    table: Table<'a, T>,
    cpu: &'a CpuTime,
    [first, second]: [&'static str; 2],
    of: fn(&T) -> [SampleCount; 2],
) -> Table<'a, T> {
    let time = |samples: SampleCount, role: Role| match samples.all_ns() {
        0 => Cell::EMPTY,
        ns => Cell::new(Nanoseconds(ns), role),
    };
    table
        .column(first, 7, Fit::Right, move |row| time(of(row)[0], Role::Strong))
        .column_if(!cpu.recent.is_zero(), "NOW%", 6, Fit::Right, move |row| core_share(of(row)[0].recent_ns, cpu.recent, Role::Events))
        .column(if shows_waits(look) { "WAIT%" } else { "CPU%" }, 6, Fit::Right, move |row| {
            core_share(of(row)[0].all_ns(), cpu.elapsed, Role::Text)
        })
        .column(second, 7, Fit::Right, move |row| time(of(row)[1], Role::Text))
}

fn tree<'a>(look: Look<'a>, counts: &Counts<'a>) -> TabList<'a, TreeRow<'a>> {
    let title = match look.state.views.sampling.shape {
        Shape::Callers => "METHOD AND ITS CALLERS",
        _ => "METHOD (CALL TREE)",
    };
    let rows = if look.state.is_tree() { look.state.tree_rows(Tab::Methods, counts) } else { Vec::new() };
    let table = Table::new(rows, |row: &TreeRow<'_>| row.id.to_string());
    if let Some(cpu) = cpu(look) {
        return cpu_times(look, table, cpu, ["TOTAL", "SELF"], |row| [row.node.total, row.node.own])
            .column(title, 0, Fit::Name, |TreeRow { node, branch, .. }| {
                Cell::Node(branch.clone(), short_label(node.origin, node.name).into(), role(node.origin))
            })
            .in_order(look.state, Tab::Methods);
    }
    shares(look, counts, table, |row| (row.node.own, row.node.total))
        .column(title, 0, Fit::Name, |TreeRow { node, branch, .. }| Cell::Node(branch.clone(), short_name(node.name).into(), Role::Text))
        .in_order(look.state, Tab::Methods)
}

/// Adds columns for self and total time as shares of the counted time, and as a bar: self, then callees.
fn shares<'a, T: 'a>(look: Look<'a>, counts: &Counts<'_>, table: Table<'a, T>, of: fn(&T) -> (SampleCount, SampleCount)) -> Table<'a, T> {
    let counted = move |samples| look.state.views.sampling.counted_ns(samples);
    let base = counted(counts.samples()).max(1) as f64;
    let share = move |samples| counted(samples) as f64 / base;
    table
        .column("SELF", 6, Fit::Right, move |row| {
            let own = share(of(row).0);
            Cell::new(Percent(own), if own > 0.0 { Role::Strong } else { Role::Dim })
        })
        .column("TOTAL", 6, Fit::Right, move |row| Cell::new(Percent(share(of(row).1)), Role::Text))
        .column("", 12, Fit::Left, move |row| {
            let (own, total) = of(row);
            Cell::Meter(vec![(share(own), Role::Events), ((share(total) - share(own)).max(0.0), Role::Bytes)])
        })
}

/// Shows the full name of a method, which may not fit into its column.
fn about(frame: &ProfileFrame) -> Line {
    let tiers: Vec<_> = frame.tiers.iter().map(|tier| tier.name()).collect();
    let facts: Vec<_> = [frame.module.clone(), tiers.join(", ")].into_iter().filter(|part| !part.is_empty()).collect();
    vec![(format!("{}   ", frame.full_name()), Role::Accent), (facts.join("   "), Role::Dim)]
}
