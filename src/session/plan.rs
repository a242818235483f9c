//! What a recording is to be, and why it may not begin.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use super::lens::Lens;
use super::output::OutputError;
use super::trace_session::StopLimit;
use crate::clr::Trigger;
use crate::ipc::SessionConfig;
use crate::model::{ProcessKey, Recording, RecordingId, Scheduling};
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
    pub name: String,
    /// Profiles and providers in words.
    pub what: String,
    /// The session to ask for.
    pub config: SessionConfig,
    /// What is known not to be in it, a sentence each.
    pub notes: Vec<String>,
    /// The file, as it is called when it is whole.
    pub file: PathBuf,
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
    /// Whether what comes is analysed, for somebody who looks at it meanwhile.
    pub analysed: bool,
    /// Which single events are kept for them to look at.
    pub lens: Lens,
}

impl Plan {
    /// Records everything of a session into a file until it is stopped, and analyses nothing.
    pub fn new(key: ProcessKey, name: String, config: SessionConfig, file: PathBuf) -> Self {
        Self {
            id: RecordingId(0),
            key,
            name,
            what: String::new(),
            config,
            notes: Vec::new(),
            file,
            duration: None,
            max_bytes: None,
            stop_on: None,
            keep: None,
            scheduling: None,
            stop_limit: StopLimit::RUNDOWN,
            analysed: false,
            lens: Lens::default(),
        }
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
    /// The file could not be made. The target was not asked for anything.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The runtime did not open the session.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The tracing service does not record. The target was not asked for anything.
    #[error("{0}. Without the kernel's scheduling the events of .NET can be recorded, into a .nettrace file")]
    Service(#[from] PerfettoError),
    /// This process has no file handles left.
    #[error("no second handle to the stream could be had: {0}")]
    Handle(io::Error),
}
