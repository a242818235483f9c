//! Health issues of watched processes.

use std::time::Duration;

use crate::analysis::{CollectionMarks, CountersSnapshot, FinalizerWait, GcMark, RequestDurations};

use crate::app::test_app::{TestApp, add_counter, healthy, published, sample_processes};
use crate::app::{Column, Effect, HealthIssue, JobKind, Msg, ResourceHistory, Tab, health_issues};
use crate::clr::{COUNTERS_PROVIDER, HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER};
use crate::diagnosis::Thresholds;
use crate::model::{CpuConstraints, CpuLimit, CpuUse, ProcessUse, ResourceUse};

/// Returns the texts of all issues, the worst first.
fn texts(counters: &CountersSnapshot) -> Vec<String> {
    health_issues(counters, None, &ResourceHistory::default(), &Thresholds::default())
        .into_iter()
        .map(|(_, finding)| finding.text)
        .collect()
}

#[test]
fn a_process_with_an_issue_is_marked_and_sorted_first() {
    let mut app = TestApp::populated(120, 40);
    app.press("W");
    app.publish(&[healthy().into(), published(700.0, 9e8, 41.0, 0.0, 0.0), healthy().into()]);
    let affected: Vec<_> = app.state.list.rows().iter().filter(|row| row.word() == "GC time").map(|row| row.process.key).collect();
    assert_eq!(affected.len(), 1);
    app.press(">>>>");
    assert_eq!(app.state.list.sort().column, Column::GcTime);
    app.press("g");
    assert_eq!(app.state.list.selected(), Some(affected[0]));
    // If the sort column is hidden, the sort order is reset.
    app.press("W");
    assert_eq!(app.state.list.sort().column, Column::Cpu);
}

#[test]
fn every_issue_fits_into_its_column_beside_its_sign() {
    let room = usize::from(Column::State.width()) - "! ".len();
    for issue in HealthIssue::ALL {
        assert!(issue.label().len() <= room, "{}", issue.label());
    }
}

/// A recorded process still shows its issue, and the filter finds it by either word.
#[test]
fn an_issue_is_still_shown_while_recording() {
    let mut app = TestApp::populated(120, 40);
    app.press("w");
    app.publish(&[published(700.0, 9e8, 41.0, 0.0, 0.0)]);
    let affected = app.state.list.selected();
    app.press("t");
    let row = app.state.selected().unwrap();
    assert_eq!((row.recording, row.word(), row.issue()), (true, "GC time", Some(HealthIssue::GcTime)));
    for filter in ["/recording⏎", "/⌃uGC␣time⏎"] {
        app.press(filter);
        assert_eq!((app.state.list.len(), app.state.list.selected()), (1, affected), "{filter}");
    }
}

#[test]
fn health_issues_are_listed_worst_first() {
    use HealthIssue::{Exceptions, GcTime, Queue};
    for (counters, expected) in [
        (published(61.0, 4e6, 10.0, 50.0, 15.0), vec![]),
        (published(61.0, 4e6, 10.1, 0.0, 0.0), vec![(GcTime, Tab::Gc, "10 % of the time in GC")]),
        (
            published(61.0, 4e6, 20.0, 900.0, 90.0),
            vec![
                (Exceptions, Tab::Exceptions, "900/s exceptions"),
                (Queue, Tab::Threads, "90 work items wait"),
                (GcTime, Tab::Gc, "20 % of the time in GC"),
            ],
        ),
    ] {
        let found = health_issues(&counters, None, &ResourceHistory::default(), &Thresholds::default());
        assert!(found.iter().map(|(issue, finding)| (*issue, finding.tab, finding.text.as_str())).eq(expected), "{found:?}");
    }
}

