//! File systems on which another user can block every reader.
//!
//! In a user namespace of their own, users may mount FUSE, which their own program serves. FUSE rejects other users, including root, but an overlay
//! mounted over it there does not: it sends their requests in the name of the user who mounted it. A request that is not answered blocks its sender
//! forever, and not even SIGKILL ends it. So the file system is checked before each access; /proc shows its type without accessing it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::process::geteuid;
use thiserror::Error;

use super::proc::Proc;

/// A file on a file system whose accesses another user may be able to block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("it is on a file system ({file_system}) that another user may have mounted, and which could block dn-top forever")]
pub(super) struct Blockable {
    /// Type of the file system, such as `overlay`.
    file_system: String,
}

impl From<Blockable> for io::Error {
    fn from(blockable: Blockable) -> Self {
        Self::new(io::ErrorKind::Unsupported, blockable)
    }
}

/// The mounts of a process, as they are at each check.
#[derive(Debug)]
pub(super) struct Mounts<'a> {
    proc: &'a Proc,
    pid: u32,
    /// Directory of the process in /proc.
    folder: OwnedFd,
}

/// The ID of a mount, in decimal. The kernel reuses the ID of a mount that is gone, which it is not while a file on it is open, even by `O_PATH`.
pub(super) type MountId = Vec<u8>;

/// The lists of mounts at one time.
#[derive(Debug)]
struct Tables {
    /// The process's own `mountinfo`.
    listed: Vec<u8>,
    /// That of dn-top.
    ours: Vec<u8>,
    /// Whether the process is in another user namespace.
    is_foreign: bool,
}

impl Proc {
    /// Opens the directory of a process in /proc, through which its files are opened. Another process with the same PID has another directory.
    pub(super) fn folder(&self, pid: u32) -> io::Result<OwnedFd> {
        Ok(openat(CWD, self.path_of(pid, ""), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Returns the mounts of a process, given its directory in /proc.
    pub(super) fn mounts(&self, pid: u32, folder: OwnedFd) -> Mounts<'_> {
        Mounts { proc: self, pid, folder }
    }

    /// Returns the mounts of a process to check each directory of a path; `None` if no other user can have mounted any of them, except with
    /// privileges. To be called after the first directory was opened: a process that is in our user namespace now cannot have been in another one
    /// before.
    pub(super) fn untrusted_mounts(&self, pid: u32, folder: OwnedFd) -> Option<Mounts<'_>> {
        let is_trusted = !self.is_real() || is_in_our_user_namespace(&folder) || self.is_ours(pid);
        (!is_trusted).then(|| self.mounts(pid, folder))
    }

    /// Processes of our own user are trusted. In a namespace in which that user ID does not exist, no process can have it.
    pub(super) fn is_ours(&self, pid: u32) -> bool {
        self.identity(pid).is_ok_and(|identity| identity.uid == geteuid().as_raw())
    }
}

fn is_in_our_user_namespace(folder: &OwnedFd) -> bool {
    let Ok(ours) = readlinkat(CWD, "/proc/self/ns/user", Vec::new()) else {
        // The kernel has no user namespaces.
        return true;
    };
    readlinkat(folder, "ns/user", Vec::new()).is_ok_and(|theirs| theirs == ours)
}

impl Mounts<'_> {
    /// Checks a file or directory, opened with `O_PATH`, before it is used in any way, and returns the ID of its mount. `parent` is the mount of
    /// its directory, which has been checked and is still open: on the same mount, nothing is left to check.
    pub(super) fn check(&self, file: &OwnedFd, parent: Option<&MountId>) -> Result<MountId, Blockable> {
        let id = mount_of(file).ok_or_else(Blockable::unknown)?;
        if parent != Some(&id) {
            // Read only now that the file is open: an older list could show another mount with this ID.
            self.tables().check(&id)?;
        }
        Ok(id)
    }

    fn tables(&self) -> Tables {
        // If a file cannot be read, its mounts are not found, and so count as blockable.
        let [listed, ours] = [self.pid, std::process::id()].map(|pid| self.proc.mount_table(pid));
        Tables { listed, ours, is_foreign: !is_in_our_user_namespace(&self.folder) }
    }
}

impl Blockable {
    fn unknown() -> Self {
        Self { file_system: "unknown".to_owned() }
    }
}

impl Tables {
    fn check(&self, id: &MountId) -> Result<(), Blockable> {
        // A process in a directory of a mount, by `chroot`, does not list that mount.
        let mount = find(&self.listed, id).or_else(|| find(&self.ours, id));
        let Some(Mount { device, file_system }) = mount else {
            // Unmounted, or in another namespace than that of the process.
            return Err(Blockable::unknown());
        };
        let is_fuse = file_system == b"fuse" || file_system.starts_with(b"fuse.") || file_system == b"fuseblk";
        // The kernel lets users mount few types, and all others answer by themselves. Container engines run by root mount the overlays of containers
        // outside of them, where we see them as well.
        let is_theirs = || !lines(&self.ours).any(|(_, mount)| mount == Mount { device, file_system });
        let is_blockable = is_fuse || self.is_foreign && file_system == b"overlay" && is_theirs();
        if is_blockable { Err(Blockable { file_system: String::from_utf8_lossy(file_system).into_owned() }) } else { Ok(()) }
    }
}

