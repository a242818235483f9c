//! Findings in a recording: the observation, why it matters, and which key shows more.

use super::action::{Action, Status};
use super::growth::{HEAP_GROWTH_BRIEFLY, HEAP_GROWTH_REASON, recorded_growth};
use super::stalls::{lock_waits, long_lock_waits, mean_waiters, thread_pool_finding};
use super::update::keys;
use super::{Effect, Focus, State, Tab};
use crate::analysis::Snapshot;
use crate::diagnosis::{Source, Threshold, Thresholds, starved_share};
use crate::model::{Bytes, CountRate, Counted, Nanoseconds, Percent};

/// Factor over the usual exception rate, and minimum exceptions per second.
const EXCEPTION_INCREASE: (f64, f64) = (5.0, 10.0);

/// Share of a recording above which a starved thread pool is a finding.
const MIN_STARVED_SHARE: f64 = 0.01;

/// Advice for a list of allocated types.
pub(super) const ALLOCATIONS_ADVICE: Option<KeyAdvice> = Some((Action::Profiles, ", gc-verbose: allocations by type"));

/// Advice for a list of objects on the heap.
pub(super) const HEAP_ADVICE: Option<KeyAdvice> = Some((Action::WalkHeap, ": objects by type"));

/// An action, and what its key shows.
pub(super) type KeyAdvice = (Action, &'static str);

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The tab with the details.
    pub tab: Tab,
    /// The observation, in a few words.
    pub text: String,
    pub why: &'static str,
    /// The same in a narrow terminal; empty if it is left out there.
    pub briefly: &'static str,
    /// What the tab shows.
    pub(super) shows: &'static str,
    pub(super) further: Option<KeyAdvice>,
    /// Advice that only applies to a running process.
    pub(super) live: Option<KeyAdvice>,
    /// Whether the finding is based on a recording; otherwise the tab is empty until there is one.
    pub(super) recorded: bool,
    /// Whether the text contains for how long the problem has lasted.
    pub(super) has_duration: bool,
    /// Ratio of the figure to its threshold; the worst finding has the highest.
    pub severity: f64,
}

/// Returns a finding without advice beyond its tab.
pub(super) fn finding(tab: Tab, text: String, why: &'static str, shows: &'static str) -> Finding {
    Finding { tab, text, why, briefly: "", shows, further: None, live: None, recorded: true, has_duration: false, severity: 1.0 }
}

/// Returns the finding for a share of time paused for GC.
pub(super) fn gc_time_finding(share: f64, thresholds: &Thresholds) -> Finding {
    let text = format!("{} of the time in GC", Percent(share));
    Finding {
        live: ALLOCATIONS_ADVICE,
        severity: share / thresholds.share(Threshold::GcTime),
        ..finding(Tab::Gc, text, "all threads are paused", "why")
    }
}

/// Returns the finding for a rate of exceptions per second.
pub(super) fn exceptions_finding(rate: f64, usual: &str, thresholds: &Thresholds) -> Finding {
    let text = format!("{} exceptions{usual}", CountRate(rate));
    let finding = finding(Tab::Exceptions, text, "exceptions are expensive and hide real errors", "types and stacks");
    Finding { severity: rate / thresholds.of(Threshold::Exceptions), ..finding }
}

