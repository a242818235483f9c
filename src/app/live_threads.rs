//! The threads of the selected process, from two readings of /proc.

use std::cmp::Reverse;
use std::time::Duration;

use super::Ticket;
use super::details::Refresh;
use crate::model::ThreadUse;
use crate::sorting::CompactSort;

/// A list of threads and the time it was received.
type List = (Duration, Vec<ThreadUse>);

/// The pending request, and the last two answers.
#[derive(Debug, Default)]
pub(super) struct LiveThreads {
    pub(super) refresh: Refresh,
    latest: Option<List>,
    before: Option<List>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LiveThread<'a> {
    pub(super) thread: &'a ThreadUse,
    /// Share of one core since the previous list; `None` if there is none or the thread was not in it.
    pub(super) cpu: Option<f64>,
}

impl LiveThreads {
    /// Stores an answer. Returns false if the ticket is not the awaited one.
    pub(super) fn take(&mut self, ticket: Ticket, threads: Vec<ThreadUse>, now: Duration) -> bool {
        let is_expected = self.refresh.take(ticket);
        if is_expected {
            self.before = self.latest.replace((now, threads));
        }
        is_expected
    }

    /// Returns the threads, highest CPU use first; `None` before the first answer.
    pub(super) fn rows(&self) -> Option<Vec<LiveThread<'_>>> {
        let (at, threads) = self.latest.as_ref()?;
        let share = |thread: &ThreadUse| {
            let (before, list) = self.before.as_ref()?;
            let spent = thread.cpu.checked_sub(list.iter().find(|other| other.thread == thread.thread)?.cpu)?;
            let time = at.saturating_sub(*before).as_secs_f64();
            (time > 0.0).then(|| spent.as_secs_f64() / time)
        };
        let mut rows: Vec<_> = threads.iter().map(|thread| LiveThread { thread, cpu: share(thread) }).collect();
        rows.compact_sort_by(|a, b| {
            let cpu = |row: &LiveThread<'_>| row.cpu.unwrap_or(0.0);
            cpu(b).total_cmp(&cpu(a)).then_with(|| (Reverse(a.thread.cpu), a.thread.thread).cmp(&(Reverse(b.thread.cpu), b.thread.thread)))
        });
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SafeText;

    #[test]
    fn thread_cpu_use_is_computed_from_two_listings() {
        let thread = |thread, milliseconds| ThreadUse {
            thread,
            name: SafeText::default(),
            cpu: Duration::from_millis(milliseconds),
            runnable: None,
            state: 'S',
        };
        let mut threads = LiveThreads::default();
        assert!(threads.refresh.is_due() && threads.rows().is_none());
        threads.refresh.requested(Ticket(1));
        assert!(!threads.refresh.is_due());
        assert!(!threads.take(Ticket(7), Vec::new(), Duration::ZERO), "of another question");
        assert!(threads.take(Ticket(1), vec![thread(1, 5000), thread(2, 100)], Duration::from_secs(10)));
        let rows = |threads: &LiveThreads| threads.rows().unwrap().iter().map(|row| (row.thread.thread, row.cpu)).collect::<Vec<_>>();
        assert_eq!(rows(&threads), [(1, None), (2, None)]);
        assert!(!threads.refresh.is_due(), "until the processes are listed again");
        threads.refresh.mark_outdated();
        threads.refresh.requested(Ticket(2));
        threads.take(Ticket(2), vec![thread(1, 5000), thread(2, 1100), thread(3, 9000)], Duration::from_secs(12));
        assert_eq!(rows(&threads), [(2, Some(0.5)), (3, None), (1, Some(0.0))]);
    }
}