#[test]
fn sustained_induced_gcs_and_jit_time_are_issues() {
    let issues = |change: fn(&mut CountersSnapshot)| -> Vec<_> {
        let mut counters = healthy();
        change(&mut counters);
        let issues = health_issues(&counters, None, &ResourceHistory::default(), &Thresholds::default()).into_iter();
        issues.map(|(issue, finding)| (issue, finding.text)).collect()
    };
    fn marks(count: i64, until: i64, is_induced: bool) -> CollectionMarks {
        let mark = |number| GcMark { at: until - number * 500_000_000, pause_ns: 1_000_000, generation: 2, is_induced };
        CollectionMarks::Recorded((0..count).rev().map(mark).collect())
    }
    fn compiles(counters: &mut CountersSnapshot, seconds: usize) {
        let history = &mut add_counter(counters, COUNTERS_PROVIDER, "time-in-jit").history;
        let len = history.len();
        history.iter_mut().enumerate().for_each(|(at, (_, value))| *value = if at + seconds < len { 0.0 } else { 300.0 });
    }
    assert_eq!(issues(|_| {}), []);
    for (count, is_induced, found) in [(30, true, &["2/s induced GCs"][..]), (10, true, &[]), (30, false, &["2/s gen 2 collections"])] {
        let mut counters = healthy();
        counters.collections = marks(count, 42_000_000_000, is_induced);
        // Induced collections are not counted twice.
        counters.stats.collections[2] = Some(if count == 10 { 1.0 } else { 2.0 });
        assert_eq!(texts(&counters), found);
    }
    let young = issues(|counters| {
        counters.counters.iter_mut().for_each(|counter| counter.at = 4_000_000_000);
        counters.collections = marks(8, 4_000_000_000, true);
    });
    assert_eq!(young, [(HealthIssue::InducedCollections, "2/s induced GCs".to_owned())], "over the time that it has been watched");
    assert_eq!(issues(|counters| compiles(counters, 19)), [], "a program that starts");
    assert_eq!(issues(|counters| compiles(counters, 20)), [(HealthIssue::JitTime, "30 % of a core is spent in JIT".to_owned())]);
}

#[test]
fn failing_and_slow_requests_are_issues() {
    // Failed and total requests per second, and the 95th percentile of durations.
    let issues = |failed: f64, all: f64, p95: [f64; 4]| -> Vec<String> {
        let mut counters = healthy();
        for (name, each) in [("failed-requests", failed), ("total-requests", all)] {
            // Requests before the watch do not count.
            let history = (0..12).map(|second| (second * 1_000_000_000, 1000.0 + second as f64 * each)).collect();
            add_counter(&mut counters, HOSTING_PROVIDER, name).history = history;
        }
        let interval = |p95| RequestDurations { at: 0, quantiles: Some([0.001, p95, 9.0]), count: 10, combinations: 1 };
        counters.requests = p95.map(interval).to_vec();
        let issues = health_issues(&counters, None, &ResourceHistory::default(), &Thresholds::default());
        // The default recording does not include requests, so the advice names the profile that does.
        let app = TestApp::populated(120, 40);
        assert!(issues.iter().all(|(_, finding)| app.state.advice(finding) == ["T, http: routes"]));
        texts(&counters)
    };
    let fast = [0.5; 4];
    assert_eq!(issues(0.0, 20.0, fast), [""; 0]);
    assert_eq!(issues(1.0, 21.0, fast), [""; 0]);
    assert_eq!(issues(0.4, 0.5, fast), [""; 0], "four of five are too few");
    assert_eq!(issues(5.0, 20.0, fast), ["25 % of requests fail"]);
    assert_eq!(issues(0.5, 0.5, fast), ["100 % of requests fail"], "five in ten seconds");
    assert_eq!(issues(0.0, 20.0, [0.1, 1.5, 2.0, 1.2]), ["p95 of requests 1.2 s"]);
    assert_eq!(issues(0.0, 20.0, [5.0, 5.0, 0.9, 5.0]), [""; 0]);
}

