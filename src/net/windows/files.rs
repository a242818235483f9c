//! Files of ours: never over another, never through a link. Who may read them is what their folder says: no safe interface gives a new file rights of its
//! own, and the folder of a user is closed to others.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf, Prefix};

use tempfile::TempPath;
use winapi_util::file::information;

/// `FILE_FLAG_OPEN_REPARSE_POINT` (`CreateFile`).
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// `FILE_ATTRIBUTE_REPARSE_POINT`.
const REPARSE_POINT: u32 = 0x400;
/// Names that are devices in every folder (Windows, "Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];

/// Makes a file that is not there, for reading and writing. No link is followed in the last place.
///
/// # Errors
/// Those of the system; `AlreadyExists` for anything of that name, `InvalidInput` for the name of a device.
pub fn create(path: &Path) -> io::Result<File> {
    if is_device(path) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is the name of a device"));
    }
    OpenOptions::new().read(true).write(true).create_new(true).custom_flags(OPEN_REPARSE_POINT).open(path)
}

fn is_device(path: &Path) -> bool {
    if let Some(Component::Prefix(prefix)) = path.components().next()
        && matches!(prefix.kind(), Prefix::DeviceNS(_))
    {
        return true;
    }
    // What is behind the first dot does not count, nor do blanks before it.
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
    let name = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let numbered =
        |device: &str| name.strip_prefix(device).is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit());
    DEVICES.contains(&name) || numbered("COM") || numbered("LPT")
}

/// Opens a file for reading, through no link in the last place.
///
/// # Errors
/// Those of the system.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OPEN_REPARSE_POINT).open(path)?;
    if file.metadata()?.file_attributes() & REPARSE_POINT != 0 {
        return Err(io::Error::other("it is a link"));
    }
    Ok(file)
}

/// Opens a file of settings for reading. Which users could have written it depends on its folder.
///
/// # Errors
/// Those of the system, or why the file is refused.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    if is_device(path) {
        return Err(io::Error::other("it is no file"));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

/// Renames a file to a name that nothing has.
///
/// # Errors
/// Those of the system; `AlreadyExists` where something has the name.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    TempPath::try_from_path(from)?.persist_noclobber(to).map_err(|failed| {
        // It stays where it is.
        let _ = failed.path.keep();
        failed.error
    })
}

/// Reads at a place of a file.
///
/// # Errors
/// Those of the system; `UnexpectedEof` at its end.
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

/// Writes at a place of a file.
///
/// # Errors
/// Those of the system.
pub fn write_all_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// The path that bytes are.
pub(in crate::net) fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Which file it is, whatever it is called: its volume and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// # Errors
    /// Those of the system.
    pub fn of(file: &File) -> io::Result<Self> {
        information(file).map(|facts| Self(facts.volume_serial_number(), facts.file_index()))
    }

    /// Whether this is the file of that name, and no other that took its place, nor a link.
    pub fn is_at(self, path: &Path) -> bool {
        open(path).and_then(|file| Self::of(&file)).is_ok_and(|id| id == self)
    }
}
