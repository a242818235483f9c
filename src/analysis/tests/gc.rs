//! Pauses, collections, the heap and allocations.

use super::script::MS;
use super::{Bytes, Script};
use crate::analysis::{CollectionMarks, CounterSession, CounterTally, EventBytes, FullCollection, GcMark, Live, SampleFilter};
use crate::nettrace::ThreadId;

pub(super) fn suspend(script: &mut Script, at: i64, thread: u64, reason: u32) {
    script.runtime(9, 1, at, thread, Bytes::default().u32(reason).u32(0).u16(0));
}

pub(super) fn restart(script: &mut Script, at: i64, thread: u64) {
    script.runtime(3, 1, at, thread, Bytes::default().u16(0));
}

pub(super) fn start(script: &mut Script, at: i64, thread: u64, number: u32, generation: u32, reason: u32, kind: u32) {
    script.runtime(1, 2, at, thread, Bytes::default().u32(number).u32(generation).u32(reason).u32(kind).u16(0).u64(0));
}

pub(super) fn end(script: &mut Script, at: i64, thread: u64, number: u32, generation: u32) {
    script.runtime(2, 1, at, thread, Bytes::default().u32(number).u32(generation).u16(0));
}

pub(super) fn heap(script: &mut Script, at: i64, thread: u64, sizes: [u64; 5]) {
    let mut payload = Bytes::default();
    for size in &sizes[..4] {
        payload = payload.u64(*size).u64(1);
    }
    let payload = payload.u64(0).u64(3).u32(4).u32(0).u32(5).u16(0).u64(sizes[4]).u64(1);
    script.runtime(4, 2, at, thread, payload);
}

#[test]
fn only_gc_suspensions_count_as_pauses() {
    let mut script = Script::new();
    let (sampler, collector, background) = (9, 1, 2);
    suspend(&mut script, MS, collector, 1);
    // The sampler's own suspension has to wait.
    suspend(&mut script, 2 * MS, sampler, 0);
    restart(&mut script, 4 * MS, collector);
    restart(&mut script, 5 * MS, sampler);
    for tick in 10..100 {
        suspend(&mut script, tick * MS, sampler, 0);
        restart(&mut script, tick * MS + 100, sampler);
    }
    suspend(&mut script, 100 * MS, background, 6);
    restart(&mut script, 110 * MS, background);
    restart(&mut script, 111 * MS, collector);
    for reason in [2, 3, 4, 5, 7] {
        suspend(&mut script, 200 * MS, collector, reason);
        restart(&mut script, 300 * MS, collector);
    }
    let pauses = script.snapshot().gc.pauses;
    assert_eq!((pauses.count, pauses.total_ns, pauses.longest_ns), (2, 13_000_000, 10_000_000));
    assert_eq!(pauses.longest.whole().1.iter().copied().fold(0.0, f64::max), 10e6);
    assert!((pauses.recent_share - 0.013).abs() < 1e-9, "of the second that there is: {}", pauses.recent_share);
}

