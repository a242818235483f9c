//! The dialogs that serve and close a diagnostic port.

use std::path::{Path, PathBuf};

use super::{Form, Purpose, Question, Subject};

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
        let question = Question::text("Socket", DEFAULT_PATH, about);
        Self::new(Purpose::Port, None, "Serve a diagnostic port", &["Cancel", "Serve"], Vec::new(), vec![question])
    }

    /// Returns the requested socket path, or the invalid field and the reason.
    pub(in crate::app) fn port_request(&self) -> Result<PathBuf, (usize, String)> {
        let path = self.typed(PATH);
        if !path.starts_with('/') {
            return Err((PATH, "Enter an absolute path: programs have working directories of their own.".to_owned()));
        }
        Ok(path.into())
    }

    /// Creates the form for closing the port served at `path`: of the `connected` processes, some are suspended at startup, and some are being
    /// recorded.
    pub(in crate::app) fn close_port(path: &Path, connected: &[Subject], waiting: usize, recorded: usize) -> Self {
        let mut names: Vec<_> = connected.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        if let more @ 1.. = connected.len().saturating_sub(MAX_NAMED) {
            names.push(format!("{more} more"));
        }
        let connected = if names.is_empty() { "No process is connected".to_owned() } else { format!("Connected: {}", names.join(", ")) };
        let mut effects = vec![
            format!("{connected}. The socket {} is removed.", path.display()),
            "Running programs continue; they retry this path.".to_owned(),
        ];
        let mut questions = Vec::new();
        if waiting > 0 {
            effects.push(format!("Suspended at startup: {waiting}. Without the port they stay suspended."));
            questions.push(Question::choice("Suspended", SUSPENDED_OPTIONS, 0));
        }
        if recorded > 0 {
            effects.push(format!("Recording: {recorded}. Without the port it can only be abandoned: stop it first."));
        }
        Self::new(Purpose::ClosePort, None, "Close the diagnostic port", &["No", "Yes, close it"], effects, questions)
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
