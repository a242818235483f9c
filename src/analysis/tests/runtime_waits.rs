//! Waits shown by runtime events.

use super::script::MS;
use super::{Bytes, Script};
use crate::analysis::{RuntimeWait, RuntimeWaits, WaitReason};

/// Start of the session, in nanoseconds.
const SESSION_START: u64 = 5_000_000_000;

#[test]
fn lock_and_gc_waits_are_found() {
    let mut script = Script::new();
    let wait = |script: &mut Script, at, thread, flags| {
        script.runtime(81, 1, at * MS, thread, Bytes::default().u8(flags).u16(0));
    };
    let acquired = |script: &mut Script, at, thread, flags, ms: f64| {
        script.runtime(91, 1, at * MS, thread, Bytes::default().u8(flags).u16(0).f64(ms * 1e6));
    };
    let suspend = |script: &mut Script, at, thread, reason| {
        script.runtime(9, 1, at * MS, thread, Bytes::default().u32(reason).u32(0).u16(0));
    };
    let restart = |script: &mut Script, at, thread| {
        script.runtime(3, 1, at * MS, thread, Bytes::default().u16(0));
    };
    wait(&mut script, 1, 7, 0);
    // A native lock of the runtime.
    wait(&mut script, 1, 8, 1);
    suspend(&mut script, 2, 9, 1);
    // A suspension by the sampler.
    suspend(&mut script, 2, 10, 0);
    restart(&mut script, 3, 10);
    restart(&mut script, 4, 9);
    suspend(&mut script, 4, 9, 1);
    restart(&mut script, 4, 9);
    acquired(&mut script, 5, 8, 1, 4.0);
    acquired(&mut script, 6, 7, 0, 5.0);
    // A wait without a start event, as if it had begun before the session.
    acquired(&mut script, 8, 11, 0, 7.0);
    // A wait that began before events of its thread were lost is not known to continue.
    wait(&mut script, 9, 12, 0);
    script.lose(12, 3);
    restart(&mut script, 10, 12);
    wait(&mut script, 11, 7, 0);
    script.runtime(91, 1, 12 * MS, 7, Bytes::default().u8(0));
    let mut waits = RuntimeWaits::default();
    script.play_to(&mut waits);
    let finished = |reason, thread, begin: u64, end: u64| {
        let at = |ms: u64| SESSION_START + ms * MS.unsigned_abs();
        RuntimeWait { reason, thread, begin: at(begin), end: at(end) }
    };
    let (lock, gc) = (WaitReason::Lock, WaitReason::Gc);
    assert_eq!(waits.take(), [finished(gc, 9, 2, 4), finished(lock, 7, 1, 6), finished(lock, 11, 1, 8)]);
    assert_eq!(waits.waiting(), [(7, SESSION_START + 11 * MS.unsigned_abs())]);
    assert_eq!((waits.take(), waits.pausing().next()), (vec![], None));
    let mut script = Script::new();
    suspend(&mut script, 13, 9, 1);
    let mut waits = RuntimeWaits::default();
    script.play_to(&mut waits);
    assert_eq!(waits.pausing().collect::<Vec<_>>(), [(9, SESSION_START + 13 * MS.unsigned_abs())]);
}
