//! The stacks of all threads at one moment, with threads grouped by stack.

use foldhash::HashMap;

use super::{Cell, Descriptor, Figure, Fit, Head, Line, Role, Shows, Side, TabList, Table, View};
use crate::analysis::{StackGroup, ThreadId};
use crate::app::action::{Action, Status};
use crate::app::{Answer, RowKind, State, Tab};
use crate::diagnosis::{is_own, may_be_lock, wait_of_stack};
use crate::ipc::RuntimeVersion;
use crate::model::{Count, SafeText};

/// Threads of a stack that are listed: its frames follow.
const MAX_THREADS: usize = 12;

/// The stacks of all threads of a process.
#[derive(Debug, Clone)]
pub struct Stacks {
    /// Threads grouped by stack, the largest group first.
    pub groups: Vec<StackGroup>,
    /// Thread names by thread id.
    pub names: Vec<(u64, SafeText)>,
    /// What threads wait for in the kernel, by thread id.
    pub waits: HashMap<u64, &'static str>,
    /// Why method names may be missing.
    pub trouble: Option<SafeText>,
}

pub(super) const TAB: Descriptor =
    Descriptor { is_shown: RowKind::is_process, ..Descriptor::new(["Stacks", "Stacks", "Stk"], Shows::List(view)) };

pub(super) fn view(state: &State) -> View<'_> {
    let stacks = state.details.stacks.get();
    let groups: &[StackGroup] = stacks.map_or(&[], |stacks| &stacks.groups);
    let runtime = state.selected().and_then(|row| row.process.runtime.as_ref()).map(RuntimeVersion::major);
    let wait = move |group: &StackGroup| {
        let kernel = stacks.and_then(|stacks| group.common_wait(|thread| stacks.waits.get(&thread).copied()));
        wait_of_stack(group, kernel, runtime)
    };
    // Threads that wait for locks may block one another.
    let rows = groups.iter().map(|group| (group, wait(group)));
    let (locks, others): (Vec<_>, Vec<_>) = rows.partition(|(_, wait)| may_be_lock(*wait));
    let in_locks: usize = locks.iter().map(|(group, _)| group.threads.len()).sum();
    let id = |(group, wait): &(&StackGroup, Option<&str>)| format!("{} {}", wait.unwrap_or_default(), group.frames.join("\n"));
    let TabList { list, cursor, selected } = Table::new([locks, others].concat(), id)
        .column("THREADS", 7, Fit::Right, |(group, _)| Cell::new(Count(group.threads.len() as u64), Role::Strong))
        .column("WAIT", 7, Fit::Left, |(_, wait)| match *wait {
            Some(wait) => Cell::new(wait, if may_be_lock(Some(wait)) { Role::Warning } else { Role::Dim }),
            None => Cell::new("", Role::Dim),
        })
        .column("TOP FRAME", 0, Fit::Name, |(group, _)| match group.frames.first() {
            Some(frame) => Cell::new(frame, Role::Text),
            None => Cell::new("(no managed code)", Role::Dim),
        })
        .column("PROGRAM METHOD", 34, Fit::Name, |(group, _)| Cell::new(program_method(group).unwrap_or_default(), Role::Accent))
        .shrinking_to(24)
        .place(state, Tab::Stacks);
    let threads: usize = groups.iter().map(|group| group.threads.len()).sum();
    let mut head = Vec::new();
    if let Some(stacks) = stacks {
        let mut figures = vec![Figure::new("threads", threads, Role::Strong), Figure::new("stacks", groups.len(), Role::Text)];
        figures.extend((in_locks > 0).then(|| Figure::new("waiting for locks", in_locks, Role::Warning)));
        head.push(Head::Figures(figures));
        head.extend(stacks.trouble.as_deref().map(|trouble| Head::text(trouble, Role::Warning)));
    }
    View {
        heading: Some(vec![heading(state)]),
        head,
        empty: empty(state),
        side: selected.zip(stacks).map(|((group, _), stacks)| Side { wide: 120, thirds: 2, ..Side::text(about(group, stacks)) }),
        copy: selected.map(|(group, _)| ("stack", group.frames.join("\n"))),
        ..View::new(list, cursor, "")
    }
}

/// Returns the nearest method outside .NET, unless it is the top frame.
fn program_method(group: &StackGroup) -> Option<&str> {
    let first = group.frames.first()?;
    group.frames.iter().map(String::as_str).find(|frame| is_own(frame)).filter(|frame| frame != first)
}

fn heading(state: &State) -> Line {
    match &state.details.stacks {
        Answer::NotRequested => Vec::new(),
        Answer::Requested(_) => vec![("Sampling all threads …".to_owned(), Role::Dim)],
        Answer::Received(_) | Answer::Failed(_) => {
            vec![(state.key(Action::Stacks), Role::Accent), (" samples all threads again".to_owned(), Role::Dim)]
        }
    }
}

/// Returns the text shown instead of an empty list.
fn empty(state: &State) -> (String, Role) {
    match (&state.details.stacks, Action::Stacks.status(state)) {
        (Answer::Received(_), _) => ("No stack matches the filter.".to_owned(), Role::Dim),
        (Answer::Failed(reason), _) => (reason.to_string(), Role::Warning),
        (Answer::NotRequested, Status::Refused(reason)) => (reason, Role::Warning),
        (Answer::NotRequested, _) => {
            let key = state.key(Action::Stacks);
            (format!("{key}: sample the stacks of all threads. They are stopped for a moment."), Role::Text)
        }
        (Answer::Requested(_), _) => (String::new(), Role::Dim),
    }
}

/// Shows the threads of a stack, and its frames.
fn about(group: &StackGroup, stacks: &Stacks) -> Vec<Line> {
    let thread = |id: &ThreadId| {
        let name = id.in_process().and_then(|number| stacks.names.iter().find(|(other, _)| *other == number));
        name.map_or_else(|| id.to_string(), |(_, name)| format!("{id} {name}"))
    };
    let mut threads: Vec<_> = group.threads.iter().take(MAX_THREADS).map(|(id, _)| thread(id)).collect();
    threads.extend(group.threads.len().checked_sub(MAX_THREADS + 1).map(|more| format!("and {} more", more + 1)));
    let mut lines = vec![vec![(threads.join(", "), Role::Dim)]];
    lines.extend(group.frames.iter().map(|frame| {
        let role = if is_own(frame) { Role::Strong } else { Role::Text };
        vec![("at ".to_owned(), Role::Dim), (frame.clone(), role)]
    }));
    lines
}
