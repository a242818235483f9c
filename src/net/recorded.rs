//! Finds the process of a recording, if it still runs, by the recording's pid, start time and code addresses.

use std::io;
use std::time::Duration;

use foldhash::HashSet;
use thiserror::Error;

use super::Directory;
use super::clock::monotonic;
use super::discovery::since_boot;
use super::proc::Proc;
use crate::model::{Process, ProcessKey, SafeText};

/// A recording's data about its process.
#[derive(Debug, Clone, Copy)]
pub struct RecordedProcess<'a> {
    /// Pid in its own pid namespace; 0 if unknown.
    pub pid: u32,
    /// Start of the recording in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: i64,
    /// Addresses of its methods.
    pub code: &'a HashSet<u64>,
}

/// Why the recorded process could not be identified with certainty.
#[derive(Debug, Error)]
pub enum RecordedError {
    /// The recording has no pid.
    #[error("the recording has no process id")]
    NoPid,
    /// The recording has no addresses.
    #[error("the recording has no stacks, and so no unresolved methods")]
    NoCode,
    /// No process has the pid.
    #[error("process {0}, which was recorded, has ended")]
    Ended(u32),
    /// The pid now belongs to another process.
    #[error("process {pid} ({name}) is not the process that was recorded, which has ended: {why}")]
    Another {
        /// Pid of that process.
        pid: u32,
        /// Name of that process.
        name: SafeText,
        /// The evidence.
        why: &'static str,
    },
    /// The process with this pid may not be inspected.
    #[error("process {pid} is of user {uid}: only that user and root can see whether it is the one that was recorded ({reason})")]
    Denied {
        /// Pid of that process.
        pid: u32,
        /// Owner of that process.
        uid: u32,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The processes cannot be listed.
    #[error("the processes of this machine cannot be listed: {0}")]
    List(io::Error),
}

impl Directory {
    /// Finds the process of a recording, if it still runs. Nothing is sent.
    ///
    /// # Errors
    /// [`RecordedError`], if that is not certain.
    pub fn recorded(&mut self, of: &RecordedProcess<'_>) -> Result<Process, RecordedError> {
        let mut rows = self.scan().map_err(RecordedError::List)?;
        let proc = self.clients().proc;
        // A .NET Core 3.1 process of another user cannot be recognized as .NET.
        if !rows.iter().any(|row| row.ns_pid == of.pid)
            && let Ok(stat) = proc.stat(of.pid)
            && !matches!(stat.state, 'Z' | 'X')
        {
            rows.push(self.unlisted(ProcessKey { pid: of.pid, started: stat.starttime }, of.pid, 0));
        }
        find(of, &rows, &proc)
    }
}

fn find(recorded: &RecordedProcess<'_>, rows: &[Process], proc: &Proc) -> Result<Process, RecordedError> {
    if recorded.pid == 0 {
        return Err(RecordedError::NoPid);
    }
    if recorded.code.is_empty() {
        return Err(RecordedError::NoCode);
    }
    let mut other = None;
    for row in rows.iter().filter(|row| row.ns_pid == recorded.pid && !row.is_stale_socket()) {
        match check(recorded, row, proc) {
            Ok(()) => return Ok(row.clone()),
            Err(error) => other = Some(error),
        }
    }
    Err(other.unwrap_or(RecordedError::Ended(recorded.pid)))
}

/// Checks that a process is the recorded one: it existed when the recording began, has the pid, and has executable code where the recording has it.
/// The kernel gives a pid to only one process at a time, and each process has its code at different addresses.
fn check(recorded: &RecordedProcess<'_>, row: &Process, proc: &Proc) -> Result<(), RecordedError> {
    let another = |why| RecordedError::Another { pid: row.key.pid, name: row.name.clone(), why };
    // The clock of the recording stops while the machine is suspended; the clock of start times does not. This is the upper bound of that time,
    // before and since the recording.
    let awake = monotonic();
    let asleep = proc.uptime().map_err(RecordedError::List)?.saturating_sub(awake);
    let began = Duration::from_nanos(recorded.began_ns.max(0).unsigned_abs());
    // Start times are reported in hundredths of a second.
    if began > awake || since_boot(row.key) > began + asleep + Duration::from_millis(10) {
        return Err(another("it was started after the recording began"));
    }
    let denied = |reason| RecordedError::Denied { pid: row.key.pid, uid: row.uid, reason };
    let code = proc.code_mappings(row.key.pid).map_err(denied)?;
    let is_in_code = |address: &&u64| {
        let next = code.partition_point(|mapping| mapping.range.end <= **address);
        code.get(next).is_some_and(|mapping| mapping.range.contains(address))
    };
    // Code of dynamic methods may have been freed since.
    if recorded.code.iter().filter(is_in_code).count() * 2 < recorded.code.len() {
        return Err(another("it has no code where the recording has methods"));
    }
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::{Contact, Trouble};
    use crate::net::clock::monotonic_ns;
    use crate::net::fake_proc::{Fake, FakeProc, fake};

    #[test]
    fn only_the_recorded_process_is_found() {
        let proc = Proc::open(Path::new("/proc")).unwrap();
        let pid = std::process::id();
        let key = ProcessKey { pid, started: proc.stat(pid).unwrap().starttime };
        let own_process = Process { ns_pid: 7, name: "own_process".into(), ..Process::new(key) };
        let now_ns = monotonic_ns();
        let here = HashSet::from_iter([only_the_recorded_process_is_found as fn() as usize as u64]);
        let elsewhere = HashSet::from_iter([0x1000, 0x2000]);
        let mostly_elsewhere: HashSet<u64> = here.iter().copied().chain([0x1000, 0x2000]).collect();
        let none = HashSet::default();
        let find = |pid, began_ns, code| {
            let recorded = RecordedProcess { pid, began_ns, code };
            find(&recorded, std::slice::from_ref(&own_process), &proc).map(|found| found.key.pid).map_err(|error| error.to_string())
        };
        assert_eq!(find(7, now_ns, &here), Ok(pid));
        for (pid, began_ns, code, words) in [
            (0, now_ns, &here, "the recording has no process id"),
            (7, now_ns, &none, "the recording has no stacks"),
            (8, now_ns, &here, "process 8, which was recorded, has ended"),
            (7, 0, &here, "which has ended: it was started after the recording began"),
            (7, i64::MAX, &here, "it was started after the recording began"),
            (7, now_ns, &elsewhere, "it has no code where the recording has methods"),
            (7, now_ns, &mostly_elsewhere, "it has no code where the recording has methods"),
        ] {
            let error = find(pid, began_ns, code).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        // Its socket may be left, and its pid used by another process since.
        let contact = Contact::Trouble { kind: Trouble::Stale, reason: SafeText::default() };
        let stale = Process { contact, ..own_process };
        let recorded = RecordedProcess { pid: 7, began_ns: now_ns, code: &here };
        assert!(matches!(super::find(&recorded, &[stale], &proc), Err(RecordedError::Ended(7))));
    }

    /// Until its parent has read its exit code, it keeps its pid.
    #[test]
    fn process_that_has_exited_is_not_the_recorded_one() {
        let fake_proc = FakeProc::new();
        let code = HashSet::from_iter([0x1000]);
        for (state, is_over) in [('S', false), ('Z', true), ('X', true)] {
            fake_proc.add(&Fake { state, ..fake(7).without_runtime() });
            let found = Directory::new(fake_proc.sources()).unwrap().recorded(&RecordedProcess { pid: 7, began_ns: i64::MAX, code: &code });
            assert_eq!(matches!(found, Err(RecordedError::Ended(7))), is_over, "{state}: {found:?}");
        }
    }
}
