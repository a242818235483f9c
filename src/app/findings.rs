//! What in a recording asks for a look: each says what is seen, why it matters, and what to press.

use super::pane::{Focus, Tab};
use super::state::State;
use crate::analysis::{CounterSnapshot, CountersSnapshot, Snapshot};
use crate::clr::payload::GcType;
use crate::model::{Bytes, Count, CountRate, Nanoseconds, Percent};

/// Share of the time in collections from which on it is much.
pub(super) const GC_SHARE: f64 = 0.1;
/// Exceptions a second from which on they are a storm.
pub(super) const STORM: f64 = 50.0;
/// How many times as many as usual are a storm, too, and a second at least.
const GUST: (f64, f64) = (5.0, 10.0);
/// Threads that wait for locks at any moment, on average, from which on it is a convoy.
pub(super) const CONVOY: f64 = 2.0;
/// Threads of the pool that wait for tasks at a time from which on it is behind, however many others it makes for them.
pub(super) const BLOCKED: u32 = 5;
/// Full collections that have to agree before the heap counts as growing, and by how much.
const GROWING: (usize, f64) = (4, 1.3);

/// What lists allocated types.
const ALLOCATIONS: &str = "T, gc-verbose: allocations by type";

/// Work items that wait for a thread from which on the pool is behind, and for how many values in a row.
const QUEUED: (f64, usize) = (20.0, 3);

/// Waits for locks a second that are many.
const CONTENTIONS: f64 = 100.0;
/// Collections of gen 2 a second that are many.
pub(super) const FULL_COLLECTIONS: f64 = 1.0;

/// What is wrong with a watched process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthIssue {
    /// It is paused for collections too much of the time.
    GcTime,
    /// Exceptions are thrown all the time.
    Exceptions,
    /// Work items wait for pool threads.
    Queue,
    /// Threads wait for locks all the time.
    Contention,
    /// Gen 2 is collected all the time.
    FullCollections,
    /// Gen 2 holds more and more.
    HeapGrowth,
}

impl HealthIssue {
    const ALL: [Self; 6] = [Self::GcTime, Self::Queue, Self::Exceptions, Self::Contention, Self::FullCollections, Self::HeapGrowth];

    /// In a word, for a line of the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::GcTime => "GC time",
            Self::Exceptions => "exceptions",
            Self::Queue => "pool queue",
            Self::Contention => "locks",
            Self::FullCollections => "gen 2 GCs",
            Self::HeapGrowth => "heap growth",
        }
    }

    /// How many times its threshold the figure of a process is; `None` where it is not above that.
    fn excess(self, counters: &CountersSnapshot) -> Option<f64> {
        let stats = &counters.stats;
        let excess = match self {
            Self::GcTime => stats.gc_time_percent? / (GC_SHARE * 100.0),
            Self::Exceptions => stats.exceptions? / STORM,
            Self::Queue => {
                let counter = |name| named(counters, name);
                let history = &counter("threadpool-queue-length").or_else(|| counter("dotnet.thread_pool.queue.length"))?.history;
                let recent = history.len().checked_sub(QUEUED.1).map(|start| &history[start..])?;
                // One burst of work is none.
                let least = recent.iter().map(|(_, length)| *length).fold(f64::INFINITY, f64::min);
                return (least >= QUEUED.0).then_some(least / QUEUED.0);
            }
            Self::Contention => stats.contentions? / CONTENTIONS,
            Self::FullCollections => stats.collections[2]? / FULL_COLLECTIONS,
            Self::HeapGrowth => {
                let (from, to, _) = gen2_growth(counters)?;
                to / from.max(1.0) / GROWING.1
            }
        };
        (excess > 1.0).then_some(excess)
    }

    /// What is seen of it, why it matters and what to do.
    pub fn finding(self, counters: &CountersSnapshot) -> Finding {
        let stats = &counters.stats;
        let finding = match self {
            Self::GcTime => standing(stats.gc_time_percent.unwrap_or(0.0) / 100.0),
            Self::Exceptions => thrown(stats.exceptions.unwrap_or(0.0), ""),
            Self::Queue => {
                let length = Count(stats.queue_length.unwrap_or(0.0).max(0.0) as u64);
                behind(format!("{length} work items wait"), "the thread pool does not keep up")
            }
            Self::Contention => {
                let text = format!("{} lock contentions", CountRate(stats.contentions.unwrap_or(0.0)));
                finding(Tab::Threads, text, "threads wait for one another", "waiting methods")
            }
            Self::FullCollections => {
                let text = format!("{} gen 2 collections", CountRate(stats.collections[2].unwrap_or(0.0)));
                Finding { live: ALLOCATIONS, ..finding(Tab::Gc, text, "large or long-lived objects are allocated all the time", "why") }
            }
            Self::HeapGrowth => {
                let (from, to, span) = gen2_growth(counters).unwrap_or_default();
                let text = format!("gen 2 grew from {} to {} in {}", Bytes(from as u64), Bytes(to as u64), Nanoseconds(span));
                Finding { live: "d: a dump shows what is retained", ..finding(Tab::Gc, text, "each collection leaves more", "its history") }
            }
        };
        Finding { recorded: false, severity: self.excess(counters).unwrap_or(1.0), ..finding }
    }
}

