//! Discovers the processes that serve a diagnostic socket.
//!
//! A scan lists processes and pairs them with sockets by name. The process that actually serves a socket is verified on connecting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use sysinfo::System;

use super::cpu_usage::CpuUsage;
use super::proc::{Facts, Proc, entry_name};
use super::served::{self, Served};
use super::stream::port_name;
use super::system::{account, account_name, is_elevated};
use super::user::{self, SUPERUSER};
use crate::model::{Contact, Process, ProcessKey, SafeText, Trouble, Usage, shown_command_line};
use crate::sorting::CompactSort;

/// Sources of processes. [`Sources::machine`] is the real one; tests and the demo pass directories with facts of simulated processes.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Empty for the machine's own processes, or a directory with facts.
    pub proc: PathBuf,
    /// Directory of sockets.
    pub tmp: PathBuf,
}

impl Sources {
    /// The machine that dn-top runs on.
    pub fn machine() -> Self {
        Self { proc: PathBuf::new(), tmp: served::folder() }
    }

    /// Simulated processes with their facts in `proc` below `dir`.
    pub fn below(dir: &Path) -> Self {
        Self { proc: dir.join("proc"), tmp: served::folder() }
    }

    /// Returns the default socket of a process's runtime.
    pub fn usual_socket(&self, pid: u32) -> Option<PathBuf> {
        served::usual_socket(&Proc::open(&self.proc).ok()?, pid)
    }

    /// Whether a process was started with this diagnostic port in its environment, if that is readable: the process, or its children, may
    /// connect to the port at any time.
    pub fn any_started_with_port(&self, port: &Path) -> bool {
        let Ok(processes) = Proc::open(&self.proc).and_then(|proc| proc.list()) else { return false };
        let name = port_name(port).to_string_lossy();
        processes.iter().any(|facts| facts.has_port(&name))
    }

    /// Directories searched for sockets.
    pub fn usual_directories(&self) -> impl Iterator<Item = &Path> {
        [self.tmp.as_path()].into_iter()
    }
}

/// Finds .NET processes repeatedly, caching results between scans.
#[derive(Debug)]
pub struct Scanner {
    proc: Arc<Proc>,
    /// Account of our user.
    our_account: Option<String>,
    /// How to gain access to inaccessible processes.
    elevate: Option<&'static str>,
    /// User names by account.
    users: HashMap<String, SafeText>,
    /// Whether processes are elevated, as far as we may query it.
    elevated: HashMap<ProcessKey, bool>,
    served: Served,
    cpu: HashMap<ProcessKey, CpuUsage>,
}

impl Scanner {
    /// Creates a scanner.
    ///
    /// # Errors
    /// If the directory with facts does not exist; the error contains its path.
    pub fn new(sources: Sources) -> io::Result<Self> {
        let name = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", sources.proc.display()));
        let proc = Arc::new(Proc::open(&sources.proc).map_err(name)?);
        Ok(Self {
            proc,
            our_account: account().ok(),
            elevate: user::elevate(),
            users: HashMap::default(),
            elevated: HashMap::default(),
            served: Served::default(),
            cpu: HashMap::default(),
        })
    }

    pub(super) fn proc(&self) -> Arc<Proc> {
        Arc::clone(&self.proc)
    }

    /// None are listed: on Windows, a pipe disappears with its process.
    pub(super) fn more_stale_sockets(&self) -> usize {
        0
    }

    /// Scans now. `now` only measures the interval between two scans, for processor time. Blocks on system calls.
    ///
    /// # Errors
    /// If the processes cannot be listed. A single inaccessible process is not an error.
    pub fn scan(&mut self, now: Instant) -> io::Result<Vec<Process>> {
        let processes = self.proc.list()?;
        let mut sockets = if self.proc.is_real() { self.served.find(&processes, now) } else { HashMap::default() };
        let started: HashMap<_, _> = processes.iter().filter_map(|facts| facts.key).map(|key| (key.pid, key.started)).collect();
        let mut rows = Vec::new();
        for facts in &processes {
            let Some(key) = facts.key else { continue };
            let socket = facts.socket.clone().or_else(|| sockets.remove(&key));
            let off = if socket.is_none() { facts.diagnostics_off() } else { None };
            if socket.is_some() || off.is_some() {
                let off = off.map(switched_off);
                let row = self.row(key, facts, socket, now);
                let contact = off.or_else(|| self.inaccessible(key, facts)).unwrap_or(Contact::Unknown);
                rows.push(Process { contact, parent: parent(key, facts.parent, &started), ..row });
            }
        }
        let listed: HashSet<_> = processes.iter().filter_map(|facts| facts.key).collect();
        self.elevated.retain(|key, _| listed.contains(key));
        self.cpu.retain(|key, _| listed.contains(key));
        rows.compact_sort_by_key(|row| row.key);
        Ok(rows)
    }

