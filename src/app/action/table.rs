//! The action table itself.

use crossterm::event::KeyCode;

use super::Run::{Ask, Digit, Do};
use super::key::char;
use super::places::{
    CALL_TREE, COMPARE, COUNTERS, DETAIL, ENDING, ENVIRONMENT, EVENTS, EVERYWHERE, FLAME, FLAT_METHODS, FORM, FORM_TEXT, HEAP, JOBS, LINE,
    LIST, LISTED, LISTS, METHODS, OVERVIEW, PAGED, PALETTE, PANES, PICK, PICK_MANY, PLAIN_PANES, READER, ROWS, SIDEWAYS, SLOWDOWN, TRACE,
    WATCH,
};
use super::{Action, Entry, Key, acts, details, dialogs, files, moves, program, status, table};
use crate::app::cursor::Step;
use crate::app::dialog::{Change, FileUse};
use crate::app::effect::Effect;
use crate::app::files::OpenFile;
use crate::app::state::State;
use crate::app::update::{comparison, files as ranges, heap, keys, leaving, overlays, panes, process, tagged, watching};

const ENTER: Key = Key::Plain(KeyCode::Enter);
const BACKSPACE: Key = Key::Plain(KeyCode::Backspace);
const ESC: Key = Key::Plain(KeyCode::Esc);
const TAB: Key = Key::Plain(KeyCode::Tab);
const BACK_TAB: Key = Key::Plain(KeyCode::BackTab);
const F1: Key = Key::Plain(KeyCode::F(1));
const UP: Key = Key::Plain(KeyCode::Up);
const DOWN: Key = Key::Plain(KeyCode::Down);
const LEFT: Key = Key::Plain(KeyCode::Left);
const RIGHT: Key = Key::Plain(KeyCode::Right);
const PAGE_UP: Key = Key::Plain(KeyCode::PageUp);
const PAGE_DOWN: Key = Key::Plain(KeyCode::PageDown);
const HOME: Key = Key::Plain(KeyCode::Home);
const END: Key = Key::Plain(KeyCode::End);

/// The grammar of every filter.
const FILTER: &str = "Filter rows: words, !excluded words, column:word.";

const WHY_SLOW: &str = "Why is it slow: record 30 s and list the causes, the worst first.";

/// An action that changes something in a process, after a dialog.
macro_rules! change {
    ($change:ident, $label:literal, $help:literal) => {
        acts(Action::$change, &[], $label, $help, PANES, Do(|state| panes::control(state, Change::$change)))
            .changing()
            .when(|state| status::change(state, Change::$change))
    };
}