/// Returns the findings for the last seconds, or for a whole recording that has ended.
pub fn findings(snapshot: &Snapshot, is_ended: bool, thresholds: &Thresholds) -> Vec<Finding> {
    let mut found = Vec::new();
    let duration = snapshot.recorded_ns.max(1) as f64;
    let per_second = |count: u64, recent: f64| if is_ended { count as f64 * 1e9 / duration } else { recent };

    let lost = if is_ended { snapshot.rates.total_lost } else { snapshot.rates.recent_lost };
    if lost > 0 {
        let text = format!("{} lost", Counted(lost, "event"));
        found.push(Finding {
            live: Some((Action::Profiles, ": record less")),
            ..finding(Tab::Trace, text, "the figures are incomplete", "")
        });
    }
    let share = snapshot.gc_share(is_ended);
    if share > thresholds.share(Threshold::GcTime) {
        let finding = gc_time_finding(share, thresholds);
        let live = if snapshot.gc.allocations.is_some() { None } else { finding.live };
        found.push(Finding { live, ..finding });
    }
    let pool = &snapshot.thread_pool;
    let starved = if is_ended { pool.starvations } else { pool.recent_starvations };
    // On a busy machine, work occasionally waits that long.
    if starved > 1 && (!is_ended || starved_share(starved, duration) > MIN_STARVED_SHARE) {
        found.push(thread_pool_finding(
            format!("thread pool starved {}", Counted(starved, "time")),
            "work items wait: all workers are blocked",
        ));
    }
    let blocked = if is_ended { pool.blocked } else { pool.recent_blocked };
    if blocked >= thresholds.blocked_threads() {
        let text =
            if blocked == 1 { "1 pool thread waits for a task".to_owned() } else { format!("{blocked} pool threads wait for tasks") };
        found.push(thread_pool_finding(text, "each is blocked until its task completes"));
    }
    let exceptions = &snapshot.exceptions;
    let rate = per_second(exceptions.thrown, exceptions.rate);
    let usual = exceptions.previous_rate.filter(|usual| !is_ended && rate > EXCEPTION_INCREASE.1 && rate > usual * EXCEPTION_INCREASE.0);
    if rate > thresholds.of(Threshold::Exceptions) || usual.is_some() {
        let usual = usual.map(|usual| format!(", {} before", CountRate(usual))).unwrap_or_default();
        found.push(exceptions_finding(rate, &usual, thresholds));
    }
    let contention = &snapshot.contention;
    let long = lock_waits(&contention.long_waits_ns, thresholds).filter(|(excess, _)| *excess > 1.0);
    found.extend(long.map(|(severity, finding)| Finding { severity, ..finding }));
    let waiters = if is_ended { contention.wait_ns as f64 / duration } else { contention.recent_waiters.unwrap_or(0.0) };
    // Long waits are a finding of their own.
    let excess = (waiters - long_lock_waits(&contention.long_waits_ns, thresholds) as f64) / thresholds.of(Threshold::LockWaiters);
    if excess > 1.0 {
        let finding = finding(Tab::Threads, mean_waiters(waiters, "locks"), "threads serialize on locks", "waiting methods");
        found.push(Finding { severity: excess, ..finding });
    }
    if let Some((from, to, span)) = recorded_growth(snapshot, thresholds) {
        let text = format!("heap grew from {} to {} in {}", Bytes(from), Bytes(to), Nanoseconds(span));
        let severity = to as f64 / from.max(1) as f64 / thresholds.heap_growth();
        let finding = finding(Tab::Gc, text, HEAP_GROWTH_REASON, "its history");
        found.push(Finding { briefly: HEAP_GROWTH_BRIEFLY, live: HEAP_ADVICE, severity, ..finding });
    }
    found
}

impl Finding {
    /// Returns the action to perform when the finding is opened. Profiles are excluded: they need a choice, and a tab records its own with one
    /// key.
    fn action(&self) -> Option<Action> {
        self.live.map(|(action, _)| action).filter(|action| *action != Action::Profiles)
    }

    /// Returns whether both are about the same problem, one from a recording and the other from counters.
    pub(super) fn is_same_problem(&self, other: &Self) -> bool {
        // Recordings and counters show different aspects of locks and of the thread pool.
        self.kind() == other.kind()
            || !self.shows.is_empty() && self.tab == Tab::Threads && (self.tab, self.shows) == (other.tab, other.shows)
    }

    /// Returns the kind of the finding, independent of its figures.
    pub fn kind(&self) -> (Tab, &'static str) {
        (self.tab, self.why)
    }
}

