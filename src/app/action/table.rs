//! The action table itself.

use crossterm::event::KeyCode;

use super::key::char;
use super::{Action, Context, Entry, Group, Key, Places};

const LIST: Places = Places::of(&[Context::List]);
const INFO: Places = Places::of(&[Context::Info]);
const ENVIRONMENT: Places = Places::of(&[Context::Environment]);
const TRACE: Places = Places::of(&[Context::Trace]);
const JOBS: Places = Places::of(&[Context::Jobs]);
const FLAME: Places = Places::of(&[Context::Flame]);
const METHODS: Places = Places::of(&[Context::Methods]).and(FLAME);
const EVENTS: Places = Places::of(&[Context::Events]);
const COUNTERS: Places = Places::of(&[Context::Counters]);
const ROWS: Places = Places::of(&[Context::Rows]);
const ANALYSES: Places = Places::of(&[Context::Methods]).and(EVENTS).and(COUNTERS).and(ROWS);
/// Where arrows to the sides are for nothing else.
const PLAIN_DETAIL: Places = INFO.and(ENVIRONMENT).and(TRACE).and(ANALYSES).and(JOBS);
const DETAIL: Places = PLAIN_DETAIL.and(FLAME);
const PLAIN_PANES: Places = LIST.and(PLAIN_DETAIL);
const PANES: Places = LIST.and(DETAIL);
/// Methods have another use for its key.
const WATCH: Places = LIST.and(INFO).and(ENVIRONMENT).and(TRACE).and(EVENTS).and(COUNTERS).and(ROWS).and(JOBS);
const LINE: Places = Places::of(&[Context::Line]);
const PICK: Places = Places::of(&[Context::Pick, Context::PickMany]);
const PICK_MANY: Places = Places::of(&[Context::PickMany]);
const FORM: Places = Places::of(&[Context::Form]);
const FORM_TEXT: Places = Places::of(&[Context::FormText]);
const PALETTE: Places = Places::of(&[Context::Palette]);
const READER: Places = Places::of(&[Context::Reader]);
const ENDING: Places = Places::of(&[Context::Ending]);
const LISTS: Places = PICK.and(PALETTE);
const EVERYWHERE: Places = PANES.and(LINE).and(PICK).and(FORM).and(FORM_TEXT).and(PALETTE).and(READER).and(ENDING);

const ENTER: Key = Key::Plain(KeyCode::Enter);
const BACKSPACE: Key = Key::Plain(KeyCode::Backspace);
const ESC: Key = Key::Plain(KeyCode::Esc);
const TAB: Key = Key::Plain(KeyCode::Tab);
const BACK_TAB: Key = Key::Plain(KeyCode::BackTab);
const UP: Key = Key::Plain(KeyCode::Up);
const DOWN: Key = Key::Plain(KeyCode::Down);
const LEFT: Key = Key::Plain(KeyCode::Left);
const RIGHT: Key = Key::Plain(KeyCode::Right);
const PAGE_UP: Key = Key::Plain(KeyCode::PageUp);
const PAGE_DOWN: Key = Key::Plain(KeyCode::PageDown);
const HOME: Key = Key::Plain(KeyCode::Home);
const END: Key = Key::Plain(KeyCode::End);

/// The grammar of every filter.
const FILTER: &str = "Filter: all words must match, !word must not; column:word only there.";

