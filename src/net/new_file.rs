//! Creation of files: not through a link by which another user could have chosen the place.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::resolve::locate_folder;

/// Creates a new file for reading and writing, with mode 0600.
///
/// # Errors
/// Those of the system, or the link because of which the path is refused.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // CREATE with EXCL neither overwrites a file nor follows a link.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let create = |folder: BorrowedFd<'_>, path: &Path| Ok(openat(folder, path, flags, Mode::RUSR | Mode::WUSR)?.into());
    let created = locate_folder(path.parent().unwrap_or(Path::new(""))).and_then(|folder| create(folder.as_fd(), name.as_ref()));
    match created {
        // A folder that is mounted on demand only is if the whole path is opened.
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(CWD, path),
        created => created,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    #[test]
    fn links_to_the_folder_are_followed_unless_anyone_could_have_made_them() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let create = |name: &str| create(&at(name)).map(drop).map_err(|error| error.to_string());
        for folder in ["own", "open", "open/real", "home"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o1777)).unwrap();
        symlink("own", at("link")).unwrap();
        symlink("../own", at("open/ours")).unwrap();
        let names = ["own/a", "link/b", "open/ours/c", "open/real/d", "open/ours/../link/e"];
        assert_eq!(names.map(create), [const { Ok(()) }; 5]);
        assert_eq!(fs::read_dir(at("own")).unwrap().count(), 4);
        assert_eq!(fs::metadata(at("own/a")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(create("link/b").is_err_and(|error| error.contains("exists")), "it is never replaced");
        if rustix::process::geteuid().is_root() {
            symlink("../own", at("open/theirs")).unwrap();
            symlink("../own", at("home/theirs")).unwrap();
            for link in ["open/theirs", "home/theirs"] {
                lchown(at(link), Some(65_533), None).unwrap();
            }
            let why = format!("the link {} in its path belongs to user 65533, and anyone can make one there", at("open/theirs").display());
            assert_eq!(create("open/theirs/f"), Err(why.clone()));
            assert_eq!(create("open/theirs/../own/f"), Err(why));
            // Such as a home directory, whose owner moved a folder to another disk.
            assert_eq!(create("home/theirs/f"), Ok(()));
        }
    }

    #[test]
    fn relative_paths_are_those_of_the_current_folder() {
        assert_eq!(create(Path::new("Cargo.toml")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(create(Path::new("src/..")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(create(Path::new("none/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
