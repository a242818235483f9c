//! Facts from `/proc/PID/status`.

use std::io;

use procfs::process::Stat;

use super::{Proc, parse, words};
use crate::model::Stopper;

/// Maximum number of threads whose states are examined.
const MAX_EXAMINED_THREADS: usize = 4096;
/// Memory that a process may allocate or release within seconds, in bytes.
pub(super) const MAX_MEMORY_GROWTH: u64 = 256 << 20;

/// The identity of a process or a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Effective user ID.
    pub(crate) uid: u32,
    /// Process ID in the innermost pid namespace.
    pub(crate) ns_pid: u32,
}

/// The text of the file. Parsed here because the `procfs` crate requires every line and valid UTF-8, which a process name need not be.
#[derive(Debug, Default)]
pub(super) struct Status(Vec<u8>);

impl Status {
    /// Returns the words of the line that begins with `name`.
    fn words<'a>(&'a self, name: &[u8]) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        words(field(&self.0, name))
    }

    pub(super) fn number(&self, name: &[u8]) -> Option<u64> {
        self.words(name).next().and_then(parse)
    }

    /// Returns a size in bytes, which the kernel writes in kilobytes.
    pub(super) fn bytes(&self, name: &[u8]) -> Option<u64> {
        self.number(name).map(|kilobytes| kilobytes.saturating_mul(1024))
    }

    /// Returns the anonymous memory in bytes, resident or swapped; `None` before Linux 4.5.
    pub(super) fn anonymous(&self) -> Option<u64> {
        Some(self.bytes(b"RssAnon:")?.saturating_add(self.bytes(b"VmSwap:").unwrap_or(0)))
    }
}

impl Proc {
    /// Reads the file of a process or a thread, given its directory.
    pub(super) fn status(&self, folder: &str) -> io::Result<Status> {
        self.read(&format!("{folder}/status"), 16_384).map(Status)
    }

    /// Returns the identity of a process.
    pub(crate) fn identity(&self, pid: u32) -> io::Result<Identity> {
        self.identity_of(&pid.to_string(), pid)
    }

    /// Returns the identity of a process or a thread, given its directory and its ID in our pid namespace.
    pub(crate) fn identity_of(&self, folder: &str, pid: u32) -> io::Result<Identity> {
        let status = self.status(folder)?;
        // "Uid:  real effective saved file-system"; "NSpid:  outermost .. innermost", absent without pid namespaces.
        let uid = status.words(b"Uid:").nth(1).and_then(parse).ok_or(io::ErrorKind::InvalidData)?;
        let ns_pid = status.words(b"NSpid:").last().and_then(parse).unwrap_or(pid);
        Ok(Identity { uid, ns_pid })
    }

    /// Returns what has stopped all threads of a process, given the state of its main thread. `strace` and the runtime's own dumps stop single
    /// threads, and these for a moment, so all of them are examined.
    pub(crate) fn stopper(&self, pid: u32, stat: &Stat) -> Option<Stopper> {
        match stat.state {
            'T' => Some(Stopper::Signal),
            't' => {
                let states = self.map_threads(pid, MAX_EXAMINED_THREADS, |_, folder| Some(self.stat_of(folder).ok()?.state)).ok()?;
                let tracer = self.status(&pid.to_string()).ok()?.number(b"TracerPid:");
                // 0 is a tracer in another pid namespace.
                let tracer = tracer.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
                // A dump by the runtime has a state of its own.
                let is_own_dump = tracer.is_some_and(|tracer| self.stat(tracer).is_ok_and(|stat| stat.ppid.cast_unsigned() == pid));
                (!is_own_dump && states.iter().all(|state| *state == 't')).then_some(Stopper::Debugger(tracer))
            }
            _ => None,
        }
    }

    /// Returns the ID of a thread in the innermost pid namespace, given its directory and its ID in ours.
    pub(super) fn inner_thread_id(&self, folder: &str, tid: u32) -> Option<u64> {
        Some(self.identity_of(folder, tid).ok()?.ns_pid.into())
    }

    /// Returns the peak resident memory of a process, in bytes. That includes files, of which any number can be mapped at no cost, so it is
    /// capped at twice the present anonymous memory plus [`MAX_MEMORY_GROWTH`].
    pub(crate) fn peak_memory(&self, pid: u32) -> io::Result<u64> {
        let status = self.status(&pid.to_string())?;
        let peak = status.bytes(b"VmHWM:").ok_or(io::ErrorKind::InvalidData)?;
        let Some(anonymous) = status.anonymous() else { return Ok(peak) };
        Ok(peak.min(anonymous.saturating_mul(2).saturating_add(MAX_MEMORY_GROWTH)))
    }
}

/// Returns the rest of the line that begins with `name`; empty if there is none.
pub(super) fn field<'a>(text: &'a [u8], name: &[u8]) -> &'a [u8] {
    text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name)).unwrap_or_default()
}
