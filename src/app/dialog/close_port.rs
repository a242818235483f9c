//! The dialog that closes the diagnostic port.

use std::path::{Path, PathBuf};

use super::{Form, Purpose, Question, Subject};

/// A served port and the processes connected to it.
#[derive(Debug)]
pub struct ClosePort {
    path: PathBuf,
    connected: Vec<Subject>,
    /// Number of them suspended at startup.
    waiting: usize,
    /// Number of them being recorded.
    recorded: usize,
}

/// Maximum number of processes listed by name.
const MAX_NAMED: usize = 4;

const OPTIONS: &[(&str, &str)] =
    &[("resume them", "they are resumed before it closes"), ("stay suspended", "until a port is served there again")];

impl Form {
    /// Creates the form for closing the port served at `path`.
    pub(in crate::app) fn close_port(path: &Path, connected: Vec<Subject>, waiting: usize, recorded: usize) -> Self {
        let questions = if waiting > 0 { vec![Question::choice("Suspended", OPTIONS, 0)] } else { Vec::new() };
        Self::new(None, Purpose::ClosePort(ClosePort { path: path.to_owned(), connected, waiting, recorded }), questions)
    }

    /// Returns whether suspended processes are resumed first.
    pub(in crate::app) fn resumes_suspended(&self) -> bool {
        self.chosen(0) == 0
    }
}

impl ClosePort {
    pub(super) fn effects(&self) -> Vec<String> {
        let path = self.path.display();
        let mut names: Vec<_> = self.connected.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        if let more @ 1.. = self.connected.len().saturating_sub(MAX_NAMED) {
            names.push(format!("{more} more"));
        }
        let connected = if names.is_empty() { "No process is connected".to_owned() } else { format!("Connected: {}", names.join(", ")) };
        let mut effects =
            vec![format!("{connected}. The socket {path} is removed."), "Running programs continue; they retry this path.".to_owned()];
        if self.waiting > 0 {
            effects.push(format!("Suspended at startup: {}. Without the port they stay suspended.", self.waiting));
        }
        if self.recorded > 0 {
            effects.push(format!("Recording: {}. Without the port it can only be abandoned: stop it first.", self.recorded));
        }
        effects
    }
}
