//! The kernel's user_events, into which a runtime may write its events (Linux 6.4, .NET 10): whether they can be had here, and the file that a
//! runtime needs for it, which only root may open.

use std::fs;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, fstatfs, openat, statfs};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::model::SafeText;

/// What `statfs` returns for tracefs (Linux, `magic.h`).
const TRACEFS: u64 = 0x7472_6163;
/// The file's name below tracefs.
const FILE: &str = "user_events_data";

/// Where the kernel shows what this looks at.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Where tracefs is to be mounted.
    pub tracefs: PathBuf,
    /// A setting that a kernel with user_events has, mounted or not.
    pub setting: PathBuf,
    /// Whether we are root.
    pub root: bool,
}

impl Kernel {
    /// This machine's.
    pub fn machine() -> Self {
        Self {
            tracefs: "/sys/kernel/tracing".into(),
            setting: "/proc/sys/kernel/user_events_max".into(),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// Everything that user_events lack here, each as a sentence about what would help; nothing where they can be had.
    pub fn missing(&self) -> Vec<String> {
        let shown = SafeText::from_path(&self.tracefs);
        let mounted = statfs(&self.tracefs).is_ok_and(|system| system.f_type as u64 == TRACEFS);
        let data = self.tracefs.join(FILE);
        let mut missing = Vec::new();
        let known = self.setting.exists() || (mounted && data.exists());
        if !known {
            missing.push("the kernel has none: it takes Linux 6.4 or newer, built with CONFIG_USER_EVENTS".to_owned());
        }
        if !mounted {
            missing.push(format!("tracefs is not mounted: run `mount -t tracefs tracefs {shown}` as root"));
        }
        // Where it is not mounted, only the user that would open it is known.
        let denied = match self.open() {
            _ if !mounted => !self.root,
            Err(UserEventsError::Io { reason, .. }) if reason.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                missing.push(format!("tracefs is mounted read-only: run `mount -o remount,rw {shown}` as root"));
                false
            }
            Err(UserEventsError::Io { reason, .. }) => reason.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        };
        if denied {
            missing.push("this user may not register events: run dn-top with sudo".to_owned());
        }
        missing
    }

    /// Opens the file to be handed to a runtime.
    ///
    /// # Errors
    /// [`UserEventsError`]; [`Kernel::missing`] has the details.
    pub fn open(&self) -> Result<UserEventsData, UserEventsError> {
        let path = self.tracefs.join(FILE);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat(CWD, &path, flags, Mode::empty()) {
            Ok(file) => UserEventsData::new(file),
            Err(reason) => Err(UserEventsError::Io { path, reason: reason.into() }),
        }
    }
}

/// Why there is no file to hand over.
#[derive(Debug, Error)]
pub enum UserEventsError {
    /// It cannot be opened.
    #[error("{} cannot be opened: {reason}", SafeText::from_path(.path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// It is something else.
    #[error("{} is not the kernel's user_events_data, and is handed to no runtime", SafeText::from_path(.0))]
    AnotherFile(PathBuf),
}

/// A handle to the kernel's `user_events_data`, and to nothing else: whatever a runtime is handed it writes to.
#[derive(Debug)]
pub struct UserEventsData(OwnedFd);

impl UserEventsData {
    /// Looks what the handle is one of.
    ///
    /// # Errors
    /// [`UserEventsError::AnotherFile`].
    pub fn new(handle: impl Into<OwnedFd>) -> Result<Self, UserEventsError> {
        let handle = handle.into();
        let path = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap_or_default();
        let of_tracefs = fstatfs(&handle).is_ok_and(|system| system.f_type as u64 == TRACEFS);
        let named = path.file_name().is_some_and(|name| name == FILE);
        if of_tracefs && named { Ok(Self(handle)) } else { Err(UserEventsError::AnotherFile(path)) }
    }

    /// Some file that stands for it before a simulated runtime.
    #[cfg(test)]
    pub(crate) fn pretended(folder: &std::path::Path) -> Self {
        Self(fs::File::create(folder.join(FILE)).unwrap().into())
    }

    /// Any file at all.
    #[cfg(test)]
    pub(super) fn forged(path: &std::path::Path) -> Self {
        Self(fs::File::open(path).unwrap().into())
    }
}

impl UserEventsData {
    /// Sends it, with the one byte that carries it.
    pub(super) async fn hand_over(&self, stream: &UnixStream) -> io::Result<()> {
        let send = || {
            let handles = [self.0.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(&handles));
            Ok(sendmsg(stream, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?)
        };
        loop {
            stream.writable().await?;
            match stream.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::Path;

    #[test]
    fn other_files_are_not_handed_over() {
        let folder = tempfile::tempdir().unwrap();
        for path in [Path::new("/dev/null"), &folder.path().join(FILE), &folder.path().join("x")] {
            let file = File::options().create(true).append(true).open(path).unwrap();
            let error = UserEventsData::new(file).unwrap_err();
            assert!(matches!(&error, UserEventsError::AnotherFile(of) if of == path), "{error}");
        }
    }

    #[test]
    fn what_is_missing_is_said_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel { tracefs: folder.path().join("tracing"), setting: folder.path().join("max"), root: false };
        let missing = kernel.missing();
        assert!(missing[0].starts_with("the kernel has none: it takes Linux 6.4"), "{missing:?}");
        assert!(missing[1].starts_with("tracefs is not mounted: run `mount -t tracefs tracefs /"), "{missing:?}");
        assert_eq!(missing[2..], ["this user may not register events: run dn-top with sudo"]);
        let kernel = Kernel { root: true, ..kernel };
        assert_eq!(kernel.missing().len(), 2);
        assert!(matches!(kernel.open(), Err(UserEventsError::Io { .. })));
        // A kernel that has them, and a folder that only looks like tracefs.
        fs::write(&kernel.setting, "32767").unwrap();
        fs::create_dir(&kernel.tracefs).unwrap();
        fs::write(kernel.tracefs.join(FILE), "").unwrap();
        assert!(kernel.missing()[0].starts_with("tracefs is not mounted"), "{:?}", kernel.missing());
        assert!(matches!(kernel.open(), Err(UserEventsError::AnotherFile(_))));
    }
}
