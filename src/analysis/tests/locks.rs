//! Lock contention, and the thread pool.

use super::script::{MS, RUNDOWN};
use super::{Bytes, Script};
use crate::analysis::ThreadLockWaits;
use crate::nettrace::{Metadata, ThreadId};

#[test]
fn waits_are_paired_by_thread() {
    let mut script = Script::new();
    script
        .method(0x1000, 0x100, "System.Threading.Monitor", "Enter")
        .method(0x2000, 0x100, "Bank", "Move")
        .method(0x3000, 0x100, "Bank", "See");
    let wait = |script: &mut Script, at, thread, flags| {
        script.runtime(81, 2, at, thread, Bytes::default().u8(flags).u16(0).u64(0x10c).u64(0).u64(0));
    };
    let acquired = |script: &mut Script, at, thread, flags, duration| {
        script.runtime(91, 1, at, thread, Bytes::default().u8(flags).u16(0).f64(duration));
    };
    script.stack(&[0x1004, 0x2008]);
    wait(&mut script, 0, 1, 0);
    script.stack(&[0x3004, 0x2008]);
    wait(&mut script, MS, 2, 0);
    wait(&mut script, MS, 3, 1);
    acquired(&mut script, 2 * MS, 3, 1, 1e6);
    acquired(&mut script, 4 * MS, 2, 0, 3e6);
    acquired(&mut script, 10 * MS, 1, 0, 1e7);
    script.stack(&[0x1004, 0x2010]);
    wait(&mut script, 20 * MS, 1, 0);
    acquired(&mut script, 22 * MS, 1, 0, 2e6);
    wait(&mut script, 30 * MS, 1, 0);
    script.stack(&[0x3008]);
    acquired(&mut script, 32 * MS, 5, 0, 1e6);
    let contention = script.snapshot().contention;
    // One wait is in progress, for two milliseconds so far; of another only the end is in the stream.
    assert_eq!((contention.count, contention.start_lost, contention.ended, contention.waiting), (5, 1, 4, 1));
    assert_eq!((contention.native, contention.most_waiting), (1, 2));
    assert_eq!((contention.wait_ns, contention.longest_ns, contention.others_ns), (18_000_000, 10_000_000, 0));
    let sites: Vec<_> =
        contention.sites.iter().map(|site| (site.method.as_str(), site.count, site.unfinished, site.wait_ns, site.longest_ns)).collect();
    assert_eq!(sites, [("Bank.Move", 3, 1, 14_000_000, 10_000_000), ("Bank.See", 2, 0, 4_000_000, 3_000_000)]);
}

/// The table of threads holds 4096.
#[test]
fn waits_of_known_threads_count_even_if_there_are_too_many_threads() {
    let mut script = Script::new();
    let wait = |script: &mut Script, at: i64, thread| _ = script.runtime(81, 1, at * MS, thread, Bytes::default().u8(0).u16(0));
    let acquired = |script: &mut Script, at: i64, thread| _ = script.runtime(91, 0, at * MS, thread, Bytes::default().u8(0).u16(0));
    (1..=4097).for_each(|thread| wait(&mut script, 1, thread));
    // The end of its first wait was lost.
    wait(&mut script, 5, 1);
    (1..=4097).for_each(|thread| acquired(&mut script, 10, thread));
    for (begin, end) in [(11, 14), (15, 17)] {
        wait(&mut script, begin, 1);
        acquired(&mut script, end, 1);
    }
    wait(&mut script, 20, 2);
    script.runtime(54, 0, 24 * MS, 9, Bytes::default().f64(0.0).u16(0));
    let contention = script.snapshot().contention;
    assert_eq!((contention.count, contention.threads.len()), (4096 + 1 + 2 + 1, 4096));
    let of = |thread| contention.threads[&ThreadId::of(thread)];
    assert_eq!(of(1), ThreadLockWaits { total_ns: 10_000_000, longest_ns: 5_000_000 });
    assert_eq!(of(2), ThreadLockWaits { total_ns: 13_000_000, longest_ns: 9_000_000 });
}

