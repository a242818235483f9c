//! File modes and links.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

#[test]
fn file_is_accessible_only_to_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let (output, _file) = OutputFile::create(&dir.path().join("a.nettrace")).unwrap();
    assert_eq!(output.partial().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn symbolic_links_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nettrace");
    let elsewhere = dir.path().join("elsewhere");

    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(OutputFile::create(&path), Err(OutputError::Exists(_))));
    std::fs::remove_file(&path).unwrap();

    symlink(&elsewhere, dir.path().join("a.nettrace.partial")).unwrap();
    assert!(matches!(OutputFile::create(&path), Err(OutputError::PartialExists(_))));
    assert!(!elsewhere.exists());
}

#[test]
fn removed_or_replaced_file_is_lost_and_replacement_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nettrace");
    let partial = dir.path().join("a.nettrace.partial");
    type Finish = fn(OutputFile) -> Result<PathBuf, OutputError>;
    for finish in [OutputFile::persist as Finish, OutputFile::keep_partial] {
        let (output, _file) = OutputFile::create(&path).unwrap();
        std::fs::remove_file(&partial).unwrap();
        assert!(matches!(finish(output), Err(OutputError::Lost(_))));

        let (output, _file) = OutputFile::create(&path).unwrap();
        std::fs::remove_file(&partial).unwrap();
        std::fs::write(&partial, b"another").unwrap();
        assert!(matches!(finish(output), Err(OutputError::Lost(lost)) if lost == partial));
        assert!(!path.exists() && std::fs::read(&partial).unwrap() == b"another");
        std::fs::remove_file(&partial).unwrap();
    }
}
