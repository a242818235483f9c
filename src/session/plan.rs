//! What a recording is to be, and why it may not begin.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use super::cpu_beside::cpu_file;
use super::output::{OutputError, default_file};
use super::progress::Slot;
use super::trace_session::StopLimit;
use crate::clr::{Selected, Trigger};
use crate::ipc::SessionConfig;
use crate::model::{OutputName, ProcessKey, Recording, RecordingId, SafeText, Scheduling, TraceOptions};
use crate::net::ExchangeError;
use crate::net::perfetto::{PerfettoError, Sockets};
use crate::nettrace::Keep;

/// What to record, and into which file.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which recording of this run of the program.
    pub id: RecordingId,
    /// The process.
    pub key: ProcessKey,
    /// Its name.
    pub name: SafeText,
    /// Names of profiles, and providers.
    pub what: Vec<String>,
    /// The session to ask for.
    pub config: SessionConfig,
    /// Samples of the kernel are wanted; the session that is opened where there are none.
    pub fallback: Option<SessionConfig>,
    /// They stay in a file of their own, and the recording is as the runtime wrote it.
    pub separate: bool,
    /// What is known not to be in it, a sentence each.
    pub notes: Vec<String>,
    /// The file, as it is called when it is whole.
    pub file: PathBuf,
    /// Whether the file's name was chosen here: where it is taken by the time that the file is made, the next number is.
    pub is_default_file: bool,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Stop once the file has this many bytes. The rundown comes on top.
    pub max_bytes: Option<u64>,
    /// Stop when this event comes.
    pub stop_on: Option<Trigger>,
    /// Keep only the newest part, in files beside it, and write it into the file at the end.
    pub keep: Option<Keep>,
    /// Record the kernel's scheduling as well, by this tracing service, into a trace of Perfetto.
    pub scheduling: Option<Sockets>,
    /// What the runtime may take to end the session.
    pub stop_limit: StopLimit,
    /// Whether what comes is analysed, to be looked at while it is recorded.
    pub analysed: bool,
    /// The filter of single events that are kept to be shown; it can be replaced while the recording runs.
    pub event_filter: Slot<String>,
}

impl Plan {
    /// Records everything of a session into a file until it is stopped, and analyses nothing.
    pub fn new(key: ProcessKey, name: SafeText, config: SessionConfig, file: PathBuf) -> Self {
        Self {
            id: RecordingId(0),
            key,
            name,
            what: Vec::new(),
            config,
            fallback: None,
            separate: false,
            notes: Vec::new(),
            file,
            is_default_file: false,
            duration: None,
            max_bytes: None,
            stop_on: None,
            keep: None,
            scheduling: None,
            stop_limit: StopLimit::RUNDOWN,
            analysed: false,
            event_filter: Slot::default(),
        }
    }

    /// Records what was ordered. A relative path, and the default file, which the pattern names, are of this folder.
    ///
    /// # Errors
    /// A sentence: what is wrong with the order, or why the kernel's scheduling cannot be recorded.
    pub fn of(order: &TraceOptions, key: ProcessKey, name: SafeText, folder: &Path, pattern: &OutputName) -> Result<Self, String> {
        let Selected { what, config, fallback, .. } = order.select()?;
        let default_file = || default_file(folder, pattern, &name, key.pid, order.extension());
        let file = order.file.as_ref().map_or_else(default_file, |file| folder.join(file));
        Ok(Self {
            what,
            fallback,
            separate: order.separate,
            is_default_file: order.file.is_none(),
            duration: order.duration,
            max_bytes: order.max_size,
            stop_on: order.stop_on.clone(),
            keep: order.flight,
            scheduling: if order.scheduling { Some(Sockets::of_machine().map_err(|cause| cause.to_string())?) } else { None },
            ..Self::new(key, name, config, file)
        })
    }

    /// The file of the kernel's samples; `None` where they are not wanted in one: what keeps only the newest part, and a trace of Perfetto, have the
    /// runtime's samples.
    pub(super) fn cpu_file(&self) -> Option<PathBuf> {
        let has_own = self.fallback.is_some() && self.keep.is_none() && self.scheduling.is_none();
        has_own.then(|| cpu_file(&self.file))
    }

    /// How the recording looks before anything has happened.
    pub fn starting(&self) -> Recording {
        let starting = Recording::starting(self.id, self.key, self.name.clone(), self.what.clone(), self.file.clone());
        Recording { notes: self.notes.clone(), scheduling: self.scheduling.as_ref().map(|_| Scheduling::Waiting), ..starting }
    }
}

/// Why a recording did not begin. No file is left behind.
#[derive(Debug, Error)]
pub enum StartError {
    /// The file could not be made. Nothing was sent to the target.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The runtime did not open the session.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The tracing service does not record. Nothing was sent to the target.
    #[error("{0}. Without kernel scheduling, the events of .NET can still be recorded, into a .nettrace file")]
    Service(#[from] PerfettoError),
    /// This process has no file handles left.
    #[error("cannot duplicate the handle of the stream: {0}")]
    Handle(io::Error),
}