#[test]
fn collections_are_paired_by_number() {
    let mut script = Script::new();
    // A background collection (7) starts; a foreground one (8) runs within its first pause.
    suspend(&mut script, 0, 1, 1);
    start(&mut script, MS, 1, 7, 2, 0, 1);
    start(&mut script, 2 * MS, 1, 8, 1, 0, 0);
    end(&mut script, 5 * MS, 1, 8, 1);
    heap(&mut script, 5 * MS, 1, [1, 2, 3, 4, 5]);
    restart(&mut script, 6 * MS, 1);
    suspend(&mut script, 20 * MS, 2, 6);
    restart(&mut script, 22 * MS, 2);
    end(&mut script, 30 * MS, 2, 7, 2);
    heap(&mut script, 30 * MS, 2, [10, 20, 30, 40, 50]);
    // Server GC: the thread that reports the start comes after the one that reports the end.
    suspend(&mut script, 40 * MS, 3, 1);
    end(&mut script, 44 * MS, 3, 9, 0);
    heap(&mut script, 44 * MS, 3, [0, 0, 0, 0, 7]);
    restart(&mut script, 45 * MS, 3);
    start(&mut script, 41 * MS, 4, 9, 0, 1, 0);
    let gc = script.snapshot().gc;
    assert_eq!((gc.collections, gc.induced, gc.running), ([1, 1, 1], 1, 0));
    assert_eq!(gc.causes.iter().map(|cause| cause.count).sum::<u64>(), 3);
    let found: Vec<_> =
        gc.recent.iter().map(|c| (c.number, (c.end - c.start) / MS, c.pause_ns.unwrap() as i64 / MS, c.heap_after)).collect();
    assert_eq!(found, [(9, 3, 5, Some(7)), (8, 3, 6, Some(15)), (7, 29, 2, Some(150))]);
    assert_eq!(found.iter().map(|row| row.2).sum::<i64>(), gc.pauses.total_ns as i64 / MS, "no pause counts twice");
    let heap = gc.heap.unwrap();
    assert_eq!((heap.size(), heap.pinned, heap.finalization, heap.pinned_objects, heap.handles), (7, Some(7), 3, 4, 5));
}

/// Only a background collection can be in progress when another one starts, and that one is not a background collection.
#[test]
fn collections_whose_end_is_missing_are_not_in_progress() {
    let running = |first, second| {
        let mut script = Script::new();
        start(&mut script, MS, 1, 7, 2, 0, first);
        start(&mut script, 2 * MS, 1, 8, 1, 0, second);
        script.snapshot().gc.running
    };
    assert_eq!([running(0, 0), running(1, 0), running(0, 1), running(1, 1)], [1, 2, 1, 1]);
}

#[test]
fn a_pause_before_a_background_collection_is_not_its_own() {
    let mut script = Script::new();
    for at in [0, 20] {
        suspend(&mut script, at * MS, 1, 1);
        restart(&mut script, (at + 2) * MS, 1);
    }
    start(&mut script, 10 * MS, 1, 7, 2, 0, 1);
    end(&mut script, 30 * MS, 1, 7, 2);
    assert_eq!(script.snapshot().gc.recent[0].pause_ns, Some(2_000_000));
}

/// The restart belongs to the later suspension.
#[test]
fn a_suspension_without_an_end_is_no_pause() {
    let mut script = Script::new();
    suspend(&mut script, 0, 1, 1);
    suspend(&mut script, 1000 * MS, 1, 0);
    restart(&mut script, 1001 * MS, 1);
    assert_eq!(script.snapshot().gc.pauses.count, 0);
}

#[test]
fn objects_do_not_wait_for_finalizers_that_may_have_run_among_lost_events() {
    let queued = |loses| {
        let mut script = Script::new();
        heap(&mut script, MS, 1, [1, 2, 3, 4, 5]);
        if loses {
            script.lose(2, 1);
        }
        restart(&mut script, 1001 * MS, 2);
        script.snapshot().gc.finalizer_wait.map(|wait| (wait.waiting_ns, wait.queued))
    };
    assert_eq!((queued(false), queued(true)), (Some((1_000_000_000, 3)), None));
}

#[test]
fn lost_events_do_not_cause_long_pauses() {
    let mut script = Script::new();
    suspend(&mut script, 0, 1, 1);
    start(&mut script, MS, 1, 1, 0, 0, 0);
    script.lose(1, 3);
    restart(&mut script, 5000 * MS, 1);
    start(&mut script, 6000 * MS, 1, 5, 0, 0, 0);
    end(&mut script, 6001 * MS, 1, 5, 0);
    let snapshot = script.snapshot();
    assert_eq!((snapshot.gc.pauses.count, snapshot.gc.running, snapshot.gc.recent.len()), (0, 0, 1));
    assert_eq!((snapshot.rates.total_lost, snapshot.totals.dropped), (3, 3));
    assert_eq!(
        snapshot.rates.gaps.iter().map(|gap| (gap.at, gap.count, gap.capture_thread)).collect::<Vec<_>>(),
        [(5000 * MS, 3, ThreadId::of(1))]
    );
}

