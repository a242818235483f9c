//! The program's log: one line for each request to a process, and for the start and end of each session and recording.
//!
//! It contains no environment variables or command lines, and of a process's data only its error messages. The latest lines are kept in memory;
//! nothing is written to a file before [`begin`].

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{ExchangeError, files};
use crate::ipc::CommandCode;
use crate::model::{SafeText, sanitize};

/// One for the whole program, like standard error.
static LOG: OnceLock<(File, PathBuf)> = OnceLock::new();

/// The first error of writing to it.
static ERROR: OnceLock<io::Error> = OnceLock::new();

const MAX_LINES: usize = 500;
/// Maximum length of a kept line, in characters.
const MAX_LINE_CHARS: usize = 1000;

/// The latest lines, newest last.
static LATEST: Mutex<VecDeque<SafeText>> = Mutex::new(VecDeque::new());

/// Returns the latest lines, newest last: at most 500.
pub fn latest() -> Vec<SafeText> {
    LATEST.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Writes the log to this new file from now on.
///
/// # Errors
/// Those of the system; `AlreadyExists` if anything has that name.
pub fn begin(path: &Path) -> io::Result<()> {
    let file = files::create(path)?;
    LOG.set((file, path.to_owned())).map_err(|_| io::Error::other("the log file is already set"))
}

/// Returns the log file and the first error of writing to it, if there was one: lines are missing.
pub fn write_error() -> Option<(&'static Path, &'static io::Error)> {
    Some((&LOG.get()?.1, ERROR.get()?))
}

/// Logs one line with a timestamp, and writes it to the file if there is one.
pub fn note(message: impl Display) {
    let line = format!("{:.3} {}", Timestamp::now(), sanitize(&message.to_string()));
    let kept = SafeText::new(&line).cut(MAX_LINE_CHARS);
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    if latest.len() >= MAX_LINES {
        latest.pop_front();
    }
    latest.push_back(kept);
    drop(latest);
    let Some((file, _)) = LOG.get() else { return };
    let line = line + "\n";
    // A single write, so that lines of different threads do not mix.
    let mut file: &File = file;
    if let Err(error) = file.write_all(line.as_bytes()) {
        // Only the first one is kept.
        let _ = ERROR.set(error);
    }
}

/// A request in progress. If dropped, it is logged as canceled.
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

    /// Logs the reason if the request did not get its turn.
    pub(super) fn turn<T>(mut self, turn: &Result<T, ExchangeError>) {
        self.ended = true;
        if let Err(error) = turn {
            self.note(&error.reason());
        }
    }

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
            self.note("canceled");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_keeps_a_bounded_number_of_latest_lines() {
        (0..=MAX_LINES).for_each(|line| note(format_args!("line {line}\n\x1b[31m{}", "x".repeat(2 * MAX_LINE_CHARS))));
        let lines = latest();
        assert_eq!(lines.len(), MAX_LINES);
        // Other tests log requests, too.
        let ours: Vec<_> = lines.iter().filter(|line| line.contains(" line ")).collect();
        assert!(ours.iter().all(|line| line.chars().count() == MAX_LINE_CHARS + 1 && !line.contains(char::is_control)), "{}", ours[0]);
        assert!(ours.last().is_some_and(|line| line.contains(&format!(" line {MAX_LINES}"))));
    }
}