/// A line of `mountinfo`.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Mount<'a> {
    /// Numbers of the device, which is the same for all mounts of a file system.
    device: &'a [u8],
    /// Type.
    file_system: &'a [u8],
}

/// Returns the ID of the mount through which a file was opened. Does not access the file system, unlike `statx`.
fn mount_of(file: &OwnedFd) -> Option<MountId> {
    let facts = std::fs::read(Path::new("/proc/self/fdinfo").join(file.as_raw_fd().to_string())).ok()?;
    let id = facts.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"mnt_id:"))?;
    Some(id.trim_ascii().to_vec())
}

fn find<'a>(table: &'a [u8], id: &[u8]) -> Option<Mount<'a>> {
    lines(table).find_map(|(number, mount)| (number == id).then_some(mount))
}

/// Parses "ID parent major:minor root place options [optional fields] - type source options". Spaces within a column are escaped.
fn lines(table: &[u8]) -> impl Iterator<Item = (&[u8], Mount<'_>)> {
    table.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let (id, device) = (words.next()?, words.nth(1)?);
        let file_system = words.skip_while(|word| *word != b"-").nth(1)?;
        Some((id, Mount { device, file_system }))
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::open;

    use super::*;

    /// Checks the root directory, given its type as listed by a process in our user namespace or another, and the type of our root directory.
    fn check(file_system: &str, is_foreign: bool, ours: &str) -> Result<(), Blockable> {
        let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let id = mount_of(&root).unwrap();
        Tables { listed: table(&id, file_system), ours: table(b"7", ours), is_foreign }.check(&id)
    }

    fn table(id: &[u8], file_system: &str) -> Vec<u8> {
        let (first, id) = ("1 0 0:1 / /proc - x rw - proc proc rw", String::from_utf8_lossy(id));
        format!("{first}\n{id} 1 0:40 / / ro,relatime master:1 - {file_system} o rw,lowerdir=/a:/b\n").into_bytes()
    }

    #[test]
    fn file_systems_that_others_may_serve_are_blockable() {
        for (file_system, is_foreign, ours) in
            [("ext4", false, "ext4"), ("overlay", false, "ext4"), ("tmpfs", true, "ext4"), ("overlay", true, "overlay")]
        {
            assert_eq!(check(file_system, is_foreign, ours), Ok(()), "{file_system} {is_foreign} {ours}");
        }
        for (file_system, is_foreign, ours) in
            [("fuse", false, "fuse"), ("fuseblk", true, "ext4"), ("fuse.sshfs", true, "fuse.sshfs"), ("overlay", true, "ext4")]
        {
            assert_eq!(check(file_system, is_foreign, ours), Err(Blockable { file_system: file_system.to_owned() }));
        }
    }

    #[test]
    fn files_that_the_process_has_not_mounted_are_blockable() {
        let proc = Proc::open(Path::new("/proc")).unwrap();
        let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        // The kernel's own mount of files in memory is in no list.
        let file = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let folder = proc.folder(std::process::id()).unwrap();
        let mounts = proc.mounts(std::process::id(), folder);
        let [id_of_root, id_of_file] = [&root, &file].map(|file| mount_of(file).unwrap());
        assert_eq!(mounts.check(&file, None), Err(Blockable::unknown()));
        assert_eq!(mounts.check(&file, Some(&id_of_root)), Err(Blockable::unknown()));
        assert_eq!(mounts.check(&file, Some(&id_of_file)), Ok(id_of_file), "its directory has been checked");
        let ours = proc.mount_table(std::process::id());
        assert_eq!(Tables { listed: Vec::new(), ours: Vec::new(), is_foreign: false }.check(&id_of_root), Err(Blockable::unknown()));
        assert_eq!(Tables { listed: Vec::new(), ours, is_foreign: false }.check(&id_of_root), Ok(()));
        assert!(proc.untrusted_mounts(std::process::id(), proc.folder(std::process::id()).unwrap()).is_none());
    }

    #[test]
    fn mounts_are_listed_again_for_each_opened_file() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("42")).unwrap();
        let proc = Proc::open(tree.path()).unwrap();
        let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let (mounts, id) = (proc.mounts(42, proc.folder(42).unwrap()), mount_of(&root).unwrap());
        for (file_system, checked) in [("tmpfs", Ok(id.clone())), ("fuse", Err(Blockable { file_system: "fuse".to_owned() }))] {
            std::fs::write(tree.path().join("42/mountinfo"), table(&id, file_system)).unwrap();
            assert_eq!(mounts.check(&root, None), checked);
        }
    }
}
