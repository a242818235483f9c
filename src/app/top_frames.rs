//! What each thread did last: the innermost method of its newest sample, or of the look at all stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::state::State;
use crate::analysis::{Profile, ThreadId};

/// The innermost method of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TopFrame<'a> {
    /// Type and name, or an address; not sanitised.
    pub(super) name: &'a str,
    /// Before the present, or before the end of what is shown.
    pub(super) age: Duration,
}

impl TopFrame<'_> {
    /// Whether the thread may still be there: snapshots come every second or so.
    pub(super) fn is_current(&self) -> bool {
        self.age < Duration::from_secs(2)
    }
}

/// By thread; those of which nothing is known are missing.
pub(super) type TopFrames<'a> = BTreeMap<ThreadId, TopFrame<'a>>;

/// The newest samples of a profile. Where the clock of the samples is not known, the newest of them is the present.
fn of_profile(profile: &Profile, now: Option<i64>) -> impl Iterator<Item = (ThreadId, TopFrame<'_>)> {
    let now = now.or_else(|| profile.newest().map(|(_, at, _)| at).max()).unwrap_or_default();
    profile.newest().map(move |(thread, at, frame)| {
        let age = Duration::from_nanos(u64::try_from(now.saturating_sub(at)).unwrap_or(0));
        (thread, TopFrame { name: &frame.name, age })
    })
}

impl State {
    /// The innermost method of each thread, as the newest of all sources has it.
    pub(super) fn top_frames(&self) -> TopFrames<'_> {
        let runtime = self.analysis().map(|analysis| of_profile(&analysis.profile, Some(analysis.snapshot.now)));
        let kernel = self.analysis().and_then(|analysis| analysis.cpu.as_ref()).map(|cpu| of_profile(&cpu.profile, cpu.now));
        // Of a recording that has ended, only its own samples are shown.
        let is_over = self.shown_recording().is_some_and(|tracked| !tracked.is_active());
        let age = self.now.elapsed.saturating_sub(self.details.stacks_at);
        let looked = self.details.stacks.get().filter(|_| !is_over).into_iter().flat_map(|stacks| &stacks.groups).flat_map(move |group| {
            let frame = group.frames.first().map(|name| TopFrame { name, age });
            group.threads.iter().filter_map(move |(thread, _)| Some((*thread, frame?)))
        });
        let mut newest = TopFrames::new();
        for (thread, frame) in runtime.into_iter().flatten().chain(kernel.into_iter().flatten()).chain(looked) {
            let known = newest.entry(thread).or_insert(frame);
            if frame.age < known.age {
                *known = frame;
            }
        }
        newest
    }
}
