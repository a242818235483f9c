//! Heap walks.

use super::{Bytes, Script};
use crate::analysis::{HeapProblem, HeapSnapshot};

fn types(script: &mut Script, named: &[(u64, &str)]) {
    let mut payload = Bytes::default().u32(named.len() as u32).u16(0);
    for (id, name) in named {
        // Types with IDs from 100 on belong to another module.
        let module = 1 + u64::from(*id >= 100);
        payload = payload.u64(*id).u64(module).u32(0).u32(0).u8(0).text(name).u32(1).u64(9);
    }
    script.runtime(15, 0, 0, 1, payload);
}

/// Objects: type, bytes, references.
fn nodes(script: &mut Script, index: u32, objects: &[(u64, u64, u64)]) {
    let mut payload = Bytes::default().u32(index).u32(objects.len() as u32).u16(0);
    for (type_id, bytes, edges) in objects {
        payload = payload.u64(0x1000).u64(*bytes).u64(*type_id).u64(*edges);
    }
    script.runtime(18, 0, 0, 1, payload);
}

fn edges(script: &mut Script, index: u32, count: u32) {
    let payload = (0..count).fold(Bytes::default().u32(index).u32(count).u16(0), |payload, _| payload.u64(0x1000).u32(0));
    script.runtime(19, 0, 0, 1, payload);
}

fn collection(script: &mut Script, number: u32, generation: u32, walk: impl FnOnce(&mut Script)) {
    script.runtime(1, 2, 0, 1, Bytes::default().u32(number).u32(generation).u32(1).u32(0).u16(0).u64(0));
    walk(script);
    script.runtime(2, 1, 0, 1, Bytes::default().u32(number).u32(generation).u16(0));
}

fn heap(script: &mut Script) -> HeapSnapshot {
    script.play().heap().expect("a walk")
}

#[test]
fn objects_by_type() {
    let mut script = Script::new();
    types(&mut script, &[(1, "A"), (2, "B")]);
    collection(&mut script, 7, 2, |script| {
        edges(script, 0, 3);
        nodes(script, 0, &[(1, 24, 2), (2, 100, 1)]);
        types(script, &[(3, "A")]);
        nodes(script, 1, &[(3, 24, 0), (2, 50, 1)]);
        edges(script, 1, 1);
    });
    collection(&mut script, 8, 1, |_| {});
    let heap = heap(&mut script);
    assert_eq!((heap.objects, heap.bytes, heap.references, heap.is_finished), (4, 198, 4, true));
    assert!(heap.is_exact(), "{:?}", heap.problems);
    let found: Vec<_> = heap.types.iter().map(|named| (named.name.as_str(), named.objects, named.bytes)).collect();
    assert_eq!(found, [("B", 2, 150), ("A", 2, 48)], "types of one name are one");
}

/// Every assembly may have a `<>c`.
#[test]
fn types_with_the_same_name_are_distinguished_by_module() {
    let mut script = Script::new();
    types(&mut script, &[(1, "<>c"), (2, "<>c"), (100, "<>c"), (101, "N.Map`2[System.String,N.A]")]);
    for (module, path) in [(1, "/app/Shop.dll"), (2, "/app/Store.dll")] {
        let payload = Bytes::default().u64(module).u64(1).u32(0).u32(0).text(path).text("").u16(0);
        script.runtime(152, 1, 0, 1, payload);
    }
    collection(&mut script, 7, 2, |script| nodes(script, 0, &[(1, 24, 0), (2, 24, 0), (100, 40, 0), (101, 16, 0)]));
    let heap = heap(&mut script);
    let found: Vec<_> = heap.types.iter().map(|named| (named.name.as_str(), named.module.as_str(), named.bytes)).collect();
    assert_eq!(found, [("<>c", "Shop", 48), ("<>c", "Store", 40), ("N.Map<System.String,N.A>", "Store", 16)]);
}

