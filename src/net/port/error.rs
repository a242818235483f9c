//! Why a diagnostic port cannot be served, in words.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::SafeText;
use crate::net::stream::{LONGEST_PATH, PATH_UNIT};

/// Why a diagnostic port cannot be served. Nothing was taken away.
#[derive(Debug, Error)]
pub enum PortError {
    /// A process listens there.
    #[error("{} is served by another program; choose another path for the port", shown(.0))]
    Live(PathBuf),
    /// What is there is no socket, or not ours.
    #[error("{} exists already and is not a socket that this user left behind; choose another path for the port", shown(.0))]
    Taken(PathBuf),
    /// It does not fit the address of a socket, or the name of a pipe.
    #[error("the path of a port has {LONGEST_PATH} {PATH_UNIT} at most, and {} has more", shown(.0))]
    TooLong(PathBuf),
    /// `DOTNET_DiagnosticPorts` cannot express it.
    #[error("{} cannot be written into DOTNET_DiagnosticPorts, where ',' and ';' stand between parts; choose another path", shown(.0))]
    Separator(PathBuf),
    /// There is one already, here.
    #[error("a port is served already: {}", shown(.0))]
    Second(PathBuf),
    /// The operating system's error.
    #[error("the port {} cannot be served: {reason}", shown(path))]
    Io {
        /// The port.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
}

fn shown(path: &Path) -> SafeText {
    SafeText::from_path(path)
}
