//! The pipe of a port that we serve: ours alone from its first moment, and gone when we are.

use std::io;
use std::path::{Path, PathBuf};

use super::error::PortError;
use crate::net::stream::{LONGEST_PATH, Listener, PIPES, is_served, pipe_name};

/// A pipe. It goes with its last instance.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    /// Makes the pipe and listens. A name alone is that of a pipe, as in `DOTNET_DiagnosticPorts`.
    pub(super) fn listen(path: &Path) -> Result<(Self, Listener), PortError> {
        let path = match pipe_name(path) {
            Some(_) => path.to_owned(),
            None if path.to_string_lossy().contains(['\\', '/', ':']) => {
                let reason = io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a pipe of this machine");
                return Err(PortError::Io { path: path.to_owned(), reason });
            }
            None => PathBuf::from(format!("{PIPES}{}", path.display())),
        };
        let name = path.to_string_lossy();
        if name.encode_utf16().count() >= LONGEST_PATH {
            return Err(PortError::TooLong(path));
        }
        if name.contains([',', ';']) {
            return Err(PortError::Separator(path));
        }
        // Wine gives a pipe that is there another first instance.
        if is_served(&path) {
            return Err(PortError::Live(path));
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
