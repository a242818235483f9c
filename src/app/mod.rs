//! The pure state machine of the dashboard: messages in, effects out.
//!
//! [`update`] takes a [`Msg`] and the time, changes the [`State`], and returns the side effects to perform as [`Effect`]s. It reads no clock, no
//! file and no socket, so every rule of the program can be tested with a table. The [`action`] table lists every user action; [`layout`] computes
//! the screen layout for the view and mouse handling.
//!
//! A runner loops: it calls [`update`] with every pending message, draws if [`State::take_dirty`], sleeps until a message arrives or
//! [`State::next_deadline`] has passed, and then sends [`Msg::Tick`].

pub mod action;
mod activity;
mod call_tree;
mod comparison;
mod cursor;
mod details;
mod dialog;
mod effect;
mod files;
mod findings;
mod flame;
mod flame_search;
mod growth;
mod health;
mod heaps;
pub mod help;
mod hints;
mod jobs;
pub mod layout;
mod list;
mod live_threads;
mod message;
mod mode;
mod options;
mod output;
mod pane;
mod producer;
mod recent;
mod recordings;
mod resources;
mod sampling;
mod scroll;
mod sort;
mod stalls;
mod state;
pub mod tabs;
#[cfg(test)]
pub(crate) mod test_app;
mod text;
mod toast;
mod top_frames;
mod type_tree;
mod typing;
mod update;
mod usage;
mod views;
mod watches;

pub use activity::Activity;
pub use call_tree::Branch;
pub use comparison::{ComparedRange, Comparison};
pub use cursor::Cursor;
pub use details::{Answer, Details};
pub use dialog::{
    Change, Choice, Chooser, ControlRequest, CopyItem, ExportRequest, Field, FileUse, Form, FormLayout, FormLine, Found, ListState,
    Overlay, Palette, Pick, PickList, ProgramRequest, Purpose, Question, Reader, Reply, Subject,
};
pub use effect::Effect;
pub use files::OpenFile;
pub use findings::{Finding, findings};
pub use flame::{FlameBox, FlameGraph};
pub use health::{HealthIssue, health_issues};
pub use heaps::WalkedHeap;
pub use hints::Hint;
pub use jobs::{Job, JobKind, Jobs};
pub use list::{Column, Columns, ProcessList, ProcessTable, Row, Trend};
pub use message::{Clipboard, JobResult, Msg, Now, Ticket};
pub use mode::{Line, LinePurpose, Pause, PendingQuit};
pub use options::{AutoWatch, Options};
pub use output::OutputView;
pub use pane::{Focus, RowKind};
pub use producer::Producer;
pub use recordings::{Recordings, TrackedRecording};
pub use resources::ResourceHistory;
pub use sampling::{Sampling, Shape, ThreadRow};
pub use scroll::ScrollBar;
pub use sort::{Direction, Sort};
pub use state::{FrameStats, StaleSockets, State};
pub use tabs::{CounterLine, Tab, logged_exception};
pub use toast::{Level, Toast, Toasts};
pub use update::update;
pub use views::Views;
pub use watches::{CurrentFinding, Watch, WatchStatus, Watches};
