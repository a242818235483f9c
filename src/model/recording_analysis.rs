//! The analyzed contents of a recording.

use super::CpuTime;
use crate::analysis::{EventCount, Profile, RecentSnapshot, Snapshot};

/// The analyzed contents of a recording: a snapshot; the newest replaces the previous ones. Names and messages come from the target, unsanitized.
#[derive(Debug, Clone)]
pub struct RecordingAnalysis {
    /// Results of all analyses except the following.
    pub snapshot: Snapshot,
    /// The most frequent events, at most [`RecordingAnalysis::EVENTS`].
    pub events: Vec<EventRate>,
    /// The latest individual events.
    pub recent: RecentSnapshot,
    /// Thread time as sampled by the runtime: managed code, including waiting threads.
    pub profile: Profile,
    /// CPU time as sampled by the kernel: all code of running threads. `None` if there are no kernel samples.
    pub cpu: Option<CpuTime>,
}

impl RecordingAnalysis {
    /// Returns the profile with or without waiting threads. Without them, kernel samples are preferred, since they only show running threads.
    pub fn profile(&self, waiting: bool) -> &Profile {
        self.cpu_time(waiting).map_or(&self.profile, |cpu| &cpu.profile)
    }

    /// Returns the CPU time, if [`profile`](Self::profile) is based on it.
    pub fn cpu_time(&self, waiting: bool) -> Option<&CpuTime> {
        self.cpu.as_ref().filter(|_| !waiting || self.profile.is_empty())
    }

    /// Returns the waits alone if `waiting` and the kernel reports them, otherwise the same as [`profile`](Self::profile).
    pub fn time_or_waits(&self, waiting: bool) -> &Profile {
        self.waits().filter(|_| waiting).unwrap_or_else(|| self.profile(waiting))
    }

    /// Returns the waits, as reported by the kernel.
    pub fn waits(&self) -> Option<&Profile> {
        self.cpu.as_ref()?.waits.as_ref()
    }

    /// Maximum number of kinds of events.
    pub const EVENTS: usize = 500;

    /// Returns a rate per second: the recent one while recording, otherwise the average over the whole recording.
    pub fn rate(&self, over: bool, count: u64, recent: f64) -> f64 {
        let seconds = self.snapshot.recorded_ns as f64 / 1e9;
        if over { count as f64 / seconds.max(0.001) } else { recent }
    }
}

/// Snapshots are equal only if they are the same object.
impl PartialEq for RecordingAnalysis {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Count and rate of a kind of event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRate {
    /// The kind of event and its totals.
    pub event: EventCount,
    /// Events per second over the last ten seconds.
    pub rate: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Live;

    fn analysis(recorded_ns: i64, cpu: Option<CpuTime>) -> RecordingAnalysis {
        let (events, recent, profile) = (Vec::new(), RecentSnapshot::default(), Profile::default());
        RecordingAnalysis { snapshot: Live::default().snapshot(recorded_ns), events, recent, profile, cpu }
    }

    #[test]
    fn rate_of_a_recording_in_progress_is_the_recent_one() {
        let mut analysis = analysis(0, None);
        analysis.snapshot.recorded_ns = 4_000_000_000;
        assert_eq!([true, false].map(|over| analysis.rate(over, 10, 7.0)), [2.5, 7.0]);
    }

    /// Such as one whose runtime has not sampled any thread.
    #[test]
    fn cpu_time_replaces_waiting_threads_that_were_not_sampled() {
        let analysis = analysis(0, Some(CpuTime::default()));
        assert_eq!([true, false].map(|waiting| analysis.cpu_time(waiting).is_some()), [true; 2]);
    }
}