#[test]
fn cpu_throttling_and_cpu_wait_are_issues() {
    // CPU, runnable and machine-wide CPU time in milliseconds over 5 s; periods and throttled periods.
    let found = |cpu_ms: u64, runnable_ms: Option<u64>, machine_ms, periods, throttled| {
        let limit = CpuLimit { group: 1, cores: 0.2, periods, throttled };
        let ms = Duration::from_millis;
        let constraints =
            CpuConstraints { limit: (periods > 0).then_some(limit), machine: Some(ms(machine_ms)), ..CpuConstraints::default() };
        let cpu = Some(CpuUse { span: ms(5000), cpu: Some(ms(cpu_ms)), runnable: runnable_ms.map(ms), constraints });
        let issues = health_issues(&healthy(), cpu, &ResourceHistory::default(), &Thresholds::default()).into_iter();
        issues.map(|(issue, finding)| (issue, finding.text)).collect::<Vec<_>>()
    };
    let limited = |share| vec![(HealthIssue::CpuLimit, format!("throttled in {share} of periods, CPU limit 0.2 CPUs"))];
    assert_eq!(found(1000, Some(3800), 1100, 50, 49), limited("98 %"));
    assert_eq!(found(1000, None, 1100, 50, 13), limited("26 %"), "where times of threads are not measured");
    assert_eq!(found(1000, Some(3800), 1100, 50, 6), limited("12 %"), "it is to blame for the waiting");
    assert_eq!(found(1000, Some(3800), 10_000, 50, 6), limited("12 %"), "also on a busy machine");
    assert_eq!(found(1000, Some(100), 1100, 50, 12), [], "24 % of periods");
    assert_eq!(found(1000, Some(3800), 1100, 9, 9), [], "too few periods, and no other process is to blame");
    assert_eq!(found(20, Some(10), 900, 50, 49), [], "something else in its group is throttled");
    let busy = "runnable threads wait for a CPU 75 % of the time (others use 1.8 CPUs)".to_owned();
    assert_eq!(found(1000, Some(3000), 10_000, 0, 0), [(HealthIssue::CpuWait, busy)]);
    let just = "runnable threads wait for a CPU 30 % of the time (others use 1.3 CPUs)".to_owned();
    assert_eq!(found(3500, Some(1500), 10_000, 0, 0), [(HealthIssue::CpuWait, just)]);
    assert_eq!(found(9000, Some(27_000), 9_900, 0, 0), [], "it wants more CPUs than there are, and nothing else does");
    assert_eq!(found(50, Some(300), 10_000, 0, 0), [], "it is rarely ready to run");
    assert_eq!(found(450, Some(850), 2_000, 0, 0), [], "it runs for moments, and the machine is idle");
    assert_eq!(found(450, Some(5000), 2_500, 0, 0), [], "many short runs, and no CPU is busy for long");
    assert_eq!(found(20, None, 900, 50, 49), [], "it hardly runs, and whether it waits is not known");
    let constraints = CpuConstraints { machine: Some(Duration::from_secs(2)), ..CpuConstraints::default() };
    let [half, second] = [500, 1000].map(Duration::from_millis);
    let short = CpuUse { span: second, cpu: Some(half), runnable: Some(second), constraints };
    assert_eq!(health_issues(&healthy(), Some(short), &ResourceHistory::default(), &Thresholds::default()), [], "for a moment");
    let limit = CpuLimit { group: 1, cores: 0.2, periods: 50, throttled: 49 };
    let unknown = CpuUse {
        span: Duration::from_secs(5),
        cpu: None,
        runnable: Some(Duration::from_secs(9)),
        constraints: CpuConstraints { limit: Some(limit), machine: Some(Duration::from_secs(20)), ..CpuConstraints::default() },
    };
    assert_eq!((unknown.cores(), unknown.wait_share(), unknown.others()), (None, None, None));
    let found = health_issues(&healthy(), Some(unknown), &ResourceHistory::default(), &Thresholds::default());
    assert_eq!(found, [], "what it took is not known");
}

