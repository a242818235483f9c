//! What is wrong, and what is not.

use super::script::MS;
use super::{Bytes, Script};
use crate::analysis::{Lint, LintKind, Severity, Topic};

fn lints(script: &mut Script) -> Vec<Lint> {
    script.snapshot().lints()
}

fn pauses(script: &mut Script, milliseconds: i64) {
    for second in 0..20 {
        script.runtime(9, 1, second * 1000 * MS, 1, Bytes::default().u32(1).u32(0).u16(0));
        script.runtime(3, 1, (second * 1000 + milliseconds) * MS, 1, Bytes::default().u16(0));
    }
}

#[test]
fn nothing_is_wrong_with_a_quiet_program() {
    let mut script = Script::new();
    pauses(&mut script, 50);
    for second in 0..20 {
        script.runtime(80, 1, second * 1000 * MS, 1, Bytes::default().text("E").text("").u64(0).u32(0).u16(0).u16(0));
    }
    assert_eq!(lints(&mut script), []);
}

#[test]
fn a_program_that_stands_for_collections() {
    for (milliseconds, severity) in [(200, Severity::Warning), (600, Severity::Critical)] {
        let mut script = Script::new();
        pauses(&mut script, milliseconds);
        let [lint] = &lints(&mut script)[..] else { panic!("one lint") };
        assert_eq!((lint.kind, lint.severity, lint.topic), (LintKind::TimeInGc, severity, Topic::Gc));
        assert!(lint.why.contains("the longest pause took"), "{}", lint.why);
    }
}

#[test]
fn a_starved_thread_pool() {
    let mut script = Script::new();
    script.runtime(55, 0, 0, 1, Bytes::default().f64(1.0).u32(5).u32(6).u16(0));
    script.runtime(55, 0, 100_000 * MS, 1, Bytes::default().f64(1.0).u32(5).u32(3).u16(0));
    assert_eq!(lints(&mut script), [], "a minute ago");
    let mut script = Script::new();
    (0..3).for_each(|half| _ = script.runtime(55, 0, half * 500 * MS, 1, Bytes::default().f64(1.0).u32(5).u32(6).u16(0)));
    let found = lints(&mut script);
    assert_eq!((found[0].kind, found.len()), (LintKind::ThreadPoolStarvation, 1));
    assert!(found[0].why.contains("3 times in 30 s"), "{}", found[0].why);
}

#[test]
fn exceptions_all_the_time_and_events_lost() {
    let mut script = Script::new();
    for tick in 0..3000 {
        script.runtime(80, 1, tick * MS, 1, Bytes::default().text("Shop.SoldOut").text("").u64(0).u32(0).u16(0).u16(0));
    }
    script.lose(1, 5).runtime(80, 1, 3000 * MS, 1, Bytes::default().text("Shop.SoldOut").text("").u64(0).u32(0).u16(0).u16(0));
    let found: Vec<_> = lints(&mut script).into_iter().map(|lint| (lint.kind, lint.severity, lint.why)).collect();
    assert_eq!(found[0], (LintKind::ExceptionStorm, Severity::Critical, "1000 exceptions a second, most of them Shop.SoldOut".into()));
    assert_eq!((found[1].0, found[1].1, found.len()), (LintKind::Loss, Severity::Warning, 2));
}

#[test]
fn a_heap_that_only_grows() {
    for (sizes, grows) in [([10, 12, 14, 16, 18, 20], true), ([10, 12, 14, 13, 18, 20], false), ([10, 11, 11, 11, 11, 11], false)] {
        let mut script = Script::new();
        for (number, size) in sizes.into_iter().enumerate() {
            let (number, at) = (number as u32, number as i64 * 10_000 * MS);
            script.runtime(1, 2, at, 1, Bytes::default().u32(number).u32(2).u32(0).u32(0).u16(0).u64(0));
            script.runtime(2, 1, at, 1, Bytes::default().u32(number).u32(2).u16(0));
            let sizes = (0..8).fold(Bytes::default(), |payload, part| payload.u64(if part == 4 { size * 10_000_000 } else { 0 }));
            script.runtime(4, 1, at, 1, sizes.u64(0).u64(0).u32(0).u32(0).u32(0).u16(0));
        }
        let found = lints(&mut script);
        assert_eq!(found.iter().any(|lint| lint.kind == LintKind::Gen2Growth), grows, "{sizes:?} {found:?}");
    }
}

#[test]
fn threads_that_wait_for_one_another() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Bank", "Move").stack(&[0x1010]);
    for tick in 0..200 {
        for thread in 1..=3 {
            script.runtime(81, 1, tick * 50 * MS, thread, Bytes::default().u8(0).u16(0));
            script.runtime(91, 1, (tick * 50 + 40) * MS, thread, Bytes::default().u8(0).u16(0).f64(4e7));
        }
    }
    let [lint] = &lints(&mut script)[..] else { panic!("one lint") };
    assert_eq!((lint.kind, lint.severity, lint.topic), (LintKind::LockConvoy, Severity::Warning, Topic::Locks));
    assert_eq!(lint.why, "2.4 threads wait for locks at any moment, 60 times a second, most in Bank.Move");
}
