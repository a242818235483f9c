//! Diagnostic sockets in the directories for temporary files.

use std::collections::hash_map::Entry;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foldhash::HashMap;
use rustix::fs::{AtFlags, FileType, Stat, statat};

use super::processes::{DirectoryId, ProcessScan, SocketDir};
use crate::net::endpoint::SocketName;
use crate::net::proc::{Proc, for_each_entry};
use crate::net::resolve;

/// A file with the name of a diagnostic socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    inode: u64,
    /// Also `false` for a link to a socket.
    pub(super) is_socket: bool,
    pub(super) uid: u32,
    /// Modification time, since the Unix epoch.
    pub(super) made: Duration,
}

impl Candidate {
    fn new(inode: u64, stat: &Stat) -> Self {
        let made = Duration::from_secs(stat.st_mtime.try_into().unwrap_or(0)) + Duration::from_nanos(stat.st_mtime_nsec);
        Self { inode, is_socket: FileType::from_raw_mode(stat.st_mode) == FileType::Socket, uid: stat.st_uid, made }
    }
}

/// All files with the name of a diagnostic socket, by directory.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    files: HashMap<(DirectoryId, SocketName), Candidate>,
    /// The listed directories, and whether they contain any such file.
    listed: HashMap<DirectoryId, (PathBuf, bool)>,
}

impl Sockets {
    /// Lists directories, each once regardless of its paths. A directory that cannot be listed counts as empty. Files known from `before` are not
    /// read again.
    pub(super) fn list<'a>(&mut self, directories: impl IntoIterator<Item = &'a Path>, proc: &Proc, before: &Self) {
        for path in directories {
            if let Ok(found) = resolve::locate(path, Some(proc)) {
                self.list_one(found.id(), path, before, || Some(found.handle));
            }
        }
    }

    /// Lists the socket directories of processes. The owner of a process may have put another directory in the place of one shared with others.
    pub(super) fn list_socket_dirs(&mut self, process_scan: &ProcessScan, proc: &Proc, before: &Self) {
        for known in process_scan.iter() {
            if let SocketDir::Directory { id, path, .. } = &known.socket_dir {
                let open = || resolve::locate(path, Some(proc)).ok().filter(|found| found.id() == *id);
                self.list_one(*id, path, before, || open().map(|found| found.handle));
            }
        }
    }

    fn list_one(&mut self, id: DirectoryId, path: &Path, before: &Self, open: impl FnOnce() -> Option<OwnedFd>) {
        if let Entry::Vacant(vacant) = self.listed.entry(id)
            && let Some(directory) = open()
        {
            let count = self.files.len();
            let _ = for_each_entry(&directory, ".", &mut |name, inode| {
                if let Some(socket) = SocketName::parse(name) {
                    let known = before.get(id, socket).filter(|candidate| candidate.inode == inode);
                    // The file may just have been removed.
                    let read = || statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Candidate::new(inode, &stat));
                    self.files.extend(known.or_else(read).map(|candidate| ((id, socket), candidate)));
                }
                true
            });
            vacant.insert((path.to_owned(), self.files.len() > count));
        }
    }

    /// Returns the directories that contain any such file.
    pub(super) fn directories(&self) -> impl Iterator<Item = &Path> {
        self.listed.values().filter(|(_, any)| *any).map(|(path, _)| path.as_path())
    }

    /// Returns the path of a listed directory.
    pub(super) fn path_of(&self, directory: DirectoryId) -> Option<&Path> {
        self.listed.get(&directory).map(|(path, _)| path.as_path())
    }

    /// Returns the file with that name in that directory.
    pub(super) fn get(&self, directory: DirectoryId, name: SocketName) -> Option<Candidate> {
        self.files.get(&(directory, name)).copied()
    }

    /// Iterates over all files.
    pub(super) fn iter(&self) -> impl Iterator<Item = (DirectoryId, SocketName, Candidate)> {
        self.files.iter().map(|((directory, name), candidate)| (*directory, *name, *candidate))
    }
}