/// A limit is shown even if it throttles nothing.
#[test]
fn cpu_limit_is_listed_in_the_overview() {
    let (mut app, ticket) = TestApp::watching();
    let facts = |app: &TestApp| app.state.overview().unwrap().facts;
    assert!(!facts(&app).iter().any(|fact| fact.label == "CPU limit"));
    // Of nested groups, the outer one has the higher limit, but its other members use it up.
    let outer = CpuLimit { group: 1, cores: 2.0, periods: 50, throttled: 9 };
    let inner = CpuLimit { group: 2, cores: 0.5, periods: 50, throttled: 0 };
    let constraints = CpuConstraints::of(&[inner, outer], None);
    assert_eq!(constraints.limit, Some(outer));
    let cpu = CpuUse { constraints, ..CpuUse::default() };
    app.send(Msg::WatchReport {
        ticket,
        counters: healthy().into(),
        usage: Box::new(ProcessUse { cpu: Some(cpu), ..ProcessUse::default() }),
    });
    assert!(facts(&app).iter().any(|fact| (fact.label, fact.value.as_str()) == ("CPU limit", "0.5 CPUs")));
}

/// A few lock contentions may be long ones.
#[test]
fn lock_waiting_threads_are_an_issue_despite_few_contentions() {
    let found = |contentions, lock_waiters| {
        let mut counters = healthy();
        (counters.stats.contentions, counters.lock_waiters) = (contentions, lock_waiters);
        texts(&counters)
    };
    let nothing: [&str; 0] = [];
    assert_eq!(found(Some(20.0), Some(9.0)), ["9 threads at a time wait for locks"]);
    assert_eq!(found(Some(20.0), Some(2.0)), nothing);
    assert_eq!(found(Some(900.0), Some(2.0)), ["900/s lock contentions"]);
    assert_eq!(found(Some(900.0), Some(0.4)), nothing, "for a moment each");
    assert_eq!(found(Some(900.0), None), ["900/s lock contentions"]);
    assert_eq!(found(None, None), nothing);
}

/// Slow requests end rarely.
#[test]
fn slow_requests_are_an_issue_even_if_few() {
    let found = |served: bool, p95: &[Option<f64>]| {
        let mut counters = healthy();
        let interval = |(second, p95): (usize, &Option<f64>)| RequestDurations {
            at: second as i64 * 1_000_000_000,
            quantiles: p95.map(|p95| [0.1, p95, p95]),
            count: 1,
            combinations: 1,
        };
        let intervals = p95.iter().enumerate().map(interval).collect();
        *if served { &mut counters.requests } else { &mut counters.sent_requests } = intervals;
        texts(&counters)
    };
    let (slow, nothing): (_, [&str; 0]) = (Some(1.5), []);
    for (served, expected) in [(false, "p95 of outgoing requests 1.5 s"), (true, "p95 of requests 1.5 s")] {
        assert_eq!(found(served, &[slow, None, slow, None, None, slow, None]), [expected]);
        assert_eq!(found(served, &[Some(0.2), slow, slow, slow]), [expected], "the latest count");
        assert_eq!(found(served, &[slow, None, slow, None]), nothing);
        assert_eq!(found(served, &[slow, slow, slow, Some(0.2)]), nothing);
        assert_eq!(found(served, &[&[slow; 3][..], &[None; 15]].concat()), nothing, "long ago");
    }
}

