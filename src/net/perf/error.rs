//! Why a process cannot be sampled, in words.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

/// Why the kernel does not sample a process.
#[derive(Debug, Error)]
pub enum PerfError {
    /// Not of this machine, or of another pid namespace.
    #[error("process {0} cannot be sampled: /proc does not show it here")]
    NotShown(u32),
    /// It has ended.
    #[error("process {0} cannot be sampled: it has ended")]
    Ended(u32),
    /// Of another user.
    #[error(
        "process {pid} of user {uid} cannot be sampled: the kernel allows that to its user, to root and with CAP_PERFMON and CAP_SYS_PTRACE; run dn-top \
         as that user, or with sudo"
    )]
    OtherUser {
        /// The process.
        pid: u32,
        /// Its user.
        uid: u32,
    },
    /// `perf_event_paranoid` is too high.
    #[error(
        "process {pid} cannot be sampled: the kernel denies perf events to users without CAP_PERFMON (kernel.perf_event_paranoid is {paranoid}); run dn-top \
         with sudo, or `sudo sysctl kernel.perf_event_paranoid=2`"
    )]
    Paranoid {
        /// The process.
        pid: u32,
        /// The setting.
        paranoid: i32,
    },
    /// Denied although that setting allows it.
    #[error(
        "process {0} cannot be sampled: the kernel denies perf events of it (EACCES); a security module may forbid them, or the process changed its user"
    )]
    Denied(u32),
    /// `EPERM`, which the kernel itself does not answer to an event that only looks.
    #[error(
        "process {0} cannot be sampled: perf_event_open is not permitted (EPERM), as by the seccomp filter of most containers; run dn-top outside of the \
         container, or give it CAP_PERFMON"
    )]
    Filtered(u32),
    /// There are no perf events.
    #[error("process {pid} cannot be sampled: this kernel has no perf events, or a seccomp filter hides them ({error})")]
    Unsupported {
        /// The process.
        pid: u32,
        /// What the kernel answered.
        error: io::Error,
    },
    /// No more files may be open.
    #[error(
        "process {pid} cannot be sampled: {threads} threads need as many open files, and the limit is reached ({error}); raise it with `ulimit -n` \
         before dn-top is started"
    )]
    Files {
        /// The process.
        pid: u32,
        /// Its threads.
        threads: usize,
        /// What the kernel answered.
        error: io::Error,
    },
    /// The kernel has no room for more events.
    #[error(
        "process {pid} cannot be sampled: the kernel has no room for the perf events of {threads} threads ({error}); end other profilers of this machine"
    )]
    Events {
        /// The process.
        pid: u32,
        /// Its threads.
        threads: usize,
        /// What the kernel answered.
        error: io::Error,
    },
    /// No more memory may be locked.
    #[error(
        "process {pid} cannot be sampled: the ring buffers of {threads} threads exceed the memory that a user may lock ({error}); run dn-top with sudo, or \
         raise kernel.perf_event_mlock_kb or `ulimit -l`"
    )]
    LockedMemory {
        /// The process.
        pid: u32,
        /// Its threads.
        threads: usize,
        /// What the kernel answered.
        error: io::Error,
    },
    /// Anything else.
    #[error("process {pid} cannot be sampled: {error}")]
    Other {
        /// The process.
        pid: u32,
        /// What the system answered.
        error: io::Error,
    },
}

/// What is known about a process that the kernel does not sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) pid: u32,
    /// Its user, where that is another one than ours, and we are not root.
    pub(super) other_user: Option<u32>,
    pub(super) threads: usize,
    /// `perf_event_paranoid`, where it can be read.
    pub(super) paranoid: Option<i32>,
}

/// The highest `perf_event_paranoid` that allows events of what our own processes do outside of the kernel.
const HIGHEST_ALLOWED: i32 = 2;

