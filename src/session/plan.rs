//! Options of a recording, and the errors of starting one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use super::cpu_sample_file::cpu_file;
use super::{OutputError, Slot, StopLimit, default_file};
use crate::clr::{Selection, Trigger};
use crate::ipc::SessionConfig;
use crate::model::{Conditions, OutputName, ProcessKey, Recording, RecordingId, SafeText, Scheduling, TraceOptions};
use crate::net::ExchangeError;
use crate::net::perfetto::{PerfettoError, Sockets};
use crate::nettrace::RetentionLimits;

/// What to record, and into which file.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Id of the recording, unique in this run of the program.
    pub id: RecordingId,
    /// The process to record.
    pub key: ProcessKey,
    /// Process name.
    pub name: SafeText,
    /// Names of profiles and providers.
    pub what: Vec<String>,
    /// The session configuration.
    pub config: SessionConfig,
    /// Set if kernel samples are requested: the configuration to use if they are not available.
    pub fallback: Option<SessionConfig>,
    /// Whether kernel samples stay in their own file, and the recording as the runtime wrote it.
    pub separate: bool,
    /// Names of the providers that were specified one by one, including that of a stop event.
    pub specified_providers: Vec<String>,
    /// Messages about data known to be missing.
    pub notes: Vec<String>,
    /// Final path of the file.
    pub file: PathBuf,
    /// Whether the path is a default: if it is taken when the file is created, the next number is used.
    pub is_default_file: bool,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Stop once the file has this many bytes. The rundown is added to that.
    pub max_bytes: Option<u64>,
    /// Stop when this event arrives.
    pub stop_on: Option<Trigger>,
    /// Stop once this is true.
    pub stop_when: Option<Conditions>,
    /// Keep only the newest part, in files next to this one, and write it to the file at the end.
    pub keep: Option<RetentionLimits>,
    /// Also record the kernel's scheduling through this tracing service, into a Perfetto trace.
    pub scheduling: Option<Sockets>,
    /// Limits for ending the session.
    pub stop_limit: StopLimit,
    /// Whether to analyze events during the recording.
    pub analyzed: bool,
    /// Filter for the individual events kept for display; can be replaced during the recording.
    pub event_filter: Slot<String>,
}

impl Plan {
    /// Records a whole session into a file until it is stopped, without analysis.
    pub fn new(key: ProcessKey, name: SafeText, config: SessionConfig, file: PathBuf) -> Self {
        Self {
            id: RecordingId(0),
            key,
            name,
            what: Vec::new(),
            config,
            fallback: None,
            separate: false,
            specified_providers: Vec::new(),
            notes: Vec::new(),
            file,
            is_default_file: false,
            duration: None,
            max_bytes: None,
            stop_on: None,
            stop_when: None,
            keep: None,
            scheduling: None,
            stop_limit: StopLimit::RUNDOWN,
            analyzed: false,
            event_filter: Slot::default(),
        }
    }

    /// Creates a plan from options. Relative paths and the default file, which is named by the pattern, are in this folder.
    ///
    /// # Errors
    /// An error message about the options, or the reason why the kernel's scheduling cannot be recorded.
    pub fn from_options(
        options: &TraceOptions,
        key: ProcessKey,
        name: SafeText,
        folder: &Path,
        pattern: &OutputName,
    ) -> Result<Self, String> {
        let Selection { what, config, fallback, .. } = options.select()?;
        let folder = &options.folder.as_ref().map_or_else(|| folder.to_owned(), |own| folder.join(own));
        let default_file = || default_file(folder, pattern, &name, key.pid, options.extension());
        let file = options.file.as_ref().map_or_else(default_file, |file| folder.join(file));
        Ok(Self {
            what,
            fallback,
            separate: options.separate,
            specified_providers: options.specified_providers().map(str::to_owned).collect(),
            is_default_file: options.file.is_none(),
            duration: options.duration,
            max_bytes: options.max_size,
            stop_on: options.stop_on.clone(),
            stop_when: options.stop_when.clone(),
            keep: options.flight,
            scheduling: if options.scheduling { Some(Sockets::of_machine().map_err(|cause| cause.to_string())?) } else { None },
            ..Self::new(key, name, config, file)
        })
    }

    /// Path of the file for kernel samples; `None` if there is none: flight recordings and Perfetto traces use the runtime's samples.
    pub(super) fn cpu_file(&self) -> Option<PathBuf> {
        let has_own = self.fallback.is_some() && self.keep.is_none() && self.scheduling.is_none();
        has_own.then(|| cpu_file(&self.file))
    }

    /// Returns the state of the recording before it has started.
    pub fn starting(&self) -> Recording {
        let starting = Recording::starting(self.id, self.key, self.name.clone(), self.what.clone(), self.file.clone());
        Recording { notes: self.notes.clone(), scheduling: self.scheduling.as_ref().map(|_| Scheduling::Waiting), ..starting }
    }
}

/// Why a recording could not be started. No file is left behind.
#[derive(Debug, Error)]
pub enum StartError {
    /// The file could not be created. Nothing was sent to the target.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The runtime did not open the session.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The tracing service cannot record. Nothing was sent to the target.
    #[error("{0}. Without kernel scheduling, the events of .NET can still be recorded, into a .nettrace file")]
    Service(#[from] PerfettoError),
    /// This process has run out of file handles.
    #[error("cannot duplicate the handle of the stream: {0}")]
    Handle(io::Error),
}
