//! Opens files by path without following a link that an untrusted user could have written.
//!
//! A path is resolved one component at a time below a root directory that is held open, like `openat2` with `RESOLVE_IN_ROOT` and
//! `RESOLVE_NO_SYMLINKS`, with one difference: a link is trusted as part of the machine's own layout (`/tmp -> /private/tmp`) if root or our own
//! user wrote it, into a directory that no other user can write to. Nothing here needs Linux 5.6, so the check applies on every kernel. Nor does a
//! path lead over a file system on which another user could block us: see [`mounts`](super::mounts).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::process::geteuid;

use super::mounts::{Blockable, MountId, Mounts};
use super::proc::Proc;
use crate::model::SafeText;

/// Maximum number of links in one path. Linux itself follows 40.
const MAX_LINKS: usize = 16;
/// Maximum directory depth; each directory is held open briefly. The path of a socket has at most 107 bytes.
const MAX_DEPTH: usize = 64;
/// Maximum number of mounts in one path. For each, the list of all mounts is read, which the owner of a namespace can make long.
const MAX_MOUNTS: usize = 16;
/// Write permission for the group or for others. A more permissive access control list shows in the group's bits.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Write permission for everyone.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Why a path was not opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// A path component is a link owned by that user, or in a directory where users other than root and ours may create one.
    Link { link: PathBuf, owner: u32 },
    /// A directory on the path is on a file system on which another user may be able to block us.
    Blockable(Blockable),
    /// An error of the operating system.
    Io(io::Error),
}

impl From<rustix::io::Errno> for OpenError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<Blockable> for OpenError {
    fn from(blockable: Blockable) -> Self {
        Self::Blockable(blockable)
    }
}

/// A directory that paths do not lead out of.
#[derive(Debug)]
pub(super) struct Root<'a> {
    handle: OwnedFd,
    /// Mounts to be checked, if another user controls them.
    mounts: Option<Mounts<'a>>,
}

impl<'a> Root<'a> {
    /// Opens the root directory of a process.
    pub(super) fn of(proc: &'a Proc, pid: u32) -> io::Result<Self> {
        let folder = proc.folder(pid)?;
        let handle = openat(&folder, "root", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mounts = proc.untrusted_mounts(pid, folder);
        Ok(Self { handle, mounts })
    }

    /// Returns the directory if no mount below it has to be checked.
    pub(super) fn trusted(&self) -> Option<&OwnedFd> {
        self.mounts.is_none().then_some(&self.handle)
    }

    /// Returns the mount of a file, if mounts are checked.
    fn check(&self, file: &OwnedFd, parent: Option<&MountId>) -> Result<Option<MountId>, Blockable> {
        self.mounts.as_ref().map(|mounts| mounts.check(file, parent)).transpose()
    }
}

/// Which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Those that only root or our own user can have written.
    Trusted,
    /// Those of root or our own user, in any directory: the file is checked as well.
    Owned,
    /// All except those of other users in a directory where anyone can make one.
    Usual,
    /// All: the file is only read, and its contents are not trusted.
    All,
}

/// A found file of any type except a link. The handle can be used to inspect it and connect to it, not to read it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) handle: OwnedFd,
    pub(super) stat: Stat,
}

impl Found {
    /// Returns the identity of the file: device and inode.
    pub(super) fn id(&self) -> (u64, u64) {
        (self.stat.st_dev, self.stat.st_ino)
    }

    pub(super) fn is_socket(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Socket
    }
}

/// Opens the directory at a trusted path, following links.
fn root_at(path: &Path) -> io::Result<Root<'static>> {
    let handle = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Root { handle, mounts: None })
}

/// Finds the file at a path as we see it: in our mount namespace, or in a chroot in it. A path through `/proc/PID/root` is resolved as the process
/// sees it.
pub(super) fn locate(path: &Path, proc: Option<&Proc>) -> Result<Found, OpenError> {
    let (root, below) = match proc.and_then(|proc| proc.split_root(path).map(|(pid, below)| (Root::of(proc, pid), below))) {
        Some((root, below)) => (root, below),
        None => (root_at(Path::new("/")), std::path::absolute(path).map_err(OpenError::Io)?),
    };
    find(root.map_err(OpenError::Io)?, &below, Links::Trusted)
}

/// Finds a file without opening it, which would start some devices or end the wait of a pipe's writer, and without following a link of another user,
/// who could lead us to a file system that blocks us: that is `PermissionDenied` for a directory on the path, and `Other` for the file itself.
pub(super) fn locate_owned(path: &Path) -> io::Result<OwnedFd> {
    match find(root_at(Path::new("/"))?, &std::path::absolute(path)?, Links::Owned) {
        Ok(found) => Ok(found.handle),
        Err(OpenError::Io(error)) => Err(error),
        Err(OpenError::Blockable(why)) => Err(why.into()),
        Err(OpenError::Link { link, owner }) => {
            // A link to the directory says nothing about whether the file exists.
            let kind = if link.file_name() == path.file_name() { io::ErrorKind::Other } else { io::ErrorKind::PermissionDenied };
            let link = SafeText::from_path(&link);
            Err(io::Error::new(kind, format!("the link {link} in its path belongs to user {owner}")))
        }
    }
}