/// Requests that wait for a connection make outgoing requests slow, so they are listed first.
#[test]
fn requests_waiting_for_a_connection_are_an_issue() {
    let found = |name: &str, milliseconds: &[f64], p95: f64| {
        let mut counters = healthy();
        let history = (0..).map(|second| second * 1_000_000_000).zip(milliseconds.iter().copied()).collect();
        add_counter(&mut counters, HTTP_CLIENT_PROVIDER, &format!("{name}-requests-queue-duration")).history = history;
        let interval = RequestDurations { at: 0, quantiles: Some([p95; 3]), count: 1, combinations: 1 };
        counters.sent_requests = vec![interval; 3];
        texts(&counters)
    };
    let (waits, slow) = ("outgoing requests wait 9.0 s on average for a connection", "p95 of outgoing requests 10 s");
    for version in ["http11", "http20"] {
        assert_eq!(found(version, &[9500.0, 0.0, 9000.0, 0.0, 9100.0, 0.0], 10.0), [waits, slow]);
        assert_eq!(found(version, &[9500.0, 0.0, 9000.0, 0.0], 10.0), [slow], "in two intervals only");
        assert_eq!(found(version, &[1000.0; 5], 0.1), [""; 0], "1 s");
        let waits = "outgoing requests wait 4.0 s on average for a connection";
        assert_eq!(found(version, &[4000.0; 5], 10.0), [slow, waits], "less than half of the time");
    }
}

#[test]
fn blocked_finalizer_thread_and_fragmentation_are_issues() {
    let found = |change: &dyn Fn(&mut CountersSnapshot)| {
        let mut counters = healthy();
        change(&mut counters);
        texts(&counters)
    };
    let wait = |seconds: u64| {
        move |counters: &mut CountersSnapshot| {
            counters.finalizer_wait = Some(FinalizerWait { waiting_ns: seconds * 1_000_000_000, queued: 1200 });
        }
    };
    assert_eq!(found(&wait(10)), [""; 0]);
    assert_eq!(found(&wait(12)), ["the finalizer thread is blocked or busy, 1.2k objects queued"]);
    let free = |percent: f64, values: usize, bytes: f64| {
        move |counters: &mut CountersSnapshot| {
            let history = (0..12).map(|second| (second, if second as usize + values < 12 { 0.0 } else { percent })).collect();
            add_counter(counters, COUNTERS_PROVIDER, "gc-fragmentation").history = history;
            add_counter(counters, COUNTERS_PROVIDER, "loh-size").value = Some(bytes);
        }
    };
    assert_eq!(found(&free(80.0, 10, 500e6)), ["80 % of the GC heap is free: 400 MB of 500 MB"]);
    assert_eq!(found(&free(80.0, 9, 500e6)), [""; 0], "for 9 values");
    assert_eq!(found(&free(50.0, 10, 500e6)), [""; 0], "50 %");
    let mut counters = healthy();
    free(80.0, 10, 500e6)(&mut counters);
    let is_found = |resident| {
        let (mut resources, usage) = (ResourceHistory::default(), ResourceUse { anonymous: Some(resident), ..ResourceUse::default() });
        resources.push(Duration::ZERO, usage, &counters);
        !health_issues(&counters, None, &resources, &Thresholds::default()).is_empty()
    };
    assert_eq!([410_000_000, 390_000_000].map(is_found), [true, false], "free space that is not resident");
    assert_eq!(found(&free(80.0, 10, 120e6)), [""; 0], "96 MB");
}

/// GCs of younger generations promote into gen 2 while a program warms up: only what gen 2 collections leave is growth.
#[test]
fn gen_2_growth_counts_only_gen_2_collections() {
    let found = |sizes_mb: &[f64], collections: &[f64]| {
        let mut counters = healthy();
        let histories = [("gen-2-size", 1e6, sizes_mb, 0), ("gen-2-gc-count", 1.0, collections, 2_000_000)];
        for (name, scale, values, late) in histories {
            // One every 5 s, the last one just now.
            let at = |place: usize| 42_000_000_000 + late - 5_000_000_000 * (values.len() - 1 - place) as i64;
            let history = values.iter().enumerate().map(|(place, value)| (at(place), value * scale)).collect();
            add_counter(&mut counters, COUNTERS_PROVIDER, name).history = history;
        }
        texts(&counters)
    };
    let nothing: [&str; 0] = [];
    let grows = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
    assert_eq!(found(&grows, &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), ["gen 2 grew from 20.0 MB to 60.0 MB in 20 s"]);
    assert_eq!(found(&grows, &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), nothing, "promoted by other collections");
    assert_eq!(found(&[10.0, 20.0, 30.0, 40.0, 35.0, 60.0], &[1.0; 6]), nothing);
    // A leak in a large heap: 30 % are reached only after many collections.
    let large: Vec<f64> = (0..20).map(|number| 500.0 + 10.0 * f64::from(number)).collect();
    assert_eq!(found(&large[..15], &[1.0; 15]), nothing);
    assert_eq!(found(&large, &[1.0; 20]), ["gen 2 grew from 500 MB to 690 MB in 95 s"]);
    let since_it_shrank = [&[900.0][..], &large].concat();
    assert_eq!(found(&since_it_shrank, &[1.0; 21]), ["gen 2 grew from 500 MB to 690 MB in 95 s"]);
}

