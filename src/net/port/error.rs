//! Why a diagnostic port cannot be served.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::SafeText;
use crate::net::stream::{MAX_PATH_LENGTH, PATH_UNIT};

/// Why a diagnostic port cannot be served. An existing file is left unchanged.
#[derive(Debug, Error)]
pub enum PortError {
    /// Another process listens there.
    #[error("{} is served by another program; choose another path for the port", shown(.0))]
    InUse(PathBuf),
    /// The existing file is not a socket, or not ours.
    #[error("{} exists already and is not a socket that this user left behind; choose another path for the port", shown(.0))]
    FileExists(PathBuf),
    /// The path does not fit a socket address, or the name of a pipe.
    #[error("the path of a port has {MAX_PATH_LENGTH} {PATH_UNIT} at most, and {} has more", shown(.0))]
    TooLong(PathBuf),
    /// The path cannot be expressed in `DOTNET_DiagnosticPorts`.
    #[error("{} cannot be written into DOTNET_DiagnosticPorts, where ',' and ';' are separators; choose another path", shown(.0))]
    Separator(PathBuf),
    /// This program already serves a port.
    #[error("a port is served already: {}", shown(.0))]
    AlreadyServing(PathBuf),
    /// An error of the operating system.
    #[error("the port {} cannot be served: {reason}", shown(path))]
    Io {
        /// Path of the port.
        path: PathBuf,
        /// The error.
        reason: io::Error,
    },
}

fn shown(path: &Path) -> SafeText {
    SafeText::from_path(path)
}
