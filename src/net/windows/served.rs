//! Finds the processes that serve a diagnostic pipe.
//!
//! Pipes are paired with processes by the pid in their name; the process that actually serves a pipe is verified on connecting. If pipes cannot
//! be listed (Wine), the pipe of each process is tried instead: frequently while the process is young, and not again once found.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use foldhash::{HashMap, HashSet};

use super::peer::{PREFIX, default_pipe};
use super::proc::{Facts, Proc};
use super::stream::{PIPES, is_served, pipe_name};
use crate::model::ProcessKey;

/// Separator of the paths in a list.
pub(super) const SEPARATOR: char = ';';
/// Environment variables with the directory of temporary files.
pub(super) const TEMPORARY: &[&str] = &["TMP", "TEMP"];

/// A process younger than this may not have created its pipe yet.
const YOUNG_AGE: Duration = Duration::from_secs(30);
/// Interval between attempts for an older process.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Directory of pipes.
pub(super) fn folder() -> PathBuf {
    PIPES.into()
}

/// Returns the default pipe of a process's runtime.
pub(super) fn usual_socket(_: &Proc, pid: u32) -> Option<PathBuf> {
    Some(default_pipe(pid))
}

/// Finds the pipes of processes.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Results of attempts, if pipes cannot be listed.
    tried: HashMap<ProcessKey, Tried>,
}

#[derive(Debug, Clone, Copy)]
enum Tried {
    Found,
    NotBefore(Instant),
}

impl Served {
    /// Returns the pipe of each process that has one.
    pub(super) fn find(&mut self, processes: &[Facts], now: Instant) -> HashMap<ProcessKey, PathBuf> {
        let keys = || processes.iter().filter_map(|facts| facts.key);
        if let Some(pipes) = pipes() {
            return keys().filter(|key| pipes.contains(&key.pid)).map(|key| (key, default_pipe(key.pid))).collect();
        }
        let found = keys().filter_map(|key| Some((key, self.try_pipe(key, now)?))).collect();
        let listed: HashSet<_> = keys().collect();
        self.tried.retain(|key, _| listed.contains(key));
        found
    }

    fn try_pipe(&mut self, key: ProcessKey, now: Instant) -> Option<PathBuf> {
        if key.pid == std::process::id() {
            return None;
        }
        let path = default_pipe(key.pid);
        match self.tried.get(&key) {
            Some(Tried::Found) => return Some(path),
            Some(Tried::NotBefore(time)) if *time > now => return None,
            _ => {}
        }
        let found = is_served(&path);
        let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(Duration::from_secs(key.started));
        let next = if age < YOUNG_AGE { Tried::NotBefore(now) } else { Tried::NotBefore(now + RETRY_INTERVAL) };
        self.tried.insert(key, if found { Tried::Found } else { next });
        found.then_some(path)
    }
}

/// Returns the pids in the names of diagnostic pipes; `None` if pipes cannot be listed.
fn pipes() -> Option<HashSet<u32>> {
    let mut any = false;
    let mut pids = HashSet::default();
    for entry in std::fs::read_dir(PIPES).ok()? {
        // On some systems, a name that is not a valid file name ends the listing with an error.
        let Ok(entry) = entry else { break };
        any = true;
        let name = entry.file_name();
        let name = pipe_name(Path::new(&name)).map_or_else(|| name.to_string_lossy().into_owned(), str::to_owned);
        pids.extend(name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok()));
    }
    // Windows itself always has pipes.
    any.then_some(pids)
}
