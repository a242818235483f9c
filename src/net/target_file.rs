//! Files of a process, by the path at which we see them.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use super::file::{self, free_space_in, inspect_in};
use super::proc::Proc;
use crate::model::{FreeSpace, Limited};

/// Inspects a file. If its path leads through the root directory of a process, links are followed as the process follows them, and nothing on a
/// file system on which another user can block us is accessed.
///
/// # Errors
/// Those of the system; `Unsupported` for such a file system.
pub fn inspect(path: &Path) -> io::Result<Metadata> {
    let proc = Proc::open(Path::new("/proc"))?;
    match proc.split_root(path) {
        Some((pid, below)) => inspect_in(&proc, pid, &below),
        None => path.metadata(),
    }
}

/// Returns whether a file exists, or a link that leads nowhere. The path is followed as by [`inspect`], and in the root directory of a process such a
/// link does not count.
pub fn exists(path: &Path) -> bool {
    match Proc::open(Path::new("/proc")).ok().and_then(|proc| proc.split_root(path)) {
        Some(_) => inspect(path).is_ok(),
        None => path.symlink_metadata().is_ok(),
    }
}

/// Returns the space that a process with this memory limit has in a folder. The path is followed as by [`inspect`].
///
/// # Errors
/// Those of the system; `Unsupported` for a file system on which another user can block us.
pub fn free_space(folder: &Path, memory: Option<Limited>) -> io::Result<FreeSpace> {
    let proc = Proc::open(Path::new("/proc"))?;
    match proc.split_root(folder) {
        Some((pid, below)) => free_space_in(&proc, pid, &below, memory),
        None => file::free_space(&open(folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?, memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_inspected_through_the_root_of_a_process() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "four").unwrap();
        std::os::unix::fs::symlink(place.path().join("file"), place.path().join("link")).unwrap();
        let root = format!("/proc/{}/root", std::process::id());
        let length = |path: &Path| inspect(path).map(|facts| facts.len()).map_err(|error| error.kind());
        for name in ["file", "link"] {
            let path = place.path().join(name);
            let through = Path::new(&root).join(path.strip_prefix("/").unwrap());
            assert_eq!((length(&path), length(&through)), (Ok(4), Ok(4)), "{name}");
        }
        assert_eq!(length(&Path::new(&root).join("no/such")), Err(io::ErrorKind::NotFound));
        std::os::unix::fs::symlink("nowhere", place.path().join("broken")).unwrap();
        for (name, here, through) in [("file", true, true), ("link", true, true), ("broken", true, false), ("none", false, false)] {
            let path = place.path().join(name);
            assert_eq!((exists(&path), exists(&Path::new(&root).join(path.strip_prefix("/").unwrap()))), (here, through), "{name}");
        }
    }

    #[test]
    fn free_space_is_that_of_the_file_system_of_the_folder() {
        let root = format!("/proc/{}/root", std::process::id());
        // No space is ever free in /proc.
        for (folder, is_some) in [("/proc", false), ("/", true)] {
            let through = Path::new(&root).join(&folder[1..]);
            for path in [Path::new(folder), &through] {
                let space = free_space(path, None).map(|space| (space.bytes > 0, space.is_memory));
                assert_eq!(space.map_err(|error| error.kind()), Ok((is_some, false)), "{}", path.display());
            }
        }
        let missing = Path::new(&root).join("no/such");
        assert_eq!(free_space(&missing, None).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn memory_limit_applies_to_files_in_memory_only() {
        let tmpfs = Path::new("/dev/shm");
        let space = |folder: &Path, limit| free_space(folder, Some(Limited { used: 10, limit })).unwrap();
        for (used_bytes, is_below) in [(0, true), (u64::MAX, false)] {
            let limit = 10_u64.saturating_add(used_bytes);
            assert_eq!(space(tmpfs, limit).is_memory, is_below, "{limit}");
            assert!(!space(Path::new("/"), limit).is_memory);
        }
        assert_eq!(space(tmpfs, 14).bytes, 4);
        // More is in use than is allowed: a limit can be lowered.
        assert_eq!(space(tmpfs, 3), FreeSpace { bytes: 0, is_memory: true, memory_left: Some(0) });
    }
}
