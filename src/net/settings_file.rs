//! Settings files: opened only once it is known that no other user controls them.

use std::fs::File;
use std::io;
use std::path::Path;

use super::file::reopen;
use super::files::check_trusted;
use super::resolve::locate_owned;

/// Opens a settings file for reading: only one that no user except our own and root can have written, or lead us to.
///
/// # Errors
/// Those of the system, or the reason why the file is refused.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    let found = File::from(locate_owned(path)?);
    check_trusted(&found.metadata()?)?;
    reopen(&found.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn settings_are_opened_only_if_no_other_user_controls_them() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let open = |name: &str| open_trusted(&at(name)).map(drop).map_err(|error| error.to_string());
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        assert_eq!((open("file"), open("link")), (Ok(()), Ok(())));
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(open("link"), Err("others can write to it: `chmod go-w` it".to_owned()));
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("/dev/tty", at("device")).unwrap();
        // A socket cannot even be opened: this shows that none of them is.
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["socket", "pipe", "device", "."] {
            assert_eq!(open(name), Err("it is not a regular file".to_owned()), "{name}");
        }
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(at("file"), fs::Permissions::from_mode(0o600)).unwrap();
            lchown(at("link"), Some(65_533), None).unwrap();
            assert_eq!(open("link"), Err(format!("the link {} in its path belongs to user 65533", at("link").display())));
            lchown(at("file"), Some(65_533), None).unwrap();
            assert_eq!(open("file"), Err("it belongs to another user".to_owned()));
            symlink(".", at("folder")).unwrap();
            lchown(at("folder"), Some(65_533), None).unwrap();
            let kind = |name: &str| open_trusted(&at(name)).unwrap_err().kind();
            assert_eq!(
                ["link", "folder/file", "folder/none"].map(kind),
                [io::ErrorKind::Other, io::ErrorKind::PermissionDenied, io::ErrorKind::PermissionDenied]
            );
        }
    }
}
