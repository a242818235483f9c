//! State of the dashboard.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::action::{Action, Context};
use super::heaps::Heaps;
use super::layout::{Layout, LayoutInput};
use super::update::drag::Drag;
use super::usage::UsageHistory;
use super::{
    Column, Comparison, Details, FileUse, Focus, Jobs, Level, Line, LinePurpose, Now, OpenFile, Options, Overlay, Pause, PendingQuit, Pick,
    ProcessList, Producer, Recordings, Row, RowKind, Subject, Tab, Ticket, Toasts, TrackedRecording, Views, Watches,
};
use crate::clr::DASHBOARD_PROFILES;
use crate::model::{FileKind, Process, ProcessKey, RecordingId, RunState, SafeText, TraceFile, TraceOptions};

/// Sockets left behind by killed processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaleSockets {
    pub count: usize,
    pub folders: BTreeSet<PathBuf>,
}

/// Frame times and sizes since the statistics were first shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameStats {
    pub frames: u64,
    /// Duration of the latest frame, from the state to the last byte written to the terminal.
    pub last: Duration,
    /// Duration of the slowest frame.
    pub slowest: Duration,
    /// Bytes written to the terminal for the latest frame; `None` if unknown.
    pub bytes: Option<usize>,
    /// Number of pending messages.
    pub queue: usize,
}

impl FrameStats {
    /// Adds a frame.
    pub fn add(&mut self, took: Duration, bytes: Option<usize>, queue: usize) {
        let (frames, slowest) = (self.frames + 1, self.slowest.max(took));
        *self = Self { frames, last: took, slowest, bytes, queue };
    }
}

/// State of the dashboard. Only [`update`](super::update()) changes it.
#[derive(Default)]
pub struct State {
    pub(crate) options: Options,
    pub(crate) size: (u16, u16),
    pub(crate) now: Now,
    pub(crate) list: ProcessList,
    pub(crate) stale_sockets: StaleSockets,
    pub(crate) focus: Focus,
    pub(crate) tab: Tab,
    /// The tab to restore after leaving a heap file, which has only one tab.
    pub(super) last_trace_tab: Tab,
    pub(crate) zoomed: bool,
    pub(crate) details: Details,
    pub(crate) recordings: Recordings,
    /// The selected recording among several of a process.
    pub(crate) chosen_recording: Option<RecordingId>,
    pub(crate) views: Views,
    pub(crate) jobs: Jobs,
    pub(super) heaps: Heaps,
    pub(crate) watches: Watches,
    /// Resource use of processes over time.
    pub(super) usage: UsageHistory,
    pub(super) port: Option<PathBuf>,
    /// The producer for Perfetto's tracing service, while it is active.
    pub(crate) producer: Option<Producer>,
    /// The process view to return to, while recorded files opened from it are shown.
    pub(super) saved_process_view: Option<SavedProcessView>,
    /// The pending search for recorded files, and the purpose of the file to choose.
    pub(super) pending_file_search: Option<(Ticket, FileUse)>,
    /// Comparison of the open file.
    pub(super) comparison: Option<Comparison>,
    /// Open recorded files; empty while processes are shown.
    pub(crate) files: Vec<OpenFile>,
    pub(crate) line: Option<Line>,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) toasts: Toasts,
    pub(super) bell: bool,
    /// Position and time of the last click in a pane, for double clicks.
    pub(super) last_click: Option<((u16, u16), Duration)>,
    /// What moves with the pointer while the mouse button is pressed.
    pub(super) drag: Option<Drag>,
    pub(crate) pause: Option<Pause>,
    pub(crate) pending_quit: Option<PendingQuit>,
    /// Frame statistics, while they are shown.
    pub frame_stats: Option<FrameStats>,
    /// The default profiles to record: those used last.
    pub(crate) last_profiles: Vec<String>,
    /// Options of flight recorders, so that a new one can be started when one is saved.
    pub(super) flight_options: Vec<(RecordingId, TraceOptions)>,
    /// Values of the trace form when it was last closed.
    pub(super) last_trace_options: TraceOptions,
    pub(super) last_ticket: u64,
    /// Wall clock time of the latest process list.
    pub(super) listed_unix_ms: u64,
    /// The program is quitting; messages are ignored.
    pub(super) is_quitting: bool,
    pub(super) dirty: bool,
}

