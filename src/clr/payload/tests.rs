//! Tests with real payloads, all their prefixes, and arbitrary bytes.

use proptest::prelude::*;

use super::*;
use crate::wire::Put;

/// Builds a payload with pointers of eight bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.put_u8(value);
        self
    }
    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.0.put_u16(value);
        self
    }
    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.put_u32(value);
        self
    }
    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.put_u64(value);
        self
    }
    pub(crate) fn f64(self, value: f64) -> Self {
        self.u64(value.to_bits())
    }
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.0.put_utf16z(text);
        self
    }
}

fn read<'a, P: Payload<'a>>(bytes: &'a Bytes, version: u32) -> Option<P> {
    P::read(Fields::new(&bytes.0, version, 8))
}

/// Decodes a payload of the given version, which must need all of its bytes but the last `spare`, and must ignore any bytes after it.
fn exact<'a, P: Payload<'a> + std::fmt::Debug + PartialEq>(bytes: &'a Bytes, version: u32, spare: usize) -> P {
    for end in 0..bytes.0.len() - spare {
        assert_eq!(P::read(Fields::new(&bytes.0[..end], version, 8)), None, "{end} bytes of {}", bytes.0.len());
    }
    read(bytes, version).expect("a whole payload")
}

#[test]
fn gc_events_are_decoded() {
    let start = Bytes::default().u32(7).u32(2).u32(1).u32(1).u16(0).u64(0);
    let expected = GcStart { number: 7, generation: 2, reason: GcReason(1), kind: GcType::BACKGROUND };
    assert_eq!(exact::<GcStart>(&start, 2, 10), expected);
    assert_eq!((expected.reason.name(), expected.reason.is_induced(), expected.kind.name()), ("Induced", true, "background"));
    assert_eq!((GcReason(99).name(), GcType(99).name()), ("Unknown", "unknown"));
    assert_eq!(exact::<GcEnd>(&Bytes::default().u32(7).u32(2).u16(0), 1, 2), GcEnd { number: 7, generation: 2 });
    for (reason, for_gc) in [(0, false), (1, true), (2, false), (6, true), (7, false)] {
        assert_eq!(exact::<SuspendBegin>(&Bytes::default().u32(reason).u32(0).u16(0), 1, 6).is_for_gc(), for_gc);
    }
}

#[test]
fn both_versions_of_heap_stats_are_decoded() {
    let mut bytes = Bytes::default();
    for value in 1..=10 {
        bytes = bytes.u64(value);
    }
    let old = bytes.u32(11).u32(12).u32(13).u16(0);
    let stats = exact::<HeapStats>(&old, 1, 0);
    assert_eq!(stats.generations.map(|generation| (generation.size, generation.promoted)), [(1, 2), (3, 4), (5, 6), (7, 8)]);
    assert_eq!(stats.finalization_promoted_count, 10);
    assert_eq!((stats.pinned_objects, stats.handles, stats.pinned_heap), (11, 13, None));
    assert_eq!(old.0.len(), 94);
    let new = old.u64(14).u64(15);
    assert_eq!(new.0.len(), 110);
    assert_eq!(exact::<HeapStats>(&new, 2, 0).pinned_heap, Some(GenerationSize { size: 14, promoted: 15 }));
    assert_eq!(read::<HeapStats>(&new, 99).unwrap().pinned_heap, Some(GenerationSize { size: 14, promoted: 15 }), "a version to come");
}

