//! Bodies of the fuzz targets: each accepts any bytes, and must neither panic, nor hang, nor use unbounded memory.
//!
//! They are called by the fuzz targets in this folder, and by `tests/fuzz.rs` in the ordinary test suite.

pub(crate) mod others;
mod script;
pub(crate) mod terminal;

use std::hash::{DefaultHasher, Hash, Hasher};

use dn_top::analysis::{HeapType, Live, SampleCount, SampleFilter};
use dn_top::clr::manifest;
use dn_top::clr::payload::{self, Fields, Payload};
use dn_top::export::{DumpInfo, HeapDump, HeapGraph};
use dn_top::nettrace::{Decoder, Encoder, Ending, Event, Limits, Loss, Metadata, Problem, SequencePoint, Sink, TraceHeader, Value};

pub(crate) use script::ScriptRecorder;
use script::{PROVIDERS, script};

/// Name and body of a target.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets.
pub(crate) const TARGETS: [Target; 13] = [
    ("stream", stream),
    ("blocks", blocks),
    ("payloads", payloads),
    ("analyses", analyses),
    ("text", terminal::text),
    ("keys", terminal::keys),
    ("findings", findings),
    ("heap", heap),
    ("flight", others::flight),
    ("protocol", others::protocol),
    ("service", others::service),
    ("machine", others::machine),
    ("words", others::words),
];

/// The bytes are a stream. Decoding is independent of chunking, and the salvaged stream has the same events.
pub(crate) fn stream(bytes: &[u8]) {
    let (whole, ending, decoder) = decode(std::iter::once(bytes));
    let (pieces, same, _) = decode(bytes.chunks(1 + bytes.len() % 97));
    assert_eq!((whole.calls, whole.events), (pieces.calls, pieces.events), "cut in pieces");
    assert_eq!(ending, same);
    let Some(repair) = decoder.repair().filter(|_| !ending.is_complete()) else { return };
    let mut salvaged = bytes[..repair.keep as usize].to_vec();
    if let Some((at, patch)) = repair.patch {
        salvaged[at as usize..at as usize + 4].copy_from_slice(&patch);
    }
    salvaged.extend(repair.append);
    let (kept, ending, _) = decode(std::iter::once(&salvaged[..]));
    assert_eq!((ending, kept.events), (Ending::Complete, whole.events), "salvaged");
}

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Digest, Ending, Decoder) {
    let (mut decoder, mut digest) = (Decoder::new(Limits::default()), Digest::default());
    for piece in pieces {
        if decoder.feed(piece, &mut digest).is_err() {
            break;
        }
    }
    let ending = decoder.finish(&mut digest);
    (digest, ending, decoder)
}

/// Digest of the calls to a sink.
#[derive(Default)]
struct Digest {
    calls: u64,
    events: u64,
}

impl Digest {
    fn add(&mut self, call: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.calls, call).hash(&mut hasher);
        self.calls = hasher.finish();
    }
}

