//! Actions on a process.

use crate::app::Change;
use crate::app::action::Run::{Do, Emit};
use crate::app::action::places::{DETAIL, LIST, PANES, WATCH};
use crate::app::action::{Action, Entry, acts, char, status};
use crate::app::update::{heap, panes, process, tagged, watching};

const WHY_SLOW: &str = "Why is it slow: record 30 s and list the causes, the worst first.";

/// An action that opens a dialog to change something in a process.
macro_rules! change {
    ($change:ident, $label:literal, $help:literal) => {
        acts(Action::$change, &[], $label, $help, PANES, Do(|state| panes::control(state, Change::$change)))
            .changing()
            .when(|state| status::change(state, Change::$change))
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    acts(Action::WhySlow, &[char('F')], "why slow", WHY_SLOW, LIST, Emit(tagged::why_slow)).hint(89).when(status::why_slow).for_tagged(),
    acts(Action::WhySlow, &[char('F')], "why slow", WHY_SLOW, DETAIL, Emit(process::why_slow)).hint(58).when(status::why_slow),
    acts(Action::Trace, &[char('t')], "trace", "Start or stop recording with the last profiles.", PANES, Emit(tagged::toggle_trace))
        .hint(90)
        .changing()
        .when(status::trace)
        .for_tagged()
        .label_now(|state| {
            let is_recording = state.list.selected().is_some_and(|key| state.recordings.is_recording(key));
            if is_recording { "stop" } else { "trace" }
        }),
    acts(Action::Profiles, &[char('T')], "profiles", "Choose profiles and record.", PANES, Do(panes::profiles))
        .hint(60)
        .changing()
        .when(status::attachable)
        .for_tagged(),
    acts(
        Action::TraceForm,
        &[char('O')],
        "options",
        "Trace options: providers, filters, limits, stop conditions.",
        PANES,
        Emit(panes::options),
    )
    .changing()
    .when(status::attachable),
    acts(Action::Save, &[char('S')], "save", "Save the flight recording and continue with a new one.", PANES, Emit(process::save))
        .hint(94)
        .when(status::save),
    acts(Action::Abandon, &[char('x')], "abandon", "Stop without waiting for the rundown.", PANES, Emit(process::abandon))
        .hint(95)
        .when(status::abandon),
    acts(Action::Export, &[char('E')], "export", "Export the recording for Perfetto, speedscope, pprof, ...", PANES, Do(panes::export))
        .hint(66)
        .when(status::export),
    acts(Action::Watch, &[char('w')], "watch", "Watch or unwatch the process: counters, 6 kB/s.", WATCH, Emit(tagged::toggle_watch))
        .hint(78)
        .changing()
        .when(status::watch)
        .for_tagged()
        .label_now(|state| if state.selected_watch().is_some() { "unwatch" } else { "watch" }),
    acts(Action::WatchAll, &[char('W')], "watch all", "Watch or unwatch all listed processes.", PANES, Emit(watching::toggle_all))
        .hint(66)
        .changing()
        .when(status::watch_all)
        .label_now(|state| if state.unwatched().next().is_none() { "watch none" } else { "watch all" }),
    acts(Action::Dump, &[char('d')], "dump", "Write a core dump.", PANES, Emit(panes::dump)).hint(68).changing().when(status::dump),
    acts(Action::PerfMap, &[char('p')], "perf map", "Turn the perf map on or off.", PANES, Do(panes::perf_map))
        .hint(70)
        .changing()
        .when(status::perf_map),
    acts(Action::Resume, &[char('R')], "resume", "Resume a process suspended at startup, or all of them.", PANES, Do(panes::resume))
        .hint(92)
        .changing()
        .when(status::resume),
    acts(Action::Act, &[char('a')], "actions", "List the actions of the process.", PANES, Do(panes::actions)).hint(65).when(status::live),
    change!(SetVariable, "set variable", "Set an environment variable of the process."),
    change!(UnsetVariable, "unset variable", "Unset an environment variable of the process."),
    change!(StartupHook, "startup hook", "Load a startup hook into the process."),
    change!(AttachProfiler, "profiler", "Attach a CLR profiler."),
    change!(StartupProfiler, "start profiler", "Set a CLR profiler for a suspended process."),
    acts(Action::Launch, &[], "run", "Start a program and record it from its start.", PANES, Do(panes::launch))
        .changing()
        .when(status::live),
    acts(Action::Port, &[char('P')], "port", "Serve or close a diagnostic port.", PANES, Do(panes::port)).changing().when(status::live),
    acts(Action::Producer, &[char('K')], "perfetto", "Serve events to Perfetto's tracing service, or stop.", PANES, Do(panes::producer))
        .changing()
        .when(status::live),
    acts(Action::CleanUp, &[char('C')], "clean up", "Remove stale sockets of killed processes.", PANES, Do(panes::clean_up))
        .changing()
        .when(status::clean_up),
    // For all versions: the initial environment takes the place of one that a runtime does not report.
    acts(Action::Environment, &[char('e')], "environment", "Show the environment; secrets are masked.", PANES, Do(panes::environment))
        .hint(50)
        .when(status::attachable),
    acts(Action::Stacks, &[char('D')], "stacks", "Show what every thread is doing now; again: refresh.", PANES, Emit(panes::stacks))
        .hint(48)
        .changing()
        .when(status::stacks),
    acts(
        Action::WalkHeap,
        &[char('M')],
        "heap",
        "Walk the heap: what uses memory and what keeps it alive. Forces a full GC.",
        PANES,
        Emit(heap::toggle),
    )
    .hint(47)
    .changing()
    .when(status::heap),
    acts(Action::Copy, &[char('y')], "copy", "Copy the PID, command line, a path or a value.", PANES, Do(panes::copy))
        .hint(45)
        .when(status::copy),
];
