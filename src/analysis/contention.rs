//! Lock contention: number, duration and location of waits.

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::clr::payload::{ContentionStart, ContentionStop};
use crate::nettrace::ThreadId;
use crate::sorting::CompactSort;

use super::event_context::{EventContext, Frames};
use super::lock_owners::Owners;
use super::lock_waits::{LockWait, LockWaits};
use super::ranking::{Ranking, Row};
use super::{Distribution, Occurrence, Symbols, Timeline};

/// Maximum number of threads tracked as waiting, and of those with finished waits.
const WAITING: usize = 4096;
/// Unfinished waits from this duration on are listed individually.
const LONG_WAIT_NS: u64 = 1_000_000_000;
/// Maximum number of sites in a snapshot.
const TOP: usize = 100;
/// Number of leaf frames that identify a site; the first ones belong to the lock itself.
const DEPTH: usize = 12;
/// Length of the window for recent waits, in seconds.
const RECENT_SECONDS: u32 = 10;
/// Minimum time since the start of a session for which the mean number of waiting threads is reported: a single burst is not an average.
const MIN_SESSION_NS: i64 = 3 * SECOND;
const SECOND: i64 = 1_000_000_000;

/// Pairs start and stop events by thread: a thread can wait for only one lock at a time.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Start of the session.
    began: i64,
    started: u64,
    start_lost: u64,
    native: u64,
    waiting: HashMap<ThreadId, Waiting>,
    /// Finished waits of each thread.
    threads: HashMap<ThreadId, ThreadLockWaits>,
    most_waiting: usize,
    times: Distribution,
    sites: Ranking<Site>,
    count_over_time: Timeline,
    /// Nanoseconds of finished waits, attributed to the seconds in which they were spent.
    wait_over_time: Timeline,
    /// Key of the latest site; a reused buffer.
    key: Vec<u8>,
    /// `None` unless individual waits are shown.
    listed: Option<LockWaits>,
}

#[derive(Debug)]
struct Waiting {
    since: i64,
    /// Thread that held the lock, 0 if unknown.
    owner: u64,
    frames: [u64; DEPTH],
    /// The whole stack; empty unless individual waits are shown.
    stack: Frames,
}

