//! Errors of sampling a process.

use thiserror::Error;

/// The reason why a process cannot be sampled.
#[derive(Debug, Error)]
pub enum PerfError {
    /// Not supported on this system.
    #[error(
        "process {0} cannot be sampled: CPU samples are taken by the Linux kernel (perf_event_open), and this system has no such interface; \
         `dn-top report` and traces use the runtime's own sampler"
    )]
    Unsupported(u32),
    /// The process has exited.
    #[error("process {0} cannot be sampled: it has ended")]
    Ended(u32),
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
        matches!(self, Self::Ended(_))
    }
}
