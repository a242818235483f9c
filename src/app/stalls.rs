//! Findings about work that makes no progress: threads that wait long for locks, thread pool queues and requests of which none completes.

use super::action::Action;
use super::findings::{Finding, finding};
use super::health::{hosting_counter, runtime_counter};
use super::recent::min_of_latest;
use super::resources::STACKS_ADVICE;
use super::tabs::Tab;
use crate::analysis::{CounterSnapshot, CountersSnapshot, RequestDurations};
use crate::clr::HTTP_CLIENT_PROVIDER;
use crate::diagnosis::{Threshold, Thresholds};
use crate::model::{Count, Counted, Nanoseconds};

/// Consecutive values of the thread pool queue length: a single burst of work is no finding.
const QUEUE_VALUES: usize = 3;
/// Minimum number of requests that have started since one ended: connections that are open for long, such as WebSockets, are requests, too.
const MIN_STARTED: f64 = 5.0;
/// Factor over the duration of earlier requests from which requests take unusually long: those of long polling all last as long.
const UNUSUAL: f64 = 1.5;
/// Factor over the threshold if fewer requests have ended so far than are in progress: they may be the first of long polling.
const FIRST_REQUESTS: f64 = 2.0;
const SECOND: f64 = 1e9;

/// Returns the finding for threads that have been waiting for a lock for long, with the ratio to the threshold. `waits` holds the durations of
/// unfinished waits in nanoseconds, longest first.
pub(super) fn lock_waits(waits: &[u64], thresholds: &Thresholds) -> Option<(f64, Finding)> {
    let longest = Nanoseconds(*waits.first()?);
    let text = match long_lock_waits(waits, thresholds) {
        0 | 1 => format!("a thread has been waiting for a lock for {longest}"),
        threads => format!("{} have been waiting for locks for up to {longest}", Counted(threads as u64, "thread")),
    };
    let finding = finding(Tab::Threads, text, "the lock is held for long, possibly by a deadlock", "");
    let excess = longest.0 as f64 / SECOND / thresholds.of(Threshold::LockWait);
    Some((excess, Finding { live: STACKS_ADVICE, has_duration: true, ..finding }))
}

/// Returns a finding about a thread pool that does not keep up.
pub(super) fn thread_pool_finding(text: String, why: &'static str) -> Finding {
    let further = Some((Action::Waiting, ": waiting methods"));
    // What blocks the threads of a running process is visible at once.
    Finding { live: STACKS_ADVICE, further, ..finding(Tab::Threads, text, why, "its size") }
}

/// Formats the average number of threads waiting for something.
pub(super) fn mean_waiters(waiters: f64, what: &str) -> String {
    match waiters {
        ..1.5 => format!("{waiters:.1} threads on average wait for {what}"),
        _ => format!("{waiters:.0} threads at a time wait for {what}"),
    }
}

/// Returns the number of waits that are longer than the threshold.
pub(super) fn long_lock_waits(waits: &[u64], thresholds: &Thresholds) -> usize {
    waits.iter().filter(|ns| **ns as f64 / SECOND > thresholds.of(Threshold::LockWait)).count()
}

/// Returns the finding for work items that wait for a thread of the pool, many of them or without progress, with the ratio to the threshold.
pub(super) fn thread_pool(counters: &CountersSnapshot, thresholds: &Thresholds) -> Option<(f64, Finding)> {
    let counter = |one, other| runtime_counter(counters, one).or_else(|| runtime_counter(counters, other));
    let queue = &counter("threadpool-queue-length", "dotnet.thread_pool.queue.length")?.history;
    let completed = counter("threadpool-completed-items-count", "dotnet.thread_pool.work_item.count");
    let pairs = queue.iter().rev().zip(completed.into_iter().flat_map(|counter| counter.history.iter().rev()));
    let stalled = pairs.take_while(|((_, queued), (_, completed))| *queued > 0.0 && *completed == 0.0).count();
    // A value applies to the interval before it.
    let nanoseconds = queue.last()?.0.abs_diff(queue[queue.len().saturating_sub(stalled + 1)].0);
    let stall = nanoseconds as f64 / SECOND / thresholds.of(Threshold::PoolStall);
    let waiting = match counters.stats.queue_length.unwrap_or(0.0).max(0.0) as u64 {
        1 => "1 work item waits".to_owned(),
        length => format!("{} work items wait", Count(length)),
    };
    if stall >= 1.0 {
        let text = format!("{waiting}, none has completed for {}", Nanoseconds(nanoseconds));
        let finding = thread_pool_finding(text, "all thread pool threads are blocked or busy for long");
        return Some((stall, Finding { has_duration: true, ..finding }));
    }
    // A single burst of work is no issue.
    let excess = min_of_latest(queue, QUEUE_VALUES)? / thresholds.of(Threshold::QueueLength);
    Some((excess, thread_pool_finding(waiting, "the thread pool does not keep up")))
}

