//! The file is read by a separate implementation of the format's specification, independent of the writer.

use super::*;
use crate::analysis::HeapType;
use crate::nettrace::{Decoder, Encoder, Limits, Metadata, NewEvent, TraceHeader};
use crate::wire::Put;
use proptest::prelude::*;

#[path = "../../../tests/support/gcdump.rs"]
mod reader;

/// Objects whose type has a known module.
const ADDRESSES: [u64; 3] = [0x100, 0x200, 0x300];
const COLLECTED_UNIX_MS: i64 = 1_731_974_400_000;

fn file(graph: HeapGraph) -> Vec<u8> {
    let info = DumpInfo { process_id: 42, process_name: "Shop".into(), collected_unix_ms: COLLECTED_UNIX_MS };
    let mut out = Vec::new();
    graph.write(&info, &mut out).unwrap();
    out
}

fn read(file: &[u8]) -> (Vec<reader::Node>, usize, i64) {
    let dump = reader::read(file);
    assert_eq!((dump.process_id, dump.process_name.as_str(), dump.tool.as_str(), dump.is_64_bit), (42, "Shop", "dn-top", true));
    assert_eq!(dump.ticks, 638_675_712_000_000_000, "the start of 2024-11-19");
    (dump.nodes, dump.root, dump.total)
}

fn node(kind: &str, size: i32, children: &[usize], address: u64) -> reader::Node {
    let module = ADDRESSES.contains(&address).then(|| "/app/Shop.dll".to_owned());
    reader::Node { kind: kind.into(), module, size, children: children.into(), address }
}

/// Builds the graph from session events: event ids and payloads.
fn graph(events: &[(u32, Vec<u8>)]) -> HeapGraph {
    graph_in(1 << 30, events)
}

/// The same with a memory limit in bytes.
fn graph_in(memory_limit: u64, events: &[(u32, Vec<u8>)]) -> HeapGraph {
    let header = TraceHeader::default();
    let mut encoder = Encoder::new(header);
    for (event_id, payload) in events {
        let record = Metadata { provider: "Microsoft-Windows-DotNETRuntime".into(), event_id: *event_id, ..Metadata::default() };
        let metadata = encoder.metadata(&record);
        encoder.event(&NewEvent { metadata, payload, ..NewEvent::default() });
    }
    encoder.end();
    let mut graph = HeapGraph::new(memory_limit);
    Decoder::new(Limits::default()).feed(&encoder.take(), &mut graph).unwrap();
    graph
}

/// Builds a payload: an index, a count, and rows of 8-byte words, the last word of each row shortened by `cut` bytes.
fn rows(numbered: bool, rows: &[&[u64]], cut: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    if numbered {
        payload.put_u32(0);
    }
    payload.put_u32(rows.len() as u32);
    payload.put_u16(0);
    for row in rows {
        row.iter().for_each(|word| payload.put_u64(*word));
        payload.truncate(payload.len() - cut);
    }
    payload
}

