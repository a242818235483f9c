//! Facts about a simulated process that discovery reads.

/// Clock ticks per second, as in the real `/proc`.
pub(super) const TICKS: u64 = 100;

/// Facts of one simulated process.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) pid: u32,
    /// The pid in its own namespace.
    pub(super) ns_pid: u32,
    pub(super) uid: u32,
    /// Clock ticks since boot.
    pub(super) started: u64,
    pub(super) command: Vec<String>,
    pub(super) version: String,
    pub(super) threads: u32,
    pub(super) container: Option<String>,
    /// Whether managed code is running: only then the finalizer thread exists.
    pub(super) running: bool,
}
