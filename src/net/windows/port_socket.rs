//! The pipe of a port that we serve: accessible only to our user from its creation, and removed when we exit.

use std::io;
use std::path::{Path, PathBuf};

use super::error::PortError;
use crate::net::stream::{Listener, MAX_PATH_LENGTH, PIPES, is_served, pipe_name};

/// A pipe. It is removed with its last instance.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    /// Creates the pipe and listens. A bare name is that of a pipe, as in `DOTNET_DiagnosticPorts`.
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
        if name.encode_utf16().count() >= MAX_PATH_LENGTH {
            return Err(PortError::TooLong(path));
        }
        if name.contains([',', ';']) {
            return Err(PortError::Separator(path));
        }
        // Wine allows another first instance of an existing pipe.
        if is_served(&path) {
            return Err(PortError::InUse(path));
        }
        // Creating the first instance of an existing pipe fails with access denied.
        let listener = Listener::bind(&path).map_err(|reason| match reason.kind() {
            io::ErrorKind::PermissionDenied => PortError::InUse(path.clone()),
            _ => PortError::Io { path: path.clone(), reason },
        })?;
        Ok((Self(path), listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// Does nothing: handles are not limited.
pub fn raise_file_limit() {}