impl State {
    /// Opens the details of a finding.
    pub(super) fn open_finding(&mut self, finding: &Finding) -> Vec<Effect> {
        let action = finding.action().filter(|_| self.live_advice(finding).is_some());
        let effects = action.map_or_else(Vec::new, |action| keys::perform(self, action, None));
        self.tab = match action {
            Some(Action::WalkHeap) => Tab::Heap,
            Some(Action::Stacks) => Tab::Stacks,
            _ => finding.tab,
        };
        effects
    }

    /// Returns which keys to press from the current focus and what they show, most helpful first. Empty if everything is already shown.
    pub fn advice(&self, finding: &Finding) -> Vec<String> {
        let is_recorded = finding.recorded || self.list.selected().is_some_and(|key| self.recordings.is_recording(key));
        let is_open = self.tab == finding.tab;
        let trace = self.key(Action::Trace);
        // In the list, digits sort the table.
        let mut enter = if self.focus == Focus::List { "Enter, " } else { "" };
        let mut steps = Vec::new();
        if !finding.shows.is_empty() && (!is_open || !is_recorded) {
            let before = if is_recorded || is_open { String::new() } else { format!("{trace}, then ") };
            steps.push(match is_open {
                true => format!("{trace}: {}", finding.shows),
                false => format!("{before}{}{}: {}", std::mem::take(&mut enter), finding.tab.key(self.row_kind()), finding.shows),
            });
        }
        if let Some((action, shows)) = finding.further {
            steps.push(format!("{enter}{} and {}{shows}", Tab::Methods.key(self.row_kind()), self.key(action)));
        }
        if let Some((action, shows)) = self.live_advice(finding) {
            let at = if finding.action().is_some() { 0 } else { steps.len() };
            steps.insert(at, format!("{}{shows}", self.key(action)));
        }
        steps
    }

