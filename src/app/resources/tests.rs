use super::*;
use crate::app::test_app::{add_counter, healthy, published};
use crate::clr::COUNTERS_PROVIDER;
use crate::model::OpenFileKind;

/// Returns the history of a process that is read once a second, given its values at each second.
fn history(seconds: u64, usage: impl Fn(u64) -> ResourceUse, heap_mb: impl Fn(u64) -> f64) -> ResourceHistory {
    let mut history = ResourceHistory::default();
    for second in 0..=seconds {
        history.push(Duration::from_secs(100 + second), usage(second), &published(heap_mb(second), 4e6, 1.0, 0.0, 0.0));
    }
    history
}

/// Returns the text if the threshold is exceeded.
fn text(found: Option<(f64, Finding)>) -> Option<String> {
    found.filter(|(excess, _)| *excess > 1.0).map(|(_, finding)| finding.text)
}

#[test]
fn steady_growth_is_found_and_a_burst_is_not() {
    let threads = |seconds, threads: fn(u64) -> u64| {
        let usage = |second| ResourceUse { threads: Some(threads(second)), ..ResourceUse::default() };
        text(history(seconds, usage, |_| 60.0).threads(&Thresholds::default()))
    };
    let grew = |text: &str| Some(format!("threads outside the pool grew {text}"));
    assert_eq!(threads(20, |second| 30 + second * 2), grew("from 30 to 70 in 20 s"));
    assert_eq!(threads(19, |second| 30 + second * 9), None, "too short");
    assert_eq!(threads(20, |second| 30 + second), None, "by 20 threads");
    assert_eq!(threads(90, |second| 30 + second * 2), grew("from 90 to 210 in 60 s"), "over the last minute");
    assert_eq!(threads(20, |second| 30 + second.min(14) * 9), None, "it has stopped");
    assert_eq!(threads(60, |second| if second < 30 { 30 } else { 400 }), None, "a single step");
    assert_eq!(threads(60, |second| 30 + second % 20 * 9), None, "it shrinks again");
    assert_eq!(threads(20, |_| 501).as_deref(), Some("501 threads outside the pool"));
    assert_eq!(threads(20, |_| 500), None);
    assert!(threads(20, |second| 600 + second / 2).is_some_and(|text| text.ends_with("0 threads outside the pool")), "little growth");
    assert_eq!(threads(19, |_| 900), None, "too short");
    assert_eq!(threads(30, |second| if second < 15 { 30 } else { 900 }), None, "for 15 s");
}

#[test]
fn growth_of_the_thread_pool_is_not_a_leak_of_threads() {
    let mut history = ResourceHistory::default();
    for second in 0..=30 {
        let mut counters = healthy();
        add_counter(&mut counters, COUNTERS_PROVIDER, "threadpool-thread-count").value = Some(4.0 * second as f64);
        let usage = ResourceUse { threads: Some(30 + second * 4), ..ResourceUse::default() };
        history.push(Duration::from_secs(second), usage, &counters);
    }
    assert_eq!(text(history.threads(&Thresholds::default())), None);
}

/// Returns the history of a process that is read once a second, with a counter.
fn history_of(seconds: u64, name: &str, value: impl Fn(u64) -> f64) -> ResourceHistory {
    let mut history = ResourceHistory::default();
    for second in 0..=seconds {
        let mut counters = healthy();
        add_counter(&mut counters, COUNTERS_PROVIDER, name).value = Some(value(second));
        history.push(Duration::from_secs(second), ResourceUse::default(), &counters);
    }
    history
}

#[test]
fn growing_thread_pool_and_timers_are_found() {
    let pool = |value: fn(u64) -> f64| text(history_of(30, "threadpool-thread-count", value).pool_threads(&Thresholds::default()));
    assert_eq!(pool(|second| 4.0 + second as f64).as_deref(), Some("the thread pool grew from 4 to 34 threads in 30 s"));
    assert_eq!(pool(|second| 4.0 + second as f64 / 2.0), None, "by 15");
    assert_eq!(pool(|second| if second < 5 { 4.0 } else { 50.0 }), None, "a burst");
    assert_eq!(pool(|_| 101.0).as_deref(), Some("the thread pool has 101 threads"));
    assert_eq!(pool(|_| 100.0), None);
    assert_eq!(pool(|second| if second < 15 { 4.0 } else { 500.0 }), None, "for 15 s");
    let on_many_cpus = |processors| {
        let readings = history_of(30, "threadpool-thread-count", |_| 300.0).readings;
        text(ResourceHistory { readings, processors }.pool_threads(&Thresholds::default()))
    };
    assert_eq!((on_many_cpus(76), on_many_cpus(75).is_some()), (None, true), "4 per CPU");
    let timers = |seconds, value: fn(u64) -> f64| text(history_of(seconds, "active-timer-count", value).timers(&Thresholds::default()));
    assert_eq!(timers(55, |second| 20.0 + second as f64 * 40.0).as_deref(), Some("active timers grew from 20 to 2.2k in 55 s"));
    assert_eq!(timers(45, |second| 20.0 + second as f64 * 40.0), None, "too short");
    assert_eq!(timers(60, |second| 20.0 + second.min(30) as f64 * 40.0), None, "timeouts of 30 s");
    assert_eq!(timers(60, |second| 20.0 + second as f64 * 5.0), None, "by 300");
}