impl Sink for Digest {
    fn metadata(&mut self, metadata: &Metadata) {
        self.add(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        let mut hasher = DefaultHasher::new();
        (self.events, event.metadata.index, event.timestamp(), event.thread(), event.capture_thread()).hash(&mut hasher);
        (event.processor(), event.sequence_number(), event.is_sorted(), event.payload).hash(&mut hasher);
        (event.activity_id(), event.related_activity_id(), event.labels().count()).hash(&mut hasher);
        event.stack().map(|stack| stack.as_bytes()).hash(&mut hasher);
        let mut left = event.payload.len() + 1000;
        event.values().for_each(|(field, value)| read(&field.name, &value, &mut left, &mut hasher));
        self.events = hasher.finish();
    }

    fn stacks(&mut self, count: u32) {
        self.add(count);
    }

    fn loss(&mut self, loss: &Loss) {
        self.add((loss.count, loss.kind, loss.capture_thread, loss.timestamp));
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.add((point.timestamp, point.threads));
    }

    fn problem(&mut self, problem: &Problem) {
        self.add(problem.to_string());
    }
}

/// Reads a value recursively, up to a limit.
fn read(name: &str, value: &Value<'_>, left: &mut usize, hasher: &mut impl Hasher) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    name.hash(hasher);
    match value {
        Value::Object(values) => values.clone().for_each(|(field, value)| read(&field.name, &value, left, hasher)),
        Value::Array(elements) => elements.clone().for_each(|value| read("", &value, left, hasher)),
        Value::Text(text) => text.to_string().hash(hasher),
        plain => format!("{plain:?}").hash(hasher),
    }
}

/// The bytes are the contents of well-formed blocks: first V4 or V6, then the kind, size and body of each block.
pub(crate) fn blocks(bytes: &[u8]) {
    stream(&framed(bytes));
}

/// The same, with every analysis. The results must be consistent.
pub(crate) fn findings(bytes: &[u8]) {
    let mut live = Live::default().with_recent_events();
    let mut decoder = Decoder::new(Limits::default());
    // Everything before malformed data is analyzed.
    let _ = decoder.feed(&framed(bytes), &mut live);
    decoder.finish(&mut live);
    check(&live, live.newest());
    live.recent();
}

/// Returns the stream of these blocks.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let Some((format, mut rest)) = bytes.split_first() else { return Vec::new() };
    let v6 = format & 1 != 0;
    let mut out = if v6 { v6_start() } else { Encoder::new(TraceHeader::default()).take() };
    while let [kind, low, high, more @ ..] = rest {
        let (body, more) = more.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(more.len()));
        rest = more;
        if v6 { put_v6(&mut out, 2 + kind % 8, body) } else { put_v4(&mut out, V4_BLOCKS[usize::from(*kind) % V4_BLOCKS.len()], body) }
    }
    if format & 2 != 0 {
        out.extend(if v6 { &[0; 4][..] } else { &[1] });
    }
    out
}

/// Names of the V4 blocks; the last is written by no runtime.
pub(crate) const V4_BLOCKS: [&str; 5] = ["EventBlock", "MetadataBlock", "StackBlock", "SPBlock", "NewBlock"];

fn v6_start() -> Vec<u8> {
    let mut out = b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
    // A trace block without a time, with nanoseconds, pointers of 8 bytes, and nothing else.
    let mut body = vec![0; 24];
    body.extend(1_000_000_000_u64.to_le_bytes());
    body.extend([8, 0, 0, 0, 0, 0, 0, 0]);
    put_v6(&mut out, 1, &body);
    out
}

fn put_v6(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.extend((body.len() as u32 | u32::from(kind) << 24).to_le_bytes());
    out.extend(body);
}

fn put_v4(out: &mut Vec<u8>, name: &str, body: &[u8]) {
    out.extend([5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0]);
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.as_bytes());
    out.push(6);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(vec![0; out.len().wrapping_neg() % 4]);
    out.extend(body);
    out.push(6);
}

/// The bytes are the payload of every kind of event that has no metadata of its own: version, pointer size, payload.
pub(crate) fn payloads(bytes: &[u8]) {
    let [version, pointer, payload @ ..] = bytes else { return };
    let fields = Fields::new(payload, u32::from(version % 6), if pointer & 1 == 0 { 8 } else { 4 });
    macro_rules! read {
        ($($view:ident)*) => { $(if let Some(view) = payload::$view::read(fields) { std::hint::black_box(format!("{view:?}")); })* };
    }
    read!(ContentionStart ContentionStop ExceptionThrown AllocationSampled AllocationTick GcEnd GcStart HeapStats SuspendBegin);
    read!(AssemblyLoad AssemblyLoadStop ModuleLoad BackgroundJit JittingStarted MethodBody MethodVerbose ProcessInfo RuntimeInformation);
    read!(SampleType Adjustment AdjustmentSample MinMaxThreads Workers);
    if let Some(types) = payload::BulkType::read(fields) {
        assert!(types.count() <= payload.len());
    }
    if let Some(nodes) = payload::BulkNode::read(fields) {
        assert!(nodes.rows().map(|node| node.edges & 1).sum::<u64>() <= payload.len() as u64);
    }
    if let Some(roots) = payload::BulkRootEdge::read(fields) {
        assert!(roots.rows().map(|root| root.object & 1).sum::<u64>() <= payload.len() as u64);
    }
    if let Some(edges) = payload::BulkWeakTableEdge::read(fields) {
        assert!(edges.rows().map(|edge| edge.key & 1).sum::<u64>() <= payload.len() as u64);
    }
    if let Some(statics) = payload::BulkRootStaticVariable::read(fields) {
        assert!(statics.count() <= payload.len());
    }
    for (provider, id) in PROVIDERS.iter().flat_map(|provider| (0..320).map(move |id| (provider, id))) {
        manifest::read(provider, id, payload, if pointer & 1 == 0 { 8 } else { 4 }, |field| _ = std::hint::black_box(field));
    }
    if let Some(edges) = payload::BulkEdge::read(fields) {
        assert!(edges.rows().map(|edge| edge.target & 1).sum::<u64>() <= payload.len() as u64);
    }
}

