//! The top frame of each thread: the innermost method of its newest sample, or of the last sample of all stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::state::State;
use crate::analysis::{Profile, ThreadId};

/// The innermost method of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TopFrame<'a> {
    /// Type and name, or an address; not sanitized.
    pub(super) name: &'a str,
    /// Age relative to the present, or to the end of the shown data.
    pub(super) age: Duration,
}

impl TopFrame<'_> {
    /// Whether the thread may still be in this method, as snapshots arrive about every second.
    pub(super) fn is_current(&self) -> bool {
        self.age < Duration::from_secs(2)
    }
}

/// Top frames by thread; unknown ones are missing.
pub(super) type TopFrames<'a> = BTreeMap<ThreadId, TopFrame<'a>>;

/// Returns the newest samples of a profile. If the sampling clock is unknown, the newest sample is the present.
fn of_profile(profile: &Profile, now: Option<i64>) -> impl Iterator<Item = (ThreadId, TopFrame<'_>)> {
    let now = now.or_else(|| profile.newest().map(|(_, at, _)| at).max()).unwrap_or_default();
    profile.newest().map(move |(thread, at, frame)| {
        let age = Duration::from_nanos(u64::try_from(now.saturating_sub(at)).unwrap_or(0));
        (thread, TopFrame { name: &frame.name, age })
    })
}

impl State {
    /// Returns the innermost method of each thread according to the newest source.
    pub(super) fn top_frames(&self) -> TopFrames<'_> {
        let runtime = self.analysis().map(|analysis| of_profile(&analysis.profile, Some(analysis.snapshot.now)));
        let kernel = self.analysis().and_then(|analysis| analysis.cpu.as_ref()).map(|cpu| of_profile(&cpu.profile, cpu.now));
        // For an ended recording, only its own samples are shown.
        let is_over = self.shown_recording().is_some_and(|tracked| !tracked.is_active());
        let age = self.now.elapsed.saturating_sub(self.details.stacks_at);
        let sampled = self.details.stacks.get().filter(|_| !is_over).into_iter().flat_map(|stacks| &stacks.groups).flat_map(move |group| {
            let frame = group.frames.first().map(|name| TopFrame { name, age });
            group.threads.iter().filter_map(move |(thread, _)| Some((*thread, frame?)))
        });
        let mut newest = TopFrames::new();
        for (thread, frame) in runtime.into_iter().flatten().chain(kernel.into_iter().flatten()).chain(sampled) {
            let known = newest.entry(thread).or_insert(frame);
            if frame.age < known.age {
                *known = frame;
            }
        }
        newest
    }
}