#[test]
fn growing_number_of_assemblies_is_found() {
    let assemblies = |seconds, value: fn(u64) -> f64| text(history_of(seconds, "assembly-count", value).assemblies(&Thresholds::default()));
    assert_eq!(assemblies(55, |second| 40.0 + second as f64).as_deref(), Some("loaded assemblies grew from 40 to 95 in 55 s"));
    assert_eq!(assemblies(45, |second| 40.0 + second as f64 * 9.0), None, "too short: a program that starts");
    assert!(assemblies(20, |second| 1000.0 + second as f64 * 9.0).is_some(), "no program starts with that many");
    assert_eq!(assemblies(60, |second| 40.0 + second.min(30) as f64 * 9.0), None, "it has started");
    assert_eq!(assemblies(60, |second| 40.0 + second as f64 * 0.8), None, "by 48");
}

#[test]
fn waits_for_a_disk_are_found_if_they_are_frequent() {
    let waiting = |readings: u64, waiters: fn(u64) -> Option<u64>| {
        let usage = |second| ResourceUse { disk_waiters: waiters(second), ..ResourceUse::default() };
        text(history(readings - 1, usage, |_| 60.0).disk_waits(&Thresholds::default()))
    };
    assert_eq!(waiting(15, |second| Some(second % 3)).as_deref(), Some("1.0 threads on average wait for a disk"));
    assert_eq!(waiting(60, |second| Some(if second < 45 { 0 } else { 3 })).as_deref(), Some("3 threads at a time wait for a disk"));
    assert_eq!(waiting(20, |second| Some(u64::from(second % 3 == 0))), None, "a third of the time");
    assert_eq!(waiting(9, |_| Some(3)), None, "too few readings");
    assert_eq!(waiting(60, |_| None), None, "unknown");
}

#[test]
fn open_files_are_found_by_growth_or_by_limit() {
    let files_after = |seconds, limit: u64, count: fn(u64) -> u64| {
        let usage = |second| {
            let count = Limited { used: count(second), limit };
            ResourceUse { open_files: Some(OpenFiles { count, kind: Some(OpenFileKind::Socket) }), ..ResourceUse::default() }
        };
        text(history(seconds, usage, |_| 60.0).open_files(&Thresholds::default()))
    };
    let files = |limit, count| files_after(20, limit, count);
    let grew = "open files grew from 200 to 600 in 20 s (limit 4096 reached in 2m at this rate, mostly sockets)";
    assert_eq!(files(4096, |second| 200 + second * 20).as_deref(), Some(grew));
    assert_eq!(files(1024, |second| 200 + second * 5), None, "by 100");
    let slowly = |second| 200 + second * 6;
    assert_eq!(files(100_000, slowly), None, "the limit is distant");
    let grew = "open files grew from 200 to 500 in 50 s (limit 100000 reached in 4h 36m at this rate, mostly sockets)";
    assert_eq!(files_after(50, 100_000, slowly).as_deref(), Some(grew));
    assert_eq!(files(1024, |_| 820).as_deref(), Some("820 of 1024 open files, mostly sockets"));
    assert_eq!(files(1024, |_| 819), None, "80 %");
}

#[test]
fn memory_outside_the_gc_heap_is_distinguished_from_the_heap() {
    let grown = |mb_per_second: u64, heap_mb: fn(u64) -> f64| {
        let usage = |second| ResourceUse { anonymous: Some((50 + second * mb_per_second) * 1_000_000), ..ResourceUse::default() };
        text(history(20, usage, heap_mb).native_memory(&Thresholds::default()))
    };
    let native = "memory outside the GC heap grew by 200 MB in 20 s";
    assert_eq!(grown(10, |_| 5.0).as_deref(), Some(native));
    assert_eq!(grown(3, |_| 5.0), None, "by 60 MB");
    assert_eq!(grown(10, |second| 5.0 + second as f64 * 9.0), None, "it is the heap");
    assert_eq!(grown(10, |second| 5.0 + (second % 11) as f64 * 12.0), None, "a collection freed what was allocated");
}

#[test]
fn memory_close_to_a_limit_is_found() {
    let used = |used| {
        let usage = ResourceUse { memory: Some(Limited { used, limit: 200_000_000 }), ..ResourceUse::default() };
        text(history(0, |_| usage, |_| 60.0).memory_limit(&Thresholds::default()))
    };
    assert_eq!(used(180_000_000), None);
    assert_eq!(used(182_000_000).as_deref(), Some("182 MB of memory used, 91 % of the limit 200 MB"));
    let mut counters = healthy();
    add_counter(&mut counters, COUNTERS_PROVIDER, "gen-2-size").value = Some(90e6);
    let heap = |limit| {
        let usage = ResourceUse { heap_limit: Some(limit), ..ResourceUse::default() };
        text(history(0, |_| usage, |_| 60.0).heap_limit(&counters, &Thresholds::default()))
    };
    assert_eq!(heap(100_000_000).as_deref(), Some("GC heap 90.0 MB, 90 % of its limit 100 MB"));
    assert_eq!(heap(106_000_000), None, "85 %");
    assert_eq!(heap(80_000_000), None, "that is not its limit");
    let committed = |gc_percent| {
        let mut counters = counters.clone();
        add_counter(&mut counters, COUNTERS_PROVIDER, "gc-committed").value = Some(119.0);
        counters.stats.gc_time_percent = Some(gc_percent);
        let usage = ResourceUse { heap_limit: Some(120_000_000), ..ResourceUse::default() };
        history(0, |_| usage, |_| 60.0).heap_limit(&counters, &Thresholds::default())
    };
    assert_eq!(text(committed(10.0)), None, "it need not use what it has committed");
    assert_eq!(text(committed(50.0)).as_deref(), Some("GC heap 119 MB, 99 % of its limit 120 MB"));
    assert!(committed(50.0).unwrap().0 > 5.0, "listed before the collections that it causes");
}