    /// Returns the user of a process, marked if the process is elevated.
    fn user(&mut self, key: ProcessKey, account: &str) -> SafeText {
        if !self.users.contains_key(account) {
            let name = account_name(account).unwrap_or_else(|| account.to_owned());
            self.users.insert(account.to_owned(), name.into());
        }
        let name = &self.users[account];
        let is_elevated = *self.elevated.entry(key).or_insert_with(|| is_elevated(key.pid) == Some(true));
        if is_elevated { SafeText::from(format!("{name} (elevated)")) } else { name.clone() }
    }

    /// Returns why the socket of a process would deny us access: only the user that created it and the superuser have access.
    fn inaccessible(&self, key: ProcessKey, facts: &Facts) -> Option<Contact> {
        let is_elevated = self.elevated.get(&key).copied().unwrap_or(false);
        let ours = self.our_account.as_deref().filter(|_| self.proc.is_real())?;
        let user = |account| self.users.get(account).map_or(account, SafeText::as_str);
        denied(self.elevate?, ours, facts.account.as_deref()?, is_elevated, user)
    }

    fn row(&mut self, key: ProcessKey, facts: &Facts, socket: Option<PathBuf>, now: Instant) -> Process {
        let arguments = facts.arguments();
        let user = match (&facts.user, &facts.account) {
            (Some(user), _) => Some(user.as_str().into()),
            (None, Some(account)) => Some(self.user(key, account)),
            (None, None) => None,
        };
        let cpu = self.cpu.entry(key).or_insert_with(|| CpuUsage::new(facts.cpu, now));
        Process {
            ns_pid: facts.ns_pid.unwrap_or(key.pid),
            name: SafeText::from_bytes(entry_name(&arguments).unwrap_or_default()),
            command_line: shown_command_line(&String::from_utf8_lossy(&arguments.join(&b' '))),
            uid: facts.uid(),
            user,
            container: facts.container.as_deref().map(SafeText::from),
            socket,
            temporary_folder: Some(facts.temporary_folder()),
            started_unix_ms: key.started.saturating_mul(1000),
            usage: Usage {
                cpu_percent: cpu.percent(facts.cpu, now),
                rss_bytes: facts.memory,
                data_bytes: facts.private,
                threads: facts.threads,
                stopper: None,
            },
            run_state: facts.run_state(),
            ..Process::new(key)
        }
    }
}

/// Returns the parent of a process, unless its pid was reused by a later process. `started` has the start time of each pid.
fn parent(key: ProcessKey, pid: Option<u32>, started: &HashMap<u32, u64>) -> Option<u32> {
    pid.filter(|pid| started.get(pid).is_none_or(|started| *started <= key.started))
}

/// `elevate` describes how to gain access, `ours` and `theirs` are accounts, `user` returns the name of an account.
fn denied<'a>(elevate: &str, ours: &str, theirs: &'a str, is_elevated: bool, user: impl Fn(&'a str) -> &'a str) -> Option<Contact> {
    let reason = if ours != theirs {
        format!("it belongs to {}, and only that user and {SUPERUSER} may attach: run dn-top as that user, or {elevate}", user(theirs))
    } else if is_elevated {
        format!("it is elevated, and dn-top is not: run dn-top {elevate}")
    } else {
        return None;
    };
    Some(Contact::Trouble { kind: Trouble::Denied, reason: reason.into() })
}

fn switched_off(switch: &str) -> Contact {
    let reason = format!("diagnostics are switched off by {switch} in its environment: restart it without");
    Contact::Trouble { kind: Trouble::Disabled, reason: reason.into() }
}

/// Returns when a process was started, as time since boot.
pub(super) fn since_boot(key: ProcessKey) -> Duration {
    Duration::from_secs(key.started.saturating_sub(System::boot_time()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inaccessible_processes_have_a_reason() {
        for (theirs, is_elevated, reason) in [
            ("S-1-5-21-1", false, None),
            ("S-1-5-21-1", true, Some("it is elevated, and dn-top is not: run dn-top as X")),
            (
                "S-1-5-18",
                true,
                Some("it belongs to SYSTEM, and only that user and administrators may attach: run dn-top as that user, or as X"),
            ),
        ] {
            let found = denied("as X", "S-1-5-21-1", theirs, is_elevated, |_| "SYSTEM");
            let expected = reason.map(|reason| Contact::Trouble { kind: Trouble::Denied, reason: reason.into() });
            assert_eq!(found, expected, "{theirs}");
        }
    }

    #[test]
    fn process_younger_than_its_child_is_not_the_parent() {
        let started = HashMap::from_iter([(4, 100), (8, 200), (12, 300)]);
        let of = |pid| parent(ProcessKey { pid: 8, started: 200 }, pid, &started);
        assert_eq!((of(Some(4)), of(Some(12)), of(None)), (Some(4), None, None));
        // Started in the same second, or exited since.
        assert_eq!((of(Some(8)), of(Some(16))), (Some(8), Some(16)));
    }
}