#[test]
fn inconsistent_heap_walk_is_not_exact() {
    let mut script = Script::new();
    types(&mut script, &[(1, "A")]);
    collection(&mut script, 1, 2, |script| {
        nodes(script, 0, &[(1, 24, 2), (9, 24, 0)]);
        script.lose(1, 2);
        nodes(script, 2, &[(1, 24, 1)]);
        edges(script, 0, 2);
    });
    let heap = heap(&mut script);
    let expected = [
        HeapProblem::EventsMissing(1),
        HeapProblem::EventsLost(2),
        HeapProblem::ReferenceCountMismatch { expected: 3, reported: 2 },
        HeapProblem::TypesUnknown(1),
    ];
    assert_eq!(heap.problems, expected);
    assert!(heap.is_finished && !heap.is_exact());
}

#[test]
fn an_unfinished_walk_reports_its_progress() {
    let mut script = Script::new();
    script.runtime(1, 2, 0, 1, Bytes::default().u32(1).u32(2).u32(1).u32(0).u16(0).u64(0));
    nodes(&mut script, 0, &[(1, 10, 0); 5]);
    let live = script.play();
    assert_eq!((live.heap_progress(), live.heap().unwrap().is_finished), (Some((5, 50)), false));
}

#[test]
fn objects_of_more_types_than_are_distinguished_are_counted() {
    let mut script = Script::new();
    let objects: Vec<_> = (1..=(1 << 17) + 500).map(|kind| (kind, 10, 0)).collect();
    collection(&mut script, 1, 2, |script| {
        (0..).zip(objects.chunks(1000)).for_each(|(index, objects)| nodes(script, index, objects));
    });
    let heap = heap(&mut script);
    let listed = heap.types.iter().fold((0, 0), |(objects, bytes), of| (objects + of.objects, bytes + of.bytes));
    let (_, others, bytes_of_others) = heap.others;
    assert_eq!((listed.0 + others, listed.1 + bytes_of_others), (heap.objects, heap.bytes));
    assert!(others >= 500 && heap.objects == objects.len() as u64);
}

#[test]
fn a_new_walk_starts_from_zero() {
    let mut script = Script::new();
    collection(&mut script, 1, 2, |script| nodes(script, 0, &[(1, 10, 1); 5]));
    collection(&mut script, 2, 2, |script| nodes(script, 0, &[(1, 10, 0); 2]));
    let heap = heap(&mut script);
    assert_eq!((heap.objects, heap.is_finished, heap.problems), (2, true, vec![HeapProblem::TypesUnknown(2)]));
}

#[test]
fn no_heap_snapshot_without_a_heap_walk() {
    let mut script = Script::new();
    collection(&mut script, 1, 2, |_| {});
    assert!(script.play().heap().is_none());
}

/// Other collections start and end, and events are lost, before, during and after the walk.
#[test]
fn a_walk_lasts_until_the_end_of_its_collection() {
    let walk = |is_over: bool| {
        let mut script = Script::new();
        let start = |script: &mut Script, number, kind| {
            script.runtime(1, 2, 0, 1, Bytes::default().u32(number).u32(2).u32(1).u32(kind).u16(0).u64(0));
        };
        let end = |script: &mut Script, number| _ = script.runtime(2, 1, 0, 1, Bytes::default().u32(number).u32(2).u16(0));
        types(&mut script, &[(1, "A")]);
        script.lose(1, 2);
        start(&mut script, 7, 0);
        start(&mut script, 8, 1);
        nodes(&mut script, 0, &[(1, 24, 0)]);
        end(&mut script, 8);
        if is_over {
            end(&mut script, 7);
            script.lose(1, 3);
            start(&mut script, 9, 0);
        }
        heap(&mut script)
    };
    assert!(!walk(false).is_finished && walk(true).is_finished);
    assert_eq!(walk(true).problems, []);
}

#[test]
fn incomplete_events_of_a_walk_are_missing() {
    let mut script = Script::new();
    types(&mut script, &[(1, "A")]);
    collection(&mut script, 1, 2, |script| {
        // One of the two objects.
        let payload = Bytes::default().u32(0).u32(2).u16(0).u64(0x1000).u64(24).u64(1).u64(0);
        script.runtime(18, 0, 0, 1, payload);
    });
    let heap = heap(&mut script);
    assert_eq!((heap.objects, heap.problems), (1, vec![HeapProblem::EventsMissing(1)]));
}
