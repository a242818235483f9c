//! Why a process cannot be sampled, in words.

use thiserror::Error;

/// Why a process cannot be sampled.
#[derive(Debug, Error)]
pub enum PerfError {
    /// Not on this system.
    #[error(
        "process {0} cannot be sampled: CPU samples are taken by the Linux kernel (perf_event_open), and this system has no such interface; \
         `dn-top report` and traces use the runtime's own sampler"
    )]
    Unsupported(u32),
    /// It has ended.
    #[error("process {0} cannot be sampled: it has ended")]
    Ended(u32),
}

impl PerfError {
    /// Whether it is a matter of rights.
    pub fn is_denied(&self) -> bool {
        false
    }

    /// A command or a setting that would allow it: there is none.
    pub fn remedy(&self) -> &'static str {
        ""
    }

    /// Whether the process is not there any more.
    pub fn is_ended(&self) -> bool {
        false
    }
}
