//! Everything that a person can do: one table, from which key map, hint line, help, palette and manual are made.

mod key;
mod keymap;
mod places;
pub(in crate::app) mod status;
mod table;

use self::places::PANES;
use super::effect::Effect;
use super::state::State;

pub use key::Key;
pub use keymap::{KeyConflict, KeyMap};
pub use places::{Context, Places};
pub(super) use status::attach;
pub use status::{Status, capabilities};
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
    /// Focus details, or open what is selected there.
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
    /// Tag or untag the process.
    Tag,
    /// Untag all processes.
    ClearTags,
    /// List children below their parents.
    Tree,
    /// Refresh now.
    Refresh,
    /// Pause the display.
    Pause,
    /// Maximize or restore the focused pane.
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
    /// Zoom out.
    Widen,
    /// Show the callers of a method, or no longer.
    Callers,
    /// Show the environment.
    Environment,
    /// Watch or unwatch the selected process.
    Watch,
    /// Watch or unwatch all meters.
    Meters,
    /// Record what the open tab shows.
    RecordTab,
    /// Watch or unwatch all processes.
    WatchAll,
    /// Move range end back.
    Earlier,
    /// Move range end forward.
    Later,
    /// Move range end far back.
    MuchEarlier,
    /// Move range end far forward.
    MuchLater,
    /// Set range start.
    Mark,
    /// Show the whole file.
    Whole,
    /// Compare the shown range with another, or with another file.
    Compare,
    /// Swap before and after.
    Swap,
    /// Find out why a process is slow.
    WhySlow,
    /// Sample all threads once.
    Stacks,
    /// Walk the heap, or cancel that.
    WalkHeap,
    /// Write the walked heap to a file.
    WriteHeap,
    /// Start recording, or stop it.
    Trace,
    /// Choose what to record.
    Profiles,
    /// Trace options.
    TraceForm,
    /// Choose what to do with a process.
    Act,
    /// Set an environment variable of a process.
    SetVariable,
    /// Unset an environment variable of a process.
    UnsetVariable,
    /// Load a startup hook.
    StartupHook,
    /// Attach a CLR profiler.
    AttachProfiler,
    /// Set a CLR profiler for a process suspended at startup.
    StartupProfiler,
    /// Start a program.
    Launch,
    /// Serve a diagnostic port.
    Port,
    /// Serve events to Perfetto's tracing service, or stop.
    Producer,
    /// Remove the sockets of killed processes.
    CleanUp,
    /// Save the flight recording.
    Save,
    /// Stop without waiting for the rundown.
    Abandon,
    /// Export a recording.
    Export,
    /// Write a dump.
    Dump,
    /// Turn the perf map on or off.
    PerfMap,
    /// Resume a process suspended at startup.
    Resume,
    /// Choose a recorded file to look at.
    OpenFile,
    /// Choose what to copy.
    Copy,
    /// Show all keys.
    Help,
    /// Message history.
    Messages,
    /// What frames cost.
    FrameStats,
    /// Find an action or a process by name.
    Palette,
    /// Quit.
    Quit,
    /// Quit from anywhere.
    Interrupt,
    /// Suspend the program (SIGTSTP).
    Suspend,
    /// Redraw.
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
    /// List the possible values.
    Choose,
    /// Copy the equivalent command line.
    CopyCommand,
    /// Yes.
    Yes,
    /// No.
    No,
}

/// Under which heading an action stands in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Moving.
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

/// Why an action is refused that changes a process.
const READONLY: &str = "dn-top was started with --readonly: it changes nothing.";

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
    /// Whether it is valid now, `--readonly` aside.
    valid: fn(&State) -> Status,
    run: Run,
}

/// What an action does.
#[derive(Debug, Clone, Copy)]
enum Run {
    /// It changes the state.
    Do(fn(&mut State)),
    /// It has effects, too.
    Ask(fn(&mut State) -> Vec<Effect>),
    /// It depends on the digit that was pressed.
    Digit(fn(&mut State, usize)),
}

impl Entry {
    /// Whether this is possible now.
    pub fn status(&self, state: &State) -> Status {
        if self.changes && state.options.readonly {
            return Status::Refused(READONLY.to_owned());
        }
        (self.valid)(state)
    }

    /// Does it.
    pub(super) fn run(&self, state: &mut State, digit: Option<u32>) -> Vec<Effect> {
        match (self.run, digit) {
            (Run::Do(run), _) => run(state),
            (Run::Ask(run), _) => return run(state),
            (Run::Digit(run), Some(digit)) => run(state, digit as usize),
            (Run::Digit(_), None) => {}
        }
        Vec::new()
    }
}

/// The first line of the table for an action.
pub fn entry(action: Action) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.action == action)
}

const fn new(
    action: Action,
    keys: &'static [Key],
    label: &'static str,
    help: &'static str,
    places: Places,
    group: Group,
    run: Run,
) -> Entry {
    Entry { action, keys, label, help, places, group, hint: 0, changes: false, valid: status::always, run }
}

/// Entries of a group each.
macro_rules! groups {
    ($($name:ident: $group:ident),*) => {
        $(const fn $name(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, run: Run) -> Entry {
            new(action, keys, label, help, places, Group::$group, run)
        })*
    };
}

groups!(acts: Process, table: Table, details: Details, program: Program, dialogs: Dialogs);

const fn files(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, run: Run) -> Entry {
    new(action, keys, label, help, PANES, Group::Files, run).when(status::walking)
}

const fn moves(
    action: Action,
    keys: &'static [Key],
    label: &'static str,
    help: &'static str,
    places: Places,
    run: fn(&mut State),
) -> Entry {
    new(action, keys, label, help, places, Group::Move, Run::Do(run))
}

impl Entry {
    const fn hint(mut self, hint: u8) -> Self {
        self.hint = hint;
        self
    }

    const fn changing(mut self) -> Self {
        self.changes = true;
        self
    }

    const fn when(mut self, valid: fn(&State) -> Status) -> Self {
        self.valid = valid;
        self
    }
}

#[cfg(test)]
mod tests;
