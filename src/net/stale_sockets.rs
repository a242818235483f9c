//! Removes the sockets left behind by killed processes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;

use super::endpoint::SocketName;
use super::proc::{Proc, for_each_entry};
use super::resolve::{self, OpenError};

/// A starting runtime binds its socket a moment before it listens: a younger file may be such a socket.
const MIN_AGE: Duration = Duration::from_secs(60);

/// Result of removing stale sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedSockets {
    /// Number of removed sockets.
    pub removed: usize,
    /// Number of remaining sockets without a visible process: they belong to other users, are less than a minute old, or cannot be deleted.
    pub kept: usize,
}

/// Removes every diagnostic socket in a directory that belongs to our user, is more than a minute old, and has no listener, which is verified by
/// the kernel refusing a connection. No byte is sent to a socket that has a listener.
///
/// # Errors
/// If the directory cannot be opened or listed.
pub fn remove_stale_sockets(directory: &Path) -> io::Result<RemovedSockets> {
    let proc = Proc::open(Path::new("/proc")).ok();
    let directory = resolve::locate(directory, proc.as_ref()).map_err(|error| match error {
        OpenError::Io(error) => error,
        OpenError::Blockable(why) => why.into(),
        OpenError::Link { link, owner } => io::Error::other(format!("{} is a link of user {owner}", link.display())),
    })?;
    let directory = directory.handle;
    let mut names = Vec::new();
    for_each_entry(&directory, ".", &mut |name, _| {
        // Running processes are not connected to unnecessarily.
        let runs = |name: &SocketName| proc.as_ref().is_some_and(|proc| proc.stat(name.pid).is_ok_and(|stat| stat.starttime == name.key));
        names.extend(SocketName::parse(name).filter(|name| !runs(name)).map(|name| name.to_string()));
        true
    })?;
    let mut found = RemovedSockets::default();
    for name in names {
        match remove(&directory, &name) {
            Ok(Removal::Removed) => found.removed += 1,
            // Something else removed it first.
            Ok(Removal::NotStale) | Err(Errno::NOENT) => {}
            Ok(Removal::Kept) | Err(_) => found.kept += 1,
        }
    }
    Ok(found)
}

enum Removal {
    Removed,
    /// Has a listener, or is not a socket.
    NotStale,
    /// Belongs to another user, or is so young that a runtime may be about to listen.
    Kept,
}

fn remove(directory: &OwnedFd, name: &str) -> Result<Removal, Errno> {
    let file = openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let facts = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::Socket {
        return Ok(Removal::NotStale);
    }
    if facts.st_uid != geteuid().as_raw() {
        return Ok(Removal::Kept);
    }
    // Connects to the file that was opened, even if its name is replaced.
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&probe, &SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?) {
        Err(Errno::CONNREFUSED) => {}
        _ => return Ok(Removal::NotStale),
    }
    let made = SystemTime::UNIX_EPOCH + Duration::from_secs(facts.st_mtime.try_into().unwrap_or(0));
    // If the clock was set back, the age is unknown.
    let is_old = SystemTime::now().duration_since(made).is_ok_and(|age| age >= MIN_AGE);
    if !is_old {
        return Ok(Removal::Kept);
    }
    let now = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if (now.st_dev, now.st_ino) != (facts.st_dev, facts.st_ino) {
        return Ok(Removal::NotStale);
    }
    unlinkat(directory, name, AtFlags::empty())?;
    Ok(Removal::Removed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn set_age(path: &Path, seconds: i64) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
        let made = rustix::fs::Timespec { tv_sec: now - seconds, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: made, last_modification: made };
        rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    #[test]
    fn only_old_sockets_without_listener_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let dead = ["dotnet-diagnostic-1-1-socket", "dotnet-diagnostic-2-2-socket"];
        let kept = [
            "dotnet-diagnostic-3-3-socket", // something listens
            "dotnet-diagnostic-4-4-socket", // young
            "dotnet-diagnostic-5-5-socket", // a file
            "dotnet-diagnostic-6-6-socket", // a link to one that is dead
            "dotnet-diagnostic-07-7-socket",
            "clr-debug-pipe-1-1-in",
            "dotnet-diagnostic-8-8-socket", // the clock was set back since
        ];
        for name in dead.iter().chain([&kept[1], &kept[4], &kept[5], &kept[6]]) {
            drop(UnixListener::bind(path(name)).unwrap());
        }
        let _listener = UnixListener::bind(path(kept[0])).unwrap();
        fs::write(path(kept[2]), "").unwrap();
        std::os::unix::fs::symlink(path(kept[4]), path(kept[3])).unwrap();
        for name in dead.iter().chain(&kept).filter(|name| **name != kept[1]) {
            set_age(&path(name), if *name == kept[6] { -3600 } else { 3600 });
        }
        assert_eq!(remove_stale_sockets(place.path()).unwrap(), RemovedSockets { removed: 2, kept: 2 });
        let mut left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let mut expected = kept.map(str::to_owned).to_vec();
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        assert!(remove_stale_sockets(&place.path().join("none")).is_err());
    }

    #[test]
    fn sockets_of_other_users_are_kept() {
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("dotnet-diagnostic-1-1-socket");
        drop(UnixListener::bind(&path).unwrap());
        set_age(&path, 3600);
        std::os::unix::fs::chown(&path, Some(65_533), None).unwrap();
        assert_eq!(remove_stale_sockets(place.path()).unwrap(), RemovedSockets { removed: 0, kept: 1 });
        assert!(path.exists());
    }
}
