//! The dialog that serves a diagnostic port.

use std::path::PathBuf;

use super::{Field, Form, Purpose, Question};

/// Where a port is to be served.
#[derive(Debug, Clone, Copy)]
pub struct Port;

const PATH: usize = 0;
/// Where the last one was, unless another path is given: programs that have it in a script find it again.
const USUAL: &str = "/tmp/dn-top.port";

impl Form {
    /// Asks where to serve a port.
    pub(in crate::app) fn port() -> Self {
        let about = "a new socket, or one that dn-top left; less than 108 bytes";
        let mut form = Self::new(None, Purpose::Port(Port), vec![Question::text("Socket", USUAL, about)]);
        form.focus = Field::Question(PATH);
        form
    }

    /// The socket that is wanted, or why it cannot be had like this.
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