/// The process view while recorded files are shown.
pub(super) struct SavedProcessView {
    list: ProcessList,
    tab: Tab,
    focus: Focus,
    /// The newest processes.
    pub(super) pending: Option<Vec<Process>>,
}

impl State {
    /// Returns the initial state for a terminal of this size in columns and rows.
    pub fn new(mut options: Options, size: (u16, u16), now: Now) -> Self {
        let files = std::mem::take(&mut options.files);
        let profiles = options.profiles.take().unwrap_or_else(|| DASHBOARD_PROFILES.map(str::to_owned).to_vec());
        let mut state = Self {
            list: ProcessList::new(&options.filter, options.sort),
            last_trace_options: TraceOptions::of_profiles(&profiles),
            last_profiles: profiles,
            port: options.port.take(),
            options,
            size,
            now,
            last_trace_tab: Tab::Trace,
            listed_unix_ms: now.unix_ms,
            dirty: true,
            ..Self::default()
        };
        state.open_files(files);
        state
    }

    /// Shows recorded files instead of processes.
    fn open_files(&mut self, files: Vec<TraceFile>) {
        if files.is_empty() {
            return;
        }
        let are_first = self.files.is_empty();
        for facts in files {
            let id = self.recordings.next_id();
            self.files.push(OpenFile::new(id, facts));
        }
        self.list.replace(self.files.iter().map(OpenFile::process).collect(), self.now.elapsed);
        // Sorting again would reverse the order.
        if are_first && self.list.sort().column != Column::Name {
            self.list.sort_by(Column::Name);
        }
        self.open_tab(Tab::Trace);
    }

    /// Opens one more recorded file, instead of showing processes. A file that is already open is selected.
    pub(super) fn open_additional_file(&mut self, facts: TraceFile) {
        if !self.shows_files() {
            let list = std::mem::replace(&mut self.list, ProcessList::new("", self.options.sort));
            self.saved_process_view = Some(SavedProcessView { list, tab: self.tab, focus: self.focus, pending: None });
        }
        let path = facts.path.clone();
        if !self.files.iter().any(|file| file.facts.path == path) {
            self.open_files(vec![facts]);
        }
        self.open_tab(Tab::Trace);
        if let Some(file) = self.files.iter().find(|file| file.facts.path == path) {
            self.list.set_filter("");
            self.list.select(file.key);
            self.list.pin();
        }
    }

    /// Returns to the processes. Returns the newest list of them, if any.
    pub(super) fn close_files(&mut self) -> Option<Vec<Process>> {
        let SavedProcessView { list, tab, focus, pending } = self.saved_process_view.take()?;
        for file in std::mem::take(&mut self.files) {
            self.recordings.forget(file.id);
            self.heaps.forget(file.key);
        }
        self.comparison = None;
        (self.list, self.tab, self.focus) = (list, tab, focus);
        pending
    }

    /// Returns whether a redraw is needed, and resets the flag.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// Returns whether to ring the bell, once for everything finished since the last call.
    pub fn take_bell(&mut self) -> bool {
        std::mem::take(&mut self.bell)
    }

    /// Returns the title of the terminal window.
    pub fn title(&self) -> String {
        self.selected_subject().map_or_else(|| "dn-top".to_owned(), |subject| format!("{subject} - dn-top"))
    }

    pub fn layout(&self) -> Layout {
        let containers = self.list.rows().iter().any(|row| row.process.container.is_some());
        let is_typing_filter = self.typed(LinePurpose::Filter).is_some();
        let input = LayoutInput {
            detail_focused: self.focus == Focus::Detail,
            zoomed: self.zoomed,
            containers,
            watching: self.shows_figures(),
            row_kind: self.row_kind(),
            tab: self.tab,
            // While a filter is typed, the panes do not move with each letter.
            rows: if is_typing_filter { self.list.rows().len() } else { self.list.len().max(1) },
            columns: self.options.columns,
        };
        Layout::new(self.size.0, self.size.1, input)
    }

