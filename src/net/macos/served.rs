//! Finds the processes that serve a diagnostic socket: their pid and start time are in the name of a socket in a directory for temporary files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use foldhash::{HashMap, HashSet};

use super::endpoint::SocketName;
use super::proc::{Facts, Proc};
use crate::model::ProcessKey;

/// Separator of the paths in a list.
pub(super) const SEPARATOR: char = ':';
/// Environment variables with the directory of temporary files.
pub(super) const TEMPORARY: &[&str] = &["TMPDIR"];

/// Directory of the sockets of processes without such a variable.
const USUAL: &str = "/tmp";
/// Maximum number of directories listed, and of files read in each.
const MAX_FOLDERS: usize = 64;
const MAX_FILES: usize = 65_536;

/// Directory of the sockets of processes with our own environment.
pub(super) fn folder() -> PathBuf {
    std::env::temp_dir()
}

/// Returns the default socket of a process's runtime.
pub(super) fn usual_socket(proc: &Proc, pid: u32) -> Option<PathBuf> {
    let facts = proc.facts(pid).ok()?;
    facts.key.map(|key| facts.temporary_folder().join(name_of(key).to_string()))
}

/// Returns the name of a process's socket. Its key is the start time of the process, in seconds since the Unix epoch.
///
/// Source: `ds_rt_transport_get_default_name` of the runtime and `GetProcessIdDisambiguationKey` of its PAL.
fn name_of(key: ProcessKey) -> SocketName {
    SocketName { pid: key.pid, key: key.started }
}

/// Finds the sockets of processes.
#[derive(Debug, Default)]
pub(super) struct Served;

impl Served {
    /// Returns the socket of each process that has one, preferring one in the process's own temporary directory.
    pub(super) fn find(&mut self, processes: &[Facts], _: Instant) -> HashMap<ProcessKey, PathBuf> {
        let own: HashMap<_, _> = processes.iter().filter_map(|facts| Some((facts.key?, facts.temporary_folder()))).collect();
        let usual = [folder(), PathBuf::from(USUAL)];
        let folders: BTreeSet<&PathBuf> = usual.iter().chain(own.values()).collect();
        let mut sockets = HashMap::default();
        for folder in folders.into_iter().take(MAX_FOLDERS) {
            let names = names(folder);
            for (key, own) in own.iter().filter(|(key, _)| names.contains(&name_of(**key))) {
                let path = folder.join(name_of(*key).to_string());
                if own == folder {
                    sockets.insert(*key, path);
                } else {
                    sockets.entry(*key).or_insert(path);
                }
            }
        }
        sockets
    }
}

fn names(folder: &Path) -> HashSet<SocketName> {
    // A directory that we may not list has no usable sockets.
    let Ok(files) = std::fs::read_dir(folder) else { return HashSet::default() };
    let files = files.take(MAX_FILES).filter_map(Result::ok);
    files.filter_map(|file| SocketName::parse(file.file_name().as_encoded_bytes())).collect()
}
