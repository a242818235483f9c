//! The exit codes of the command line contract.

use std::fmt::Display;
use std::process::ExitCode;

use super::print;

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    /// The operation failed, for example the target refused it, or a file could not be written.
    Failed,
    /// The arguments are invalid, or there is no terminal.
    Usage,
    /// No such target, or more than one.
    NoTarget,
    Denied,
    /// Interrupted; everything received so far is kept.
    Interrupted,
    /// The exit code of a program started by the command, passed on.
    Child(u8),
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoTarget => 3,
            Self::Denied => 4,
            Self::Interrupted => 130,
            Self::Child(code) => code,
        }
    }

    /// The exit code of an operation that failed, possibly because the user lacks a permission.
    pub(super) fn of_error(is_denied: bool) -> Self {
        if is_denied { Self::Denied } else { Self::Failed }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error with its exit code.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    pub(super) error: anyhow::Error,
}

impl Failure {
    pub(super) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }

    pub(super) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Failed, error)
    }

    pub(super) fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, error: anyhow::anyhow!("{message}") }
    }

    /// Prints the error, and returns its exit code.
    pub(super) fn print(self) -> Exit {
        print::message(message(&self.error));
        self.exit
    }
}

/// Joins an error and its causes, except for those that it names itself.
fn message(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") })
        .unwrap_or_default()
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { exit: Exit::Failed, error }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::session::HeapFileError;

    #[test]
    fn causes_are_printed_once() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let full_text = full().to_string();
        let named = anyhow::Error::from(HeapFileError::from(full()));
        assert_eq!(message(&named), format!("no file was written: {full_text}"));
        assert_eq!(message(&anyhow::Error::from(full()).context("a.csv")), format!("a.csv: {full_text}"));
    }
}