#[test]
fn allocation_events_are_decoded() {
    let old = Bytes::default().u32(5).u32(1).u16(0).u64(106_000).u64(0x7f00).text("System.Byte[]").u32(0).u64(0x7fff);
    let tick = exact::<AllocationTick<'_>>(&old, 3, 0);
    assert_eq!((tick.amount, tick.kind, tick.object_size), (106_000, AllocationKind::Large, None));
    assert!(tick.type_name == *"System.Byte[]");
    assert_eq!(exact::<AllocationTick<'_>>(&old.u64(85_024), 4, 0).object_size, Some(85_024));
    let sampled = Bytes::default().u32(2).u16(0).u64(1).text("T").u64(2).u64(64).u64(3);
    let sampled = exact::<AllocationSampled<'_>>(&sampled, 0, 8);
    assert_eq!((sampled.kind, sampled.object_size), (AllocationKind::Pinned, 64));
    let weights = [0, 64, 102_400, 1 << 30, u64::MAX].map(|object_size| AllocationSampled { object_size, ..sampled }.weight());
    assert_eq!(weights, [102_400, 102_432, 161_994, 1 << 30, u64::MAX], "a large object stands for itself");
    let narrow = Bytes::default().u32(5).u32(0).u16(0).u64(9).u32(1).text("T").u32(0).u32(2).u64(16);
    let narrow = AllocationTick::read(Fields::new(&narrow.0, 4, 4)).unwrap();
    assert_eq!((narrow.kind, narrow.object_size), (AllocationKind::Small, Some(16)), "pointers of four bytes");
}

#[test]
fn exception_and_contention_events_are_decoded() {
    let thrown = Bytes::default().text("System.Exception").text("").u64(1).u32(0x8013_1509).u16(4).u16(0);
    let thrown = exact::<ExceptionThrown<'_>>(&thrown, 1, 2);
    assert!(thrown.type_name == *"System.Exception" && thrown.message.is_empty() && thrown.is_rethrown());
    assert_eq!(thrown.hresult, 0x8013_1509);
    let old = Bytes::default().u8(1).u16(0);
    assert_eq!(exact::<ContentionStart>(&old, 1, 0), ContentionStart { native: true, lock: None, owner: None });
    assert_eq!(exact::<ContentionStart>(&old.u64(5).u64(6).u64(7), 2, 0), ContentionStart { native: true, lock: Some(5), owner: Some(7) });
    let old = Bytes::default().u8(0).u16(0);
    assert_eq!(exact::<ContentionStop>(&old, 0, 0), ContentionStop { native: false, duration_ns: None });
    assert_eq!(exact::<ContentionStop>(&old.f64(1.5e6), 1, 0), ContentionStop { native: false, duration_ns: Some(1.5e6) });
}

#[test]
fn thread_pool_and_sample_events_are_decoded() {
    assert_eq!(exact::<Workers>(&Bytes::default().u32(4).u32(1).u16(0), 0, 6), Workers { active: 4 });
    let adjustment = exact::<Adjustment>(&Bytes::default().f64(12.5).u32(9).u32(6).u16(0), 0, 2);
    assert_eq!((adjustment.throughput, adjustment.workers, adjustment.reason), (12.5, 9, AdjustmentReason::STARVATION));
    assert_eq!((AdjustmentReason::STARVATION.name(), AdjustmentReason(99).name()), ("Starvation", "Unknown"));
    assert_eq!(exact::<AdjustmentSample>(&Bytes::default().f64(3.0).u16(0), 0, 2).throughput, 3.0);
    let bounds = exact::<MinMaxThreads>(&Bytes::default().u16(2).u16(32_767).u16(1).u16(1).u16(0), 0, 6);
    assert_eq!((bounds.min_workers, bounds.max_workers), (2, 32_767));
    for (number, kind) in [(0, SampleType::Error), (1, SampleType::External), (2, SampleType::Managed), (9, SampleType::Error)] {
        assert_eq!(exact::<SampleType>(&Bytes::default().u32(number), 0, 0), kind);
    }
}

#[test]
fn method_events_are_decoded() {
    let body = |flags| Bytes::default().u64(1).u64(2).u64(0x1000).u32(64).u32(0x0600_0001).u32(flags);
    let plain = body(0x188).u16(0).u64(0);
    assert_eq!(exact::<MethodBody>(&plain, 2, 10).start, 0x1000);
    let verbose = body(0x188).text("N.T").text("M").text("void  ()").u16(0);
    let verbose = exact::<MethodVerbose<'_>>(&verbose, 1, 2);
    assert!(verbose.namespace == *"N.T" && verbose.name == *"M" && verbose.signature == *"void  ()");
    for (flags, tier) in [
        (0x100, Tier::ReadyToRun),
        (0x106, Tier::ReadyToRun),
        (0x108, Tier::Optimized),
        (0x109, Tier::Optimized),
        (0x188, Tier::Tier0),
        (0x208, Tier::Tier1),
        (0x288, Tier::Osr),
        (0x308, Tier::Tier0Instrumented),
        (0x388, Tier::Tier1Instrumented),
        (0x88, Tier::MinOpt),
        (0x08, Tier::Unknown),
    ] {
        assert_eq!(exact::<MethodBody>(&body(flags), 0, 0).tier(), tier, "{flags:x}");
    }
    let started = Bytes::default().u64(1).u64(2).u32(3).u32(99).text("N.T").text("M").text("void  ()").u16(0);
    let started = read::<JittingStarted<'_>>(&started, 1).unwrap();
    assert!((started.method, started.il_size) == (1, 99) && started.name == *"M");
    assert_eq!(exact::<BackgroundJit>(&Bytes::default().u16(0).u32(5).u32(6), 0, 4).pending, 5);
}

#[test]
fn loader_and_process_events_are_decoded() {
    let module = Bytes::default().u64(1).u64(2).u32(0).u32(0).text("/a.dll").text("");
    let module = exact::<ModuleLoad<'_>>(&module, 1, 2);
    assert!(module.module == 1 && module.path == *"/a.dll");
    let assembly = Bytes::default().u64(1).u64(2).u64(3).u32(2).text("A, Version=1.0.0.0").u16(0);
    let assembly = exact::<AssemblyLoad<'_>>(&assembly, 1, 2);
    assert!((assembly.assembly, assembly.flags) == (1, 2) && assembly.full_name == *"A, Version=1.0.0.0");
    let stop = Bytes::default().u16(0).text("B").text("").text("A").text("Default").text("").u32(0).text("").text("").u32(1);
    let stop = exact::<AssemblyLoadStop<'_>>(&stop, 0, 8);
    assert!(stop.name == *"B" && stop.requested_by == *"A" && !stop.found);
    let information = Bytes::default().u16(0).u16(1).u16(4).u16(0).u16(0).u16(0).u16(9).u16(0).u16(7).u16(25).u32(0).u8(0).text("dotnet x");
    assert_eq!(exact::<RuntimeInformation>(&information, 0, 23).version, [9, 0, 7, 25]);
    let process = Bytes::default().text("dotnet x");
    assert!(exact::<ProcessInfo<'_>>(&process, 0, 0).command_line == *"dotnet x");
}

#[test]
fn rows_of_bulk_events_are_decoded() {
    let types = Bytes::default().u32(3).u16(0).u64(1).u64(2).u32(3).u32(0).u8(0).text("A`1[B]").u32(1).u64(9);
    let types = types.u64(4).u64(2).u32(3).u32(0).u8(0).text("C").u32(0);
    let names: Vec<_> = read::<BulkType<'_>>(&types, 0).unwrap().map(|named| (named.id, named.name.to_string())).collect();
    assert_eq!(names, [(1, "A`1[B]".to_owned()), (4, "C".to_owned())], "the third is missing");
    let nodes = Bytes::default().u32(5).u32(3).u16(0).u64(0x10).u64(24).u64(1).u64(2).u64(0x28).u64(32).u64(4).u64(0).u64(7);
    let nodes = read::<BulkNode<'_>>(&nodes, 0).unwrap();
    assert_eq!((nodes.index, nodes.count), (5, 3));
    let expected = [Node { address: 0x10, size: 24, type_id: 1, edges: 2 }, Node { address: 0x28, size: 32, type_id: 4, edges: 0 }];
    assert!(nodes.rows().eq(expected), "half a row is none");
    let edges = Bytes::default().u32(0).u32(1).u16(0).u64(0x28).u32(0).u64(0x28).u32(0);
    assert!(read::<BulkEdge<'_>>(&edges, 0).unwrap().rows().eq([Edge { target: 0x28 }]), "rows beyond the count do not count");
    let roots = Bytes::default().u32(4).u32(1).u16(0).u64(0x10).u8(2).u32(1).u64(0);
    let roots = read::<BulkRootEdge<'_>>(&roots, 0).unwrap();
    assert!(roots.index == 4 && roots.rows().eq([RootEdge { object: 0x10, kind: RootKind::Handle, flags: 1 }]));
    let dependents = Bytes::default().u32(6).u32(1).u16(0).u64(0x10).u64(0x28).u64(0);
    let dependents = read::<BulkWeakTableEdge<'_>>(&dependents, 0).unwrap();
    assert!(dependents.index == 6 && dependents.rows().eq([WeakTableEdge { key: 0x10, value: 0x28 }]));
    let narrow = Bytes::default().u32(0).u32(1).u16(0).u32(0x28).u32(0);
    let narrow = BulkEdge::read(Fields::new(&narrow.0, 0, 4)).unwrap();
    assert!(narrow.rows().eq([Edge { target: 0x28 }]));
}

proptest! {
    #[test]
    fn any_bytes_are_safe(bytes: Vec<u8>, version in 0_u32..6, narrow: bool) {
        let fields = Fields::new(&bytes, version, if narrow { 4 } else { 8 });
        let read = [
            GcStart::read(fields).is_some(), GcEnd::read(fields).is_some(), HeapStats::read(fields).is_some(),
            AllocationTick::read(fields).is_some(), AllocationSampled::read(fields).is_some(),
            ExceptionThrown::read(fields).is_some(), ContentionStart::read(fields).is_some(), ContentionStop::read(fields).is_some(),
            MethodVerbose::read(fields).is_some(), JittingStarted::read(fields).is_some(), ModuleLoad::read(fields).is_some(),
            AssemblyLoad::read(fields).is_some(), AssemblyLoadStop::read(fields).is_some(), RuntimeInformation::read(fields).is_some(),
        ];
        prop_assert!(bytes.len() >= 3 || read == [false; 14]);
        let rows = |count: Option<usize>| count.is_none_or(|count| count * 8 <= bytes.len());
        prop_assert!(rows(BulkType::read(fields).map(|types| types.take(bytes.len() + 1).count())));
        prop_assert!(rows(BulkNode::read(fields).map(|nodes| nodes.rows().count())));
        prop_assert!(rows(BulkEdge::read(fields).map(|edges| edges.rows().count())));
    }
}
