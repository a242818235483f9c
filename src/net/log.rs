//! The log of this program: a line for each request to a process, and for each session and recording that begins or ends.
//!
//! It has no environment variables, no command lines and nothing of what a process sent but the words of a refusal. Without [`begin`] nothing is written.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::OnceLock;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{ExchangeError, files};
use crate::ipc::CommandCode;
use crate::model::sanitise;

/// There is one for the whole program, as there is one standard error.
static LOG: OnceLock<File> = OnceLock::new();

/// Writes the log to this new file from now on.
///
/// # Errors
/// Those of the system; `AlreadyExists` for anything of that name.
pub fn begin(path: &Path) -> io::Result<()> {
    let file = files::create(path)?;
    LOG.set(file).map_err(|_| io::Error::other("another log has begun"))
}

/// Writes one line: the time, and these words.
pub fn note(words: impl Display) {
    let Some(mut file) = LOG.get() else { return };
    let line = format!("{:.3} {}\n", Timestamp::now(), sanitise(&words.to_string()));
    // One write, so that lines of several threads do not mix. There is no other place to say that the log has no room.
    let _ = file.write_all(line.as_bytes());
}

/// A request that is under way. One that is dropped is logged as not waited for any more.
pub(super) struct Request {
    pid: u32,
    command: CommandCode,
    began: Instant,
    ended: bool,
}

impl Request {
    pub(super) fn begin(pid: u32, command: CommandCode) -> Self {
        Self { pid, command, began: Instant::now(), ended: false }
    }

    /// Writes why it did not get its turn, where that is so.
    pub(super) fn turn<T>(mut self, turn: &Result<T, ExchangeError>) {
        self.ended = true;
        if let Err(error) = turn {
            self.note(&error.reason());
        }
    }

    /// Writes what came of it.
    pub(super) fn end<T>(mut self, result: &Result<T, ExchangeError>) {
        self.ended = true;
        match result {
            Ok(_) => self.note("answered"),
            Err(error) => self.note(&error.reason()),
        }
    }

    fn note(&self, outcome: &str) {
        let Self { pid, command, began, .. } = self;
        note(format_args!("{} to process {pid}, {:.1} ms: {outcome}", command.name(), began.elapsed().as_secs_f64() * 1000.0));
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.ended {
            self.note("its answer is not waited for any more");
        }
    }
}