/// Every action: its keys, its words, where and when it is valid, and what it does. An action may stand here more than once, with other words and
/// another handler in another place.
pub static TABLE: &[Entry] = &[
    // What is done to or with a process.
    acts(Action::WhySlow, &[char('F')], "why slow", WHY_SLOW, LIST, Ask(tagged::why_slow)).hint(89).when(status::why_slow_tagged),
    acts(Action::WhySlow, &[char('F')], "why slow", WHY_SLOW, DETAIL, Ask(process::why_slow)).hint(58).when(status::why_slow),
    acts(Action::Trace, &[char('t')], "trace", "Start or stop recording with the last profiles.", PANES, Ask(tagged::toggle_trace))
        .hint(90)
        .changing()
        .when(status::trace_tagged),
    acts(Action::Profiles, &[char('T')], "profiles", "Choose profiles and record.", PANES, Do(panes::profiles))
        .hint(60)
        .changing()
        .when(status::attachable_tagged),
    acts(
        Action::TraceForm,
        &[char('O')],
        "options",
        "Trace options: providers, filters, limits, stop conditions.",
        PANES,
        Ask(panes::options),
    )
    .changing()
    .when(status::attachable),
    acts(Action::Save, &[char('S')], "save", "Save the flight recording and continue with a new one.", PANES, Ask(process::save))
        .hint(94)
        .when(status::save),
    acts(Action::Abandon, &[char('x')], "abandon", "Stop without waiting for the rundown.", PANES, Ask(process::abandon))
        .hint(95)
        .when(status::abandon),
    acts(Action::Export, &[char('E')], "export", "Export the recording for Perfetto, speedscope, pprof, ...", PANES, Do(panes::export))
        .hint(66)
        .when(status::export),
    acts(Action::Watch, &[char('w')], "watch", "Watch or unwatch the process: counters, 6 kB/s.", WATCH, Ask(tagged::toggle_watch))
        .hint(78)
        .changing()
        .when(status::watch_tagged),
    acts(Action::WatchAll, &[char('W')], "watch all", "Watch or unwatch all listed processes.", PANES, Ask(watching::toggle_all))
        .hint(66)
        .changing()
        .when(status::watch_all),
    acts(Action::Dump, &[char('d')], "dump", "Write a core dump.", PANES, Do(panes::dump)).hint(68).changing().when(status::dump),
    acts(Action::PerfMap, &[char('p')], "perf map", "Turn the perf map on or off.", PANES, Do(panes::perf_map))
        .hint(70)
        .changing()
        .when(status::perf_map),
    acts(Action::Resume, &[char('R')], "resume", "Resume a process suspended at startup, or all of them.", PANES, Do(panes::resume))
        .hint(92)
        .changing()
        .when(status::resume),
    acts(Action::Act, &[char('a')], "actions", "List what can be done with the process.", PANES, Do(panes::actions))
        .hint(65)
        .when(status::live),
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
    acts(Action::Environment, &[char('e')], "environment", "Show the environment; secrets are masked.", PANES, Do(panes::environment))
        .hint(50)
        .when(status::environment),
    acts(Action::Stacks, &[char('D')], "stacks", "Show what every thread is doing now; again: refresh.", PANES, Ask(panes::stacks))
        .hint(48)
        .changing()
        .when(status::stacks),
    acts(
        Action::WalkHeap,
        &[char('M')],
        "heap",
        "Walk the heap: objects by type and what keeps them alive. Forces a full GC.",
        PANES,
        Ask(heap::toggle),
    )
    .hint(47)
    .changing()
    .when(status::heap),
    acts(Action::Copy, &[char('y')], "copy", "Copy the PID, command line, a path or a value.", PANES, Do(panes::copy))
        .hint(45)
        .when(status::copy),
    // The process table.
    table(Action::Open, &[ENTER], "details", "Focus details.", LIST, Do(panes::focus_details)).hint(85).when(status::selected),
    table(Action::Filter, &[char('/')], "filter", FILTER, LIST, Do(panes::filter_processes)).hint(75),
    table(Action::Back, &[ESC], "clear", "Clear the filter, dismiss an error, or go back to the processes.", LIST, Ask(panes::back))
        .hint(70)
        .when(status::clear),
    table(Action::SortRight, &[char('>')], "sort", "Sort by the next column.", LIST, Do(|state| panes::sort_beside(state, true))).hint(40),
    table(Action::SortLeft, &[char('<')], "sort", "Sort by the previous column.", LIST, Do(|state| panes::sort_beside(state, false))),
    table(Action::Reverse, &[char('r')], "reverse", "Reverse the sort order.", LIST, Do(|state| state.list.reverse())),
    table(
        Action::Tag,
        &[char('s')],
        "tag",
        "Tag or untag the process; trace, profiles, why slow and watch act on all tagged.",
        LIST,
        Do(|state| state.list.toggle_tag()),
    )
    .hint(30)
    .when(status::selected),
    table(Action::ClearTags, &[char('U')], "untag", "Untag all processes.", LIST, Do(|state| state.list.clear_tags())).when(status::tagged),
    table(
        Action::Tree,
        &[char('H')],
        "tree",
        "Children below their parents, or one order for all.",
        LIST,
        Do(|state| state.list.toggle_tree()),
    ),
    table(Action::Digit, &[Key::Digit], "sort by", "Sort by the nth column; again: reverse.", LIST, Digit(panes::sort_by_digit)),
    table(Action::Refresh, &[Key::Plain(KeyCode::F(5)), Key::Ctrl('r')], "refresh", "Refresh now.", PANES, Ask(panes::refresh))
        .when(status::live),
    // The details.
    details(Action::Back, &[ESC, char('q')], "back", "Focus the process list.", DETAIL, Ask(panes::back)).hint(85),
    details(Action::NextTab, &[TAB, RIGHT], "tabs", "Next tab.", PLAIN_PANES, Do(|state| panes::turn(state, true))).hint(84),
    details(Action::PreviousTab, &[BACK_TAB, LEFT], "tabs", "Previous tab.", PLAIN_PANES, Do(|state| panes::turn(state, false))),
    details(Action::NextTab, &[TAB], "tabs", "Next tab.", SIDEWAYS, Do(|state| panes::turn(state, true))).hint(84),
    details(Action::PreviousTab, &[BACK_TAB], "tabs", "Previous tab.", SIDEWAYS, Do(|state| panes::turn(state, false))),
    details(Action::Digit, &[Key::Digit], "tab", "Open the tab with this digit.", DETAIL, Digit(panes::turn_to_digit)),
    details(Action::Search, &[char('/')], "filter", FILTER, LISTED, Do(panes::filter_tab)).hint(80),
    details(Action::Reveal, &[char('v')], "reveal", "Show or hide the selected secret value.", ENVIRONMENT, Do(panes::reveal))
        .hint(82)
        .when(status::reveal),
    details(Action::Filter, &[char('/')], "processes", "Filter the process list.", OVERVIEW.and(TRACE), Do(panes::filter_processes)),
    details(
        Action::Waiting,
        &[char('w')],
        "waiting",
        "Include or exclude waiting threads.",
        METHODS,
        Do(|state| state.views.sampling.toggle_waiting()),
    )
    .hint(82)
    .when(status::waiting),
    details(Action::Shape, &[char('f')], "tree/flame", "Switch between list, call tree and flame graph.", METHODS, Do(State::next_shape))
        .hint(83)
        .when(status::samples),
    details(
        Action::Shape,
        &[char('f')],
        "single events",
        "Switch between event types and single events.",
        EVENTS,
        Do(State::toggle_single_events),
    )
    .hint(83)
    .when(status::recorded),
    details(Action::Open, &[ENTER], "open", "Show the event's fields, or the events of the type.", EVENTS, Do(State::enter_event))
        .hint(84)
        .when(status::recorded),
    details(Action::Threads, &[char('s')], "threads", "Choose a thread.", METHODS, Do(State::toggle_threads))
        .hint(81)
        .when(status::samples),
    details(Action::Open, &[ENTER], "zoom in", "Zoom in, or show the methods of the thread.", FLAT_METHODS, Do(State::enter_sampling))
        .hint(84)
        .when(status::enter_sampling),
    details(Action::Open, &[ENTER], "expand", "Expand or collapse the row.", CALL_TREE, Do(State::enter_sampling)).hint(84),
    details(
        Action::Callers,
        &[char('c')],
        "callers",
        "Show the callers of the selected method, or go back.",
        METHODS,
        Do(State::toggle_callers),
    )
    .hint(79)
    .when(status::callers),
    details(Action::Widen, &[BACKSPACE], "zoom out", "Zoom out, back from callers, or to all threads.", METHODS, Do(State::widen))
        .hint(83)
        .when(status::widen),
    details(Action::Open, &[ENTER], "collapse", "Collapse or expand a provider.", COUNTERS, Do(State::fold_counters))
        .hint(83)
        .when(status::counters),
    details(Action::Meters, &[char('m')], "meters", "Watch or unwatch all meters (.NET 9).", COUNTERS, Ask(watching::toggle_meters))
        .hint(82)
        .changing()
        .when(status::meters),
    details(Action::SortRight, &[char('>')], "sort", "Sort by the next column.", LISTED, Do(|state| state.sort_tab_beside(true)))
        .hint(40)
        .when(status::sortable),
    details(Action::SortLeft, &[char('<')], "sort", "Sort by the previous column.", LISTED, Do(|state| state.sort_tab_beside(false)))
        .when(status::sortable),
    details(Action::Reverse, &[char('r')], "reverse", "Reverse the sort order.", LISTED, Do(State::reverse_tab)).when(status::sortable),
    details(Action::RecordTab, &[ENTER], "record", "Record what the tab shows.", ROWS, Ask(process::record_tab))
        .hint(99)
        .changing()
        .when(status::record_tab),
    details(Action::Open, &[ENTER], "open", "Open the tab of the selected cause.", SLOWDOWN, Do(State::open_cause))
        .hint(84)
        .when(status::recorded),
    details(Action::Open, &[ENTER], "paths", "Show or hide what keeps the type alive.", HEAP, Do(State::toggle_heap_paths))
        .hint(84)
        .when(status::walked_heap),
    details(
        Action::Shape,
        &[char('f')],
        "difference",
        "Switch between the last walk and its difference to the one before.",
        HEAP,
        Do(State::toggle_heap_difference),
    )
    .hint(83)
    .when(status::walked_twice),
    details(
        Action::WriteHeap,
        &[char('o')],
        "write file",
        "Write the objects of the last walk to a .gcdump file.",
        HEAP,
        Do(heap::file_form),
    )
    .hint(82)
    .when(status::write_heap),
    details(
        Action::Shape,
        &[char('f')],
        "next subject",
        "Show the figures of the next subject only, or all.",
        COMPARE,
        Do(comparison::next_subject),
    )
    .hint(83)
    .when(status::compared),
    details(Action::Swap, &[char('X')], "swap", "Swap before and after.", COMPARE, Do(comparison::swap)).hint(82).when(status::compared),
    details(Action::Open, &[ENTER], "go to", "Go to the process, or show the output of a program.", JOBS, Do(panes::open_job))
        .hint(80)
        .when(status::jobs),
    // Recorded files.
    files(Action::Earlier, &[char('[')], "earlier", "Move range end back.", Do(|state| ranges::walk(state, |file| file.step(-1)))).hint(70),
    files(Action::Later, &[char(']')], "later", "Move range end forward.", Do(|state| ranges::walk(state, |file| file.step(1)))).hint(69),
    files(Action::MuchEarlier, &[char('{')], "earlier", "Move range end far back.", Do(|state| ranges::walk(state, |file| file.step(-10)))),
    files(Action::MuchLater, &[char('}')], "later", "Move range end far forward.", Do(|state| ranges::walk(state, |file| file.step(10)))),
    files(
        Action::Mark,
        &[char('b')],
        "range start",
        "Set range start here, or back to the beginning.",
        Do(|state| {
            ranges::walk(state, OpenFile::set_mark);
        }),
    )
    .hint(68),
    files(Action::Whole, &[char('B')], "whole file", "Show the whole file.", Do(|state| ranges::walk(state, OpenFile::forget_span)))
        .hint(67),
    files(Action::Compare, &[char('=')], "compare", "Compare the shown range with another range or file.", Ask(comparison::choose))
        .hint(64),
    // Getting about.
    moves(Action::Up, &[UP, char('k')], "up", "One line up.", PANES.and(PICK).and(READER), |state| panes::step(state, Step::By(-1))),
    moves(Action::Down, &[DOWN, char('j')], "down", "One line down.", PANES.and(PICK).and(READER), |state| panes::step(state, Step::By(1))),
    moves(Action::Left, &[LEFT], "left", "To the frame on the left.", FLAME, |state| state.step_sideways(false)),
    moves(Action::Right, &[RIGHT], "right", "To the frame on the right.", FLAME, |state| state.step_sideways(true)),
    moves(Action::Left, &[LEFT], "collapse", "Collapse the row, or go to its caller.", CALL_TREE, State::step_out_of_row),
    moves(Action::Right, &[RIGHT], "expand", "Expand the row, or go to the first that it calls.", CALL_TREE, State::step_into_row),
    moves(Action::Up, &[UP], "up", "One line up.", LINE.and(PALETTE), |state| panes::step(state, Step::By(-1))),
    moves(Action::Down, &[DOWN], "down", "One line down.", LINE.and(PALETTE), |state| panes::step(state, Step::By(1))),
    moves(Action::PageUp, &[PAGE_UP, Key::Ctrl('b')], "page up", "One page up.", PAGED, |state| panes::step(state, Step::Page(-1))),
    moves(Action::PageDown, &[PAGE_DOWN, Key::Ctrl('f')], "page down", "One page down.", PAGED, |state| panes::step(state, Step::Page(1))),
    moves(Action::First, &[HOME, char('g')], "first", "To the first line.", PANES.and(PICK).and(READER), |state| {
        panes::step(state, Step::First)
    }),
    moves(Action::Last, &[END, char('G')], "last", "To the last line.", PANES.and(PICK).and(READER), |state| {
        panes::step(state, Step::Last)
    }),
    // The program.
    program(Action::Pause, &[char(' ')], "pause", "Pause the display; recordings continue.", PANES, Ask(panes::pause))
        .hint(35)
        .when(status::pause),
    program(Action::Zoom, &[char('z')], "zoom", "Maximize or restore the pane.", PANES, Do(|state| state.zoomed = !state.zoomed)).hint(20),
    program(
        Action::Palette,
        &[char(':')],
        "find",
        "Find an action, a tab, a profile, a theme, a process or a recorded file by name.",
        PANES,
        Ask(ranges::open_palette),
    )
    .hint(25),
    program(
        Action::OpenFile,
        &[char('L')],
        "open file",
        "Open a recorded file: of this run, or of the current folder.",
        PANES,
        Ask(|state| ranges::find(state, FileUse::Open)),
    )
    .hint(22),
    program(Action::Messages, &[char('!')], "messages", "Show the message history.", PANES, Do(panes::messages)).hint(15),
    program(
        Action::FrameStats,
        &[Key::Plain(KeyCode::F(12))],
        "frame times",
        "Show how long frames take, their bytes, and how many messages wait.",
        PANES,
        Do(panes::toggle_frame_stats),
    ),
    program(Action::Help, &[char('?'), F1], "more", "Show all keys, those of this view first.", PANES, Do(State::open_help)).hint(100),
    program(
        Action::Help,
        &[char('?'), F1],
        "more",
        "Show all keys, those of this view first.",
        PICK.and(FORM).and(FORM_TEXT).and(PALETTE),
        Do(State::open_help),
    ),
    program(Action::Quit, &[char('q')], "quit", "Quit.", LIST, Ask(leaving::quit)).hint(30),
    program(Action::Interrupt, &[Key::Ctrl('c')], "quit", "Quit from anywhere.", EVERYWHERE, Ask(leaving::interrupt)),
    program(
        Action::Suspend,
        &[Key::Ctrl('z')],
        "suspend",
        "Suspend dn-top; fg in the shell resumes it.",
        EVERYWHERE,
        Ask(|_| vec![Effect::Suspend]),
    ),
    program(Action::Redraw, &[Key::Ctrl('l')], "redraw", "Redraw the screen.", EVERYWHERE, Ask(|_| vec![Effect::Redraw])),
    // Dialogs, lists and lines of text.
    dialogs(Action::Accept, &[ENTER], "choose", "Choose the selected row.", LISTS, Ask(overlays::accept)).hint(90),
    dialogs(Action::Accept, &[ENTER], "choose", "Next field, or press the button.", FORM.and(FORM_TEXT), Ask(overlays::accept_form))
        .hint(90),
    dialogs(Action::Accept, &[ENTER], "keep", "Keep the filter.", LINE, Do(|state| state.line = None)).hint(90),
    dialogs(Action::Cancel, &[ESC], "clear", "Clear the filter.", LINE, Do(keys::clear_line)).hint(85),
    dialogs(Action::Cancel, &[ESC, char('q')], "cancel", "Cancel.", PICK.and(FORM), Do(overlays::cancel)).hint(85),
    dialogs(Action::Cancel, &[ESC], "cancel", "Cancel.", FORM_TEXT.and(PALETTE), Do(overlays::cancel)).hint(85),
    dialogs(Action::Cancel, &[ESC, char('q')], "close", "Close.", READER, Do(overlays::cancel)).hint(85),
    dialogs(Action::Help, &[char('?'), F1], "close", "Close.", READER, Do(overlays::cancel)),
    dialogs(Action::Toggle, &[char(' ')], "pick", "Pick or unpick the row.", PICK_MANY, Do(overlays::toggle)).hint(88),
    dialogs(Action::TraceForm, &[char('O')], "options", "Trace options with these profiles.", PICK_MANY, Ask(overlays::options))
        .hint(86)
        .when(status::picked_options),
    dialogs(
        Action::CopyCommand,
        &[Key::Ctrl('y')],
        "copy command",
        "Copy the equivalent command line.",
        FORM.and(FORM_TEXT),
        Ask(overlays::copy_command),
    )
    .hint(84)
    .when(status::copy_command),
    dialogs(Action::Choose, &[Key::Ctrl('p')], "pick", "List the possible values.", FORM_TEXT, Do(overlays::choose))
        .hint(88)
        .when(status::choose),
    dialogs(
        Action::NextField,
        &[TAB, DOWN],
        "next field",
        "Next field.",
        FORM.and(FORM_TEXT),
        Do(|state| overlays::in_form(state, |form| form.step(true))),
    )
    .hint(60),
    dialogs(
        Action::PreviousField,
        &[BACK_TAB, UP],
        "previous",
        "Previous field.",
        FORM.and(FORM_TEXT),
        Do(|state| overlays::in_form(state, |form| form.step(false))),
    ),
    dialogs(
        Action::Left,
        &[LEFT, char('h')],
        "change",
        "Previous option or button.",
        FORM,
        Do(|state| overlays::in_form(state, |form| form.change(false))),
    ),
    dialogs(
        Action::Right,
        &[RIGHT, char('l')],
        "change",
        "Next option or button.",
        FORM,
        Do(|state| overlays::in_form(state, |form| form.change(true))),
    ),
    dialogs(Action::Yes, &[char('y')], "yes", "Confirm; before a process is changed, Enter must follow.", FORM, Ask(overlays::confirm))
        .hint(80),
    dialogs(Action::No, &[char('n')], "no", "Cancel.", FORM, Do(overlays::cancel)),
    dialogs(Action::Search, &[char('/')], "filter", FILTER, READER.and(PICK), Do(overlays::filter)).hint(80),
    dialogs(Action::Abandon, &[char('x')], "leave now", "Quit without waiting for the rundown.", ENDING, Ask(leaving::abandon_all))
        .hint(90)
        .when(status::abandon),
];
