//! Whether a start-up hook would load. Where one does not, .NET 9 dies of it.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file::open_in;

/// Where the head of a PE file says that the rest of its head is (PE format, "MS-DOS stub").
const HEAD: usize = 0x3c;
/// The directory entry of managed code, and where the entries begin in the two forms of the optional header.
const CLI_ENTRY: usize = 14;
const ENTRIES_PE32: usize = 96;
const ENTRIES_PE32_PLUS: usize = 112;

/// Looks at the assembly as a process sees it whose root directory is `root`; `Err` has what is wrong with it, as the end of a sentence.
pub(super) fn check(root: &Path, path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("is no absolute path".to_owned());
    }
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "does not exist as the process sees files".to_owned(),
        _ => format!("cannot be looked at as the process sees files ({error})"),
    };
    let file = open_in(root, path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err("is no file".to_owned());
    }
    let mut start = vec![0; 4096];
    let count = file.read_at(&mut start, 0).map_err(cannot)?;
    if is_managed(&start[..count]) { Ok(()) } else { Err("is no .NET assembly".to_owned()) }
}

/// Whether these are the first bytes of a PE file with managed code.
fn is_managed(bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..at + 4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let Some(head) = word(HEAD).map(|head| head as usize).filter(|head| *head < bytes.len() && bytes.starts_with(b"MZ")) else {
        return false;
    };
    // The signature and the file header come before the optional one.
    let optional = head + 4 + 20;
    let entries = match bytes.get(optional..optional + 2) {
        Some([0x0b, 0x01]) => ENTRIES_PE32,
        Some([0x0b, 0x02]) => ENTRIES_PE32_PLUS,
        _ => return false,
    };
    let count = word(optional + entries - 4);
    let cli = word(optional + entries + 8 * CLI_ENTRY);
    bytes[head..].starts_with(b"PE\0\0") && count.is_some_and(|count| count as usize > CLI_ENTRY) && cli.is_some_and(|address| address > 0)
}

/// The least that counts as an assembly.
#[cfg(test)]
pub(super) fn assembly() -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[HEAD] = 0x80;
    bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
    let optional = 0x80 + 24;
    bytes[optional..optional + 2].copy_from_slice(&[0x0b, 0x01]);
    bytes[optional + ENTRIES_PE32 - 4] = 16;
    bytes[optional + ENTRIES_PE32 + 8 * CLI_ENTRY] = 8;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_assemblies_that_are_there_as_the_process_sees_them() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("app")).unwrap();
        fs::write(at("app/hook.dll"), assembly()).unwrap();
        fs::write(at("app/native.dll"), &assembly()[..300]).unwrap();
        fs::write(at("app/text.dll"), "MZ").unwrap();
        // Absolute links mean what they mean below the process's root.
        symlink("/app/hook.dll", at("link.dll")).unwrap();
        symlink("/etc/passwd", at("outside.dll")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe.dll"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let check = |path: &str| check(root.path(), path);
        for good in ["/app/hook.dll", "/link.dll", "/app/../app/hook.dll"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("app/hook.dll", "is no absolute path"),
            ("", "is no absolute path"),
            ("/app/hook", "does not exist as the process sees files"),
            ("/app/hook.dll/x", "does not exist as the process sees files"),
            ("/outside.dll", "does not exist as the process sees files"),
            ("/app", "is no file"),
            ("/pipe.dll", "is no file"),
            ("/app/native.dll", "is no .NET assembly"),
            ("/app/text.dll", "is no .NET assembly"),
        ] {
            assert_eq!(check(bad), Err(why.to_owned()), "{bad}");
        }
        let gone = super::check(&at("gone"), "/app/hook.dll").unwrap_err();
        assert_eq!(gone, "does not exist as the process sees files");
    }

    #[test]
    fn no_prefix_of_an_assembly_is_one() {
        let whole = assembly();
        let needed = 0x80 + 24 + ENTRIES_PE32 + 8 * CLI_ENTRY + 4;
        for length in 0..whole.len() {
            assert_eq!(is_managed(&whole[..length]), length >= needed, "{length}");
        }
        let mut far = whole.clone();
        far[HEAD..HEAD + 4].fill(0xff);
        assert!(!is_managed(&far));
    }
}
