//! What a counter session shows besides counters: lock waits and finalization.

use super::counters::{S, mean};
use super::gc::{end, start};
use super::{Bytes, Script};
use crate::analysis::{CounterSession, CounterTally};

/// A counter session also records lock contention. A wait whose end was lost does not continue forever.
#[test]
fn counter_session_counts_threads_waiting_for_locks() {
    for (is_lost, expected) in [(false, 3.0), (true, 0.0)] {
        let mut script = Script::new();
        for thread in 1..=3 {
            script.runtime(81, 1, S, thread, Bytes::default().u8(0).u16(0));
            if is_lost {
                script.lose(thread, 1);
            }
            script.runtime(54, 0, 2 * S, thread, Bytes::default().f64(0.0).u16(0));
        }
        mean(&mut script, 30 * S, "a", 1.0, 1, "");
        let mut tally = CounterTally::new(CounterSession::default());
        script.play_to(&mut tally);
        let waiters = tally.snapshot().lock_waiters.unwrap();
        assert!((waiters - expected).abs() < 0.4, "{is_lost}: {waiters}");
        assert!(tally.event_bytes().lock_waits > 0 && tally.values() == 1);
    }
}

/// A finalizer thread that is blocked since before the session started writes no event.
#[test]
fn counter_session_shows_objects_that_wait_for_finalizers() {
    let heap = |script: &mut Script, second: i64, count: u64| {
        let sizes = (0..8).fold(Bytes::default(), |bytes, _| bytes.u64(1));
        script.runtime(4, 1, second * S, 1, sizes.u64(9).u64(count).u32(0).u32(0).u32(0).u16(0));
    };
    // What happened at which second: objects queued by a collection, and whether the finalizer thread began or ended its work.
    enum Event {
        BackgroundStart,
        BackgroundQueued(u64),
        Queued(u64),
        Begin,
        End,
    }
    use Event::{BackgroundQueued, BackgroundStart, Begin, End, Queued};
    for (events, expected) in [
        (&[(1, Queued(0)), (2, Queued(0))][..], None),
        (&[(1, Queued(0)), (2, Queued(5)), (4, Queued(7))], Some((8, 12))),
        (&[(2, Queued(5)), (3, Begin), (4, End)], None),
        (&[(2, Queued(5)), (3, Begin), (4, Queued(7))], Some((7, 7))),
        (&[(2, Queued(5)), (3, Begin), (4, End), (6, Queued(7))], Some((4, 7))),
        // A background collection may report objects that have been finalized already.
        (&[(1, BackgroundStart), (2, Begin), (3, End), (4, BackgroundQueued(5))], None),
        (&[(1, BackgroundStart), (2, Begin), (3, End), (4, Queued(7)), (5, BackgroundQueued(5))], Some((6, 7))),
        (&[(1, Begin), (2, End), (3, BackgroundStart), (4, BackgroundQueued(5))], Some((6, 5))),
    ] {
        let mut script = Script::new();
        for (second, event) in events {
            match event {
                BackgroundStart => start(&mut script, second * S, 1, 7, 2, 0, 1),
                BackgroundQueued(count) => {
                    end(&mut script, second * S, 1, 7, 2);
                    heap(&mut script, *second, *count);
                }
                Queued(count) => heap(&mut script, *second, *count),
                Begin => _ = script.runtime(14, 1, second * S, 2, Bytes::default().u16(0)),
                End => _ = script.runtime(13, 1, second * S, 2, Bytes::default().u32(5).u16(0)),
            }
        }
        mean(&mut script, 10 * S, "a", 1.0, 1, "");
        let mut tally = CounterTally::new(CounterSession::default());
        script.play_to(&mut tally);
        let found = tally.snapshot().finalizer_wait.map(|wait| (wait.waiting_ns / S as u64, wait.queued));
        assert_eq!(found, expected);
    }
}

/// A burst in the first seconds is not an average. A following stream restarts the waits, but not the counters.
#[test]
fn next_stream_continues_counters_but_resets_lock_waits() {
    let mut tally = CounterTally::new(CounterSession::default());
    let mut play = |wait: i64, values: &[i64]| {
        let mut script = Script::new();
        script.runtime(81, 1, wait, 1, Bytes::default().u8(0).u16(0));
        values.iter().for_each(|second| mean(&mut script, second * S, "a", 1.0, 1, ""));
        script.play_to(&mut tally);
        let snapshot = tally.snapshot();
        (snapshot.lock_waiters, snapshot.counters[0].history.len())
    };
    assert_eq!(play(S, &[2]), (None, 1));
    let (waiters, values) = play(5 * S, &[10, 20]);
    assert!((waiters.unwrap() - 1.0).abs() < 0.1 && values == 3, "{waiters:?}");
}
