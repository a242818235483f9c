//! Selects the process that a person refers to.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::{Process, SafeText};

/// Why a text does not identify a single process.
#[derive(Debug, Error)]
pub enum TargetError {
    /// No process has this pid.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The pid belongs to a process other than .NET.
    #[error("process {0} is not a .NET process: `dn-top ps` lists those that are")]
    NotDotnet(u32),
    /// The pid belongs to a process of another user, whose files and socket are not accessible.
    #[error("process {pid} belongs to another user (uid {uid}): permission denied; run dn-top as that user, or as root")]
    OtherUser {
        /// Pid of the process.
        pid: u32,
        /// Its owner.
        uid: u32,
    },
    /// No process has this name.
    #[error("there is no .NET process named '{}': `dn-top ps` lists all", .0)]
    NoName(SafeText),
    /// Several processes have this name.
    #[error("'{}' matches {} processes ({}): use a pid", .name, .matches.len(), pids(.matches))]
    Ambiguous {
        /// The name.
        name: SafeText,
        /// The processes that have it.
        matches: Vec<Process>,
    },
    /// The path does not exist.
    #[error("there is no socket {}", SafeText::from_path(.0))]
    NoSocket(PathBuf),
    /// The path is that of something else, such as a recorded file.
    #[error("{} is not a socket: `dn-top ps` lists processes, and `dn-top open FILE` and `dn-top stats FILE` read a recorded file", SafeText::from_path(.0))]
    NotASocket(PathBuf),
    /// The process was connected to our port, and no longer is.
    #[error("process {0} connected to the diagnostic port, and closed the connection before it was used")]
    Disconnected(u32),
    /// Whether the path exists cannot be determined.
    #[error("the socket {} cannot be inspected: {reason}", SafeText::from_path(.path))]
    Hidden {
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The processes cannot be listed.
    #[error(transparent)]
    List(io::Error),
}

impl TargetError {
    /// Classifies an error of inspecting the socket at a path.
    pub(super) fn of_path(path: &Path, reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoSocket(path.to_owned()),
            _ => Self::Hidden { path: path.to_owned(), reason },
        }
    }
}

pub(super) fn is_path(text: &str) -> bool {
    text.contains(std::path::is_separator)
}

/// Returns whether `text` is neither a path nor a pid.
pub(super) fn is_name(text: &str) -> bool {
    !is_path(text) && text.parse::<u32>().is_err()
}

/// Finds the process among `rows` that `text` denotes: a number is a pid, everything else a name.
///
/// A name must match exactly; if none does, case is ignored. Stale sockets can be found by pid, but not by name.
pub(super) fn find<'a>(text: &str, rows: &'a [Process]) -> Result<&'a Process, TargetError> {
    if let Ok(pid) = text.parse() {
        // A stale socket does not hide the process that has the pid now.
        let of_pid = || rows.iter().filter(|row| row.key.pid == pid);
        return of_pid().find(|row| !row.is_stale_socket()).or_else(|| of_pid().next()).ok_or(TargetError::NotDotnet(pid));
    }
    let named = |same: &dyn Fn(&str) -> bool| rows.iter().filter(|row| !row.is_stale_socket() && same(&row.name)).collect::<Vec<_>>();
    let exact = named(&|name| name == text);
    let matches = if exact.is_empty() { named(&|name| name.to_lowercase() == text.to_lowercase()) } else { exact };
    match matches.as_slice() {
        [] => Err(TargetError::NoName(text.into())),
        [only] => Ok(only),
        several => Err(TargetError::Ambiguous { name: text.into(), matches: several.iter().copied().cloned().collect() }),
    }
}

fn pids(matches: &[Process]) -> String {
    matches.iter().map(|row| row.key.pid.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Contact, ProcessKey, Trouble};

    fn row(pid: u32, name: &str) -> Process {
        Process { name: name.into(), ..Process::new(ProcessKey { pid, started: 1 }) }
    }

    fn stale(pid: u32, name: &str) -> Process {
        Process { contact: Contact::Trouble { kind: Trouble::Stale, reason: String::new().into() }, ..row(pid, name) }
    }

    #[test]
    fn only_a_missing_path_is_called_missing() {
        for (kind, words) in [
            (io::ErrorKind::NotFound, "there is no socket /a\u{fffd}"),
            (io::ErrorKind::NotADirectory, "there is no socket /a\u{fffd}"),
            (io::ErrorKind::PermissionDenied, "the socket /a\u{fffd} cannot be inspected: permission denied"),
        ] {
            assert_eq!(TargetError::of_path(Path::new("/a\x1b"), kind.into()).to_string(), words);
        }
    }

    #[test]
    fn processes_are_found_by_pid_or_name() {
        let rows = [
            stale(7, "(gone)"),
            row(7, "Shop"),
            row(8, "worker"),
            row(9, "worker"),
            row(10, "Worker"),
            stale(11, "(gone)"),
            row(12, "4242"),
        ];
        let pid = |text: &str| find(text, &rows).map(|row| row.key.pid).map_err(|error| error.to_string());
        for (text, found) in [("7", 7), ("Shop", 7), ("shop", 7), ("Worker", 10), ("11", 11)] {
            assert_eq!(pid(text), Ok(found), "{text}");
        }
        assert!(!find("7", &rows).unwrap().is_stale_socket());
        for (text, words) in [
            ("4242", "process 4242 is not a .NET process: "),
            ("worker", "'worker' matches 2 processes (8, 9): use a pid"),
            ("WORKER", "'WORKER' matches 3 processes (8, 9, 10): use a pid"),
            ("(gone)", "there is no .NET process named '(gone)': "),
            ("\x1b[2J", "there is no .NET process named '\u{fffd}[2J': "),
        ] {
            assert!(pid(text).unwrap_err().starts_with(words), "{text}: {:?}", pid(text));
        }
    }
}