/// Bytes by which gen 2 must have grown.
const GROWN: f64 = 10e6;

/// Whether gen 2 was larger after each of its latest changes: its sizes in bytes before and now, and the time between, nanoseconds.
fn gen2_growth(counters: &CountersSnapshot) -> Option<(f64, f64, u64)> {
    let mut changes: Vec<(i64, f64)> = named(counters, "gen-2-size")?.history.clone();
    changes.dedup_by_key(|(_, size)| *size);
    let latest = changes.get(changes.len().checked_sub(GROWING.0 + 1)?..)?;
    let ((begin, from), (end, to)) = (*latest.first()?, *latest.last()?);
    let grows = latest.is_sorted_by(|(_, before), (_, after)| before < after) && to - from > GROWN;
    grows.then_some((from, to, end.abs_diff(begin)))
}

/// Scans of the processes in a row in which a process must use [`BUSY`] per cent of a core.
const BUSY_SCANS: usize = 5;
const BUSY: f64 = 90.0;

/// A process that uses a core all the time, from its latest scans: per cent of one core, oldest first.
pub(super) fn busy(cpu: &[(i64, f64)]) -> Option<Finding> {
    let recent = &cpu[cpu.len().checked_sub(BUSY_SCANS)?..];
    let least = recent.iter().map(|(_, percent)| *percent).fold(f64::INFINITY, f64::min);
    let (_, now) = *recent.last()?;
    // A process may be meant to work: everything else is worse.
    (least >= BUSY).then(|| Finding {
        recorded: false,
        severity: 1.0,
        ..finding(Tab::Methods, format!("CPU {now:.0} % of a core"), "some thread runs all the time", "hot methods")
    })
}

/// A counter of the runtime.
pub(super) fn named<'a>(counters: &'a CountersSnapshot, name: &str) -> Option<&'a CounterSnapshot> {
    counters.counters.iter().find(|counter| counter.group == "System.Runtime" && counter.name == name)
}

/// All that is wrong with a process, by what it publishes; the worst first.
pub fn health_issues(counters: &CountersSnapshot) -> Vec<HealthIssue> {
    let mut found: Vec<_> = HealthIssue::ALL.into_iter().filter_map(|issue| Some((issue, issue.excess(counters)?))).collect();
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    found.into_iter().map(|(issue, _)| issue).collect()
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Where it can be looked at.
    pub tab: Tab,
    /// What is seen, in a few words.
    pub text: String,
    /// Why it matters.
    pub why: &'static str,
    /// What is to be seen in the tab.
    pub(super) shows: &'static str,
    /// What else shows more.
    pub(super) further: &'static str,
    /// The same where it takes a process that runs.
    pub(super) live: &'static str,
    /// Whether it was found in a recording: else the tab shows nothing before there is one.
    pub(super) recorded: bool,
    /// How many times the figure is its threshold: the worst is the largest.
    pub severity: f64,
}

/// Only its tab shows more.
fn finding(tab: Tab, text: String, why: &'static str, shows: &'static str) -> Finding {
    Finding { tab, text, why, shows, further: "", live: "", recorded: true, severity: 1.0 }
}

/// The program stands for the collector for this share of the time.
fn standing(share: f64) -> Finding {
    let text = format!("{} of the time in GC", Percent(share));
    Finding { live: ALLOCATIONS, severity: share / GC_SHARE, ..finding(Tab::Gc, text, "all threads are paused", "why") }
}

/// So many exceptions a second are thrown.
fn thrown(rate: f64, usual: &str) -> Finding {
    let text = format!("{} exceptions{usual}", CountRate(rate));
    let finding = finding(Tab::Exceptions, text, "exceptions are expensive and hide real errors", "types and stacks");
    Finding { severity: rate / STORM, ..finding }
}