/// Finds the folder of a new file: the current one if the path is empty. A path below `/proc` may lead through one of the kernel's links, which have no
/// path of their own.
pub(super) fn locate_folder(path: &Path) -> io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return root_at(Path::new(".")).map(|root| root.handle);
    }
    if path.starts_with("/proc") {
        return root_at(path).map(|root| root.handle);
    }
    match find(root_at(Path::new("/"))?, &std::path::absolute(path)?, Links::Usual) {
        Ok(found) => Ok(found.handle),
        Err(OpenError::Io(error)) => Err(error),
        Err(OpenError::Blockable(why)) => Err(why.into()),
        Err(OpenError::Link { link, owner }) => {
            let link = SafeText::from_path(&link);
            Err(io::Error::other(format!("the link {link} in its path belongs to user {owner}, and anyone can make one there")))
        }
    }
}

/// Finds the file that `path` denotes below the directory `root`. Neither `..` nor an absolute link leads out of it.
pub(super) fn find(root: Root<'_>, path: &Path, followed: Links) -> Result<Found, OpenError> {
    let mount = root.check(&root.handle, None)?;
    let stat = fstat(&root.handle)?;
    let mut opened = vec![(Found { handle: root.handle.try_clone().map_err(OpenError::Io)?, stat }, OsString::new(), mount)];
    let mut ahead = components(path);
    let (mut links, mut mounts) = (0, 0);
    while let (Some(name), Some((parent, _, parent_mount))) = (ahead.pop(), opened.last()) {
        if name == ".." {
            opened.truncate((opened.len() - 1).max(1));
            continue;
        }
        let handle = openat(&parent.handle, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        // It may be the root of another mount, which is not accessed before it is checked.
        let mount = root.check(&handle, parent_mount.as_ref())?;
        mounts += usize::from(mount != *parent_mount);
        if mounts > MAX_MOUNTS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let found = Found { stat: fstat(&handle)?, handle };
        if FileType::from_raw_mode(found.stat.st_mode) != FileType::Symlink {
            if opened.len() > MAX_DEPTH {
                return Err(rustix::io::Errno::NAMETOOLONG.into());
            }
            opened.push((found, name, mount));
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let is_followed = match followed {
            Links::Trusted => is_trusted_link(&found.stat, &parent.stat),
            Links::Owned => is_owned(&found.stat),
            Links::Usual => is_owned(&found.stat) || parent.stat.st_mode & WRITABLE_BY_ALL == 0,
            Links::All => true,
        };
        if !is_followed {
            let link = opened.iter().map(|(_, name, _)| name).chain([&name]).fold(PathBuf::from("/"), |path, name| path.join(name));
            return Err(OpenError::Link { link, owner: found.stat.st_uid });
        }
        let target = readlinkat(&found.handle, "", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        if target.is_absolute() {
            opened.truncate(1);
        }
        ahead.extend(components(target));
    }
    opened.pop().map(|(found, ..)| found).ok_or_else(|| rustix::io::Errno::NOENT.into())
}

/// Returns the names and `..`, in reverse order.
fn components(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.rev().collect()
}

/// Returns whether only root or our own user can have written this link in this directory.
fn is_trusted_link(link: &Stat, directory: &Stat) -> bool {
    is_owned(link) && is_owned(directory) && directory.st_mode & WRITABLE_BY_OTHERS == 0
}

/// Returns whether a file belongs to root or our own user.
fn is_owned(file: &Stat) -> bool {
    [0, geteuid().as_raw()].contains(&file.st_uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// Returns a directory that only we can write to, with a root below it.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("root/private/tmp")).unwrap();
        fs::create_dir_all(tree.path().join("root/open")).unwrap();
        fs::set_permissions(tree.path().join("root/open"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(tree.path().join("root/private/tmp/file"), "inside").unwrap();
        fs::write(tree.path().join("file"), "outside").unwrap();
        tree
    }

    fn find_in(tree: &tempfile::TempDir, path: &str) -> Result<(u64, u64), String> {
        let found = find(root_at(&tree.path().join("root")).unwrap(), Path::new(path), Links::Trusted);
        found.map(|found| found.id()).map_err(|error| match error {
            OpenError::Link { link, owner } => format!("{} {owner}", link.display()),
            OpenError::Blockable(error) => error.to_string(),
            OpenError::Io(error) => format!("{:?}", error.kind()),
        })
    }

    fn id(path: &Path) -> (u64, u64) {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.dev(), metadata.ino())
    }

    #[test]
    fn paths_cannot_escape_the_root() {
        let tree = tree();
        let at = |path: &str| tree.path().join("root").join(path);
        let inside = id(&at("private/tmp/file"));
        symlink("/private/tmp", at("tmp")).unwrap();
        symlink("../../..", at("private/up")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for path in
            ["private/tmp/file", "/private/./tmp/file", "/private/../../private/tmp/file", "/tmp/file", "/private/up/private/tmp/file"]
        {
            assert_eq!(find_in(&tree, path), Ok(inside), "{path}");
        }
        assert_eq!(find_in(&tree, "/tmp"), Ok(id(&at("private/tmp"))));
        assert_eq!(find_in(&tree, "/"), Ok(id(&at(""))));
        assert_eq!(find_in(&tree, "../file"), Err("NotFound".to_owned()));
        assert_eq!(find_in(&tree, "/private/up/file"), Err("NotFound".to_owned()));
        assert_eq!(find_in(&tree, "/private/tmp/file/x"), Err("NotADirectory".to_owned()));
        assert!(find_in(&tree, "/loop").is_err());
        assert!(find_in(&tree, &"a/../".repeat(3)).is_err(), "a directory that is not there has no parent");
        symlink("private/tmp/file", at("0")).unwrap();
        for number in 1..=MAX_LINKS {
            symlink((number - 1).to_string(), at(&number.to_string())).unwrap();
        }
        assert_eq!(find_in(&tree, &(MAX_LINKS - 1).to_string()), Ok(inside));
        assert_eq!(find_in(&tree, &MAX_LINKS.to_string()), find_in(&tree, "/loop"));
        let deep = "d/".repeat(MAX_DEPTH + 1);
        fs::create_dir_all(at(&deep)).unwrap();
        assert!(find_in(&tree, &deep).is_err());
    }

    #[test]
    fn each_mount_on_a_path_is_checked() {
        let tree = tree();
        let proc = Proc::open(tree.path()).unwrap();
        let found = |root: &Path, path: &str| {
            let root = Root { mounts: Some(proc.mounts(42, proc.folder(42).unwrap())), ..root_at(root).unwrap() };
            find(root, Path::new(path), Links::Trusted).map(|found| found.id())
        };
        fs::create_dir(tree.path().join("42")).unwrap();
        let line = |place: &Path, file_system: &str| {
            let handle = root_at(place).unwrap().handle;
            let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(&handle))).unwrap();
            let id = facts.lines().find_map(|line| line.strip_prefix("mnt_id:")).unwrap().trim().to_owned();
            format!("{id} 1 0:40 / / rw - {file_system} none rw\n")
        };
        let list = |lines: String| fs::write(tree.path().join("42/mountinfo"), lines).unwrap();
        list(line(tree.path(), "tmpfs"));
        assert_eq!(found(tree.path(), "root/private/tmp/file").unwrap(), id(&tree.path().join("root/private/tmp/file")));
        list(line(tree.path(), "fuse"));
        assert!(matches!(found(tree.path(), "root"), Err(OpenError::Blockable(_))));
        // It is the root of a mount, which this list lacks.
        list(line(Path::new("/"), "tmpfs"));
        assert!(found(Path::new("/"), "/").is_ok());
        assert!(matches!(found(Path::new("/"), "proc"), Err(OpenError::Blockable(_))));
        list(line(Path::new("/"), "tmpfs") + &line(Path::new("/proc"), "proc"));
        assert!(found(Path::new("/"), &"proc/../".repeat(MAX_MOUNTS)).is_ok());
        assert!(matches!(found(Path::new("/"), &"proc/../".repeat(MAX_MOUNTS + 1)), Err(OpenError::Io(_))));
    }

    #[test]
    fn relative_paths_begin_at_the_working_directory() {
        assert_eq!(locate(Path::new("src/net"), None).unwrap().id(), id(Path::new("src/net")));
        assert!(locate(Path::new("proc/self"), None).is_err());
    }

    #[test]
    fn link_in_world_writable_directory_is_not_followed() {
        let tree = tree();
        let at = |path: &str| tree.path().join("root").join(path);
        symlink("/private/tmp", at("open/tmp")).unwrap();
        let own_uid = geteuid().as_raw();
        assert_eq!(find_in(&tree, "/open/tmp/file"), Err(format!("/open/tmp {own_uid}")));
        assert_eq!(find_in(&tree, "/open/tmp"), Err(format!("/open/tmp {own_uid}")));
        // Files other than links are allowed there.
        fs::write(at("open/file"), "").unwrap();
        assert_eq!(find_in(&tree, "/open/file"), Ok(id(&at("open/file"))));
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        if !geteuid().is_root() {
            return;
        }
        let tree = tree();
        let at = |path: &str| tree.path().join("root").join(path);
        symlink("/private/tmp", at("theirs")).unwrap();
        std::os::unix::fs::lchown(at("theirs"), Some(65533), None).unwrap();
        assert_eq!(find_in(&tree, "/theirs/file"), Err("/theirs 65533".to_owned()));
        // A link of ours in a directory that another user owns.
        fs::create_dir(at("folder")).unwrap();
        symlink("/private/tmp", at("folder/link")).unwrap();
        chown(at("folder"), Some(65533), None).unwrap();
        assert_eq!(find_in(&tree, "/folder/link/file"), Err("/folder/link 0".to_owned()));
    }
}