impl Waiting {
    /// Returns the duration of the wait so far, in nanoseconds.
    fn until(&self, now: i64) -> u64 {
        u64::try_from(now.saturating_sub(self.since)).unwrap_or(0)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Site {
    count: u64,
    unfinished: u64,
    wait_ns: u64,
    longest_ns: u64,
    owners: Owners,
}

impl Row for Site {
    /// Sites are stacks, which are grouped by method only in a snapshot.
    const LIMIT: usize = 1024;

    fn weight(&self) -> u64 {
        self.wait_ns
    }

    fn fold(&mut self, row: Self) {
        self.count += row.count;
        self.unfinished += row.unfinished;
        self.wait_ns = self.wait_ns.saturating_add(row.wait_ns);
        self.longest_ns = self.longest_ns.max(row.longest_ns);
        self.owners.merge(row.owners);
    }
}

/// Lock contention of a recording.
#[derive(Debug, Clone)]
pub struct ContentionSnapshot {
    /// Waits for managed locks; the sum over all sites.
    pub count: u64,
    /// Number of these whose start event is missing from the stream, or was ignored because 4096 threads were waiting already; their duration
    /// is taken from the stop event.
    pub start_lost: u64,
    /// Started waits for the runtime's own native locks; not included in `count` or any of the fields below.
    pub native: u64,
    /// Finished waits.
    pub ended: u64,
    /// Total waiting time in nanoseconds, including unfinished waits up to now or to the end of the session.
    pub wait_ns: u64,
    /// Longest wait in nanoseconds, finished or not.
    pub longest_ns: u64,
    /// Quantiles 0.5, 0.95 and 0.99 of finished waits, in nanoseconds; `None` before the first.
    pub quantiles_ns: Option<[u64; 3]>,
    /// Waits per second over the last ten seconds.
    pub rate: f64,
    /// Mean number of threads waiting at the same time over the last ten seconds: total waiting time divided by elapsed time. `None` in the
    /// first three seconds of a session.
    pub recent_waiters: Option<f64>,
    /// Unfinished waits: threads waiting now, or when the session was stopped.
    pub waiting: usize,
    /// Durations so far of the unfinished waits of a second or longer, in nanoseconds, longest first.
    pub long_waits_ns: Vec<u64>,
    /// Maximum number of threads waiting at the same time.
    pub most_waiting: usize,
    /// Waits by thread, of at most 8192 threads.
    pub threads: BTreeMap<ThreadId, ThreadLockWaits>,
    /// Number of waits over time.
    pub count_over_time: Timeline,
    /// Sites by total waiting time, descending; at most 100.
    pub sites: Vec<ContentionSite>,
    /// Waiting time of sites that are not listed, in nanoseconds.
    pub others_ns: u64,
}

/// The waits of a thread, finished or not, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadLockWaits {
    /// Total duration.
    pub total_ns: u64,
    /// Longest wait.
    pub longest_ns: u64,
}

impl ThreadLockWaits {
    fn add(&mut self, wait_ns: u64) {
        self.total_ns = self.total_ns.saturating_add(wait_ns);
        self.longest_ns = self.longest_ns.max(wait_ns);
    }
}

/// A method in which threads wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentionSite {
    /// Method that takes the lock, or its address; empty if the events had no stack. Not sanitized.
    pub method: String,
    /// Number of waits.
    pub count: u64,
    /// Number of these that are unfinished.
    pub unfinished: u64,
    /// Total waiting time in nanoseconds, including unfinished waits so far.
    pub wait_ns: u64,
    /// Longest wait in nanoseconds, finished or not.
    pub longest_ns: u64,
    /// Threads that held the lock when waits began, by operating system ID, with the number of these waits: those with the longest waits first, at
    /// most four. Empty before .NET 8, and without the waits whose owner the runtime does not name.
    pub owners: Vec<(u64, u64)>,
}

impl Contention {
    /// Creates the analysis of a session that started at `began`.
    pub(super) fn since(began: i64) -> Self {
        Self { began, ..Self::default() }
    }

    /// Also keeps the latest waits of at least this duration. To be called before the stream begins.
    pub(super) fn list_waits(&mut self, min_ns: u64) {
        self.listed = Some(LockWaits::new(min_ns));
    }

    /// Returns the waits after the first `seen` of those that are kept, each with its number.
    pub(super) fn after(&self, seen: u64, symbols: Option<&Symbols>) -> impl Iterator<Item = (u64, Option<Occurrence>)> {
        self.listed.iter().flat_map(move |listed| listed.after(seen, symbols))
    }

    /// Returns whether a thread is known to be waiting for a lock now.
    #[inline]
    pub(super) fn is_waiting(&self, thread: ThreadId) -> bool {
        !self.waiting.is_empty() && self.waiting.contains_key(&thread)
    }

    fn start(&mut self, context: &EventContext<'_>, start: ContentionStart) {
        if start.native {
            self.native += 1;
            return;
        }
        // Waits that are not tracked are counted when they end.
        if self.waiting.len() >= WAITING && !self.waiting.contains_key(&context.thread) {
            return;
        }
        self.started += 1;
        self.count_over_time.add(context.at, 1.0);
        let stack = self.listed.as_mut().map(|listed| listed.stack(context.event.stack())).unwrap_or_default();
        let waiting = Waiting { since: context.at, owner: start.owner.unwrap_or(0), frames: frames(context), stack };
        // A thread waits for only one lock at a time.
        if let Some(before) = self.waiting.insert(context.thread, waiting) {
            self.count_without_duration(&before);
        }
        self.most_waiting = self.most_waiting.max(self.waiting.len());
    }