#[test]
fn written_graph_is_read_back() {
    let mut types = Vec::new();
    types.put_u32(2);
    types.put_u16(0);
    for (id, name) in [(1, "Shop.Basket"), (2, "Shop.Item`1[System.Int32][]")] {
        types.put_u64(id);
        types.put_u64(9);
        types.put(&[0; 9]);
        types.put_utf16z(name);
        types.put_u32(0);
    }
    // Object, kind and flags, root: a local variable, none, a weak handle, a pinned handle.
    let mut roots = Vec::new();
    roots.put_u32(0);
    roots.put_u32(4);
    roots.put_u16(0);
    for (object, kind, flags) in [(0x100, 0, 0), (0, 0, 0), (0x200, 2, 2), (0x300, 2, 1)] {
        roots.put_u64(object);
        roots.put_u8(kind);
        roots.put_u32(flags);
        roots.put_u64(7);
    }
    let mut statics = Vec::new();
    statics.put_u32(1);
    statics.put_u64(5);
    statics.put_u16(0);
    [7, 0x200, 1].into_iter().for_each(|word| statics.put_u64(word));
    statics.put_u32(0);
    statics.put_utf16z("Current");
    let mut module = Vec::new();
    [9, 1].into_iter().for_each(|word| module.put_u64(word));
    module.put(&[0; 8]);
    module.put_utf16z("/app/Shop.dll");
    module.put_utf16z("");
    module.put_u16(0);
    let events = [
        (15, types.clone()),
        // Their names replace those known so far.
        (15, types),
        (16, roots),
        (38, statics),
        // Address, bytes, type, references.
        (18, rows(true, &[&[0x100, 24, 1, 2], &[0x200, 32, 1, 0], &[0x300, 8000, 2, 2]], 0)),
        // To itself, to an unreported object, to null, and back. Each edge is followed by a 4-byte field id.
        (19, rows(true, &[&[0x100, 0], &[0x999, 0], &[0, 0], &[0x100, 0]], 4)),
        // A dependent handle.
        (17, rows(true, &[&[0x100, 0x300, 7]], 0)),
        (152, module),
    ];
    let graph = graph(&events);
    let used = (1 << 30) - graph.unused_bytes();
    assert_eq!(used, (1 << 30) - self::graph(&events[1..]).unused_bytes());
    assert_eq!(
        graph.objects(&[]).map(|(.., targets)| targets.collect::<Vec<_>>()).collect::<Vec<_>>(),
        [vec![0x100, 0x999], vec![], vec![0x100]]
    );
    let (bytes, walked) = (file(graph.clone()), graph);
    let (nodes, root, total) = read(&bytes);
    assert_eq!((total, nodes[root].kind.as_str()), (24 + 32 + 8000, "[.NET Roots]"));
    let at = |address: u64| nodes.iter().position(|node| node.address == address).unwrap();
    let [first, second, third, unknown] = [0x100, 0x200, 0x300, 0x999].map(at);
    assert_eq!(nodes[first], node("Shop.Basket", 24, &[first, unknown, third], 0x100));
    assert_eq!(nodes[second], node("Shop.Basket", 32, &[], 0x200), "of another size than its type");
    assert_eq!(nodes[third], node("Shop.Item<System.Int32>[] (Bytes > 1K)", 8000, &[first], 0x300));
    assert_eq!(nodes[unknown], node("UNDEFINED", 0, &[], 0x999));
    let below = |name: &str| {
        let group = nodes.iter().find(|node| node.kind == name).unwrap();
        group.children.clone()
    };
    assert_eq!((below("[local vars]"), below("[PinnedHandle]"), below("[StrongHandle]")), (vec![first], vec![third], vec![]));
    assert_eq!(below("[static var Shop.Basket.Current]"), [second]);
    assert_eq!(nodes[below("[static vars]")[0]].kind, "[static var Shop.Basket.Current]");
    assert!(nodes[root].children.iter().all(|group| nodes[*group].kind.starts_with('[')));

    let dump = HeapDump::read(&bytes).unwrap();
    let (heap, retention) = (&dump.heap, dump.retention().unwrap());
    assert_eq!((heap.objects, heap.bytes, heap.references, heap.is_exact()), (3, 24 + 32 + 8000, 4, true));
    let types: Vec<_> = heap.types.iter().map(|of| (of.name.as_str(), of.module.as_str(), of.objects, of.bytes)).collect();
    assert_eq!(types, [("Shop.Item<System.Int32>[]", "Shop", 1, 8000), ("Shop.Basket", "Shop", 2, 56)]);
    // The file yields the same as the walk.
    let walked = walked.retention(&heap.types).unwrap();
    assert_eq!(walked.types[1].as_ref().unwrap().paths[0].root, "static variable Current (Shop.Basket)");
    assert_eq!(retention, walked);
    // The names of static variables need memory, too.
    let in_all = "Current".len() + "Shop.Basket".len();
    let retention_in = |limit| graph_in(limit, &events).retention(&heap.types);
    assert!(retention_in(used + in_all as u64).is_some() && retention_in(used + in_all as u64 - 1).is_none());
    let others = [HeapType { name: "Shop.Other".to_owned(), ..heap.types[0].clone() }];
    assert_eq!(graph_in(1 << 30, &events).retention(&others).unwrap().types, [None]);
}

/// A root event with one local variable.
fn local(object: u64) -> Vec<u8> {
    let mut root = Vec::new();
    [0, 1].into_iter().for_each(|number| root.put_u32(number));
    root.put_u16(0);
    root.put_u64(object);
    root.put(&[0; 13]);
    root
}

fn static_variable(object: u64, name: &str) -> Vec<u8> {
    let mut variable = Vec::new();
    variable.put_u32(1);
    variable.put_u64(5);
    variable.put_u16(0);
    [7, object, 1].into_iter().for_each(|word| variable.put_u64(word));
    variable.put_u32(0);
    variable.put_utf16z(name);
    variable
}

