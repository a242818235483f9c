//! Everything that a person can do: one table, from which key map, hint line, help, palette and manual are made.

mod key;
mod status;
mod table;

use crossterm::event::KeyEvent;

pub use key::Key;
pub use status::Status;
pub(super) use status::attach;
pub use table::TABLE;

/// Something that a person can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// To the first line.
    First,
    /// To the last line.
    Last,
    /// Give the keys to the details of the selected process, or go to what is selected there.
    Open,
    /// Step back.
    Back,
    /// Next tab.
    NextTab,
    /// Previous tab.
    PreviousTab,
    /// The tab, or the column to sort by, that the digit counts to.
    Digit,
    /// Filter the table.
    Filter,
    /// Sort by the column to the left.
    SortLeft,
    /// Sort by the column to the right.
    SortRight,
    /// Sort the other way round.
    Reverse,
    /// Look again at once.
    Refresh,
    /// Freeze what is shown.
    Pause,
    /// Give the focused pane the whole screen.
    Zoom,
    /// Search in what is open.
    Search,
    /// Show or hide one secret value.
    Reveal,
    /// Count threads that wait, or not.
    Waiting,
    /// Show methods as a list, a call tree or a flame graph.
    Shape,
    /// Show the threads, to choose one.
    Threads,
    /// Step out of what was entered.
    Widen,
    /// Show the environment.
    Environment,
    /// Watch the selected process, or no longer.
    Watch,
    /// Ask a watched process for its meters, too, or no longer.
    Meters,
    /// Watch all processes, or none.
    WatchAll,
    /// Look at an earlier moment of a file.
    Earlier,
    /// Look at a later moment.
    Later,
    /// Look at a much earlier moment.
    MuchEarlier,
    /// Look at a much later moment.
    MuchLater,
    /// Begin the part that is looked at here.
    Mark,
    /// Look at all of the file.
    Whole,
    /// Start recording, or stop it.
    Trace,
    /// Choose what to record.
    Profiles,
    /// Say all that can be said of a recording.
    TraceForm,
    /// Choose what to do with a process.
    Act,
    /// Give a variable of a process a value.
    SetVariable,
    /// Take a variable away from a process.
    UnsetVariable,
    /// Have a process run a start-up hook.
    StartupHook,
    /// Have a process load a profiler.
    AttachProfiler,
    /// Have a process load a profiler before it starts.
    StartupProfiler,
    /// Start a program.
    Launch,
    /// Serve a diagnostic port.
    Port,
    /// Serve Perfetto's tracing service, see how that goes, or end it.
    Producer,
    /// Write what a flight recorder kept, and go on.
    Save,
    /// End a recording without waiting for the rest.
    Abandon,
    /// Write a recording in the format of another tool.
    Export,
    /// Write a dump.
    Dump,
    /// Turn the perf map on or off.
    PerfMap,
    /// Let a process run that waits at start-up.
    Resume,
    /// Choose what to copy.
    Copy,
    /// Show all keys.
    Help,
    /// Show what was said.
    Messages,
    /// Find an action or a process by name.
    Palette,
    /// Leave.
    Quit,
    /// Leave, from wherever.
    Interrupt,
    /// Stop the program as shells know it.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Do what is selected.
    Accept,
    /// Do nothing.
    Cancel,
    /// Next field.
    NextField,
    /// Previous field.
    PreviousField,
    /// Option to the left.
    Left,
    /// Option to the right.
    Right,
    /// Choose, or not.
    Toggle,
    /// List what could be typed.
    Choose,
    /// Copy the command line that does the same.
    CopyCommand,
    /// Yes.
    Yes,
    /// No.
    No,
}

/// What the keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// The process table.
    List,
    /// Facts of a process.
    Info,
    /// Its environment.
    Environment,
    /// Its recordings.
    Trace,
    /// Where threads spend their time.
    Methods,
    /// The same as a flame graph, in which arrows move.
    Flame,
    /// Which events came.
    Events,
    /// What is published.
    Counters,
    /// A list of what is in a recording: collections, exceptions, threads, requests, log messages, compiled methods, assemblies.
    Rows,
    /// What was and is being done.
    Jobs,
    /// A line of text for a filter or a search.
    Line,
    /// A list to choose from.
    Pick,
    /// A list to choose several from.
    PickMany,
    /// A dialog.
    Form,
    /// A line of text in a dialog.
    FormText,
    /// The palette.
    Palette,
    /// A text to read.
    Reader,
    /// The end, while recordings are being finished.
    Ending,
}

impl Context {
    /// Whether the keys go to one of the two panes.
    pub fn is_pane(self) -> bool {
        use Context::{Counters, Environment, Events, Flame, Info, Jobs, List, Methods, Rows, Trace};
        matches!(self, List | Info | Environment | Trace | Methods | Flame | Events | Counters | Rows | Jobs)
    }

    /// Whether letters are text here, not keys.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Line | Self::FormText | Self::Palette)
    }
}

/// A set of contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places(u32);

impl Places {
    const fn of(contexts: &[Context]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < contexts.len() {
            bits |= 1 << contexts[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the context is one of them.
    pub fn contains(self, context: Context) -> bool {
        self.0 & 1 << context as u32 != 0
    }
}

/// Under which heading an action stands in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Getting about.
    Move,
    /// The process table.
    Table,
    /// The details of a process.
    Details,
    /// Recorded files.
    Files,
    /// What is done to or with a process.
    Process,
    /// The program.
    Program,
    /// Dialogs, lists and lines of text.
    Dialogs,
}

impl Group {
    /// All, in the order of the help.
    pub const ALL: [Self; 7] = [Self::Process, Self::Table, Self::Details, Self::Files, Self::Move, Self::Program, Self::Dialogs];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Move => "Moving",
            Self::Table => "Process table",
            Self::Details => "Details",
            Self::Files => "A recorded file",
            Self::Process => "The selected process",
            Self::Program => "Program",
            Self::Dialogs => "Dialogs and lists",
        }
    }
}

/// A line of the action table.
#[derive(Debug)]
pub struct Entry {
    /// What it does.
    pub action: Action,
    /// Its keys, the one to show first.
    pub keys: &'static [Key],
    /// One or two words for the hint line and the palette.
    pub label: &'static str,
    /// A sentence for the help.
    pub help: &'static str,
    /// Where its keys work.
    pub places: Places,
    /// Its heading in the help.
    pub group: Group,
    /// How much it belongs into the hint line; 0 is never.
    pub hint: u8,
    /// Whether it changes the process it is done to: not with `--readonly`.
    pub changes: bool,
}

/// The action that a key stands for.
pub fn lookup(context: Context, event: &KeyEvent) -> Option<Action> {
    let here = TABLE.iter().filter(|entry| entry.places.contains(context));
    here.flat_map(|entry| entry.keys.iter().map(move |key| (key, entry.action)))
        .find(|(key, _)| key.matches(event))
        .map(|(_, action)| action)
}

/// The first line of the table for an action.
pub fn entry(action: Action) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.action == action)
}

#[cfg(test)]
mod tests;
