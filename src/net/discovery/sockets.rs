//! Diagnostic sockets in the directories where processes keep temporary files.

use std::collections::hash_map::Entry;
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::census::{Census, DirectoryId, Home, directory_id};
use crate::net::endpoint::SocketName;
use crate::net::proc::for_each_entry;

/// Every diagnostic socket that lies about.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Paths by directory and name.
    paths: FxHashMap<(DirectoryId, SocketName), PathBuf>,
    /// Directories that were listed, and whether they have any.
    listed: FxHashMap<DirectoryId, (PathBuf, bool)>,
}

impl Sockets {
    /// Lists directories, each once whatever paths lead to it. One that cannot be listed has none to show.
    pub(super) fn list<'a>(&mut self, directories: impl IntoIterator<Item = &'a Path>) {
        for path in directories {
            if let Ok(id) = directory_id(path) {
                self.list_one(id, path);
            }
        }
    }

    /// Lists the homes of processes.
    pub(super) fn list_homes(&mut self, census: &Census) {
        for known in census.iter() {
            if let Home::Directory { id, path, .. } = &known.home {
                self.list_one(*id, path);
            }
        }
    }

    fn list_one(&mut self, id: DirectoryId, directory: &Path) {
        if let Entry::Vacant(vacant) = self.listed.entry(id) {
            let before = self.paths.len();
            let _ = read(&mut self.paths, id, directory);
            vacant.insert((directory.to_owned(), self.paths.len() > before));
        }
    }

    /// The directories that have any.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.listed.values().filter(|(_, any)| *any).map(|(path, _)| path.clone()).collect()
    }

    /// Takes the socket of that name in that directory.
    pub(super) fn take(&mut self, directory: DirectoryId, name: SocketName) -> Option<PathBuf> {
        self.paths.remove(&(directory, name))
    }

    /// Takes the socket of that name wherever it is, and says where.
    pub(super) fn take_anywhere(&mut self, name: SocketName) -> Option<(DirectoryId, PathBuf)> {
        self.listed.keys().find_map(|directory| Some((*directory, self.paths.remove(&(*directory, name))?)))
    }

    /// Those that nobody took.
    pub(super) fn into_rest(self) -> impl Iterator<Item = (SocketName, PathBuf)> {
        self.paths.into_iter().map(|((_, name), path)| (name, path))
    }
}

fn read(paths: &mut FxHashMap<(DirectoryId, SocketName), PathBuf>, id: DirectoryId, directory: &Path) -> io::Result<()> {
    let handle = openat(CWD, directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for_each_entry(handle, |name, _| {
        if let Some(socket) = SocketName::parse(name) {
            paths.insert((id, socket), directory.join(socket.to_string()));
        }
        true
    })
}