/// Another tool can walk the heap during the session. The events of a kind are written once enough rows are collected, so the first event of a walk
/// can be of any kind.
#[test]
fn graph_is_that_of_the_last_walk() {
    let walk = |object: u64, order: [u32; 5], has_dependents: bool| {
        let events = order.map(|kind| match kind {
            38 => (kind, static_variable(object, "Current")),
            16 => (kind, local(object)),
            17 => (kind, rows(true, &[&[object, object, 7]], 0)),
            18 => (kind, rows(true, &[&[object, 24, 1, 1]], 0)),
            _ => (kind, rows(true, &[&[object, 0]], 4)),
        });
        events.into_iter().filter(move |(kind, _)| *kind != 17 || has_dependents)
    };
    for order in [[38, 16, 17, 18, 19], [38, 19, 18, 16, 17], [38, 17, 16, 19, 18]] {
        for (first, second) in [(true, true), (true, false), (false, true)] {
            let both: Vec<_> = walk(0x100, order, first).chain(walk(0x200, order, second)).collect();
            let graph = graph(&both);
            assert_eq!((graph.addresses.as_slice(), graph.edges.as_slice()), (&[0x200][..], &[0x200][..]), "{order:?}");
            assert_eq!(graph.roots.iter().map(|(object, _)| *object).collect::<Vec<_>>(), [0x200], "{order:?}");
            assert_eq!(graph.statics.iter().map(|found| found.object).collect::<Vec<_>>(), [0x200], "{order:?}");
            assert_eq!(graph.dependents, if second { vec![(0x200, 0x200)] } else { Vec::new() }, "{order:?}");
            let limit = 1 << 30;
            let alone = graph_in(limit, &walk(0x200, order, second).collect::<Vec<_>>());
            assert_eq!(graph.unused_bytes(), alone.unused_bytes(), "{order:?}");
        }
    }
    // Without static variables: the objects of a walk reported in several events belong together.
    let mut later = rows(true, &[&[0x300, 24, 1, 0]], 0);
    later[0] = 1;
    let nodes = |object: u64| (18, rows(true, &[&[object, 24, 1, 0]], 0));
    let graph = graph(&[(16, local(0x100)), nodes(0x100), (18, later.clone()), nodes(0x200), (18, later), (16, local(0x200))]);
    assert_eq!((graph.addresses.as_slice(), graph.roots.len()), (&[0x200, 0x300][..], 1));
}

#[test]
fn graph_exceeding_the_memory_limit_is_not_written() {
    let nodes = |count: u64| {
        let all: Vec<_> = (0..count).map(|number| [0x100 + number, 24, 1, 0]).collect();
        rows(true, &all.iter().map(<[u64; 4]>::as_slice).collect::<Vec<_>>(), 0)
    };
    let write = |graph: HeapGraph| graph.write(&DumpInfo::default(), &mut Vec::new());
    let fits = graph_in(10_000, &[(18, nodes(400))]);
    assert!(fits.nodes.len() == 400 && write(fits).is_ok());
    // Later objects are not kept either.
    let full = graph_in(10_000, &[(18, nodes(1000)), (18, nodes(1))]);
    assert!(full.is_full() && full.nodes.capacity() == 0);
    assert!(matches!(write(full), Err(GraphError::TooLarge)));
    // So do objects that are only referenced, which need more memory than the references.
    let referencing = |targets: u64| {
        let all: Vec<_> = (0..targets).map(|target| [0x9000 + target, 0]).collect();
        let edges = rows(true, &all.iter().map(<[u64; 2]>::as_slice).collect::<Vec<_>>(), 4);
        graph_in(10_000, &[(18, rows(true, &[&[0x100, 24, 1, targets]], 0)), (19, edges)])
    };
    assert!(write(referencing(100)).is_ok());
    assert!(!referencing(500).is_full() && matches!(write(referencing(500)), Err(GraphError::TooLarge)));
    let not_collected = graph_in(0, &[(18, nodes(1000))]);
    assert!(!not_collected.is_full() && not_collected.nodes.is_empty());
}

#[test]
fn empty_graph_is_written() {
    let (nodes, root, total) = read(&file(HeapGraph::default()));
    assert_eq!((nodes[root].kind.as_str(), total), ("[.NET Roots]", 0));
}

proptest! {
    #[test]
    fn numbers_round_trip(value: i32) {
        for value in [value, value >> 8, value >> 16, value >> 24] {
            let mut text = Vec::new();
            put(&mut text, value);
            prop_assert!(text.len() <= 5);
            prop_assert_eq!(reader::number(&mut &text[..]), value);
        }
    }
}
