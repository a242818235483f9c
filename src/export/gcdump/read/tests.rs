//! Files as other tools write them, built from the specification; dn-top's own files are covered by the tests of the parent module.

use super::*;
use crate::analysis::{PathStep, RetainedType};
use crate::wire::Put;
use proptest::prelude::*;

/// A node: type, size if it differs from that of the type, address, targets.
type NodeSpec<'a> = (i32, Option<i32>, u64, &'a [i32]);

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_u32(text.len() as u32);
    out.put(text.as_bytes());
}

fn put_begin(out: &mut Vec<u8>, name: &str, version: u32, oldest_reader: u32) {
    out.put(&[4, 4, 1]);
    out.put_u32(version);
    out.put_u32(oldest_reader);
    put_text(out, name);
    out.put_u8(6);
}

/// Writes a number in five bytes, which may be longer than necessary.
fn put_number(out: &mut Vec<u8>, value: i32) {
    let byte = |bits: u32| (i64::from(value) >> bits) as u8 & 0x7f;
    out.put(&[byte(28) | 0x80, byte(21) | 0x80, byte(14) | 0x80, byte(7) | 0x80, byte(0)]);
}

/// Builds a file as PerfView does: types with their sizes and modules, nodes, and the sampling multiplier.
fn file(version: u32, oldest_reader: u32, types: &[(&str, i32, &str)], nodes: &[NodeSpec<'_>], multiplier: f32) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, "!FastSerialization.1");
    put_begin(&mut out, "GCHeapDump", version, 8);
    put_begin(&mut out, "Graphs.MemoryGraph", 1, oldest_reader);
    out.put_u64(0);
    out.put_u32(0);
    out.put_u32(types.len() as u32);
    for (name, size, module) in types {
        put_text(&mut out, name);
        out.put_u32(*size as u32);
        if module.is_empty() { out.put_u32(u32::MAX) } else { put_text(&mut out, module) }
    }
    let mut text = Vec::new();
    out.put_u32(nodes.len() as u32);
    for (number, (kind, size, _, targets)) in nodes.iter().enumerate() {
        out.put_u32(text.len() as u32);
        put_number(&mut text, kind << 1 | i32::from(size.is_some()));
        size.iter().for_each(|size| put_number(&mut text, *size));
        put_number(&mut text, targets.len() as i32);
        targets.iter().for_each(|target| put_number(&mut text, target - number as i32));
    }
    out.put_u32(text.len() as u32);
    out.put(&text);
    out.put_u32(nodes.len() as u32);
    nodes.iter().for_each(|(_, _, address, _)| out.put_u64(*address));
    // 32-bit pointers, as in the first versions of PerfView; then the end of the graph and the pointer size again.
    out.put(&[8, 0, 6, 0]);
    out.put(&multiplier.to_le_bytes());
    out.put(&1.0_f32.to_le_bytes());
    out
}

const TYPES: [(&str, i32, &str); 10] = [
    ("UNDEFINED", 0, ""),
    ("[.NET Roots]", 0, ""),
    ("[static vars]", 0, ""),
    ("[static var Shop.Cache.s_all]", 0, ""),
    ("[Pinned handles]", 0, ""),
    ("Shop.Cache", 24, r"C:\shop\Shop.dll"),
    ("Shop.Item[] (Ptrs,ElemSize=8)", -1, r"C:\shop\Shop.dll"),
    ("Shop.Item[] (Bytes > 1K,Ptrs,ElemSize=8)", -1, r"C:\shop\Shop.dll"),
    ("Shop.Item", 32, "/shop/Shop.dll"),
    ("", 16, ""),
];

/// Roots; the cache, two arrays, an item; an object that was never described; one whose type has no name.
const NODES: [NodeSpec<'static>; 10] = [
    (1, None, 0, &[1, 3]),
    (2, None, 0, &[2]),
    (3, None, 0, &[4]),
    (4, None, 0, &[9]),
    (5, None, 0x100, &[5, 6]),
    (6, Some(64), 0x200, &[7, 8]),
    (7, Some(5000), 0x300, &[7]),
    (8, None, 0x400, &[]),
    (0, None, 0x500, &[]),
    (9, None, 0x600, &[]),
];

fn describe_paths(of: &RetainedType) -> Vec<String> {
    let step = |step: &PathStep| match step {
        PathStep::Objects { name, .. } => name.clone(),
        PathStep::Omitted(count) => count.to_string(),
    };
    of.paths.iter().map(|path| format!("{}: {}", path.root, path.steps.iter().map(step).collect::<Vec<_>>().join(" > "))).collect()
}

#[test]
fn names_of_generated_types_are_restored() {
    for (stored, expected) in [
        ("Shop+[]c__DisplayClass1_0", "Shop+<>c__DisplayClass1_0"),
        ("[]c__DisplayClass5_0<Shop.Item[],Shop.Cart>[]", "<>c__DisplayClass5_0<Shop.Item[],Shop.Cart>[]"),
        ("Shop+[]c+<<Load>b__0_0>d", "Shop+<>c+<<Load>b__0_0>d"),
        ("[]f__AnonymousType0<System.Byte[][]>", "<>f__AnonymousType0<System.Byte[][]>"),
        ("Shop.Item[][]", "Shop.Item[][]"),
        ("Shop.Item[,]", "Shop.Item[,]"),
        ("", ""),
    ] {
        assert_eq!(with_angle_brackets(stored), expected);
    }
}

#[test]
fn perfview_file_is_read() {
    let dump = HeapDump::read(&file(10, 0, &TYPES, &NODES, 1.0)).unwrap();
    let heap = &dump.heap;
    assert_eq!((heap.objects, heap.bytes, heap.references), (5, 24 + 5064 + 32 + 16, 5));
    let found: Vec<_> = heap.types.iter().map(|of| (of.name.as_str(), of.module.as_str(), of.objects, of.bytes)).collect();
    let expected = [("Shop.Item[]", "Shop", 2, 5064), ("Shop.Item", "Shop", 1, 32), ("Shop.Cache", "Shop", 1, 24), ("", "", 1, 16)];
    assert_eq!(found, expected, "types of one name are one, whatever is noted behind it");
    assert_eq!((heap.problems.as_slice(), heap.has_all_references()), (&[HeapProblem::TypesUnnamed(1)][..], true));
    let retention = dump.retention().unwrap();
    let of = |at: usize| retention.types[at].as_ref().unwrap();
    assert_eq!([0, 1, 2, 3].map(|at| of(at).bytes), [5064, 32, 24 + 5064 + 32, 16]);
    assert_eq!(describe_paths(of(1)), ["static variable s_all (Shop.Cache): Shop.Cache > Shop.Item[] > Shop.Item"]);
    assert_eq!((describe_paths(of(3)), retention.unreached), (vec!["pinned handle: ".to_owned()], 0));
}

#[test]
fn an_unreadable_file_is_an_error() {
    let refused = |bytes: &[u8]| HeapDump::read(bytes).unwrap_err();
    for (bytes, words) in [
        (b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec(), "it is not a .gcdump file"),
        (file(10, 0, &TYPES, &NODES, 1.0)[..99].to_vec(), "it is cut off or damaged: at byte 96: 4 bytes needed, 3 left"),
        (file(7, 0, &TYPES, &NODES, 1.0), "it has version 7 of the format"),
        (file(10, 1, &TYPES, &NODES, 1.0), ".NET Native"),
        (file(10, 0, &TYPES[..9], &NODES, 1.0), "the type of an object is undefined"),
        (file(10, 0, &TYPES, &NODES[..9], 1.0), "has no target object"),
        (file(10, 0, &TYPES, &[(5, None, 0x100, &[-1])], 1.0), "has no target object"),
    ] {
        assert!(refused(&bytes).to_string().contains(words), "{words}: {}", refused(&bytes));
    }
    let mut other = Vec::new();
    put_text(&mut other, "!FastSerialization.1");
    put_begin(&mut other, "Trace", 4, 4);
    assert_eq!(refused(&other), DumpError::NotGcDump);
    assert_eq!((HeapDump::is_gcdump(&other), HeapDump::is_gcdump(&file(10, 0, &[], &[], 1.0)[..64])), (false, true));
}

#[test]
fn sampled_dump_is_reported_as_sampled() {
    let dump = HeapDump::read(&file(10, 0, &TYPES, &NODES, 4.0)).unwrap();
    assert_eq!(dump.heap.problems.last(), Some(&HeapProblem::Sampled(25)));
    assert!(!dump.heap.is_exact() && dump.retention().is_some());
    let dump = HeapDump::read(&file(10, 0, &TYPES, &NODES, 500.0)).unwrap();
    assert!(dump.heap.problems.last().unwrap().to_string().contains(" less than 1 % "), "{:?}", dump.heap.problems);
}

/// Otherwise a 3 KB name for each of millions of roots would exhaust the memory.
#[test]
fn roots_of_one_type_share_their_name() {
    let roots: Vec<NodeSpec<'_>> = (0..9).map(|_| (3, None, 0, &[9][..])).chain([(5, None, 0x100, &[][..])]).collect();
    let dump = HeapDump::read(&file(10, 0, &TYPES, &roots, 1.0)).unwrap();
    assert_eq!(describe_paths(dump.retention().unwrap().types[0].as_ref().unwrap()), ["static variable s_all (Shop.Cache): Shop.Cache"]);
    let graph = format!("{:?}", dump.graph.unwrap());
    assert_eq!(graph.matches("static variable s_all (Shop.Cache)").count(), 1, "{graph}");
}

/// With overlapping descriptions, a small file could contain a huge graph.
#[test]
fn overlapping_node_descriptions_are_rejected() {
    let mut nodes: Vec<NodeSpec<'_>> = (1..=10).map(|address| (5, None, address, &[][..])).collect();
    nodes[0].3 = &[0; 1000];
    let mut bytes = file(10, 0, &TYPES, &nodes, 1.0);
    assert_eq!(HeapDump::read(&bytes).unwrap().heap.references, 1000);
    let second = [5010_u32, 5020].map(u32::to_le_bytes).concat();
    let places = bytes.windows(8).position(|word| word == second).expect("where the second node is described");
    // All nodes get the description of the first.
    bytes[places..places + 9 * 4].fill(0);
    assert!(HeapDump::read(&bytes).unwrap_err().to_string().contains("more references"));
}

/// Names of dn-top, dotnet-gcdump and PerfView, and an unknown one.
#[test]
fn root_group_names_of_all_tools_are_unified() {
    for (groups, words) in [
        (&["[StrongHandle]", "[strong Handles]", "[Strong handles]"][..], "strong handle"),
        (&["[PinnedHandle]", "[pinning Handles]", "[Pinned handles]"], "pinned handle"),
        (&["[FinalizerQueue]", "[finalizer Handles]"], "finalizer queue"),
        (&["[local vars]"], "local variable"),
        (&["[appdomain Shop]"], "appdomain Shop"),
    ] {
        assert!(groups.iter().all(|group| root(group, false).1 == words), "{words}");
    }
    assert_eq!(root("[static var A.b]", true), (0, "thread-static variable b (A)".to_owned()));
    for (group, words) in [
        ("[static var b]", "b"),
        ("[static var N.List<N.Item>.s_all]", "s_all (N.List<N.Item>)"),
        ("[static var N.A.<N.IB.C>k__BackingField]", "<N.IB.C>k__BackingField (N.A)"),
        ("[static var N.A+<>c.<>9__0_0]", "<>9__0_0 (N.A+<>c)"),
        ("[static var N.A[].]", " (N.A[])"),
    ] {
        assert_eq!(root(group, false), (0, format!("static variable {words}")));
    }
}

proptest! {
    #[test]
    fn damaged_file_is_an_error_or_a_valid_graph(cut: prop::sample::Index, changes: Vec<(prop::sample::Index, u8)>) {
        let whole = file(10, 0, &TYPES, &NODES, 1.0);
        // Everything but the second multiplier is required.
        let cut = cut.index(whole.len());
        prop_assert_eq!(HeapDump::read(&whole[..cut]).is_err(), cut < whole.len() - 4);
        let mut bytes = whole;
        changes.iter().take(8).for_each(|(at, byte)| *at.get_mut(&mut bytes) = *byte);
        if let Ok(dump) = HeapDump::read(&bytes) {
            let listed: u64 = dump.heap.types.iter().map(|of| of.objects).sum();
            prop_assert!(listed + dump.heap.others.1 == dump.heap.objects && dump.heap.objects <= NODES.len() as u64);
            dump.retention();
        }
    }

    #[test]
    fn numbers_of_any_encoded_length_are_read(value: i32) {
        for value in [value, value >> 8, value >> 16, value >> 24] {
            let (mut short, mut long) = (Vec::new(), Vec::new());
            super::super::put(&mut short, value);
            put_number(&mut long, value);
            prop_assert_eq!([short, long].map(|text| number(&mut Reader::new(&text)).unwrap()), [value; 2]);
        }
    }
}
