//! The file of a recording: created under a temporary name, and renamed to its final name only when it is complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use thiserror::Error;

use super::cpu_sample_file::cpu_file;
use crate::model::{FILE_STAMP, OutputName, partial_path};
use crate::net::files::{self, FileId};
use crate::net::target_file;

/// Why a recording's file could not be created or renamed.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The path exists already. Nothing was overwritten.
    #[error("{} exists already and is not overwritten; choose another file with -o", .0.display())]
    Exists(PathBuf),
    /// A recording to the same path is in progress, or was cut off.
    #[error(
        "{} exists already and is not overwritten: a recording in progress, or one that was cut off, which \
         `dn-top salvage {} -o OUT` repairs; choose another file with -o", .0.display(), .0.display()
    )]
    PartialExists(PathBuf),
    /// The folder does not exist.
    #[error("the folder {} does not exist; create it or choose another file with -o", .0.display())]
    NoFolder(PathBuf),
    /// The folder is not writable.
    #[error("{} is not writable by this user ({reason}); choose another file with -o", path.display())]
    Denied {
        /// The requested file.
        path: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The file was removed or replaced while it was written.
    #[error("{} was removed or replaced while it was written: the data is lost", .0.display())]
    Lost(PathBuf),
    /// Any other error of the operating system.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
}

impl OutputError {
    fn new(path: &Path, reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists(path.to_owned()),
            io::ErrorKind::NotFound => Self::NoFolder(folder(path).to_owned()),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied { path: path.to_owned(), reason },
            _ => Self::Io { path: path.to_owned(), reason },
        }
    }

    /// Converts the error for a file not in the nettrace format, which cannot be salvaged.
    pub(super) fn without_salvage(self) -> Self {
        match self {
            Self::PartialExists(partial) => Self::Exists(partial),
            error => error,
        }
    }

    /// Whether this is a lack of permissions.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

/// A file that is being written. Dropping it removes the file, unless it has its final name or is to be kept.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    partial: PathBuf,
    id: FileId,
    is_kept: bool,
    /// Kept open so that its file id is not reused.
    _file: File,
}

impl OutputFile {
    /// Creates `PATH.partial` with mode 0600, and opens it for writing.
    ///
    /// # Errors
    /// If `PATH` or `PATH.partial` exists (as a file, a link or anything else), or cannot be created.
    pub fn create(path: &Path) -> Result<(Self, File), OutputError> {
        match files::check_exists(path) {
            Ok(()) => return Err(OutputError::Exists(path.to_owned())),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => {}
            Err(reason) => return Err(OutputError::new(path, reason)),
        }
        let partial = partial_path(path);
        let file = files::create(&partial).map_err(|reason| match reason.kind() {
            io::ErrorKind::AlreadyExists => OutputError::PartialExists(partial.clone()),
            _ => OutputError::new(&partial, reason),
        })?;
        let facts = FileId::of(&file).and_then(|id| Ok((id, file.try_clone()?)));
        let (id, other) = facts.map_err(|reason| OutputError::new(&partial, reason))?;
        Ok((Self { path: path.to_owned(), partial, id, is_kept: false, _file: other }, file))
    }