impl PerfError {
    /// The threads could not be listed.
    pub(super) fn not_listed(pid: u32, error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => Self::Files { pid, threads: 1, error },
            Some(Errno::NOENT | Errno::SRCH) => Self::Ended(pid),
            _ => Self::Other { pid, error },
        }
    }

    /// An event was not opened.
    pub(super) fn not_opened(of: Subject, error: io::Error) -> Self {
        let Subject { pid, threads, .. } = of;
        match Errno::from_io_error(&error) {
            Some(errno @ (Errno::ACCESS | Errno::PERM)) => match (of.other_user, of.paranoid) {
                (Some(uid), _) => Self::OtherUser { pid, uid },
                (None, Some(paranoid)) if paranoid > HIGHEST_ALLOWED => Self::Paranoid { pid, paranoid },
                _ if errno == Errno::ACCESS => Self::Denied(pid),
                _ => Self::Filtered(pid),
            },
            Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NODEV | Errno::NOENT) => Self::Unsupported { pid, error },
            Some(Errno::MFILE | Errno::NFILE) => Self::Files { pid, threads, error },
            Some(Errno::NOSPC | Errno::NOMEM) => Self::Events { pid, threads, error },
            Some(Errno::SRCH) => Self::Ended(pid),
            _ => Self::Other { pid, error },
        }
    }

    /// An event was opened, and has no ring buffer.
    pub(super) fn not_mapped(of: Subject, error: io::Error) -> Self {
        let Subject { pid, threads, .. } = of;
        match Errno::from_io_error(&error) {
            Some(Errno::PERM | Errno::NOMEM | Errno::NOSPC | Errno::AGAIN) => Self::LockedMemory { pid, threads, error },
            _ => Self::Other { pid, error },
        }
    }

    /// A command or a setting that would allow it, in a few words; empty where nothing would.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::OtherUser { .. } => "run dn-top as the user of the process, or with sudo",
            Self::Paranoid { .. } => "`sudo sysctl kernel.perf_event_paranoid=2`, or run dn-top with sudo",
            Self::Denied(_) => "run dn-top with sudo",
            Self::Filtered(_) => "run dn-top outside of the container, or give it CAP_PERFMON",
            Self::Files { .. } => "raise `ulimit -n` before dn-top is started",
            Self::Events { .. } => "end other profilers of this machine",
            Self::LockedMemory { .. } => "raise kernel.perf_event_mlock_kb or `ulimit -l`",
            Self::NotShown(_) | Self::Ended(_) | Self::Unsupported { .. } | Self::Other { .. } => "",
        }
    }

    /// Whether it is a matter of rights.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::OtherUser { .. } | Self::Paranoid { .. } | Self::Denied(_) | Self::Filtered(_))
    }

    /// Whether the process is not there any more.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_words() {
        let of = Subject { pid: 7, other_user: None, threads: 64, paranoid: Some(2) };
        let opened = |of, errno: Errno| PerfError::not_opened(of, errno.into()).to_string();
        let strict = Subject { paranoid: Some(3), ..of };
        for (words, part) in [
            (opened(strict, Errno::ACCESS), "kernel.perf_event_paranoid is 3"),
            (opened(Subject { other_user: Some(5), ..strict }, Errno::ACCESS), "process 7 of user 5"),
            (opened(of, Errno::ACCESS), "security module"),
            (opened(of, Errno::PERM), "seccomp"),
            (opened(of, Errno::NOSYS), "no perf events"),
            (opened(of, Errno::MFILE), "64 threads need as many open files"),
            (opened(of, Errno::NFILE), "64 threads need as many open files"),
            (opened(of, Errno::NOSPC), "no room for the perf events of 64 threads"),
            (opened(of, Errno::SRCH), "it has ended"),
            (PerfError::not_listed(7, Errno::MFILE.into()).to_string(), "ulimit -n"),
            (PerfError::not_listed(7, Errno::NOENT.into()).to_string(), "it has ended"),
            (PerfError::not_listed(7, Errno::ACCESS.into()).to_string(), "Permission denied"),
            (opened(of, Errno::INVAL), "Invalid argument"),
            (opened(of, Errno::OPNOTSUPP), "no perf events"),
            (PerfError::not_mapped(of, Errno::PERM.into()).to_string(), "kernel.perf_event_mlock_kb"),
            (PerfError::not_mapped(of, Errno::NOSPC.into()).to_string(), "kernel.perf_event_mlock_kb"),
            (PerfError::not_mapped(of, Errno::NOMEM.into()).to_string(), "`ulimit -l`"),
        ] {
            assert!(words.starts_with("process 7 ") && words.contains(part), "{words}");
        }
    }
}
