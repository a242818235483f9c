//! Errors of sampling a process.

use thiserror::Error;

/// A process that cannot be sampled.
#[derive(Debug, Error)]
#[error("process {pid} cannot be sampled: {cause}")]
pub struct PerfError {
    /// Process ID.
    pub pid: u32,
    /// The cause. Its message is part of this error's.
    pub cause: PerfCause,
}

/// The reason why a process cannot be sampled.
#[derive(Debug, Error)]
pub enum PerfCause {
    /// Not supported on this system.
    #[error(
        "CPU samples are taken by the Linux kernel (perf_event_open), and this system has no such interface; `dn-top report` and traces use the \
         runtime's own sampler"
    )]
    Unsupported,
    /// The process has exited.
    #[error("it has ended")]
    Ended,
}

impl PerfError {
    /// Whether permission was denied.
    pub fn is_denied(&self) -> bool {
        false
    }

    /// Returns a command or setting that would allow sampling: none.
    pub fn remedy(&self) -> &'static str {
        ""
    }

    /// Whether the process has exited.
    pub fn is_ended(&self) -> bool {
        matches!(self.cause, PerfCause::Ended)
    }
}
