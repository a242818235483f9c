//! The action table: source of the key map, hint line, help, palette and manual.

mod key;
mod keymap;
pub(in crate::app) mod places;
pub(in crate::app) mod status;
mod table;

use self::places::PANES;
use super::cursor::Step;
use super::update::panes;
use super::{Effect, Form, OpenFile, State};

pub use key::Key;
use key::{BACK_TAB, DOWN, END, ESC, F1, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT, TAB, UP};
pub(super) use key::{BACKSPACE, ENTER, char};
pub use keymap::{KeyConflict, KeyMap};
pub use places::{Context, Places};
pub use status::Status;
pub(super) use status::{attach, native_aot, ready_if, recorded};
pub use table::{TABLE, entry};

listed! {
/// A user action, described by the help text of its entry in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    NextTab,
    PreviousTab,
    Digit,
    Filter,
    SortLeft,
    SortRight,
    Reverse,
    Tag,
    ClearTags,
    Tree,
    Refresh,
    Pause,
    Zoom,
    Search,
    Reveal,
    Waiting,
    Shape,
    Threads,
    Widen,
    Callers,
    Environment,
    Watch,
    Meters,
    RecordTab,
    WatchAll,
    Earlier,
    Later,
    MuchEarlier,
    MuchLater,
    Mark,
    Whole,
    Compare,
    Swap,
    WhySlow,
    Stacks,
    WalkHeap,
    WriteHeap,
    Trace,
    Profiles,
    TraceForm,
    Act,
    SetVariable,
    UnsetVariable,
    StartupHook,
    AttachProfiler,
    StartupProfiler,
    Launch,
    Port,
    Producer,
    CleanUp,
    Save,
    Abandon,
    Export,
    Dump,
    PerfMap,
    Resume,
    OpenFile,
    Copy,
    Help,
    Messages,
    OwnLog,
    FrameStats,
    Palette,
    Quit,
    Interrupt,
    Suspend,
    Redraw,
    Accept,
    Cancel,
    NextField,
    PreviousField,
    Left,
    Right,
    Toggle,
    Choose,
    CopyCommand,
    Yes,
    Start,
    No,
}
}

listed! {
/// Help section that lists an action; in the order of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Process => "The selected process",
    Table => "Process table",
    Details => "Details",
    Files => "A recorded file",
    Move => "Moving",
    Program => "Program",
    /// Dialogs, lists and text fields.
    Dialogs => "Dialogs and lists",
}
pub fn title(self) -> &'static str;
}

/// Reason for refusing actions that change a process.
const READONLY: &str = "Not available: dn-top was started with --readonly.";

/// An entry of the action table.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub action: Action,
    /// Default keys, the one to display first.
    pub keys: &'static [Key],
    /// One or two words for the hint line and the palette.
    pub label: &'static str,
    pub help: &'static str,
    /// Contexts in which the keys work.
    pub places: Places,
    pub group: Group,
    /// Overrides `label` in the hint line, depending on the state.
    label_now: Option<fn(&State) -> &'static str>,
    /// Priority in the hint line; 0: never shown.
    pub hint: u8,
    /// Whether it changes the process it acts on; if so, `--readonly` disables it.
    pub changes: bool,
    /// Whether it acts on all tagged processes; each is checked individually.
    is_for_tagged: bool,
    /// Whether it is possible now, apart from `--readonly`.
    valid: fn(&State) -> Status,
    run: Run,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Run {
    /// Changes the state only.
    Do(fn(&mut State)),
    /// Changes the state and returns effects.
    Emit(fn(&mut State) -> Vec<Effect>),
    Digit(fn(&mut State, usize)),
    /// Moves in the overlay or the focused pane.
    Move(Step),
    /// Changes the open dialog.
    InForm(fn(&mut Form)),
    /// Changes the selected recorded file.
    InFile(fn(&mut OpenFile)),
}

impl Entry {
    /// Returns whether the action is possible now.
    pub fn status(&self, state: &State) -> Status {
        if self.changes && state.options.readonly {
            return Status::Refused(READONLY.to_owned());
        }
        if self.is_for_tagged && !state.tagged().is_empty() { Status::Ready } else { (self.valid)(state) }
    }

    /// Returns one or two words for the hint line in the current state.
    pub fn hint_label(&self, state: &State) -> &'static str {
        self.label_now.map_or(self.label, |label| label(state))
    }

    pub(super) fn run(&self, state: &mut State, digit: Option<u32>) -> Vec<Effect> {
        match (self.run, digit) {
            (Run::Do(run), _) => run(state),
            (Run::Emit(run), _) => return run(state),
            (Run::Digit(run), Some(digit)) => run(state, digit as usize),
            (Run::Digit(_), None) => {}
            (Run::Move(step), _) => panes::step(state, step),
            (Run::InForm(change), _) => state.form_mut().into_iter().for_each(change),
            (Run::InFile(change), _) => state.open_file_mut().into_iter().for_each(change),
        }
        Vec::new()
    }
}

/// Help text for every filter: the syntax.
const FILTER: &str = "Filter rows: words, !excluded words, column:word.";

/// Defines one entry constructor per group.
macro_rules! groups {
    ($($name:ident: $group:ident),*) => {
        $(pub(super) const fn $name(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, places: Places, run: Run) -> Entry {
            let (group, valid) = (Group::$group, status::always);
            Entry { action, keys, label, help, places, group, label_now: None, hint: 0, changes: false, is_for_tagged: false, valid, run }
        })*
    };
}

groups!(acts: Process, table: Table, details: Details, moves: Move, program: Program, dialogs: Dialogs);

const fn files(action: Action, keys: &'static [Key], label: &'static str, help: &'static str, run: Run) -> Entry {
    Entry { group: Group::Files, ..program(action, keys, label, help, PANES, run) }.when(status::has_range)
}

impl Entry {
    pub(super) const fn hint(mut self, hint: u8) -> Self {
        self.hint = hint;
        self
    }

    pub(super) const fn label_now(mut self, label: fn(&State) -> &'static str) -> Self {
        self.label_now = Some(label);
        self
    }

    pub(super) const fn changing(mut self) -> Self {
        self.changes = true;
        self
    }

    pub(super) const fn for_tagged(mut self) -> Self {
        self.is_for_tagged = true;
        self
    }

    pub(super) const fn when(mut self, valid: fn(&State) -> Status) -> Self {
        self.valid = valid;
        self
    }
}

#[cfg(test)]
mod tests;