    fn stop(&mut self, context: &EventContext<'_>, stop: ContentionStop) {
        if stop.native {
            return;
        }
        // The cast turns NaN and negative values into 0 and saturates at the maximum.
        let reported = stop.duration_ns.map(|reported| reported as u64);
        let (owner, frames, stack, waited_ns) = match (self.waiting.remove(&context.thread), reported) {
            (Some(Waiting { since, owner, frames, stack }), reported) => {
                let waited_ns = reported.unwrap_or_else(|| u64::try_from(context.at.saturating_sub(since)).unwrap_or(0));
                (owner, frames, stack, waited_ns)
            }
            // The start event was lost or precedes the session.
            (None, Some(reported)) => {
                self.start_lost += 1;
                let stack = self.listed.as_mut().map(|listed| listed.stack(context.event.stack())).unwrap_or_default();
                (0, frames(context), stack, reported)
            }
            (None, None) => return,
        };
        self.times.add(waited_ns);
        if self.threads.len() < WAITING || self.threads.contains_key(&context.thread) {
            self.threads.entry(context.thread).or_default().add(waited_ns);
        }
        distribute(&mut self.wait_over_time, self.began, context.at, waited_ns);
        let owners = Owners::of(owner, waited_ns);
        self.site(&frames).fold(Site { count: 1, unfinished: 0, wait_ns: waited_ns, longest_ns: waited_ns, owners });
        if let Some(listed) = &mut self.listed {
            let owner = Some(owner).filter(|owner| *owner != 0);
            let wait = LockWait { end: context.at, thread: context.thread, wait_ns: waited_ns, owner, frames: Vec::new() };
            listed.add(wait, stack);
        }
    }

    /// Counts a wait whose duration is unknown.
    fn count_without_duration(&mut self, from: &Waiting) {
        self.site(&from.frames).fold(Site { count: 1, ..Site::default() });
    }

    fn site(&mut self, frames: &[u64; DEPTH]) -> &mut Site {
        self.key.clear();
        self.key.extend(frames.iter().flat_map(|address| address.to_le_bytes()));
        self.sites.row(&self.key)
    }

    /// Returns the unfinished waits and their durations so far.
    fn unfinished_waits(&self, now: i64) -> impl Iterator<Item = (&Waiting, u64)> {
        self.waiting.values().map(move |waiting| (waiting, waiting.until(now)))
    }

    /// Returns the durations so far of the unfinished waits of a second or longer, in nanoseconds, longest first.
    pub(super) fn long_waits(&self, now: i64) -> Vec<u64> {
        let mut waits: Vec<_> = self.unfinished_waits(now).map(|(_, waited_ns)| waited_ns).filter(|ns| *ns >= LONG_WAIT_NS).collect();
        waits.compact_sort_by(|a, b| b.cmp(a));
        waits
    }

    /// Returns the mean number of threads waiting at the same time over the last ten seconds: total waiting time divided by elapsed time.
    /// `None` in the first three seconds of a session.
    pub(super) fn recent_waiters(&self, now: i64) -> Option<f64> {
        let first = (now / SECOND - i64::from(RECENT_SECONDS) + 1).saturating_mul(SECOND).max(self.began);
        let time = now.saturating_sub(first);
        if time < MIN_SESSION_NS {
            return None;
        }
        let mut over_time = self.wait_over_time.clone();
        self.unfinished_waits(now).for_each(|(_, waited_ns)| distribute(&mut over_time, self.began, now, waited_ns));
        Some(over_time.sum(now, RECENT_SECONDS) / time as f64)
    }

    /// Returns the sites, grouped by the method that takes the lock.
    fn sites(&self, symbols: &Symbols, now: i64) -> Vec<ContentionSite> {
        let mut by_method = HashMap::<String, Site>::default();
        for (key, site) in self.sites.rows() {
            let frames: Vec<u64> = key.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default())).collect();
            by_method.entry(waiting_method(&frames, symbols)).or_default().fold(*site);
        }
        // Unfinished waits are the most relevant ones.
        let mut unfinished = HashMap::<[u64; DEPTH], Site>::default();
        for (waiting, wait_ns) in self.unfinished_waits(now) {
            let owners = Owners::of(waiting.owner, wait_ns);
            unfinished.entry(waiting.frames).or_default().fold(Site { count: 1, unfinished: 1, wait_ns, longest_ns: wait_ns, owners });
        }
        for (frames, site) in unfinished {
            by_method.entry(waiting_method(&frames, symbols)).or_default().fold(site);
        }
        let site = |(method, Site { count, unfinished, wait_ns, longest_ns, owners }): (String, Site)| ContentionSite {
            method,
            count,
            unfinished,
            wait_ns,
            longest_ns,
            owners: owners.list(),
        };
        let mut sites: Vec<_> = by_method.into_iter().map(site).collect();
        sites.compact_sort_by(|a, b| b.wait_ns.cmp(&a.wait_ns).then_with(|| a.method.cmp(&b.method)));
        sites.truncate(TOP);
        sites
    }
}