/// The thread pool does not get its work done.
fn behind(text: String, why: &'static str) -> Finding {
    Finding { further: "w: waiting methods", ..finding(Tab::Threads, text, why, "its size") }
}

/// What asks for a look: over the last seconds, or over all of a recording that has ended.
pub fn findings(snapshot: &Snapshot, over: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    let duration = snapshot.recorded_ns.max(1) as f64;
    let per_second = |count: u64, recent: f64| if over { count as f64 * 1e9 / duration } else { recent };

    let lost = if over { snapshot.rates.total_lost } else { snapshot.rates.recent_lost };
    if lost > 0 {
        let text = format!("{} events lost", Count(lost));
        found.push(Finding { live: "T: record less", ..finding(Tab::Trace, text, "the figures are incomplete", "") });
    }
    let pauses = &snapshot.gc.pauses;
    let share = if over { pauses.total_ns as f64 / duration } else { pauses.recent_share };
    if share > GC_SHARE {
        let finding = standing(share);
        let live = if snapshot.gc.allocations.is_some() { "" } else { finding.live };
        found.push(Finding { live, ..finding });
    }
    let pool = &snapshot.thread_pool;
    let starved = if over { pool.starvations } else { pool.recent_starvations };
    if starved > 0 {
        found.push(behind(format!("thread pool starved {starved} times"), "work waits, all workers are held up"));
    }
    let blocked = if over { pool.blocked } else { pool.recent_blocked };
    if blocked >= BLOCKED {
        found.push(behind(format!("{blocked} pool threads wait for tasks"), "each is held up by work that needs a thread itself"));
    }
    let exceptions = &snapshot.exceptions;
    let rate = per_second(exceptions.thrown, exceptions.rate);
    let usual = exceptions.usual.filter(|usual| !over && rate > GUST.1 && rate > usual * GUST.0);
    if rate > STORM || usual.is_some() {
        let usual = usual.map(|usual| format!(", {} before", CountRate(usual))).unwrap_or_default();
        found.push(thrown(rate, &usual));
    }
    let contention = &snapshot.contention;
    let waiters = if over { contention.wait_ns as f64 / duration } else { contention.recent_waiters };
    if waiters > CONVOY {
        let text = format!("{waiters:.0} threads at a time wait for locks");
        let finding = finding(Tab::Threads, text, "they run one after the other", "waiting methods");
        found.push(Finding { severity: waiters / CONVOY, ..finding });
    }
    if let Some((from, to, span)) = growth(snapshot) {
        let text = format!("heap grew from {} to {} in {}", Bytes(from), Bytes(to), Nanoseconds(span));
        let finding = finding(Tab::Gc, text, "every full collection leaves more", "its history");
        found.push(Finding { live: "d: a dump shows what is retained", ..finding });
    }
    found
}

/// Whether the latest full collections each left more than the one before: how much, and in what time.
fn growth(snapshot: &Snapshot) -> Option<(u64, u64, u64)> {
    let full = snapshot.gc.recent.iter().filter(|collection| collection.generation == 2 && collection.kind != GcType::FOREGROUND);
    let sizes: Vec<(u64, i64)> = full.filter_map(|collection| Some((collection.heap_after?, collection.end))).take(GROWING.0).collect();
    let ((to, end), (from, begin)) = (*sizes.first()?, *sizes.last()?);
    let grows = sizes.len() == GROWING.0 && sizes.is_sorted_by(|newer, older| newer.0 > older.0) && to as f64 > from as f64 * GROWING.1;
    grows.then_some((from, to, end.abs_diff(begin)))
}

