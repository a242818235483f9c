//! What is in a recording, as far as it was looked at.

use super::CpuTime;
use crate::analysis::{EventCount, Profile, RecentSnapshot, Snapshot};

/// What is in a recording: a snapshot, newest wins. Names and messages in it are the target's own words, not sanitised.
#[derive(Debug, Clone)]
pub struct RecordingAnalysis {
    /// Every analysis but the ones below.
    pub snapshot: Snapshot,
    /// What came, most first: no more than [`RecordingAnalysis::EVENTS`].
    pub events: Vec<EventRate>,
    /// The latest single events.
    pub recent: RecentSnapshot,
    /// Where threads spend their time, as the runtime samples it: managed code, of threads that wait as well.
    pub profile: Profile,
    /// Where they spend their CPU time, as the kernel samples it: all code, of threads that run. `None` where the kernel takes no samples.
    pub cpu: Option<CpuTime>,
}

impl RecordingAnalysis {
    /// Where threads spend their time: with or without threads that wait. Which of them wait, the samples of the kernel show best.
    pub fn profile(&self, waiting: bool) -> &Profile {
        self.cpu_time(waiting).map_or(&self.profile, |cpu| &cpu.profile)
    }

    /// The CPU time, where [`profile`](Self::profile) is of it.
    pub fn cpu_time(&self, waiting: bool) -> Option<&CpuTime> {
        self.cpu.as_ref().filter(|_| !waiting || self.profile.is_empty())
    }

    /// The same, of threads that wait alone where the kernel shows where they do.
    pub fn time_or_waits(&self, waiting: bool) -> &Profile {
        self.waits().filter(|_| waiting).unwrap_or_else(|| self.profile(waiting))
    }

    /// Where threads were blocked, as the kernel shows it.
    pub fn waits(&self) -> Option<&Profile> {
        self.cpu.as_ref()?.waits.as_ref()
    }

    /// How many kinds of events are distinguished.
    pub const EVENTS: usize = 500;

    /// A rate per second: the recent one while recording, else the average over all of the recording.
    pub fn rate(&self, over: bool, count: u64, recent: f64) -> f64 {
        let seconds = self.snapshot.recorded_ns as f64 / 1e9;
        if over { count as f64 / seconds.max(0.001) } else { recent }
    }
}

/// A snapshot is like no other: two are the same only where they are one.
impl PartialEq for RecordingAnalysis {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// How often an event came.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRate {
    /// Which, and all of it.
    pub event: EventCount,
    /// Events a second over the last ten seconds.
    pub rate: f64,
}
