//! The log of this program: a line for each request to a process, and for each session and recording that begins or ends.
//!
//! It has no environment variables, no command lines and nothing of what a process sent but the words of a refusal. The latest lines are kept; without
//! [`begin`] nothing is written.

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{ExchangeError, files};
use crate::ipc::CommandCode;
use crate::model::{SafeText, sanitise};

/// There is one for the whole program, as there is one standard error.
static LOG: OnceLock<File> = OnceLock::new();

/// Lines that are kept.
const KEPT: usize = 500;
/// Longest of them, characters.
const LONGEST: usize = 1000;

/// The latest lines, the newest last.
static LATEST: Mutex<VecDeque<SafeText>> = Mutex::new(VecDeque::new());

/// The latest lines, the newest last: no more than 500.
pub fn latest() -> Vec<SafeText> {
    LATEST.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Writes the log to this new file from now on.
///
/// # Errors
/// Those of the system; `AlreadyExists` for anything of that name.
pub fn begin(path: &Path) -> io::Result<()> {
    let file = files::create(path)?;
    LOG.set(file).map_err(|_| io::Error::other("another log has begun"))
}

/// Keeps one line, the time and these words, and writes it where there is a file.
pub fn note(words: impl Display) {
    let line = format!("{:.3} {}", Timestamp::now(), sanitise(&words.to_string()));
    let kept = SafeText::new(&line).cut(LONGEST);
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    if latest.len() >= KEPT {
        latest.pop_front();
    }
    latest.push_back(kept);
    drop(latest);
    let Some(mut file) = LOG.get() else { return };
    let line = line + "\n";
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
            self.note("its answer is no longer awaited");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_lines_are_kept_and_bounded() {
        (0..=KEPT).for_each(|line| note(format_args!("line {line}\n\x1b[31m{}", "x".repeat(2 * LONGEST))));
        let lines = latest();
        assert_eq!(lines.len(), KEPT);
        // Other tests make requests, too.
        let ours: Vec<_> = lines.iter().filter(|line| line.contains(" line ")).collect();
        assert!(ours.iter().all(|line| line.chars().count() == LONGEST + 1 && !line.contains(char::is_control)), "{}", ours[0]);
        assert!(ours.last().is_some_and(|line| line.contains(&format!(" line {KEPT}"))));
    }
}