/// Returns the finding for requests of which none has ended for long although more have started, incoming or else outgoing, with the ratio to
/// the threshold.
pub(super) fn requests(counters: &CountersSnapshot, thresholds: &Thresholds) -> Option<(f64, Finding)> {
    let client = |name| counters.find(HTTP_CLIENT_PROVIDER, name);
    let served = stalled_requests(hosting_counter(counters, "total-requests"), hosting_counter(counters, "current-requests"));
    let served = served.filter(|stall| is_unusual(stall.nanoseconds, &counters.requests));
    let sent = stalled_requests(client("requests-started"), client("current-requests"));
    let sent = sent.filter(|stall| is_unusual(stall.nanoseconds, &counters.sent_requests));
    let found = [(served, "requests"), (sent, "outgoing requests")].into_iter().filter_map(|(found, what)| Some((found?, what)));
    let (Stall { running, nanoseconds, are_first }, what) = found.max_by_key(|(stall, _)| stall.nanoseconds)?;
    let text = format!("{} {what} in progress, none ended for {}", Count(running as u64), Nanoseconds(nanoseconds));
    let finding = finding(Tab::Http, text, "possibly blocked, or long polling", "");
    let factor = if are_first { FIRST_REQUESTS } else { 1.0 };
    Some((
        nanoseconds as f64 / SECOND / thresholds.of(Threshold::RequestStall) / factor,
        Finding { live: STACKS_ADVICE, has_duration: true, ..finding },
    ))
}

/// Returns whether a time is longer than most requests took.
fn is_unusual(nanoseconds: u64, intervals: &[RequestDurations]) -> bool {
    let longest = intervals.iter().filter_map(|interval| interval.quantiles).map(|[_, p95, _]| p95).fold(0.0, f64::max);
    nanoseconds as f64 / SECOND > longest * UNUSUAL
}

/// Requests of which none ends.
struct Stall {
    /// Number of requests in progress.
    running: f64,
    /// Time since the latest one ended, in nanoseconds.
    nanoseconds: u64,
    /// Whether fewer requests have ended so far than are in progress.
    are_first: bool,
}

