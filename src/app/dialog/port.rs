//! The dialogs that serve and close a diagnostic port.

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

const PATH: usize = 0;
/// Constant default, so that a path written in a script works across runs.
const DEFAULT_PATH: &str = "/tmp/dn-top.port";
/// Maximum number of processes listed by name.
const MAX_NAMED: usize = 4;

const SUSPENDED_OPTIONS: &[(&str, &str)] =
    &[("resume them", "they are resumed before it closes"), ("stay suspended", "until a port is served there again")];

impl Form {
    /// Creates the form for serving a port.
    pub(in crate::app) fn port() -> Self {
        let about = "a new socket, or one that dn-top left; less than 108 bytes";
        Self::new(None, Purpose::Port, vec![Question::text("Socket", DEFAULT_PATH, about)]).at_first_field()
    }

    /// Returns the requested socket path, or the invalid field and the reason.
    pub(in crate::app) fn port_request(&self) -> Result<PathBuf, (usize, String)> {
        let path = self.typed(PATH);
        if !path.starts_with('/') {
            return Err((PATH, "Enter an absolute path: programs have working directories of their own.".to_owned()));
        }
        Ok(path.into())
    }

    /// Creates the form for closing the port served at `path`.
    pub(in crate::app) fn close_port(path: &Path, connected: Vec<Subject>, waiting: usize, recorded: usize) -> Self {
        let questions = if waiting > 0 { vec![Question::choice("Suspended", SUSPENDED_OPTIONS, 0)] } else { Vec::new() };
        Self::new(None, Purpose::ClosePort(ClosePort { path: path.to_owned(), connected, waiting, recorded }), questions)
    }

    /// Returns whether suspended processes are resumed first.
    pub(in crate::app) fn resumes_suspended(&self) -> bool {
        self.chosen(0) == 0
    }
}

pub(super) fn effects(form: &Form) -> Vec<String> {
    vec![
        format!("A .NET program that is started with DOTNET_DiagnosticPorts={} connects here.", form.typed(PATH)),
        "It is suspended at startup until it is resumed; with ,nosuspend after the path it is not.".to_owned(),
        "Running programs are not affected. It closes when dn-top quits: suspended processes stay suspended.".to_owned(),
    ]
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
