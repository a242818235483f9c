//! The kernel's user_events, to which a runtime can write its events (Linux 6.4, .NET 10): whether they are available, and the file that a runtime
//! needs for it, which only root may open.

mod missing;

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

pub use self::missing::Missing;
use crate::model::SafeText;

/// File system type of tracefs in `statfs` (Linux, `magic.h`).
const TRACEFS: u64 = 0x7472_6163;
/// Name of the file below tracefs.
const FILE: &str = "user_events_data";

/// Kernel paths and rights that determine whether user_events are available.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Mount point of tracefs.
    pub tracefs: PathBuf,
    /// A setting that exists if the kernel has user_events, whether tracefs is mounted or not.
    pub setting: PathBuf,
    /// Whether we are root.
    pub root: bool,
}

impl Kernel {
    /// Returns the kernel of this machine.
    pub fn machine() -> Self {
        Self {
            tracefs: "/sys/kernel/tracing".into(),
            setting: "/proc/sys/kernel/user_events_max".into(),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// Returns everything that prevents the use of user_events, each as a sentence with a remedy; empty if they are available.
    pub fn missing(&self) -> Vec<Missing> {
        let shown = SafeText::from_path(&self.tracefs);
        let mounted = statfs(&self.tracefs).is_ok_and(|system| system.f_type as u64 == TRACEFS);
        let data = self.tracefs.join(FILE);
        let mut missing = Vec::new();
        let known = self.setting.exists() || (mounted && data.exists());
        if !known {
            missing
                .push(Missing::Support("not supported by this kernel: needs Linux 6.4 or newer, built with CONFIG_USER_EVENTS".to_owned()));
        }
        if !mounted {
            missing.push(Missing::Support(format!("tracefs is not mounted: run `mount -t tracefs tracefs {shown}` as root")));
        }
        // If tracefs is not mounted, only the user can be checked.
        let denied = match self.open() {
            _ if !mounted => !self.root,
            Err(UserEventsError::Io { reason, .. }) if reason.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                missing.push(Missing::Support(format!("tracefs is mounted read-only: run `mount -o remount,rw {shown}` as root")));
                false
            }
            Err(error) => error.is_denied(),
            Ok(_) => false,
        };
        if denied {
            missing.push(Missing::Permission("this user may not register events: run dn-top with sudo".to_owned()));
        }
        missing
    }

    /// Opens the file that is passed to a runtime.
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

/// Why there is no file to pass to a runtime.
#[derive(Debug, Error)]
pub enum UserEventsError {
    /// The file cannot be opened.
    #[error("{} cannot be opened: {reason}", SafeText::from_path(.path))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        reason: io::Error,
    },
    /// The file is not the kernel's `user_events_data`.
    #[error("{} is not the kernel's user_events_data, and is not passed to the runtime", SafeText::from_path(.0))]
    AnotherFile(PathBuf),
}

impl UserEventsError {
    /// Whether this is a lack of permissions.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { reason, .. } if reason.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// A handle to the kernel's `user_events_data`, and never to another file: a runtime writes to whatever file it is given.
#[derive(Debug)]
pub struct UserEventsData(OwnedFd);

impl UserEventsData {
    /// Checks that the handle is to that file.
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

    /// Returns a regular file in its place, for a simulated runtime.
    #[cfg(test)]
    pub(crate) fn simulated(folder: &std::path::Path) -> Self {
        Self(fs::File::create(folder.join(FILE)).unwrap().into())
    }

    /// Returns an arbitrary file.
    #[cfg(test)]
    pub(super) fn arbitrary_file(path: &std::path::Path) -> Self {
        Self(fs::File::open(path).unwrap().into())
    }

    /// Sends the file descriptor, with the single byte that must accompany it.
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
    fn files_other_than_user_events_data_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        for path in [Path::new("/dev/null"), &folder.path().join(FILE), &folder.path().join("x")] {
            let file = File::options().create(true).append(true).open(path).unwrap();
            let error = UserEventsData::new(file).unwrap_err();
            assert!(matches!(&error, UserEventsError::AnotherFile(of) if of == path), "{error}");
        }
    }

    #[test]
    fn every_missing_requirement_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel { tracefs: folder.path().join("tracing"), setting: folder.path().join("max"), root: false };
        let missing = |kernel: &Kernel| kernel.missing().iter().map(ToString::to_string).collect::<Vec<_>>();
        let kinds: Vec<_> = kernel.missing().iter().map(|missing| matches!(missing, Missing::Permission(_))).collect();
        assert_eq!(kinds, [false, false, true]);
        let missing_now = missing(&kernel);
        assert!(missing_now[0].starts_with("not supported by this kernel: needs Linux 6.4"), "{missing_now:?}");
        assert!(missing_now[1].starts_with("tracefs is not mounted: run `mount -t tracefs tracefs /"), "{missing_now:?}");
        assert_eq!(missing_now[2..], ["this user may not register events: run dn-top with sudo"]);
        let kernel = Kernel { root: true, ..kernel };
        assert_eq!(kernel.missing().len(), 2);
        assert!(matches!(kernel.open(), Err(UserEventsError::Io { .. })));
        // A kernel that has user_events, and a folder that only looks like tracefs.
        fs::write(&kernel.setting, "32767").unwrap();
        fs::create_dir(&kernel.tracefs).unwrap();
        fs::write(kernel.tracefs.join(FILE), "").unwrap();
        assert!(missing(&kernel)[0].starts_with("tracefs is not mounted"), "{:?}", kernel.missing());
        assert!(matches!(kernel.open(), Err(UserEventsError::AnotherFile(_))));
    }
}
