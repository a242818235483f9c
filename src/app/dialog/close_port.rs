//! The dialog that takes the diagnostic port down.

use std::path::{Path, PathBuf};

use super::{Form, Purpose, Question, Subject};

/// A port that is served, and the processes that are connected to it.
#[derive(Debug)]
pub struct ClosePort {
    path: PathBuf,
    connected: Vec<Subject>,
    /// How many of them wait at startup.
    waiting: usize,
    /// How many of them are being recorded.
    recorded: usize,
}

/// So many are named.
const NAMED: usize = 4;

const OPTIONS: &[(&str, &str)] =
    &[("resume them", "they are resumed before it closes"), ("stay suspended", "until a port is served there again")];

impl Form {
    /// Asks about the port that is served at a path.
    pub(in crate::app) fn close_port(path: &Path, connected: Vec<Subject>, waiting: usize, recorded: usize) -> Self {
        let questions = if waiting > 0 { vec![Question::choice("Suspended", OPTIONS, 0)] } else { Vec::new() };
        Self::new(None, Purpose::ClosePort(ClosePort { path: path.to_owned(), connected, waiting, recorded }), questions)
    }

    /// Whether processes that wait are resumed first.
    pub(in crate::app) fn lets_run(&self) -> bool {
        self.chosen(0) == 0
    }
}

impl ClosePort {
    pub(super) fn effects(&self) -> Vec<String> {
        let path = self.path.display();
        let mut names: Vec<_> = self.connected.iter().take(NAMED).map(ToString::to_string).collect();
        if let more @ 1.. = self.connected.len().saturating_sub(NAMED) {
            names.push(format!("{more} more"));
        }
        let who = if names.is_empty() { "No process is connected".to_owned() } else { format!("Connected: {}", names.join(", ")) };
        let mut effects =
            vec![format!("{who}. The socket {path} is removed."), "Running programs continue; they retry this path.".to_owned()];
        if self.waiting > 0 {
            effects.push(format!("Suspended at startup: {}. Without the port they stay suspended.", self.waiting));
        }
        if self.recorded > 0 {
            effects.push(format!("Recording: {}. Without the port it can only be abandoned: stop it first.", self.recorded));
        }
        effects
    }
}