impl State {
    /// What to press, from where the keys go now, and what that shows. Empty where all of it is in sight.
    pub fn advice(&self, finding: &Finding) -> String {
        let is_recorded = finding.recorded || self.list.selected().is_some_and(|key| self.recordings.is_recording(key));
        let mut steps = Vec::new();
        if finding.tab != Tab::Trace && (self.tab != finding.tab || !is_recorded) {
            steps.push(format!("{}: {}", finding.tab.key(self.shows_files()), finding.shows));
        }
        if !finding.further.is_empty() {
            steps.push(format!("{} and {}", Tab::Methods.key(self.shows_files()), finding.further));
        }
        if let Some(first) = steps.first_mut().filter(|_| self.focus == Focus::List) {
            // There, digits sort the table.
            first.insert_str(0, "Enter, ");
        }
        if !finding.live.is_empty() && !self.shows_files() {
            steps.push(finding.live.to_owned());
        }
        format!("{}{}", if is_recorded { "" } else { "t, then " }, steps.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{AllocationSnapshot, Collection, Live};
    use crate::app::Msg;
    use crate::app::test_app::{TestApp, published, recording};
    use crate::clr::payload::GcReason;
    use crate::model::Phase;

    fn quiet() -> Snapshot {
        Live::default().snapshot(20_000_000_000)
    }

    fn analysis(change: impl Fn(&mut Snapshot), over: bool) -> Vec<(Tab, String)> {
        let mut snapshot = quiet();
        change(&mut snapshot);
        findings(&snapshot, over).into_iter().map(|finding| (finding.tab, finding.text)).collect()
    }

    #[test]
    fn nothing_is_said_of_a_quiet_program() {
        assert_eq!(findings(&quiet(), false), []);
        assert_eq!(findings(&quiet(), true), []);
    }

    /// A figure set in a snapshot: while it goes on, and over all of it.
    type Set = fn(&mut Snapshot, f64);

    #[test]
    fn each_has_its_limit_live_and_over_all() {
        let loss: Set = |snapshot, lost| (snapshot.rates.recent_lost, snapshot.rates.total_lost) = (lost as u64, lost as u64);
        let share: Set = |snapshot, share| {
            (snapshot.gc.pauses.recent_share, snapshot.gc.pauses.total_ns) = (share, (share * 20e9) as u64);
        };
        let starved: Set = |snapshot, times| {
            (snapshot.thread_pool.recent_starvations, snapshot.thread_pool.starvations) = (times as u64, times as u64);
        };
        let blocked: Set = |snapshot, threads| {
            (snapshot.thread_pool.recent_blocked, snapshot.thread_pool.blocked) = (threads as u32, threads as u32);
        };
        let thrown: Set = |snapshot, rate| (snapshot.exceptions.rate, snapshot.exceptions.thrown) = (rate, (rate * 20.0) as u64);
        let waiting: Set = |snapshot, threads| {
            (snapshot.contention.recent_waiters, snapshot.contention.wait_ns) = (threads, (threads * 20e9) as u64);
        };
        // Just below, just above, and what is said then.
        for (set, below, above, tab, says) in [
            (loss, 0.0, 1.0, Tab::Trace, "1 events lost"),
            (share, 0.1, 0.101, Tab::Gc, "10 % of the time in GC"),
            (starved, 0.0, 1.0, Tab::Threads, "thread pool starved 1 times"),
            (blocked, 4.0, 5.0, Tab::Threads, "5 pool threads wait for tasks"),
            (thrown, 50.0, 50.1, Tab::Exceptions, "50/s exceptions"),
            (waiting, 2.0, 2.1, Tab::Threads, "2 threads at a time wait for locks"),
        ] {
            for over in [false, true] {
                assert_eq!(analysis(|snapshot| set(snapshot, below), over), [], "{says}");
                assert_eq!(analysis(|snapshot| set(snapshot, above), over), [(tab, says.to_owned())]);
            }
        }
    }

    #[test]
    fn a_core_is_busy_where_it_is_so_for_some_scans() {
        let scans = |percent: &[f64]| percent.iter().map(|percent| (0, *percent)).collect::<Vec<_>>();
        for (percent, text) in [
            (&[99.0; 4][..], None),
            (&[0.0, 99.0, 95.0, 90.0, 180.0, 101.2], Some("CPU 101 % of a core")),
            (&[99.0, 95.0, 89.9, 180.0, 101.2], None),
            (&[99.0, 95.0, f64::NAN, 180.0, 101.2], Some("CPU 101 % of a core")),
        ] {
            assert_eq!(busy(&scans(percent)).map(|finding| finding.text).as_deref(), text, "{percent:?}");
        }
    }

    #[test]
    fn exceptions_are_a_storm_where_they_are_many_more_than_usual() {
        for (rate, usual, says) in [
            (20.0, None, None),
            (20.0, Some(4.0), None),
            (20.0, Some(3.9), Some("20/s exceptions, 4/s before")),
            (10.0, Some(0.0), None),
            (10.1, Some(0.0), Some("10/s exceptions, 0/s before")),
            (60.0, Some(55.0), Some("60/s exceptions")),
        ] {
            let set = |snapshot: &mut Snapshot| (snapshot.exceptions.rate, snapshot.exceptions.usual) = (rate, usual);
            assert_eq!(analysis(set, false).into_iter().map(|(_, says)| says).next().as_deref(), says, "{rate} {usual:?}");
            assert_eq!(analysis(set, true), [], "over all of it there is no before");
        }
    }

    #[test]
    fn each_says_why_and_what_to_press_from_where_the_keys_go() {
        let mut snapshot = quiet();
        (snapshot.rates.recent_lost, snapshot.gc.pauses.recent_share, snapshot.thread_pool.recent_starvations) = (1, 0.5, 1);
        (snapshot.exceptions.rate, snapshot.contention.recent_waiters) = (100.0, 9.0);
        let all = findings(&snapshot, false);
        assert!(all.iter().all(|finding| !finding.why.is_empty()));
        let mut app = TestApp::populated(120, 40);
        let advice = |app: &TestApp| -> Vec<_> { all.iter().map(|finding| app.state.advice(finding)).collect() };
        assert_eq!(
            advice(&app),
            [
                "T: record less",
                "Enter, 4: why; T, gc-verbose: allocations by type",
                "Enter, 6: its size; 7 and w: waiting methods",
                "Enter, 5: types and stacks",
                "Enter, 6: waiting methods",
            ]
        );
        // Each key does what it says: here it leads to the tab, where that need not be said again.
        for (keys, at, says) in
            [("⏎4", 1, "T, gc-verbose: allocations by type"), ("6", 2, "7 and w: waiting methods"), ("5", 3, ""), ("6", 4, "")]
        {
            app.press(keys);
            assert_eq!((app.state.tab, advice(&app)[at].as_str()), (all[at].tab, says));
        }
        app.press("⎋");
        assert_eq!(advice(&app)[2], "Enter, 7 and w: waiting methods");
    }

    #[test]
    fn who_allocates_is_not_offered_where_it_is_told() {
        let mut snapshot = quiet();
        snapshot.gc.pauses.recent_share = 0.5;
        snapshot.gc.allocations = Some(AllocationSnapshot {
            bytes: 1,
            by_kind: [1, 0, 0],
            ticks: 1,
            rate: 1.0,
            over_time: snapshot.gc.heap_size.clone(),
            top: Vec::new(),
            others: 0,
            is_random: false,
        });
        let app = TestApp::populated(120, 40);
        assert_eq!(app.state.advice(&findings(&snapshot, false)[0]), "Enter, 4: why");
    }

    #[test]
    fn what_is_wrong_with_a_watched_process_takes_a_recording_to_look_at() {
        let mut app = TestApp::populated(120, 40);
        let finding = HealthIssue::Exceptions.finding(&published(61.0, 4e6, 2.0, 300.0, 0.0));
        assert_eq!(app.state.advice(&finding), "t, then Enter, 5: types and stacks");
        app.press("⏎5");
        assert_eq!(app.state.advice(&finding), "t, then 5: types and stacks");
        app.press("t");
        app.send(Msg::Recording(Box::new(recording(1, 5, Phase::Recording))));
        // The key would stop it.
        assert_eq!(app.state.advice(&finding), "5: types and stacks");
    }

    #[test]
    fn a_heap_grows_when_every_full_collection_leaves_more() {
        let full = |number: u32, heap_after: u64| Collection {
            number,
            generation: 2,
            reason: GcReason(0),
            kind: GcType::BLOCKING,
            start: i64::from(number) * 1_000_000_000,
            end: i64::from(number) * 1_000_000_000,
            pause_ns: None,
            heap_before: None,
            heap_after: Some(heap_after),
            promoted: None,
        };
        let with = |sizes: [u64; 4]| {
            // Newest first.
            let recent: Vec<_> = sizes.into_iter().zip([1, 2, 3, 4]).map(|(size, number)| full(number, size * 1_000_000)).rev().collect();
            analysis(move |snapshot| snapshot.gc.recent.clone_from(&recent), false)
        };
        assert_eq!(with([100, 120, 130, 150]), [(Tab::Gc, "heap grew from 100 MB to 150 MB in 3.0 s".to_owned())]);
        assert_eq!(with([100, 110, 120, 130]), [], "just below");
        assert_eq!(with([100, 110, 120, 131]).len(), 1);
        assert_eq!(with([100, 101, 102, 103]), []);
        assert_eq!(with([100, 160, 120, 170]), []);
    }
}