/// Returns the requests in progress if none has ended although several have started in that time. `started` counts all requests so far, `current`
/// those in progress.
fn stalled_requests(started: Option<&CounterSnapshot>, current: Option<&CounterSnapshot>) -> Option<Stall> {
    let (started, current) = (&started?.history, &current?.history);
    let (running, all, now) = (current.last()?.1, started.last()?.1, current.last()?.0);
    // The two are read one after the other, so their difference may be off by requests that start in between; it never decreases for long.
    let is_stalled = |all_then: f64, then: f64| then > 0.0 && all_then - then >= all - running;
    let since = started.iter().rev().zip(current.iter().rev()).take_while(|((_, all_then), (_, then))| is_stalled(*all_then, *then));
    let ((_, all_then), (begin, _)) = since.last()?;
    let is_stall = running >= MIN_STARTED && all - all_then >= MIN_STARTED;
    is_stall.then(|| Stall { running, nanoseconds: now.abs_diff(*begin), are_first: all - running < running })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::health::health_issues;
    use crate::app::test_app::{TestApp, add_counter, healthy, published};
    use crate::app::{HealthIssue, ResourceHistory};
    use crate::clr::{COUNTERS_PROVIDER, HOSTING_PROVIDER};

    fn text(found: Option<(f64, Finding)>) -> Option<String> {
        found.filter(|(excess, _)| *excess > 1.0).map(|(_, finding)| finding.text)
    }

    /// Returns counters with these histories of one value a second, given their groups and names.
    fn counters(all: &[(&str, &str, &[f64])]) -> CountersSnapshot {
        let mut counters = healthy();
        counters.counters.retain(|counter| counter.name != "threadpool-queue-length");
        for (group, name, values) in all {
            let history = (0..).map(|second| second * 1_000_000_000).zip(values.iter().copied()).collect();
            add_counter(&mut counters, group, name).history = history;
        }
        counters
    }

    #[test]
    fn long_lock_waits_are_found_apart_from_contention() {
        let waits = |seconds: &[u64]| -> Vec<_> { seconds.iter().map(|seconds| seconds * 1_000_000_000).collect() };
        let found = |seconds: &[u64]| text(lock_waits(&waits(seconds), &Thresholds::default()));
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[10, 9]), None);
        assert_eq!(found(&[25, 9]).as_deref(), Some("a thread has been waiting for a lock for 25 s"));
        assert_eq!(found(&[75, 11, 2]).as_deref(), Some("2 threads have been waiting for locks for up to 75 s"));
        let issues = |waiters: f64, seconds: &[u64]| -> Vec<_> {
            let mut counters = counters(&[]);
            (counters.lock_waiters, counters.long_lock_waits_ns) = (Some(waiters), waits(seconds));
            let found = health_issues(&counters, None, &ResourceHistory::default(), &Thresholds::default());
            found.into_iter().map(|(issue, _)| issue).collect()
        };
        assert_eq!(issues(4.0, &[25, 25]), [HealthIssue::LockWaits], "no thread waits but these, and two for a short time");
        assert_eq!(issues(4.1, &[15, 15]), [HealthIssue::LockWaits, HealthIssue::Contention]);
        assert_eq!(issues(4.1, &[9, 9]), [HealthIssue::Contention]);
    }

    #[test]
    fn finding_with_a_duration_has_no_age() {
        let (mut app, ticket) = TestApp::watching();
        let mut counters = (*published(61.0, 4e6, 38.0, 0.0, 0.0)).clone();
        counters.long_lock_waits_ns = vec![25_000_000_000];
        app.count(ticket, counters.clone());
        app.wait(5_000);
        app.count(ticket, counters);
        let ages: Vec<_> = app.state.findings_of_selected().iter().map(|found| found.age.map(|age| age.as_secs())).collect();
        assert_eq!(ages, [Some(5), None], "38 % of the time in GC, and a wait");
    }

    #[test]
    fn thread_pool_without_progress_is_found_whatever_its_queue() {
        let found = |queue: &[f64], completed: &[f64]| {
            let runtime = COUNTERS_PROVIDER;
            let all = [(runtime, "threadpool-queue-length", queue), (runtime, "threadpool-completed-items-count", completed)];
            let mut counters = counters(&all);
            counters.stats.queue_length = queue.last().copied();
            text(thread_pool(&counters, &Thresholds::default()))
        };
        assert_eq!(found(&[1.0; 12], &[0.0; 12]).as_deref(), Some("1 work item waits, none has completed for 11 s"));
        assert_eq!(found(&[3.0; 10], &[0.0; 10]), None, "for 9 s");
        let (mut queue, mut completed) = ([3.0; 20], [0.0; 20]);
        completed[4] = 1.0;
        assert_eq!(found(&queue, &completed).as_deref(), Some("3 work items wait, none has completed for 15 s"));
        queue[12] = 0.0;
        assert_eq!(found(&queue, &completed), None, "no item had to wait for more than 7 s");
        assert_eq!(found(&[30.0; 20], &[1.0; 20]).as_deref(), Some("30 work items wait"));
        assert_eq!(found(&[3.0; 20], &[1.0; 20]), None);
    }

    #[test]
    fn requests_that_start_but_do_not_end_are_found() {
        let found = |group: &str, started: &str, requests: &[(f64, f64)]| {
            let (all, current): (Vec<_>, Vec<_>) = requests.iter().copied().unzip();
            let names = [started, "current-requests"];
            text(super::requests(&counters(&[(group, names[0], &all), (group, names[1], &current)]), &Thresholds::default()))
        };
        let served = |requests: &[(f64, f64)]| found(HOSTING_PROVIDER, "total-requests", requests);
        let sent = |requests: &[(f64, f64)]| found(HTTP_CLIENT_PROVIDER, "requests-started", requests);
        // Requests so far, and in progress, at each second.
        let stuck = |seconds: u32| -> Vec<_> { (0..=seconds).map(|second| (100.0 + f64::from(second), 3.0 + f64::from(second))).collect() };
        assert_eq!(served(&stuck(25)).as_deref(), Some("28 requests in progress, none ended for 25 s"));
        assert_eq!(sent(&stuck(25)).as_deref(), Some("28 outgoing requests in progress, none ended for 25 s"));
        assert_eq!(served(&stuck(20)), None);
        let first = |seconds: u32| -> Vec<_> { stuck(seconds).into_iter().map(|(all, current)| (all - 97.0, current)).collect() };
        assert_eq!(served(&first(40)), None, "no request has ever ended: possibly long polling");
        assert_eq!(served(&first(41)).as_deref(), Some("44 requests in progress, none ended for 41 s"));
        let mut one_ended = stuck(30);
        one_ended[20..].iter_mut().for_each(|(_, current)| *current -= 1.0);
        assert_eq!(served(&one_ended), None, "one ended after 20 s");
        let after = |p95: f64| {
            let (all, current): (Vec<_>, Vec<_>) = stuck(25).into_iter().unzip();
            let group = HOSTING_PROVIDER;
            let mut counters = counters(&[(group, "total-requests", &all), (group, "current-requests", &current)]);
            counters.requests = vec![RequestDurations { at: 0, quantiles: Some([p95 / 2.0, p95, p95]), count: 1, combinations: 1 }];
            text(super::requests(&counters, &Thresholds::default())).is_some()
        };
        assert_eq!([0.2, 16.0, 30.0].map(after), [true, true, false], "long polling: earlier requests took as long");
        assert_eq!(served(&[(100.0, 50.0); 60]), None, "long-lived connections: none has started");
        let burst: Vec<_> = (0..60).map(|second| if second < 57 { (100.0, 0.0) } else { (110.0, 10.0) }).collect();
        assert_eq!(served(&burst), None, "none was in progress before");
        let few: Vec<_> = (0..60).map(|second| if second < 30 { (100.0, 3.0) } else { (104.0, 7.0) }).collect();
        assert_eq!(served(&few), None, "4 have started");
    }
}
