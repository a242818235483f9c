//! File modes, links and pipes.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

#[test]
fn segment_is_accessible_only_to_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    Segments::new(&folder.path().join("a")).put(b"mine").unwrap();
    assert_eq!(folder.path().join("a.0001").metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn symbolic_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (beside, secret) = (folder.path().join("a"), folder.path().join("secret"));
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, folder.path().join("a.0001")).unwrap();
    let mut segments = Segments::new(&beside);
    assert!(matches!(segments.put(b"mine"), Err(StoreError::Failed(words)) if words.contains("a.0001 cannot be created")));
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
    segments.put(b"mine").unwrap();
    fs::remove_file(folder.path().join("a.0002")).unwrap();
    symlink(&secret, folder.path().join("a.0002")).unwrap();
    assert!(segments.take_oldest().unwrap_err().contains("a.0002 cannot be read"));
}

/// Opening a pipe would block until there is a writer.
#[test]
fn replaced_segment_is_not_read_awaited_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments = Segments::new(&folder.path().join("a"));
    for (name, put) in [("a.0001", "pipe"), ("a.0002", "file")] {
        segments.put(b"mine").unwrap();
        let other = folder.path().join("other");
        match put {
            "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &other, rustix::fs::Mode::RWXU).unwrap(),
            _ => fs::write(&other, "another").unwrap(),
        }
        fs::rename(other, folder.path().join(name)).unwrap();
    }
    for name in ["a.0001", "a.0002"] {
        let words = segments.take_oldest().unwrap_err();
        assert!(words.contains(&format!("{name} cannot be read")) && words.contains("replaced by another file"), "{words}");
    }
    segments.release();
    assert_eq!(file_names(folder.path()), ["a.0001", "a.0002"]);
}