/// Returns the leaf frames of an event's stack.
fn frames(context: &EventContext<'_>) -> [u64; DEPTH] {
    let mut frames = context.event.stack().into_iter().flat_map(|stack| stack.frames());
    std::array::from_fn(|_| frames.next().unwrap_or(0))
}

/// Distributes a finished or unfinished wait over the seconds in which it was spent, within the window for recent waits.
fn distribute(line: &mut Timeline, began: i64, end: i64, waited_ns: u64) {
    let longest = i64::from(RECENT_SECONDS + 1) * SECOND;
    let mut from = end.saturating_sub(i64::try_from(waited_ns).unwrap_or(longest).min(longest)).max(began);
    while from < end {
        let to = (from / SECOND + 1).saturating_mul(SECOND).min(end);
        line.add(from, (to - from) as f64);
        from = to;
    }
}

/// Returns the method that takes the lock: the first frame that is not part of the lock implementation.
fn waiting_method(frames: &[u64], symbols: &Symbols) -> String {
    let mut names = symbols.frame_names(frames);
    let first = names.next().unwrap_or_default();
    if !is_lock(&first) {
        return first;
    }
    names.find(|name| !is_lock(name)).unwrap_or(first)
}

fn is_lock(name: &str) -> bool {
    ["System.Threading.Monitor.", "System.Threading.Lock."].iter().any(|prefix| name.starts_with(prefix))
}

impl Contention {
    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::ContentionStart => self.start(context, context.payload()?),
            EventKind::ContentionStop => self.stop(context, context.payload()?),
            _ => {}
        }
        Some(())
    }

    pub(super) fn lost(&mut self, capture_thread: ThreadId) {
        if let Some(from) = self.waiting.remove(&capture_thread) {
            self.count_without_duration(&from);
        }
    }

    pub(super) fn snapshot(&self, symbols: &Symbols, now: i64) -> ContentionSnapshot {
        let sites = self.sites(symbols, now);
        let mut threads: BTreeMap<_, _> = self.threads.iter().map(|(thread, waits)| (*thread, *waits)).collect();
        for (thread, waiting) in &self.waiting {
            threads.entry(*thread).or_default().add(waiting.until(now));
        }
        let wait_ns = self.unfinished_waits(now).fold(self.times.sum(), |sum, (_, waited_ns)| sum.saturating_add(waited_ns));
        let longest_ns = self.unfinished_waits(now).fold(self.times.largest(), |longest, (_, waited_ns)| longest.max(waited_ns));
        ContentionSnapshot {
            count: self.started.saturating_add(self.start_lost),
            start_lost: self.start_lost,
            native: self.native,
            ended: self.times.count(),
            wait_ns,
            longest_ns,
            quantiles_ns: self.times.quantiles(),
            rate: self.count_over_time.rate(now, RECENT_SECONDS),
            recent_waiters: self.recent_waiters(now),
            waiting: self.waiting.len(),
            long_waits_ns: self.long_waits(now),
            most_waiting: self.most_waiting,
            threads,
            count_over_time: self.count_over_time.clone(),
            others_ns: sites.iter().fold(wait_ns, |left, site| left.saturating_sub(site.wait_ns)),
            sites,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A corrupt timestamp can be any number.
    #[test]
    fn corrupt_timestamps_do_not_overflow_distribution() {
        let mut line = Timeline::default();
        distribute(&mut line, i64::MIN, i64::MAX, u64::MAX);
        distribute(&mut line, i64::MIN, i64::MIN + 1, u64::MAX);
    }
}