    /// Returns the advice for a running process, unless it is known that the process cannot follow it, such as a NativeAOT program.
    fn live_advice(&self, finding: &Finding) -> Option<KeyAdvice> {
        let advice @ (action, _) = finding.live.filter(|_| !self.shows_files())?;
        let lacks = Some(advice) == ALLOCATIONS_ADVICE && self.gap(Source::Allocations).is_some();
        (!lacks && !matches!(action.status(self), Status::Refused(_))).then_some(advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{AllocationSnapshot, Collection, Live, TypeStacks};
    use crate::app::health::{busy_core_finding, health_issues};
    use crate::app::test_app::{TestApp, published, recording};
    use crate::app::{Msg, ResourceHistory};
    use crate::clr::payload::{GcReason, GcType};
    use crate::model::Phase;

    fn quiet() -> Snapshot {
        Live::default().snapshot(20_000_000_000)
    }

    fn analysis(change: impl Fn(&mut Snapshot), is_ended: bool) -> Vec<(Tab, String)> {
        let mut snapshot = quiet();
        change(&mut snapshot);
        findings(&snapshot, is_ended, &Thresholds::default()).into_iter().map(|finding| (finding.tab, finding.text)).collect()
    }

    /// Sets a figure in a snapshot, both the recent and the total one.
    type Set = fn(&mut Snapshot, f64);

    #[test]
    fn finding_thresholds_apply_live_and_after_the_recording() {
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
            (snapshot.contention.recent_waiters, snapshot.contention.wait_ns) = (Some(threads), (threads * 20e9) as u64);
        };
        let held: Set = |snapshot, seconds| snapshot.contention.long_waits_ns = vec![(seconds * 1e9) as u64, 2_000_000_000];
        // Just below, just above, the tab, and the text when above.
        for (set, below, above, tab, expected) in [
            (loss, 0.0, 1.0, Tab::Trace, "1 event lost"),
            (share, 0.1, 0.101, Tab::Gc, "10 % of the time in GC"),
            (starved, 1.0, 2.0, Tab::Threads, "thread pool starved 2 times"),
            (blocked, 4.0, 5.0, Tab::Threads, "5 pool threads wait for tasks"),
            (thrown, 50.0, 50.1, Tab::Exceptions, "50/s exceptions"),
            (waiting, 2.0, 2.1, Tab::Threads, "2 threads at a time wait for locks"),
            (held, 10.0, 11.0, Tab::Threads, "a thread has been waiting for a lock for 11 s"),
        ] {
            for is_ended in [false, true] {
                assert_eq!(analysis(|snapshot| set(snapshot, below), is_ended), [], "{expected}");
                assert_eq!(analysis(|snapshot| set(snapshot, above), is_ended), [(tab, expected.to_owned())]);
            }
        }
        let rare = |snapshot: &mut Snapshot| (snapshot.thread_pool.starvations, snapshot.recorded_ns) = (2, 200_000_000_000);
        assert_eq!(analysis(rare, true), [], "0.5 % of the time");
        let long = |snapshot: &mut Snapshot| {
            (snapshot.contention.long_waits_ns, snapshot.contention.recent_waiters) = (vec![11_000_000_000; 2], Some(4.0));
        };
        assert_eq!(analysis(long, false).len(), 1, "half of the waits are long ones");
    }

    #[test]
    fn busy_core_is_found_after_several_consecutive_scans() {
        let scans = |percent: &[f64]| (0..).map(|second| second * 1_000_000_000).zip(percent.iter().copied()).collect::<Vec<_>>();
        for (percent, expected) in [
            (&[99.0; 4][..], None),
            (&[0.0, 99.0, 95.0, 90.0, 180.0, 101.2], Some(("CPU 101 % of a core", 4))),
            (&[99.0, 95.0, 89.9, 180.0, 101.2], None),
            (&[1.0, 99.0, 95.0, f64::NAN, 180.0, 101.2], Some(("CPU 101 % of a core", 4))),
            (&[99.0, 95.0, 90.0, 180.0, f64::NAN], Some(("CPU 180 % of a core", 4))),
            // Never known for a process in another pid namespace.
            (&[f64::NAN; 6], None),
        ] {
            let found = busy_core_finding(&scans(percent), &Thresholds::default()).map(|(finding, age)| (finding.text, age.as_secs()));
            assert_eq!(found.as_ref().map(|(text, age)| (text.as_str(), *age)), expected, "{percent:?}");
        }
    }

    #[test]
    fn an_increase_of_exceptions_is_a_finding() {
        for (rate, usual, expected) in [
            (20.0, None, None),
            (20.0, Some(4.0), None),
            (20.0, Some(3.9), Some("20/s exceptions, 4/s before")),
            (10.0, Some(0.0), None),
            (10.1, Some(0.0), Some("10/s exceptions, 0/s before")),
            (60.0, Some(55.0), Some("60/s exceptions")),
        ] {
            let set = |snapshot: &mut Snapshot| {
                (snapshot.exceptions.rate, snapshot.exceptions.previous_rate) = (rate, usual);
                snapshot.exceptions.thrown = (rate * 20.0) as u64;
            };
            assert_eq!(analysis(set, false).into_iter().map(|(_, expected)| expected).next().as_deref(), expected, "{rate} {usual:?}");
            assert_eq!(analysis(set, true).len(), usize::from(rate > 50.0), "over all of it there is no before");
        }
    }

    #[test]
    fn every_finding_has_a_reason_and_advice_for_the_focus() {
        let mut snapshot = quiet();
        (snapshot.rates.recent_lost, snapshot.gc.pauses.recent_share, snapshot.thread_pool.recent_starvations) = (1, 0.5, 9);
        (snapshot.exceptions.rate, snapshot.contention.recent_waiters) = (100.0, Some(9.0));
        let all = findings(&snapshot, false, &Thresholds::default());
        assert!(all.iter().all(|finding| !finding.why.is_empty()));
        let mut app = TestApp::populated(120, 40);
        let advice = |app: &TestApp| -> Vec<_> { all.iter().map(|finding| app.state.advice(finding).join("; ")).collect() };
        assert_eq!(
            advice(&app),
            [
                "T: record less",
                "Enter, 4: why; T, gc-verbose: allocations by type",
                "D: what every thread is doing; Enter, 6: its size; 7 and w: waiting methods",
                "Enter, 5: types and stacks",
                "Enter, 6: waiting methods",
            ]
        );
        // After the tab is opened, its key is left out.
        for (keys, at, expected) in [
            ("⏎4", 1, "T, gc-verbose: allocations by type"),
            ("6", 2, "D: what every thread is doing; 7 and w: waiting methods"),
            ("5", 3, ""),
            ("6", 4, ""),
        ] {
            app.press(keys);
            assert_eq!((app.state.tab, advice(&app)[at].as_str()), (all[at].tab, expected));
        }
        app.press("⎋");
        assert_eq!(advice(&app)[2], "D: what every thread is doing; Enter, 7 and w: waiting methods");
    }

    #[test]
    fn recorded_allocations_need_no_advice() {
        let mut snapshot = quiet();
        snapshot.gc.pauses.recent_share = 0.5;
        snapshot.gc.allocations = Some(AllocationSnapshot {
            bytes: 1,
            by_kind: [1, 0, 0],
            ticks: 1,
            rate: 1.0,
            top: Vec::new(),
            others: 0,
            is_random: false,
            stacks: TypeStacks::default(),
        });
        let app = TestApp::populated(120, 40);
        assert_eq!(app.state.advice(&findings(&snapshot, false, &Thresholds::default())[0]).join("; "), "Enter, 4: why");
    }

    #[test]
    fn advice_for_a_watched_process_starts_a_recording() {
        let mut app = TestApp::populated(120, 40);
        let (_, finding) =
            health_issues(&published(61.0, 4e6, 2.0, 300.0, 0.0), None, &ResourceHistory::default(), &Thresholds::default()).remove(0);
        assert_eq!(app.state.advice(&finding).join("; "), "t, then Enter, 5: types and stacks");
        app.press("⏎5");
        assert_eq!(app.state.advice(&finding).join("; "), "t: types and stacks");
        app.press("6");
        let starved = thread_pool_finding("391 work items wait".to_owned(), "all workers are blocked");
        let starved = Finding { recorded: false, ..starved };
        assert_eq!(app.state.advice(&starved).join("; "), "D: what every thread is doing; t: its size; 7 and w: waiting methods");
        app.press("⎋");
        assert_eq!(
            (app.state.focus, app.state.advice(&starved).join("; ").as_str()),
            (Focus::List, "D: what every thread is doing; t: its size; Enter, 7 and w: waiting methods")
        );
        app.press("⏎4");
        assert_eq!(app.state.advice(&finding).join("; "), "t, then 5: types and stacks");
        app.press("t");
        app.send(Msg::Recording(Box::new(recording(1, 5, Phase::Recording))));
        // The key would stop the recording.
        assert_eq!(app.state.advice(&finding).join("; "), "5: types and stacks");
    }

    #[test]
    fn heap_growth_is_found_if_every_full_gc_leaves_more() {
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
        let with_times = |sizes: [u64; 4], seconds: [u32; 4]| {
            // Newest first.
            let recent: Vec<_> = sizes.into_iter().zip(seconds).map(|(size, number)| full(number, size * 1_000_000)).rev().collect();
            analysis(move |snapshot| snapshot.gc.recent.clone_from(&recent), false)
        };
        let with = |sizes| with_times(sizes, [1, 8, 9, 21]);
        assert_eq!(with([100, 120, 130, 150]), [(Tab::Gc, "heap grew from 100 MB to 150 MB in 20 s".to_owned())]);
        assert_eq!(with_times([100, 120, 130, 150], [1, 8, 9, 20]), [], "in 19 s: a program that starts");
        assert_eq!(with([100, 110, 120, 130]), [], "just below");
        assert_eq!(with([100, 110, 120, 131]).len(), 1);
        assert_eq!(with([100, 101, 102, 103]), []);
        assert_eq!(with([100, 160, 120, 170]), []);
    }
}