/// A wait counts while it lasts, not only when it ends, and not all at once then.
#[test]
fn waiting_threads_are_counted_during_the_wait() {
    // Three threads wait from second 30 to second 60 or longer.
    let at = |second: i64, acquired: bool| {
        let mut script = Script::new();
        for thread in 1..=3 {
            script.runtime(81, 1, 30_000 * MS, thread, Bytes::default().u8(0).u16(0));
            if acquired {
                script.runtime(91, 0, 60_000 * MS, thread, Bytes::default().u8(0).u16(0));
            }
        }
        script.runtime(54, 0, second * 1000 * MS, 9, Bytes::default().f64(0.0).u16(0));
        script.snapshot().contention
    };
    for (second, acquired, waiters) in [
        (31, false, 0.3),
        (35, false, 1.6),
        (60, false, 3.0),
        (90, false, 3.0),
        (60, true, 3.0),
        (65, true, 1.3),
        (70, true, 0.0),
        (80, true, 0.0),
    ] {
        // A second that has just begun counts as a full one.
        let recent_waiters = at(second, acquired).recent_waiters.unwrap();
        assert!((recent_waiters - waiters).abs() < 0.4, "{second} {acquired}: {recent_waiters}");
    }
    let stuck = at(60, false);
    assert_eq!((stuck.count, stuck.ended, stuck.waiting, stuck.wait_ns, stuck.longest_ns), (3, 0, 3, 90_000_000_000, 30_000_000_000));
    assert_eq!(stuck.long_waits_ns, [30_000_000_000; 3]);
    assert_eq!(at(65, true).long_waits_ns, [0_u64; 0], "they have ended");
    assert_eq!(at(30, false).long_waits_ns, [0_u64; 0], "they are not long yet");
    let site = &stuck.sites[0];
    assert_eq!((stuck.sites.len(), site.count, site.unfinished, site.wait_ns, stuck.others_ns), (1, 3, 3, 90_000_000_000, 0));
}

#[test]
fn wait_whose_end_was_lost_has_no_duration() {
    let mut script = Script::new();
    script.runtime(81, 1, 0, 1, Bytes::default().u8(0).u16(0)).lose(1, 1);
    script.runtime(91, 0, 1000 * MS, 1, Bytes::default().u8(0).u16(0));
    script.runtime(81, 1, 1000 * MS, 1, Bytes::default().u8(0).u16(0));
    script.runtime(91, 0, 1002 * MS, 1, Bytes::default().u8(0).u16(0));
    let contention = script.snapshot().contention;
    assert_eq!((contention.count, contention.ended, contention.wait_ns, contention.waiting), (2, 1, 2_000_000, 0));
    assert_eq!((contention.sites.len(), contention.sites[0].count), (1, 2), "and stays in the count of its place");
}

#[test]
fn wait_that_another_one_of_its_thread_follows_is_counted_without_a_duration() {
    let mut script = Script::new();
    for at in [0, 1000 * MS] {
        script.runtime(81, 1, at, 1, Bytes::default().u8(0).u16(0));
    }
    script.runtime(91, 0, 1002 * MS, 1, Bytes::default().u8(0).u16(0));
    let contention = script.snapshot().contention;
    assert_eq!((contention.count, contention.ended, contention.wait_ns), (2, 1, 2_000_000));
    assert_eq!((contention.sites.len(), contention.sites[0].count, contention.sites[0].wait_ns), (1, 2, 2_000_000));
}

/// Four owners are kept, those with the longest waits.
#[test]
fn threads_with_the_longest_waits_are_listed_as_owners() {
    let mut script = Script::new();
    for (at, owner, ms) in [(0, 11, 50), (100, 12, 20), (200, 13, 30), (300, 14, 40), (400, 15, 10), (500, 12, 25), (600, 16, 35)] {
        script.runtime(81, 2, at * MS, 1, Bytes::default().u8(0).u16(0).u64(1).u64(0).u64(owner));
        script.runtime(91, 0, (at + ms) * MS, 1, Bytes::default().u8(0).u16(0));
    }
    assert_eq!(script.snapshot().contention.sites[0].owners, [(11, 1), (12, 2), (14, 1), (16, 1)]);
    let mut unfinished = Script::new();
    unfinished.runtime(81, 2, 0, 1, Bytes::default().u8(0).u16(0).u64(1).u64(0).u64(17));
    assert_eq!(unfinished.snapshot().contention.sites[0].owners, [(17, 1)]);
}

/// A thread that waits when a session is stopped does not wait for the rundown.
#[test]
fn waits_in_progress_end_when_the_rundown_begins() {
    let mut script = Script::new();
    script.runtime(81, 1, 1000 * MS, 1, Bytes::default().u8(0).u16(0));
    script.runtime(81, 1, 1100 * MS, 2, Bytes::default().u8(0).u16(0)).runtime(91, 0, 1200 * MS, 2, Bytes::default().u8(0).u16(0));
    for at in [1500, 1900] {
        let record = Metadata { provider: RUNDOWN.into(), event_id: 146, ..Metadata::default() };
        script.event(record, at * MS, 3, 3, Bytes::default().u16(0));
    }
    let snapshot = script.snapshot();
    let contention = &snapshot.contention;
    assert_eq!((snapshot.now, snapshot.recorded_ns), (1500 * MS, 1_500_000_000));
    assert_eq!((contention.count, contention.ended, contention.waiting), (2, 1, 1));
    assert_eq!((contention.wait_ns, contention.longest_ns), (600_000_000, 500_000_000));
    let site = &contention.sites[0];
    assert_eq!((site.count, site.unfinished, site.wait_ns, site.longest_ns), (2, 1, 600_000_000, 500_000_000));
}

