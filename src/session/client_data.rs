//! Client data for a profiler to attach, read from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::ipc::ClientData;

/// Why a file cannot be passed to a profiler.
#[derive(Debug, Error)]
pub enum ClientDataError {
    /// The file cannot be read.
    #[error("the profiler's data cannot be read from {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not fit in a message.
    #[error("{} is larger than {} bytes, the maximum for profiler client data", .0.display(), ClientData::MAX_BYTES)]
    TooLong(PathBuf),
}

/// Reads the data to pass to a profiler.
///
/// # Errors
/// When the file cannot be read, or is longer than [`ClientData::MAX_BYTES`].
pub fn client_data(file: &Path) -> Result<ClientData, ClientDataError> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(ClientData::MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|source| ClientDataError::Unreadable { path: file.to_owned(), source })?;
    if bytes.len() > ClientData::MAX_BYTES { Err(ClientDataError::TooLong(file.to_owned())) } else { Ok(ClientData(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_data_size_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data");
        std::fs::write(&file, vec![7; ClientData::MAX_BYTES]).unwrap();
        assert_eq!(client_data(&file).unwrap(), ClientData(vec![7; ClientData::MAX_BYTES]));
        std::fs::write(&file, vec![7; ClientData::MAX_BYTES + 1]).unwrap();
        let error = client_data(&file).unwrap_err().to_string();
        assert!(error.ends_with("data is larger than 65000 bytes, the maximum for profiler client data"), "{error}");
        assert!(matches!(client_data(folder.path()), Err(ClientDataError::Unreadable { .. })));
    }
}
