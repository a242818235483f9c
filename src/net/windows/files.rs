//! Our own files: accessible to our user only, never overwriting another file, never through a link.

mod access_list;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf, Prefix};

use tempfile::TempPath;
use winapi_util::file::information;
use winsafe::{HFILE, InitializeSecurityDescriptor, SECURITY_ATTRIBUTES, co};

use super::system::{account, failed};

/// `FILE_FLAG_OPEN_REPARSE_POINT` (`CreateFile`).
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// `FILE_ATTRIBUTE_REPARSE_POINT`.
const REPARSE_POINT: u32 = 0x400;
/// Names that are devices in every directory (Windows, "Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Creates a new file, readable and writable by our user only. A link in the last component is not followed.
///
/// # Errors
/// System errors; `AlreadyExists` if anything has this name, `InvalidInput` if the name is not that of a file on a drive.
pub fn create(path: &Path) -> io::Result<File> {
    check_is_on_drive(path)?;
    let name = path.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "its name is not Unicode"))?;
    let sid = account()?;
    let mut rights = access_list::for_user_only(&sid).ok_or_else(|| io::Error::other(format!("{sid} is no security identifier")))?;
    let mut descriptor = InitializeSecurityDescriptor().map_err(failed)?;
    descriptor.Control |= co::SE::DACL_PRESENT | co::SE::DACL_PROTECTED;
    descriptor.Dacl = rights.as_mut_ptr().cast();
    let mut attributes = SECURITY_ATTRIBUTES::default();
    attributes.set_lpSecurityDescriptor(Some(&mut descriptor));
    // The standard library can neither set access rights on creation nor adopt a handle of this type. So it opens the file again; while the
    // first handle is open, no other file can take the name.
    let (_made, _) = HFILE::CreateFile(
        name,
        co::GENERIC::READ,
        Some(co::FILE_SHARE::READ | co::FILE_SHARE::WRITE),
        Some(&attributes),
        co::DISPOSITION::CREATE_NEW,
        co::FILE_ATTRIBUTE::NORMAL,
        None,
        None,
        None,
    )
    .map_err(failed)?;
    OpenOptions::new().read(true).write(true).custom_flags(OPEN_REPARSE_POINT).open(path)
}

/// Checks that something has this name.
///
/// # Errors
/// System errors; `NotFound` if nothing has it, `InvalidInput` if the name is not that of a file on a drive.
pub fn check_exists(path: &Path) -> io::Result<()> {
    check_is_on_drive(path)?;
    path.symlink_metadata().map(drop)
}

/// Refuses, by name alone, anything but a file on a drive: merely opening it could block on a device, or connect to a pipe or another machine.
fn check_is_on_drive(path: &Path) -> io::Result<()> {
    let words = match path.components().next() {
        Some(Component::Prefix(prefix)) if !matches!(prefix.kind(), Prefix::Disk(_)) => "it may be a device, a pipe or on another machine",
        _ if is_device(path) => "it is the name of a device",
        _ if path.file_name().is_some_and(|name| name.to_string_lossy().contains(':')) => "it is the name of a stream in another file",
        _ => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{words}; choose a file on a drive")))
}

fn is_device(path: &Path) -> bool {
    // Anything after the first dot is ignored, as are spaces before it.
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
    let name = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let numbered = |device: &str| {
        let mut number = name.strip_prefix(device).unwrap_or_default().chars();
        matches!(number.next(), Some('0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}')) && number.next().is_none()
    };
    DEVICES.contains(&name) || numbered("COM") || numbered("LPT")
}

/// Opens a file for reading. A link in the last component is not followed.
///
/// # Errors
/// System errors.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OPEN_REPARSE_POINT).open(path)?;
    if file.metadata()?.file_attributes() & REPARSE_POINT != 0 {
        return Err(io::Error::other("it is a link"));
    }
    Ok(file)
}

/// Returns whether a path leads to a pipe that can be read like a file: named pipes are sockets here.
pub fn is_pipe(_path: &Path) -> bool {
    false
}

/// Opens a file named by the user for reading. Follows links, but refuses devices and pipes.
///
/// # Errors
/// System errors, or the reason why the file is refused.
pub fn open_named(path: &Path) -> io::Result<File> {
    check_is_on_drive(path)?;
    File::open(path)
}

/// Returns the absolute path of a file, without `..`. Links are kept: the resolved path has a form (`\\?\C:\`) that [`create`] and most programs
/// refuse.
///
/// # Errors
/// System errors.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

/// Opens a configuration file for reading. The users that could have written it depend on its directory.
///
/// # Errors
/// System errors, or the reason why the file is refused.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    let file = open_named(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Renames a file to a name not in use.
///
/// # Errors
/// System errors; `AlreadyExists` if the name is in use.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    TempPath::try_from_path(from)?.persist_noclobber(to).map_err(|failed| {
        // The file keeps its name.
        let _ = failed.path.keep();
        failed.error
    })
}

/// Reads at an offset of a file.
///
/// # Errors
/// System errors; `UnexpectedEof` at its end.
pub fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    let mut got = 0;
    while got < bytes.len() {
        match file.seek_read(&mut bytes[got..], at + got as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => got += count,
        }
    }
    Ok(())
}

/// Writes at an offset of a file.
///
/// # Errors
/// System errors.
pub fn write_all_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// Free space in the file system of a path, in bytes: not queried, as no file written here is large enough to need it.
///
/// # Errors
/// Always.
pub fn free_space(_: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in crate::net) fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Identity of a file independent of its name: volume serial number and file index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// System errors.
    pub fn of(file: &File) -> io::Result<Self> {
        information(file).map(|facts| Self(facts.volume_serial_number(), facts.file_index()))
    }

    /// Whether the path is that of this file, rather than a replacement or a link.
    pub fn is_at(self, path: &Path) -> bool {
        open(path).and_then(|file| Self::of(&file)).is_ok_and(|id| id == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_files_on_drives_are_created() {
        for name in [
            "NUL",
            "nul.nettrace.partial",
            r"C:\x\con",
            "aux .txt",
            "COM1",
            "lpt9.nettrace",
            "COM\u{b2}",
            "CONOUT$",
            r"\\.\pipe\dotnet-diagnostic-1",
            r"\\.\NUL",
            r"\\?\C:\x\a.nettrace",
            r"\\?\UNC\server\share\a.nettrace",
            r"\\server\share\a.nettrace",
            "//server/share/a.nettrace",
            "a.nettrace:b",
        ] {
            for refused in [create(Path::new(name)).map(drop), check_exists(Path::new(name)), open_trusted(Path::new(name)).map(drop)] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
                assert!(error.to_string().ends_with("; choose a file on a drive"), "{name}: {error}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["console.nettrace", "COM10", "null", "lpt", "a.nul"] {
            let path = folder.path().join(name);
            assert_eq!(check_exists(&path).unwrap_err().kind(), io::ErrorKind::NotFound, "{name}");
            drop(create(&path).unwrap());
            check_exists(&path).unwrap();
            assert_eq!(create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
    }

    #[test]
    fn file_is_identified_after_a_rename() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let file = create(&one).unwrap();
        let id = FileId::of(&file).unwrap();
        assert!(id.is_at(&one));
        std::fs::write(&two, "another").unwrap();
        assert!(!id.is_at(&two));
        assert_eq!(rename_new(&one, &two).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(id.is_at(&one), "it stays where it is");
        std::fs::remove_file(&two).unwrap();
        rename_new(&one, &two).unwrap();
        assert!(id.is_at(&two) && !one.exists());
    }
}
