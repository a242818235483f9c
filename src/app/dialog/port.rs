//! The dialog that serves a diagnostic port.

use std::path::PathBuf;

use super::{Field, Form, Purpose, Question};

#[derive(Debug, Clone, Copy)]
pub struct Port;

const PATH: usize = 0;
/// Constant default, so that a path written in a script works across runs.
const DEFAULT_PATH: &str = "/tmp/dn-top.port";

impl Form {
    /// Creates the form for serving a port.
    pub(in crate::app) fn port() -> Self {
        let about = "a new socket, or one that dn-top left; less than 108 bytes";
        let mut form = Self::new(None, Purpose::Port(Port), vec![Question::text("Socket", DEFAULT_PATH, about)]);
        form.focus = Field::Question(PATH);
        form
    }

    /// Returns the requested socket path, or the invalid field and the reason.
    pub(in crate::app) fn port_request(&self) -> Result<PathBuf, (usize, String)> {
        let path = self.typed(PATH);
        if !path.starts_with('/') {
            return Err((PATH, "Enter an absolute path: programs have working directories of their own.".to_owned()));
        }
        Ok(path.into())
    }
}

impl Port {
    pub(super) fn effects(self, form: &Form) -> Vec<String> {
        vec![
            format!("A .NET program that is started with DOTNET_DiagnosticPorts={} connects here.", form.typed(PATH)),
            "It is suspended at startup until it is resumed; with ,nosuspend after the path it is not.".to_owned(),
            "Running programs are not affected. It closes when dn-top quits: suspended processes stay suspended.".to_owned(),
        ]
    }
}
