//! The pipe of a port that we serve: ours alone from its first moment, and gone when we are.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::sanitise;
use crate::net::stream::{LONGEST_PATH, Listener, PIPES, pipe_name};

/// Why a diagnostic port cannot be served. Nothing was taken away.
#[derive(Debug, Error)]
pub enum PortError {
    /// Somebody listens there.
    #[error("{} is served by another program; choose another name for the port", shown(.0))]
    Live(PathBuf),
    /// It is too long for a pipe.
    #[error("the path of a port has {LONGEST_PATH} characters at most, and {} has more", shown(.0))]
    TooLong(PathBuf),
    /// `DOTNET_DiagnosticPorts` could not say it.
    #[error("{} cannot be written into DOTNET_DiagnosticPorts, where ',' and ';' stand between parts; choose another name", shown(.0))]
    Separator(PathBuf),
    /// There is one already, here.
    #[error("a port is served already: {}", shown(.0))]
    Second(PathBuf),
    /// What the operating system said.
    #[error("the port {} cannot be served: {reason}", shown(path))]
    Io {
        /// The port.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
}

fn shown(path: &Path) -> String {
    sanitise(&path.to_string_lossy())
}

/// A pipe. It goes with its last instance.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    /// Makes the pipe and listens. A name alone is that of a pipe, as in `DOTNET_DiagnosticPorts`.
    pub(super) fn listen(path: &Path) -> Result<(Self, Listener), PortError> {
        let path = match pipe_name(path) {
            Some(_) => path.to_owned(),
            None => PathBuf::from(format!("{PIPES}{}", path.display())),
        };
        let name = path.to_string_lossy();
        if name.encode_utf16().count() >= LONGEST_PATH {
            return Err(PortError::TooLong(path));
        }
        if name.contains([',', ';']) {
            return Err(PortError::Separator(path));
        }
        // Access is denied to the first instance of a pipe that has one.
        let listener = Listener::bind(&path).map_err(|reason| match reason.kind() {
            io::ErrorKind::PermissionDenied => PortError::Live(path.clone()),
            _ => PortError::Io { path: path.clone(), reason },
        })?;
        Ok((Self(path), listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// Handles are not limited.
pub fn make_room() {}