#[test]
fn allocations_by_type() {
    let mut script = Script::new();
    for (tick, (name, bytes, kind)) in [("A", 100, 0), ("B", 300, 1), ("A", 100, 0), ("C", 50, 2)].into_iter().enumerate() {
        let payload = Bytes::default().u32(0).u32(kind).u16(0).u64(bytes).u64(1).text(name).u32(0).u64(2).u64(bytes / 2);
        script.runtime(10, 4, tick as i64 * 1000 * MS, 1, payload);
    }
    let allocations = script.snapshot().gc.allocations.unwrap();
    let top: Vec<_> = allocations.top.iter().map(|named| (named.name.as_str(), named.bytes, named.ticks, named.largest)).collect();
    assert_eq!(top, [("B", 300, 1, 150), ("A", 200, 2, 50), ("C", 50, 1, 25)]);
    assert_eq!((allocations.bytes, allocations.by_kind, allocations.ticks, allocations.others), (550, [200, 300, 50], 4, 0));
    assert_eq!((allocations.rate, allocations.is_random), (550.0 / 3.0, false));
}

/// Returns the call sites of the types, heaviest first: type name, methods and bytes.
fn call_sites(live: &Live) -> Vec<(String, Vec<(String, u64)>)> {
    let allocations = live.snapshot(live.newest()).gc.allocations.unwrap();
    let of = |name: &str| allocations.stacks.call_sites(name, 10).into_iter().map(|site| (site.method, site.bytes)).collect();
    allocations.top.iter().map(|kind| (kind.name.clone(), of(&kind.full_name))).collect()
}

fn tick(script: &mut Script, at: i64, name: &str, bytes: u64) {
    let payload = Bytes::default().u32(0).u32(0).u16(0).u64(bytes).u64(1).text(name).u32(0).u64(2).u64(24);
    script.runtime(10, 4, at * MS, 1, payload);
}

#[test]
fn types_list_their_allocating_methods() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Shop", "Load").method(0x2000, 0x100, "Shop", "Save").method(0x3000, 0x100, "Shop", "Main");
    for (frames, name, bytes) in [
        (&[0x1004, 0x3010][..], "A", 100),
        (&[0x2004, 0x3010], "A", 300),
        (&[0x1020, 0x3010], "A", 50),
        (&[0x1004, 0x3010], "B", 7),
        (&[0x9000, 0x3010], "B", 5),
        (&[], "B", 1),
    ] {
        tick(script.stack(frames), 0, name, bytes);
    }
    // Stack IDs have new meanings after a sequence point.
    script.sequence_point(MS);
    tick(script.stack(&[0x3010]), 2, "B", 2);
    let live = script.play();
    let site = |method: &str, bytes| (method.to_owned(), bytes);
    assert_eq!(
        call_sites(&live),
        [
            ("A".to_owned(), vec![site("Shop.Save()", 300), site("Shop.Load()", 150)]),
            ("B".to_owned(), vec![site("Shop.Load()", 7), site("0x9000", 5), site("Shop.Main()", 2), site("", 1)])
        ]
    );
    let stacks = live.snapshot(live.newest()).gc.allocations.unwrap().stacks;
    let tree = stacks.of(Some("A")).call_tree(|bytes| bytes.all_ns(), 10);
    let nodes: Vec<_> = tree.iter().map(|node| (node.depth, node.name, node.total.all_ns(), node.own.all_ns())).collect();
    assert_eq!(nodes, [(0, "Shop.Main", 450, 0), (1, "Shop.Save", 300, 300), (1, "Shop.Load", 150, 150)]);
}

