//! Errors of sampling a process.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::model::Counted;

/// A process that cannot be sampled.
#[derive(Debug, Error)]
#[error("process {pid}{} cannot be sampled: {cause}", .cause.of_user())]
pub struct PerfError {
    /// Process ID.
    pub pid: u32,
    /// The cause. Its message is part of this error's.
    pub cause: PerfCause,
}

/// The reason why a process cannot be sampled.
#[derive(Debug, Error)]
pub enum PerfCause {
    /// The process is not on this machine, or is in another pid namespace.
    #[error("it is not visible in /proc here")]
    NotShown,
    /// The process has exited.
    #[error("it has ended")]
    Ended,
    /// The process is owned by another user, with this ID.
    #[error("the kernel allows that to its user, to root and with CAP_PERFMON and CAP_SYS_PTRACE; run dn-top as that user, or with sudo")]
    OtherUser(u32),
    /// `perf_event_paranoid` is too high.
    #[error(
        "the kernel denies perf events to users without CAP_PERFMON (kernel.perf_event_paranoid is {0}); run dn-top with sudo, or `sudo sysctl \
         kernel.perf_event_paranoid=2`"
    )]
    Paranoid(i32),
    /// Denied although `perf_event_paranoid` allows it.
    #[error("the kernel denies perf events of it (EACCES); a security module may forbid them, or the process changed its user")]
    Denied,
    /// `EPERM`, which the kernel itself does not return for an event that only observes.
    #[error(
        "perf_event_open is not permitted (EPERM), as by the seccomp filter of most containers; run dn-top outside of the container, or give it \
         CAP_PERFMON"
    )]
    Filtered,
    /// The kernel does not support perf events.
    #[error("this kernel has no perf events, or a seccomp filter hides them ({0})")]
    Unsupported(io::Error),
    /// The limit of open files is reached, with this number of threads.
    #[error(
        "the events of {threads:#} take an open file each, and the limit is reached ({1}); raise it with `ulimit -n` before dn-top is started",
        threads = thread_count(*.0)
    )]
    Files(usize, io::Error),
    /// The kernel has no resources for the events of this number of threads.
    #[error(
        "the kernel has no resources for the perf events of {threads:#} ({1}); stop other profilers on this machine",
        threads = thread_count(*.0)
    )]
    Events(usize, io::Error),
    /// The limit of locked memory is reached, with this number of threads.
    #[error(
        "the ring buffers of {threads:#} exceed the memory that a user may lock ({1}); run dn-top with sudo, or raise kernel.perf_event_mlock_kb or \
         `ulimit -l`",
        threads = thread_count(*.0)
    )]
    LockedMemory(usize, io::Error),
    /// Any other error.
    #[error("{0}")]
    Other(io::Error),
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
        let cause = match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => PerfCause::Files(1, error),
            Some(Errno::NOENT | Errno::SRCH) => PerfCause::Ended,
            _ => PerfCause::Other(error),
        };
        Self { pid, cause }
    }

    /// Error of opening an event.
    pub(super) fn not_opened(Subject { pid, other_user, threads, paranoid }: Subject, error: io::Error) -> Self {
        let cause = match Errno::from_io_error(&error) {
            Some(errno @ (Errno::ACCESS | Errno::PERM)) => match (other_user, paranoid) {
                (Some(uid), _) => PerfCause::OtherUser(uid),
                (None, Some(paranoid)) if paranoid > MAX_UNPRIVILEGED_PARANOID => PerfCause::Paranoid(paranoid),
                _ if errno == Errno::ACCESS => PerfCause::Denied,
                _ => PerfCause::Filtered,
            },
            Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NODEV | Errno::NOENT) => PerfCause::Unsupported(error),
            Some(Errno::MFILE | Errno::NFILE) => PerfCause::Files(threads, error),
            Some(Errno::NOSPC | Errno::NOMEM) => PerfCause::Events(threads, error),
            Some(Errno::SRCH) => PerfCause::Ended,
            _ => PerfCause::Other(error),
        };
        Self { pid, cause }
    }

    /// Error of mapping the ring buffer of an open event.
    pub(super) fn not_mapped(Subject { pid, threads, .. }: Subject, error: io::Error) -> Self {
        let cause = match Errno::from_io_error(&error) {
            Some(Errno::PERM | Errno::NOMEM | Errno::NOSPC | Errno::AGAIN) => PerfCause::LockedMemory(threads, error),
            _ => PerfCause::Other(error),
        };
        Self { pid, cause }
    }

    /// Returns a short command or setting that would allow sampling; empty if there is none.
    pub fn remedy(&self) -> &'static str {
        match self.cause {
            PerfCause::OtherUser(_) => "run dn-top as the user of the process, or with sudo",
            PerfCause::Paranoid(_) => "`sudo sysctl kernel.perf_event_paranoid=2`, or run dn-top with sudo",
            PerfCause::Denied => "run dn-top with sudo",
            PerfCause::Filtered => "run dn-top outside of the container, or give it CAP_PERFMON",
            PerfCause::Files(..) => "raise `ulimit -n` before dn-top is started",
            PerfCause::Events(..) => "stop other profilers on this machine",
            PerfCause::LockedMemory(..) => "raise kernel.perf_event_mlock_kb or `ulimit -l`",
            PerfCause::NotShown | PerfCause::Ended | PerfCause::Unsupported(_) | PerfCause::Other(_) => "",
        }
    }

    /// Whether permission was denied.
    pub fn is_denied(&self) -> bool {
        matches!(self.cause, PerfCause::OtherUser(_) | PerfCause::Paranoid(_) | PerfCause::Denied | PerfCause::Filtered)
    }

    /// Whether the process has exited.
    pub fn is_ended(&self) -> bool {
        matches!(self.cause, PerfCause::Ended)
    }
}

impl PerfCause {
    /// Words after the process, if it matters whose it is.
    fn of_user(&self) -> String {
        if let Self::OtherUser(uid) = self { format!(" of user {uid}") } else { String::new() }
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