    /// Returns the name of an action's key, for texts.
    pub(crate) fn key(&self, action: Action) -> String {
        self.options.keys.name(action)
    }

    /// Returns the context that receives key presses.
    pub fn context(&self) -> Context {
        if self.pending_quit.is_some() {
            return Context::Ending;
        }
        if self.line.is_some() {
            return Context::Line;
        }
        match &self.overlay {
            Some(Overlay::Help(_) | Overlay::Messages(_) | Overlay::Output(_)) => Context::Reader,
            Some(Overlay::List(_, Pick::Palette(_))) => Context::Palette,
            Some(Overlay::List(list, _)) => {
                if list.chosen.is_empty() {
                    Context::Pick
                } else {
                    Context::PickMany
                }
            }
            Some(Overlay::Form(form)) if form.is_typing() => Context::FormText,
            Some(Overlay::Form(_)) => Context::Form,
            None => match self.focus {
                Focus::List => Context::List,
                Focus::Detail => (self.tab.descriptor().context)(self),
            },
        }
    }

    pub fn selected(&self) -> Option<&Row> {
        self.list.selected_row()
    }

    /// Whether files are shown instead of processes.
    pub fn shows_files(&self) -> bool {
        !self.files.is_empty()
    }

    pub fn row_kind(&self) -> RowKind {
        match self.shows_files() {
            false => RowKind::Process,
            true => RowKind::File(self.open_file().map_or(FileKind::Trace, |file| file.facts.kind)),
        }
    }

    /// Returns the file of the selected row.
    pub fn open_file(&self) -> Option<&OpenFile> {
        let key = self.list.selected()?;
        self.files.iter().find(|file| file.key == key)
    }

    pub(super) fn open_file_mut(&mut self) -> Option<&mut OpenFile> {
        let key = self.list.selected()?;
        self.files.iter_mut().find(|file| file.key == key)
    }

    /// Returns the shown recording of the selected process: the one selected by the user, otherwise the newest.
    pub fn shown_recording(&self) -> Option<&TrackedRecording> {
        let key = self.list.selected()?;
        let chosen = self.recordings.of(key).find(|tracked| Some(tracked.value.id) == self.chosen_recording);
        chosen.or_else(|| self.recordings.of(key).next())
    }

    /// Whether a process is known to be running, even while the display is frozen.
    pub(super) fn is_alive(&self, key: ProcessKey) -> bool {
        match self.pause.as_ref().and_then(|pause| pause.pending.as_ref()) {
            Some(pending) => pending.iter().any(|process| process.key == key),
            None => self.list.find(key).is_some_and(|row| row.exited_at.is_none()),
        }
    }

    /// Shows a tab, with the focus.
    pub(super) fn open_tab(&mut self, tab: Tab) {
        (self.tab, self.focus) = (tab, Focus::Detail);
    }

    pub(super) fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    pub(super) fn notify(&mut self, level: Level, text: impl Into<SafeText>) {
        self.toasts.push(level, text.into(), self.now);
        self.dirty = true;
    }

    /// Returns the attachable processes that are suspended at startup.
    pub(super) fn suspended(&self) -> impl Iterator<Item = Subject> {
        let waits =
            |row: &&Row| row.exited_at.is_none() && row.process.run_state == RunState::Suspended && row.process.contact.is_attachable();
        self.list.rows().iter().filter(waits).map(|row| Subject::of(&row.process))
    }

    /// Returns the processes connected to the served diagnostic port.
    pub(super) fn connected(&self) -> impl Iterator<Item = &Row> {
        self.list.rows().iter().filter(|row| row.exited_at.is_none() && row.process.on_port)
    }

    pub(super) fn selected_subject(&self) -> Option<Subject> {
        self.selected().map(|row| Subject::of(&row.process))
    }
}