/// Since .NET 6 the pool compensates for threads blocked on tasks before it starves. Their number is the excess of the target over the
/// minimum.
#[test]
fn pool_threads_blocked_on_tasks_are_counted() {
    let pool = |bounds: bool, wanted: &[(i64, u32, u32)]| {
        let mut script = Script::new();
        if bounds {
            script.runtime(59, 0, 0, 1, Bytes::default().u16(2).u16(99).u16(1).u16(1).u16(0));
        }
        for &(at, workers, reason) in wanted {
            script.runtime(55, 0, at * 1000 * MS, 2, Bytes::default().f64(0.0).u32(workers).u32(reason).u16(0));
        }
        let pool = script.snapshot().thread_pool;
        (pool.blocked, pool.recent_blocked, pool.starvations)
    };
    assert_eq!(pool(true, &[(1, 3, 3), (2, 20, 6)]), (0, 0, 1), "for other reasons");
    assert_eq!(pool(true, &[(1, 3, 8), (2, 9, 8), (3, 2, 8)]), (7, 7, 0));
    // No further events are reported while they wait.
    assert_eq!(pool(true, &[(1, 9, 8), (90, 30, 3)]), (7, 7, 0));
    assert_eq!(pool(true, &[(1, 9, 8), (2, 2, 8), (90, 3, 3)]), (7, 0, 0), "it is over");
    // If the minimum is not in the stream, the lowest target is used instead.
    assert_eq!(pool(false, &[(1, 4, 8), (2, 9, 8), (3, 4, 8)]), (5, 5, 0));
}

#[test]
fn thread_pool_starvation_is_detected() {
    let mut script = Script::new();
    script.runtime(50, 0, 0, 1, Bytes::default().u32(4).u32(0).u16(0)).runtime(
        59,
        0,
        0,
        1,
        Bytes::default().u16(2).u16(99).u16(1).u16(1).u16(0),
    );
    for (at, workers, reason) in [(500, 5, 6), (1000, 6, 6), (1500, 7, 3)] {
        script.runtime(55, 0, at * MS, 2, Bytes::default().f64(1.5).u32(workers).u32(reason).u16(0));
        script.runtime(50, 0, at * MS, 2, Bytes::default().u32(workers).u32(0).u16(0));
    }
    // An older event that arrives later does not change the current number.
    script.runtime(57, 0, 100 * MS, 3, Bytes::default().u32(3).u32(0).u16(0));
    let pool = script.snapshot().thread_pool;
    assert_eq!((pool.workers, pool.bounds), (Some(7), Some((2, 99))));
    assert_eq!((pool.starvations, pool.recent_starvations), (2, 2));
    assert_eq!(
        pool.adjustments.iter().map(|(reason, count)| (reason.name(), *count)).collect::<Vec<_>>(),
        [("ClimbingMove", 1), ("Starvation", 2)]
    );
    assert_eq!(pool.recent.iter().map(|adjustment| adjustment.workers).collect::<Vec<_>>(), [7, 6, 5]);
    assert_eq!(pool.workers_over_time.recent(1500 * MS, 2), [5.0, 7.0]);
}

/// As written by .NET 9 on a machine with an uptime of 28 minutes: the first sample counts from boot, and so does the average after it.
#[test]
fn throughput_excludes_time_before_the_session() {
    // Samples, and adjustments with their averages and reasons.
    let steps = [
        (0, 0.0, Some(1)),
        (0, 0.0012, None),
        (80, 3.5, None),
        (80, 0.0055, Some(0)),
        (200, 7.0, None),
        (200, 6.5, Some(3)),
        // The pool is starved: nothing was completed, or nothing was measured.
        (700, 0.0, Some(6)),
        (1200, 4.0, Some(6)),
    ];
    let after = |count: usize| {
        let mut script = Script::new();
        for (at, per_second, reason) in &steps[..count] {
            let measured = Bytes::default().f64(*per_second);
            match reason {
                Some(reason) => script.runtime(55, 0, at * MS, 2, measured.u32(2).u32(*reason).u16(0)),
                None => script.runtime(54, 0, at * MS, 2, measured.u16(0)),
            };
        }
        script.snapshot().thread_pool
    };
    assert_eq!(after(2).throughput, None);
    assert_eq!(after(3).throughput, Some(3.5));
    let pool = after(8);
    assert_eq!(pool.throughput, Some(7.0));
    let averages: Vec<_> = pool.recent.iter().rev().map(|adjustment| adjustment.throughput).collect();
    assert_eq!(averages, [None, None, Some(6.5), None, Some(4.0)]);
}

/// More threads than are tracked.
#[test]
fn waits_of_very_many_threads_are_counted_once() {
    let mut script = Script::new();
    (0..5000).for_each(|thread| _ = script.runtime(81, 1, 0, thread, Bytes::default().u8(0).u16(0)));
    (0..5000).for_each(|thread| _ = script.runtime(91, 1, MS, thread, Bytes::default().u8(0).u16(0).f64(1e6)));
    let contention = script.snapshot().contention;
    assert_eq!((contention.count, contention.ended, contention.most_waiting), (5000, 5000, 4096));
    assert_eq!(contention.sites[0].count, 5000);
}