    /// Path of the file while it is being written, and afterwards if it is never completed.
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Keeps the file under its partial name, whatever happens from now on.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Leaves the file under its partial name.
    ///
    /// # Errors
    /// [`OutputError::Lost`] if the file is no longer at that path.
    pub fn keep_partial(mut self) -> Result<PathBuf, OutputError> {
        self.keep();
        let partial = self.partial.clone();
        if self.id.is_at(&partial) { Ok(partial) } else { Err(OutputError::Lost(partial)) }
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    /// If the path exists by now; the bytes then stay under the partial name. [`OutputError::Lost`] if they do not.
    pub fn persist(self) -> Result<PathBuf, OutputError> {
        let path = self.path.clone();
        let partial = self.keep_partial()?;
        files::rename_new(&partial, &path).map_err(|reason| OutputError::new(&path, reason))?;
        Ok(path)
    }

    /// Takes over the final name of another file, whose contents are included in this one, and discards the other.
    pub(super) fn replacing(mut self, other: Self) -> Self {
        self.keep();
        self.path.clone_from(&other.path);
        other.discard();
        self
    }

    /// Removes the file, although it was to be kept.
    pub(super) fn discard(mut self) {
        self.is_kept = false;
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.is_kept {
            remove_own(self.id, &self.partial);
        }
    }
}

/// Removes a file of ours, and nothing that replaced it. If that fails, a file stays behind that is empty or duplicates data.
pub(super) fn remove_own(id: FileId, path: &Path) {
    if id.is_at(path) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether a file could not be written for lack of disk space.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the default file for a process in `folder`, named by the pattern, and numbered if the name is taken: two recordings of a process
/// may start in the same second.
pub fn default_file(folder: &Path, pattern: &OutputName, name: &str, pid: u32, extension: &str) -> PathBuf {
    free_name(&folder.join(pattern.path(name, pid, file_stamp(), extension)))
}

/// Returns the local date and time, as used in file names.
pub fn file_stamp() -> String {
    Timestamp::now().to_zoned(TimeZone::system()).strftime(FILE_STAMP).to_string()
}

/// Returns this path, or its first numbered variant, such that neither it nor the sample file next to it exists.
pub(super) fn free_name(first: &Path) -> PathBuf {
    let is_free = |file: &PathBuf| {
        let samples = cpu_file(file);
        [file, &partial_path(file), &samples, &partial_path(&samples)].iter().all(|path| !target_file::exists(path))
    };
    let others = (2..1000).map(|number| numbered(first, number));
    std::iter::once(first.to_owned()).chain(others).find(is_free).unwrap_or_else(|| first.to_owned())
}

/// Returns this path of another process, numbered so that it is free at `here`, the same path as seen by us.
pub fn free_target_path(path: &Path, here: &Path) -> PathBuf {
    free_name(here).file_name().map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}

/// Returns a path in the same folder with a number appended to the file name: `app_2.log` for `app.log`.
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("_{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[cfg(target_os = "linux")]
    mod linux;

    #[test]
    fn taken_dump_path_gets_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let (there, here) = (Path::new("/tmp/core.dmp"), dir.path().join("core.dmp"));
        assert_eq!(free_target_path(there, &here), there);
        std::fs::write(&here, "").unwrap();
        assert_eq!(free_target_path(there, &here), Path::new("/tmp/core_2.dmp"));
    }

    #[test]
    fn file_appears_only_when_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.nettrace");
        let (output, mut file) = OutputFile::create(&path).unwrap();
        file.write_all(b"bytes").unwrap();
        assert!(!path.exists());
        assert_eq!(output.persist().unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn dropped_file_is_removed_unless_it_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        for is_kept in [false, true] {
            let (mut output, file) = OutputFile::create(&dir.path().join("a.nettrace")).unwrap();
            let partial = output.partial().to_owned();
            // On Windows, a removed file exists until it is closed.
            drop(file);
            if is_kept {
                output.keep();
            }
            drop(output);
            assert_eq!(partial.exists(), is_kept);
        }
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.nettrace");
        std::fs::write(dir.path().join("a.nettrace.partial"), "another's").unwrap();
        assert!(matches!(OutputFile::create(&path), Err(OutputError::PartialExists(_))));
        std::fs::remove_file(dir.path().join("a.nettrace.partial")).unwrap();

        let (output, _file) = OutputFile::create(&path).unwrap();
        std::fs::write(&path, b"another's").unwrap();
        let partial = output.partial().to_owned();
        assert!(matches!(output.persist(), Err(OutputError::Exists(_))));
        assert!(partial.exists());
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
    }

    #[test]
    fn replaced_file_is_lost_and_its_replacement_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.nettrace");
        let partial = dir.path().join("a.nettrace.partial");
        let replace = || {
            std::fs::rename(&partial, dir.path().join("elsewhere")).unwrap();
            std::fs::write(&partial, b"another").unwrap();
        };
        let (output, file) = OutputFile::create(&path).unwrap();
        replace();
        assert!(matches!(output.persist(), Err(OutputError::Lost(lost)) if lost == partial));
        assert!(!path.exists() && std::fs::read(&partial).unwrap() == b"another");
        drop(file);
        for entry in ["a.nettrace.partial", "elsewhere"] {
            std::fs::remove_file(dir.path().join(entry)).unwrap();
        }
        let (output, _file) = OutputFile::create(&path).unwrap();
        replace();
        drop(output);
        assert_eq!(std::fs::read(&partial).unwrap(), b"another");
    }

    #[test]
    fn missing_folder_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let error = OutputFile::create(&dir.path().join("no/such.nettrace")).unwrap_err();
        assert!(matches!(&error, OutputError::NoFolder(folder) if *folder == dir.path().join("no")), "{error}");
    }

    #[test]
    fn taken_output_name_gets_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let next = || free_name(&dir.path().join("Web.Api.nettrace"));
        let first = next();
        let (output, _file) = OutputFile::create(&first).unwrap();
        let second = next();
        assert_eq!(second, PathBuf::from(first.to_str().unwrap().replace(".nettrace", "_2.nettrace")));
        output.persist().unwrap();
        assert_eq!(next(), second);
        std::fs::write(&second, "").unwrap();
        assert!(next().to_str().unwrap().ends_with("_3.nettrace"));
        // Samples of a deleted recording are not overwritten, and block no other file.
        std::fs::write(cpu_file(&next()), "").unwrap();
        assert!(next().to_str().unwrap().ends_with("_4.nettrace"));
    }
}
