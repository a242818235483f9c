//! What the threads of a recorded process take of the processors, from now and then a look at /proc.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::ThreadUse;
use crate::net::client::Client;

/// The time between two looks. A look reads three small files for each thread.
const PACE: Duration = Duration::from_secs(2);
/// Most threads that are looked at, and that are remembered.
const MOST: (usize, usize) = (512, 4096);

/// The threads of a process since a recording began.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// By number: the time at the first look, and the latest. A thread that ended stays.
    known: BTreeMap<u64, (Duration, ThreadUse)>,
    due: Option<Instant>,
    shown: Arc<[ThreadUse]>,
}

impl Threads {
    /// What is known, after a look where one is due.
    pub(super) fn look(&mut self, client: &Client) -> Arc<[ThreadUse]> {
        let now = Instant::now();
        if self.due.is_none_or(|due| due <= now) {
            let first = self.due.replace(now + PACE).is_none();
            self.take(client.thread_times(MOST.0), first);
        }
        self.shown.clone()
    }

    fn take(&mut self, times: Vec<ThreadUse>, first: bool) {
        for time in times {
            let room = self.known.len() < MOST.1;
            if let Some((_, known)) = self.known.get_mut(&time.thread) {
                *known = time;
            } else if room {
                // What a thread took before the recording does not count; one that came later took all of it since.
                self.known.insert(time.thread, (if first { time.cpu } else { Duration::ZERO }, time));
            }
        }
        let since = |(before, now): &(Duration, ThreadUse)| ThreadUse { cpu: now.cpu.saturating_sub(*before), ..now.clone() };
        self.shown = self.known.values().map(since).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_before_the_recording_does_not_count_and_threads_that_ended_stay() {
        let thread =
            |thread, seconds| ThreadUse { thread, name: format!("t{thread}").into(), cpu: Duration::from_secs(seconds), state: 'S' };
        let mut threads = Threads::default();
        threads.take(vec![thread(9, 100), thread(7, 5)], true);
        threads.take(vec![thread(9, 103), thread(8, 2)], false);
        assert_eq!(threads.shown[..], [thread(7, 0), thread(8, 2), thread(9, 3)]);
        threads.take((10..9000).map(|id| thread(id, 1)).collect(), false);
        assert_eq!(threads.shown.len(), MOST.1);
    }
}