/// Call sites are based on the same events as the types.
#[test]
fn allocation_ticks_are_ignored_with_random_sampling() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Shop", "Load").method(0x2000, 0x100, "Shop", "Save");
    tick(script.stack(&[0x1004]), 0, "A", 100);
    script.stack(&[0x2004]).runtime(303, 0, MS, 1, Bytes::default().u32(0).u16(0).u64(1).text("A").u64(2).u64(10_000_000).u64(0));
    tick(script.stack(&[0x1004]), 2, "A", 100);
    let live = script.play();
    assert_eq!(call_sites(&live), [("A".to_owned(), vec![("Shop.Save()".to_owned(), 10_000_000)])]);
    let allocations = live.snapshot(live.newest()).gc.allocations.unwrap();
    assert_eq!((allocations.bytes, allocations.top[0].bytes > 9_000_000), (200, true), "they are measured, and not an estimate");
}

#[test]
fn types_and_stacks_of_allocations_are_bounded() {
    let mut script = Script::new();
    for at in 0..6000 {
        tick(script.stack(&[0x1000 + at as u64 * 64, 0x10, 0x20]), at, &format!("Type{at}"), 100);
    }
    let live = script.play();
    let allocations = live.snapshot(live.newest()).gc.allocations.unwrap();
    assert_eq!((allocations.all(), allocations.top.len()), (600_000, 100));
    let all: u64 = allocations.stacks.profile().count(SampleFilter::ALL).samples().all_ns();
    assert_eq!(all, 600_000);
}

#[test]
fn sampled_allocations_are_scaled_to_all_allocations() {
    let mut script = Script::new();
    for (name, size) in [("Small", 24), ("Small", 24), ("Large", 10_000_000)] {
        script.runtime(303, 0, 0, 1, Bytes::default().u32(0).u16(0).u64(1).text(name).u64(2).u64(size).u64(0));
    }
    let allocations = script.snapshot().gc.allocations.unwrap();
    let top: Vec<_> = allocations.top.iter().map(|named| (named.name.as_str(), named.bytes / 1000)).collect();
    assert_eq!(top, [("Large", 10_000), ("Small", 204)]);
    assert!(allocations.is_random);
    // Without ticks, the totals are estimates as well.
    let [small, large, pinned] = allocations.by_kind;
    assert_eq!((allocations.bytes, small, large, pinned), (allocations.all(), allocations.all(), 0, 0));
    assert!(allocations.bytes > 10_000_000 && allocations.rate == allocations.bytes as f64 && allocations.ticks == 0);
}

#[test]
fn collections_have_heap_size_before_and_after() {
    let mut script = Script::new();
    // Two heaps of two generations each, and an older version with other values. The collection before was lost after its sizes.
    for (version, sizes) in [(3, [7, 7]), (3, [100, 200]), (3, [10, 20]), (2, [9, 9])] {
        let head = (0..6).fold(Bytes::default().u16(0), |payload, _| payload.u64(0));
        let head = (0..6).fold(head, |payload, _| payload.u32(0)).u64(0).u32(2);
        let payload = sizes.into_iter().fold(head, |payload, size| (0..9).fold(payload.u64(size), |payload, _| payload.u64(5)));
        script.runtime(204, version, MS, 1, payload);
        if sizes == [7, 7] {
            script.lose(1, 3);
            start(&mut script, MS, 1, 7, 1, 0, 0);
        }
    }
    end(&mut script, 2 * MS, 1, 7, 1);
    let sizes = [60, 30, 0, 0, 40, 10, 0, 0].into_iter().fold(Bytes::default(), |payload, part| payload.u64(part));
    script.runtime(4, 1, 3 * MS, 1, sizes.u64(0).u64(0).u32(0).u32(0).u32(0).u16(0));
    start(&mut script, 4 * MS, 1, 8, 0, 0, 0);
    end(&mut script, 5 * MS, 1, 8, 0);
    let gc = script.snapshot().gc;
    let known: Vec<_> = gc.recent.iter().map(|gc| (gc.number, gc.heap_before, gc.heap_after, gc.promoted)).collect();
    assert_eq!(known, [(8, None, None, None), (7, Some(330), Some(100), Some(40))]);
    assert_eq!(gc.heap.map(|heap| heap.parts()), Some([60, 0, 40, 0, 0]));
    assert_eq!(gc.parts_over_time[2].recent(3 * MS, 1), [40.0]);
}