/// The bytes are a `.gcdump` file. The results of reading it must be consistent.
pub(crate) fn heap(bytes: &[u8]) {
    let Ok(dump) = HeapDump::read(bytes) else { return };
    let (heap, retention) = (&dump.heap, dump.retention().expect("small enough"));
    let sum = |of: fn(&HeapType) -> u64| heap.types.iter().map(of).sum::<u64>();
    assert_eq!((sum(|of| of.objects) + heap.others.1, sum(|of| of.bytes) + heap.others.2), (heap.objects, heap.bytes));
    assert!(heap.objects + heap.references <= bytes.len() as u64 && retention.unreached <= heap.objects);
    for (of, retained) in heap.types.iter().zip(&retention.types) {
        let retained = retained.as_ref().expect("every type is known");
        assert!((of.bytes..=heap.bytes).contains(&retained.bytes), "{of:?}: {retained:?}");
    }
}

/// The bytes are a script of events. The results of every analysis must be consistent.
pub(crate) fn analyses(bytes: &[u8]) {
    let mut sink = (Live::default().with_recent_events(), HeapGraph::new(1 << 30));
    let mut decoder = Decoder::new(Limits::default());
    decoder.feed(&script(bytes), &mut sink).expect("a readable stream");
    assert!(decoder.finish(&mut sink).is_complete());
    let (mut live, graph) = sink;
    // A graph that exceeds the limits is refused.
    let _ = graph.write(&DumpInfo::default(), &mut std::io::sink());
    for now in [live.newest(), 0, i64::MAX, i64::MIN] {
        check(&live, now);
    }
    let recent = live.recent();
    assert!(recent.events.len() as u64 + recent.skipped <= recent.seen && recent.seen <= live.throughput().snapshot().events);
}

fn check(live: &Live, now: i64) {
    let snapshot = live.snapshot(now);
    let gc = &snapshot.gc;
    assert_eq!(gc.causes.iter().map(|cause| cause.count).sum::<u64>(), gc.collections.iter().sum::<u64>());
    let exceptions = &snapshot.exceptions;
    assert_eq!(exceptions.types.iter().map(|named| named.count).sum::<u64>() + exceptions.others, exceptions.thrown);
    assert!(snapshot.contention.ended <= snapshot.contention.count);
    assert_eq!(snapshot.jit.by_tier.iter().map(|(_, tier)| tier.bodies).sum::<u64>(), snapshot.jit.bodies);
    assert!(snapshot.unreadable <= snapshot.totals.events);
    let methods = live.profile().methods(SampleFilter::ALL, usize::MAX);
    assert_eq!(
        methods.methods.iter().map(|method| method.own.all()).sum::<u64>() + methods.folded + methods.without_stack,
        methods.samples.all()
    );
    assert_eq!(methods.threads.iter().map(|thread| thread.samples.all()).sum::<u64>(), methods.samples.all());
    let profile = live.profile();
    let tree = profile.count(SampleFilter::ALL).call_tree(SampleCount::all, usize::MAX);
    let roots = tree.iter().filter(|node| node.depth == 0).map(|node| node.total.all()).sum::<u64>();
    assert_eq!(roots + methods.without_stack, methods.samples.all());
    live.profile().count(SampleFilter::BUSY).stacks(10);
    if let Some(heap) = live.heap() {
        assert_eq!(heap.types.iter().map(|named| named.objects).sum::<u64>() + heap.others.1, heap.objects);
    }
}