/// The worst finding is selected: Enter in the table, and again, opens its details; an arrow key selects the next one.
#[test]
fn a_finding_is_opened_with_enter() {
    let (mut app, ticket) = TestApp::watching();
    app.count(ticket, published(61.0, 4e6, 38.0, 400.0, 0.0));
    let found = |app: &TestApp| app.state.findings_of_selected().into_iter().map(|found| found.finding.tab).collect::<Vec<_>>();
    assert_eq!(found(&app), [Tab::Exceptions, Tab::Gc]);
    app.press("⏎⏎");
    assert_eq!(app.state.tab, Tab::Exceptions);
    app.press("1↓⏎");
    assert_eq!(app.state.tab, Tab::Gc);
    // The selection follows its finding when the order changes.
    app.press("1");
    app.count(ticket, published(61.0, 4e6, 99.0, 51.0, 0.0));
    assert_eq!(found(&app), [Tab::Gc, Tab::Exceptions]);
    app.press("↓⏎");
    assert_eq!(app.state.tab, Tab::Exceptions);
    app.press("1↑⏎");
    assert_eq!(app.state.tab, Tab::Gc);
    // After the last finding, an arrow key scrolls.
    app.press("1↓↓↓");
    assert!(app.state.details.scroll > 0);
}

/// For a growing heap, a heap walk is offered and started after confirmation.
/// A dashboard that shows the finding of a growing heap.
fn with_growing_heap(native_aot: bool) -> TestApp {
    let (mut app, ticket) = TestApp::watching();
    let mut processes = sample_processes();
    processes.iter_mut().for_each(|process| process.native_aot = native_aot);
    app.send(Msg::Processes(processes));
    let mut counters = healthy();
    for (name, scale) in [("gen-2-size", 10e6), ("gen-2-gc-count", 1.0)] {
        let history = (1..=6).map(|number| ((12 + number * 5) * 1_000_000_000, number as f64 * scale)).collect();
        add_counter(&mut counters, COUNTERS_PROVIDER, name).history = history;
    }
    app.count(ticket, counters);
    app.take_effects();
    app
}

#[test]
fn native_aot_program_is_not_advised_what_it_cannot_do() {
    let mut app = with_growing_heap(true);
    let finding = app.state.findings_of_selected().remove(0).finding;
    assert_eq!(app.state.advice(&finding), ["t, then Enter, 4: its history"]);
    app.press("⏎⏎");
    assert!(app.state.tab == Tab::Gc && app.toast_texts().is_empty(), "{:?}", app.toast_texts());
}

#[test]
fn heap_growth_finding_opens_a_heap_walk() {
    let mut app = with_growing_heap(false);
    let finding = app.state.findings_of_selected().remove(0).finding;
    assert!(app.state.advice(&finding)[0].starts_with("M: objects by type"), "{:?}", app.state.advice(&finding));
    app.press("⏎⏎");
    assert!(app.state.tab == Tab::Heap && app.state.overlay.is_some());
    app.press("y⏎");
    assert!(matches!(app.take_effects()[..], [Effect::Begin { kind: JobKind::HeapWalk, .. }]));
}