/// Marks from the GC events of a counter session.
#[test]
fn pauses_are_marked_with_their_generation() {
    let mut script = Script::new();
    let (collector, background) = (1, 2);
    let pause = |script: &mut Script, at: i64, thread: u64, within: &dyn Fn(&mut Script)| {
        suspend(script, at * MS, thread, 1);
        within(script);
        restart(script, (at + 2) * MS, thread);
    };
    pause(&mut script, 10, collector, &|script| {
        start(script, 11 * MS, collector, 1, 0, 0, 0);
        end(script, 11 * MS, collector, 1, 0);
    });
    // A background collection starts in one pause and has another; in between, a gen 1 collection runs.
    pause(&mut script, 20, background, &|script| start(script, 21 * MS, background, 2, 2, 0, 1));
    pause(&mut script, 30, collector, &|script| {
        start(script, 31 * MS, collector, 3, 1, 1, 0);
        end(script, 31 * MS, collector, 3, 1);
    });
    pause(&mut script, 40, background, &|_| {});
    end(&mut script, 45 * MS, background, 2, 2);
    // The collections of these are unknown, and the last suspension is not for a collection.
    pause(&mut script, 50, collector, &|_| {});
    suspend(&mut script, 60 * MS, collector, 0);
    restart(&mut script, 61 * MS, collector);
    // Server GC: another thread reports the start, and its block comes later in the stream.
    pause(&mut script, 70, collector, &|_| {});
    start(&mut script, 71 * MS, 3, 5, 0, 0, 0);
    // The end of this suspension and the start of the next are lost.
    suspend(&mut script, 80 * MS, collector, 1);
    script.lose(collector, 2);
    start(&mut script, 5000 * MS, collector, 6, 0, 0, 0);
    restart(&mut script, 5001 * MS, collector);
    let mut tally = CounterTally::new(CounterSession::default());
    script.play_to(&mut tally);
    let mark = |at: i64, generation| GcMark { at: at * MS, pause_ns: 2_000_000, generation, is_induced: at == 30 };
    assert_eq!(
        tally.snapshot().collections,
        CollectionMarks::Recorded(vec![mark(10, 0), mark(20, 2), mark(30, 1), mark(40, 2), mark(70, 0)])
    );
    let EventBytes { collections, suspensions, lock_waits } = tally.event_bytes();
    assert!((500..2000).contains(&collections) && tally.values() == 0, "{collections} bytes");
    // The suspension that is not for a collection: its begin and its end.
    assert!((64..100).contains(&suspensions), "{suspensions} bytes");
    assert_eq!(lock_waits, 0);
}

/// What survived is reported after the end of a collection, by the same thread.
#[test]
fn survivors_of_gen_2_collections_are_known() {
    let mut script = Script::new();
    let (collector, background) = (1, 2);
    start(&mut script, 10 * MS, collector, 1, 2, 0, 0);
    end(&mut script, 11 * MS, collector, 1, 2);
    heap(&mut script, 11 * MS, collector, [50; 5]);
    // A gen 1 collection during a background collection.
    start(&mut script, 20 * MS, collector, 2, 2, 0, 1);
    start(&mut script, 21 * MS, collector, 3, 1, 1, 0);
    end(&mut script, 22 * MS, collector, 3, 1);
    heap(&mut script, 22 * MS, collector, [50; 5]);
    end(&mut script, 30 * MS, background, 2, 2);
    heap(&mut script, 31 * MS, background, [90; 5]);
    let mut tally = CounterTally::new(CounterSession::default());
    script.play_to(&mut tally);
    // Each of the five parts of the heap promoted a byte.
    let full = |at: i64| FullCollection { at: at * MS, survived: 5 };
    assert_eq!(tally.snapshot().full_collections, [full(11), full(31)]);
}