/// Every action. An action may stand here more than once, with other words in another place.
pub static TABLE: &[Entry] = &[
    // What is done to or with a process.
    acts(Action::Trace, &[char('t')], "trace", "Record at once with the profiles used last; stop when it is being recorded.", PANES, 90)
        .changing(),
    acts(Action::Profiles, &[char('T')], "profiles", "Choose what to record, then record.", PANES, 60).changing(),
    acts(Action::TraceForm, &[char('O')], "options", "Say all of a recording: providers, filters, limits, when to stop.", PANES, 0)
        .changing(),
    acts(Action::Save, &[char('S')], "save", "Write what the flight recorder kept into its file, and go on with another.", PANES, 94),
    acts(Action::Abandon, &[char('x')], "abandon", "End a recording that is being finished, now; the file stays readable.", PANES, 95),
    acts(
        Action::Export,
        &[char('E')],
        "export",
        "Write the recording for Perfetto, speedscope, pprof and others, also while it goes on.",
        PANES,
        66,
    ),
    acts(
        Action::Watch,
        &[char('w')],
        "watch",
        "Watch: heap, allocation, collections, exceptions, queue in the table, from a session of 6 kB/s. Again: stop.",
        WATCH,
        78,
    )
    .changing(),
    acts(Action::WatchAll, &[char('W')], "watch all", "Watch all shown processes that can be; once all are, none.", PANES, 66).changing(),
    acts(Action::Dump, &[char('d')], "dump", "Write a core dump.", PANES, 80).changing(),
    acts(Action::PerfMap, &[char('p')], "perf map", "Turn the perf map on or off.", PANES, 70).changing(),
    acts(Action::Resume, &[char('R')], "resume", "Resume a runtime that is suspended at start-up, or all of them.", PANES, 92).changing(),
    acts(
        Action::Act,
        &[char('a')],
        "act",
        "Choose what to do with the process: its variables, a start-up hook, profilers; or run a program.",
        PANES,
        65,
    ),
    acts(Action::SetVariable, &[], "set variable", "Set an environment variable of the process.", PANES, 0).changing(),
    acts(Action::UnsetVariable, &[], "unset variable", "Unset an environment variable of the process.", PANES, 0).changing(),
    acts(Action::StartupHook, &[], "start-up hook", "Have the process run a start-up hook.", PANES, 0).changing(),
    acts(Action::AttachProfiler, &[], "profiler", "Have the process load a CLR profiler.", PANES, 0).changing(),
    acts(Action::StartupProfiler, &[], "start profiler", "Have a suspended process load a CLR profiler.", PANES, 0).changing(),
    acts(Action::Launch, &[], "run", "Start a program and record it from its start.", PANES, 0).changing(),
    acts(
        Action::Port,
        &[char('P')],
        "port",
        "Serve a diagnostic port: programs that connect wait to be looked at, and resumed. Again: take it down.",
        PANES,
        0,
    )
    .changing(),
    acts(
        Action::Producer,
        &[char('F')],
        "perfetto",
        "Serve .NET events to Perfetto's tracing service. Again: see how that goes, or end it.",
        PANES,
        0,
    )
    .changing(),
    acts(Action::Environment, &[char('e')], "environment", "Show the environment; secrets stay masked.", PANES, 50),
    acts(Action::Copy, &[char('y')], "copy", "Copy the pid, command line, a path or a value.", PANES, 45),
    // The process table.
    table(Action::Open, &[ENTER], "details", "Give the keys to the details of the selected process.", LIST, 85),
    table(Action::Filter, &[char('/')], "filter", FILTER, LIST, 75),
    table(Action::Back, &[ESC], "clear", "Clear the filter, or put away an error.", LIST, 0),
    table(Action::SortRight, &[char('>')], "sort", "Sort by the next column.", LIST, 40),
    table(Action::SortLeft, &[char('<')], "sort", "Sort by the previous column.", LIST, 0),
    table(Action::Reverse, &[char('r')], "reverse", "Sort the other way round.", LIST, 0),
    table(Action::Digit, &[Key::Digit], "sort by", "Sort by the column counted from the left; again: reversed.", LIST, 0),
    table(Action::Refresh, &[Key::Plain(KeyCode::F(5)), Key::Ctrl('r')], "refresh", "Look at all processes again, now.", PANES, 0),
    // The details.
    details(Action::Back, &[ESC, char('q')], "back", "Give the keys back to the process table.", DETAIL, 85),
    details(Action::NextTab, &[TAB, RIGHT], "tabs", "Next tab.", PLAIN_PANES, 84),
    details(Action::PreviousTab, &[BACK_TAB, LEFT], "tabs", "Previous tab.", PLAIN_PANES, 0),
    details(Action::NextTab, &[TAB], "tabs", "Next tab.", FLAME, 84),
    details(Action::PreviousTab, &[BACK_TAB], "tabs", "Previous tab.", FLAME, 0),
    details(Action::Digit, &[Key::Digit], "tab", "The tab counted from the left.", DETAIL, 0),
    details(Action::Search, &[char('/')], "filter", FILTER, ENVIRONMENT, 80),
    details(Action::Reveal, &[char('v')], "reveal", "Show or hide the selected secret value.", ENVIRONMENT, 82),
    details(Action::Search, &[char('/')], "filter", FILTER, METHODS.and(EVENTS).and(COUNTERS).and(ROWS).and(JOBS), 80),
    details(
        Action::Filter,
        &[char('/')],
        "processes",
        "Filter the process table, from tabs that list nothing by name.",
        INFO.and(TRACE),
        0,
    ),
    details(Action::Waiting, &[char('w')], "waiting", "Count threads that wait, too, or only those that run.", METHODS, 82),
    details(Action::Shape, &[char('f')], "tree/flame", "Show methods as a call tree, as a flame graph, or as a list.", METHODS, 83),
    details(Action::Shape, &[char('f')], "one by one", "Show events one by one, or by kind.", EVENTS, 83),
    details(Action::Open, &[ENTER], "look into", "What is in the event, or the events of the kind.", EVENTS, 84),
    details(Action::Threads, &[char('s')], "threads", "Show the threads, to choose whose methods are shown.", METHODS, 81),
    details(Action::Open, &[ENTER], "go into", "Into the frame of the flame graph, or to the methods of the thread.", METHODS, 84),
    details(Action::Widen, &[BACKSPACE], "out", "Out of the frame again, or back to all threads.", METHODS, 83),
    details(Action::SortRight, &[char('>')], "sort", "Sort methods by their own time, or by that of all they call.", METHODS, 79),
    details(Action::SortLeft, &[char('<')], "sort", "Sort methods the other way.", METHODS, 0),
    details(Action::Open, &[ENTER], "fold", "Fold the counters of a provider away, or show them.", COUNTERS, 83),
    details(Action::Meters, &[char('m')], "meters", "Watch all meters of the process, too (.NET 9), or no longer.", COUNTERS, 82)
        .changing(),
    details(Action::SortRight, &[char('>')], "sort", "Sort counters by name, value or change.", COUNTERS, 79),
    details(Action::SortLeft, &[char('<')], "sort", "Sort counters by name, value or change, the other way round.", COUNTERS, 0),
    details(
        Action::Open,
        &[ENTER],
        "go to",
        "Go to the process of the selected operation, or to what a program writes that was run.",
        JOBS,
        80,
    ),
    // Recorded files.
    files(Action::Earlier, &[char('[')], "earlier", "Look at the file up to an earlier moment.", 70),
    files(Action::Later, &[char(']')], "later", "Look at the file up to a later moment.", 69),
    files(Action::MuchEarlier, &[char('{')], "earlier", "Look at the file up to a much earlier moment.", 0),
    files(Action::MuchLater, &[char('}')], "later", "Look at the file up to a much later moment.", 0),
    files(Action::Mark, &[char('b')], "begin here", "Begin the part that is looked at here; again: at the start.", 68),
    files(Action::Whole, &[char('B')], "whole file", "Look at all of the file.", 67),
    // Getting about.
    moves(Action::Up, &[UP, char('k')], "up", "One line up.", PANES.and(PICK).and(READER)),
    moves(Action::Down, &[DOWN, char('j')], "down", "One line down.", PANES.and(PICK).and(READER)),
    moves(Action::Left, &[LEFT], "left", "To the frame on the left.", FLAME),
    moves(Action::Right, &[RIGHT], "right", "To the frame on the right.", FLAME),
    moves(Action::Up, &[UP], "up", "One line up.", LINE.and(PALETTE)),
    moves(Action::Down, &[DOWN], "down", "One line down.", LINE.and(PALETTE)),
    moves(Action::PageUp, &[PAGE_UP, Key::Ctrl('b')], "page up", "One page up.", PANES.and(LISTS).and(READER).and(LINE)),
    moves(Action::PageDown, &[PAGE_DOWN, Key::Ctrl('f')], "page down", "One page down.", PANES.and(LISTS).and(READER).and(LINE)),
    moves(Action::First, &[HOME, char('g')], "first", "To the first line.", PANES.and(PICK).and(READER)),
    moves(Action::Last, &[END, char('G')], "last", "To the last line.", PANES.and(PICK).and(READER)),
    // The program.
    program(Action::Pause, &[char(' ')], "pause", "Freeze what is shown; recordings go on.", PANES, 35),
    program(Action::Zoom, &[char('z')], "zoom", "Give this pane the whole screen, or share it again.", PANES, 20),
    program(Action::Palette, &[char(':')], "find", "Find an action or a process by name.", PANES, 25),
    program(Action::Messages, &[char('!')], "messages", "Show all that was said in the corner.", PANES, 15),
    program(Action::Help, &[char('?')], "more", "Show all keys.", PANES, 100),
    program(Action::Quit, &[char('q')], "quit", "Leave; asks while something is being recorded.", LIST, 30),
    program(Action::Interrupt, &[Key::Ctrl('c')], "quit", "Leave, from wherever; asks while something is being recorded.", EVERYWHERE, 0),
    program(Action::Suspend, &[Key::Ctrl('z')], "suspend", "Stop the program; the shell's fg brings it back.", EVERYWHERE, 0),
    program(Action::Redraw, &[Key::Ctrl('l')], "redraw", "Redraw the screen.", EVERYWHERE, 0),
    // Dialogs, lists and lines of text.
    dialogs(Action::Accept, &[ENTER], "choose", "Do what is selected.", PICK.and(FORM).and(FORM_TEXT).and(PALETTE), 90),
    dialogs(Action::Accept, &[ENTER], "keep", "Keep the filter and go back to the table.", LINE, 90),
    dialogs(Action::Cancel, &[ESC], "clear", "Clear the line and go back.", LINE, 85),
    dialogs(Action::Cancel, &[ESC, char('q')], "cancel", "Do nothing and close.", PICK.and(FORM), 85),
    dialogs(Action::Cancel, &[ESC], "cancel", "Do nothing and close.", FORM_TEXT.and(PALETTE), 85),
    dialogs(Action::Cancel, &[ESC, char('q'), char('?')], "close", "Close.", READER, 85),
    dialogs(Action::Toggle, &[char(' ')], "pick", "Choose this one too, or not.", PICK_MANY, 88),
    dialogs(Action::TraceForm, &[char('O')], "options", "Say all of a recording, with these profiles.", PICK_MANY, 86),
    dialogs(Action::CopyCommand, &[Key::Ctrl('y')], "copy command", "Copy the command line that does the same.", FORM.and(FORM_TEXT), 84),
    dialogs(Action::Choose, &[Key::Ctrl('p')], "pick", "List what could be typed here, and choose from it.", FORM_TEXT, 88),
    dialogs(Action::NextField, &[TAB, DOWN], "next field", "Next field.", FORM.and(FORM_TEXT), 60),
    dialogs(Action::PreviousField, &[BACK_TAB, UP], "previous", "Previous field.", FORM.and(FORM_TEXT), 0),
    dialogs(Action::Left, &[LEFT, char('h')], "change", "Option or button to the left.", FORM, 0),
    dialogs(Action::Right, &[RIGHT, char('l')], "change", "Option or button to the right.", FORM, 0),
    dialogs(Action::Yes, &[char('y')], "yes", "Do it.", FORM, 80),
    dialogs(Action::No, &[char('n')], "no", "Do nothing and close.", FORM, 0),
    dialogs(Action::Search, &[char('/')], "filter", FILTER, READER.and(PICK), 80),
    dialogs(Action::Abandon, &[char('x')], "leave now", "Do not wait for the rest; the files stay readable.", ENDING, 90),
];

const fn new(
    action: Action,
    keys: &'static [Key],
    label: &'static str,
    help: &'static str,
    places: Places,
    group: Group,
    hint: u8,
) -> Entry {
    Entry { action, keys, label, help, places, group, hint, changes: false }
}

const fn acts(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, hint: u8) -> Entry {
    new(action, keys, label, help, places, Group::Process, hint)
}

const fn table(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, hint: u8) -> Entry {
    new(action, keys, label, help, places, Group::Table, hint)
}

const fn details(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, hint: u8) -> Entry {
    new(action, keys, label, help, places, Group::Details, hint)
}

const fn files(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, hint: u8) -> Entry {
    new(action, keys, label, help, PANES, Group::Files, hint)
}

const fn moves(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places) -> Entry {
    new(action, keys, label, help, places, Group::Move, 0)
}

const fn program(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, hint: u8) -> Entry {
    new(action, keys, label, help, places, Group::Program, hint)
}

const fn dialogs(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, hint: u8) -> Entry {
    new(action, keys, label, help, places, Group::Dialogs, hint)
}

impl Entry {
    const fn changing(mut self) -> Self {
        self.changes = true;
        self
    }
}
