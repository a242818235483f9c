//! Errors of sampling a process.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::model::Counted;

/// The reason why a process cannot be sampled.
#[derive(Debug, Error)]
pub enum PerfError {
    /// The process is not on this machine, or is in another pid namespace.
    #[error("process {0} cannot be sampled: it is not visible in /proc here")]
    NotShown(u32),
    /// The process has exited.
    #[error("process {0} cannot be sampled: it has ended")]
    Ended(u32),
    /// The process is owned by another user.
    #[error(
        "process {pid} of user {uid} cannot be sampled: the kernel allows that to its user, to root and with CAP_PERFMON and CAP_SYS_PTRACE; run dn-top \
         as that user, or with sudo"
    )]
    OtherUser {
        /// Process ID.
        pid: u32,
        /// User ID of the owner.
        uid: u32,
    },
    /// `perf_event_paranoid` is too high.
    #[error(
        "process {pid} cannot be sampled: the kernel denies perf events to users without CAP_PERFMON (kernel.perf_event_paranoid is {paranoid}); run dn-top \
         with sudo, or `sudo sysctl kernel.perf_event_paranoid=2`"
    )]
    Paranoid {
        /// Process ID.
        pid: u32,
        /// Value of the setting.
        paranoid: i32,
    },
    /// Denied although `perf_event_paranoid` allows it.
    #[error(
        "process {0} cannot be sampled: the kernel denies perf events of it (EACCES); a security module may forbid them, or the process changed its user"
    )]
    Denied(u32),
    /// `EPERM`, which the kernel itself does not return for an event that only observes.
    #[error(
        "process {0} cannot be sampled: perf_event_open is not permitted (EPERM), as by the seccomp filter of most containers; run dn-top outside of the \
         container, or give it CAP_PERFMON"
    )]
    Filtered(u32),
    /// The kernel does not support perf events.
    #[error("process {pid} cannot be sampled: this kernel has no perf events, or a seccomp filter hides them ({error})")]
    Unsupported {
        /// Process ID.
        pid: u32,
        /// Error returned by the kernel.
        error: io::Error,
    },
    /// The limit of open files is reached.
    #[error(
        "process {pid} cannot be sampled: the events of {:#} take an open file each, and the limit is reached ({error}); raise it with `ulimit -n` \
         before dn-top is started",
        thread_count(*threads)
    )]
    Files {
        /// Process ID.
        pid: u32,
        /// Number of its threads.
        threads: usize,
        /// Error returned by the kernel.
        error: io::Error,
    },
    /// The kernel has no resources for more events.
    #[error(
        "process {pid} cannot be sampled: the kernel has no resources for the perf events of {:#} ({error}); stop other profilers on this machine",
        thread_count(*threads)
    )]
    Events {
        /// Process ID.
        pid: u32,
        /// Number of its threads.
        threads: usize,
        /// Error returned by the kernel.
        error: io::Error,
    },
    /// The limit of locked memory is reached.
    #[error(
        "process {pid} cannot be sampled: the ring buffers of {:#} exceed the memory that a user may lock ({error}); run dn-top with sudo, or raise \
         kernel.perf_event_mlock_kb or `ulimit -l`",
        thread_count(*threads)
    )]
    LockedMemory {
        /// Process ID.
        pid: u32,
        /// Number of its threads.
        threads: usize,
        /// Error returned by the kernel.
        error: io::Error,
    },
    /// Any other error.
    #[error("process {pid} cannot be sampled: {error}")]
    Other {
        /// Process ID.
        pid: u32,
        /// Error returned by the system.
        error: io::Error,
    },
}

/// Facts about a process from which the cause of an error is derived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) pid: u32,
    /// Its user, if that is not ours and we are not root.
    pub(super) other_user: Option<u32>,
    pub(super) threads: usize,
    /// `perf_event_paranoid`, if readable.
    pub(super) paranoid: Option<i32>,
}

/// Highest `perf_event_paranoid` that allows an unprivileged user to sample the user-space code of their own processes.
const MAX_UNPRIVILEGED_PARANOID: i32 = 2;

impl PerfError {
    /// Error of listing the threads.
    pub(super) fn not_listed(pid: u32, error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => Self::Files { pid, threads: 1, error },
            Some(Errno::NOENT | Errno::SRCH) => Self::Ended(pid),
            _ => Self::Other { pid, error },
        }
    }

    /// Error of opening an event.
    pub(super) fn not_opened(of: Subject, error: io::Error) -> Self {
        let Subject { pid, threads, .. } = of;
        match Errno::from_io_error(&error) {
            Some(errno @ (Errno::ACCESS | Errno::PERM)) => match (of.other_user, of.paranoid) {
                (Some(uid), _) => Self::OtherUser { pid, uid },
                (None, Some(paranoid)) if paranoid > MAX_UNPRIVILEGED_PARANOID => Self::Paranoid { pid, paranoid },
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

    /// Error of mapping the ring buffer of an open event.
    pub(super) fn not_mapped(of: Subject, error: io::Error) -> Self {
        let Subject { pid, threads, .. } = of;
        match Errno::from_io_error(&error) {
            Some(Errno::PERM | Errno::NOMEM | Errno::NOSPC | Errno::AGAIN) => Self::LockedMemory { pid, threads, error },
            _ => Self::Other { pid, error },
        }
    }

    /// Returns a short command or setting that would allow sampling; empty if there is none.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::OtherUser { .. } => "run dn-top as the user of the process, or with sudo",
            Self::Paranoid { .. } => "`sudo sysctl kernel.perf_event_paranoid=2`, or run dn-top with sudo",
            Self::Denied(_) => "run dn-top with sudo",
            Self::Filtered(_) => "run dn-top outside of the container, or give it CAP_PERFMON",
            Self::Files { .. } => "raise `ulimit -n` before dn-top is started",
            Self::Events { .. } => "stop other profilers on this machine",
            Self::LockedMemory { .. } => "raise kernel.perf_event_mlock_kb or `ulimit -l`",
            Self::NotShown(_) | Self::Ended(_) | Self::Unsupported { .. } | Self::Other { .. } => "",
        }
    }

    /// Whether permission was denied.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::OtherUser { .. } | Self::Paranoid { .. } | Self::Denied(_) | Self::Filtered(_))
    }

    /// Whether the process has exited.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

fn thread_count(threads: usize) -> Counted<'static> {
    Counted(threads as u64, "thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_cause_and_remedy() {
        let of = Subject { pid: 7, other_user: None, threads: 64, paranoid: Some(2) };
        let opened = |of, errno: Errno| PerfError::not_opened(of, errno.into()).to_string();
        let strict = Subject { paranoid: Some(3), ..of };
        for (words, part) in [
            (opened(strict, Errno::ACCESS), "kernel.perf_event_paranoid is 3"),
            (opened(Subject { other_user: Some(5), ..strict }, Errno::ACCESS), "process 7 of user 5"),
            (opened(of, Errno::ACCESS), "security module"),
            (opened(of, Errno::PERM), "seccomp"),
            (opened(of, Errno::NOSYS), "no perf events"),
            (opened(of, Errno::MFILE), "the events of 64 threads take an open file each"),
            (opened(of, Errno::NFILE), "the events of 64 threads take an open file each"),
            (opened(of, Errno::NOSPC), "no resources for the perf events of 64 threads"),
            (opened(of, Errno::SRCH), "it has ended"),
            (PerfError::not_listed(7, Errno::MFILE.into()).to_string(), "the events of 1 thread take an open file each"),
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
