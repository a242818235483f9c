//! Runs every analysis over real captures, and checks their counts against the events in the captures, and their allocations.

#[path = "support/captures.rs"]
mod captures;

use allocation_counter::measure;
use captures::{CAPTURES, capture};
use dn_top::analysis::{Live, MethodTime, SampleCount, SampleFilter, SampledMethods, Snapshot};
use dn_top::nettrace::{Decoder, Encoder, Field, FieldType, Limits, Metadata, NewEvent, Sink, TraceHeader};
use dn_top::wire::Put;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// Their events are written when a recording stops.
const AT_STOP: [&str; 2] = ["Microsoft-Windows-DotNETRuntimeRundown", "Microsoft-DotNETCore-EventPipe"];
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const MB: u64 = 1 << 20;

fn analyze<S: Sink>(bytes: &[u8], mut sink: S) -> S {
    let mut decoder = Decoder::new(Limits::default());
    bytes.chunks(64 * 1024).for_each(|piece| decoder.feed(piece, &mut sink).expect("a readable stream"));
    assert!(decoder.finish(&mut sink).is_complete());
    sink
}

/// Returns the number of events of a provider with the given event IDs.
fn events(live: &Live, provider: &str, ids: &[u32]) -> u64 {
    let counts = live.throughput().counts();
    counts.iter().filter(|kind| kind.provider == provider && ids.contains(&kind.event_id)).map(|kind| kind.count).sum()
}

#[test]
fn analysis_counts_match_event_counts() {
    for name in CAPTURES {
        let live = analyze(&capture(name), Live::default());
        let Snapshot { unreadable, totals, rates, gc, exceptions, contention, jit, .. } = live.snapshot(live.newest());
        let runtime = |ids: &[u32]| events(&live, RUNTIME, ids);
        assert_eq!(unreadable, 0, "{name}");
        let counts = live.throughput().counts();
        let rundown: u64 = counts.iter().filter(|kind| AT_STOP.contains(&kind.provider.as_ref())).map(|kind| kind.count).sum();
        assert_eq!(rates.events.whole().1.iter().sum::<f64>(), (totals.events - rundown) as f64, "{name}");
        assert_eq!(rates.total_lost, totals.dropped, "{name}");
        assert_eq!(rates.gaps.iter().map(|gap| gap.count).sum::<u64>(), totals.dropped, "{name}: there are few enough gaps");
        assert_eq!(gc.collections.iter().sum::<u64>(), runtime(&[1]), "{name}");
        assert_eq!(gc.causes.iter().map(|cause| cause.count).sum::<u64>(), runtime(&[1]), "{name}");
        assert_eq!(exceptions.thrown, runtime(&[80]), "{name}");
        assert_eq!(exceptions.types.iter().map(|named| named.count).sum::<u64>() + exceptions.others, exceptions.thrown, "{name}");
        assert_eq!(contention.count - contention.start_lost + contention.native, runtime(&[81]), "{name}");
        assert_eq!(contention.sites.iter().map(|site| site.count).sum::<u64>(), contention.count, "{name}");
        assert_eq!(contention.sites.iter().map(|site| site.wait_ns).sum::<u64>() + contention.others_ns, contention.wait_ns, "{name}");
        assert_eq!(jit.bodies, runtime(&[141, 143]), "{name}");
        let allocations =
            gc.allocations.map(|found| (found.ticks, found.top.iter().map(|t| t.bytes).sum::<u64>() + found.others == found.bytes));
        assert_eq!(allocations.unwrap_or((0, true)), (runtime(&[10]), true), "{name}");
        let methods = live.profile().methods(SampleFilter::ALL, usize::MAX);
        assert_eq!(methods.samples.all(), events(&live, SAMPLER, &[0]), "{name}");
        let own: u64 = methods.methods.iter().map(|method| method.own.all()).sum();
        assert_eq!(own + methods.folded + methods.without_stack, methods.samples.all(), "{name}");
        assert_eq!(methods.threads.iter().map(|thread| thread.samples.all()).sum::<u64>(), methods.samples.all(), "{name}");
    }
}

/// Figures of one capture that were determined independently: its events were counted by hand.
#[test]
fn net31_capture_has_known_figures() {
    let live = analyze(&capture("net31-heavy"), Live::default());
    let snapshot = live.snapshot(live.newest());
    let gc = &snapshot.gc;
    assert_eq!((gc.collections, gc.induced, gc.pauses.count), ([1, 0, 1], 1, 2), "1331 suspensions are the sampler's");
    assert_eq!(gc.recent.iter().filter_map(|collection| collection.pause_ns).sum::<u64>(), gc.pauses.total_ns);
    for collection in &gc.recent {
        let (before, after, promoted) = (collection.heap_before.unwrap(), collection.heap_after.unwrap(), collection.promoted.unwrap());
        assert!(before > promoted && after >= promoted && before < 1 << 30, "{collection:?}");
    }
    assert_eq!(snapshot.exceptions.types[0].name, "System.InvalidOperationException");
    assert_eq!(snapshot.exceptions.types[0].last.frames[0], "P.Main.lambda_0");
    let heap = live.heap().expect("a walk over the heap");
    assert!(heap.is_exact(), "{:?}", heap.problems);
    assert_eq!((heap.objects, heap.bytes, heap.references, heap.types[0].name.as_str()), (8256, 11_704_818, 8554, "System.Byte[]"));
    let methods = live.profile().methods(SampleFilter::ALL, 10);
    assert_eq!((methods.unresolved, methods.without_stack, methods.folded), (0, 0, 0));
    assert!((1_000_000..1_300_000).contains(&methods.interval_ns.expect("samples")));
    let profile = live.profile();
    let all = profile.count(SampleFilter::ALL).call_tree(SampleCount::all, usize::MAX);
    assert_eq!(all.iter().map(|node| node.own.all()).sum::<u64>(), methods.samples.all());
}

/// Ranges of a recording, as selected on the time line.
#[test]
fn time_ranges_add_up_to_whole_recording() {
    let bytes = capture("net31-heavy");
    let whole = analyze(&bytes, Live::default());
    let middle = whole.newest() / 2;
    let parts = [i64::MIN..=middle, middle + 1..=i64::MAX].map(|window| analyze(&bytes, Live::within(window)));
    let figures = |live: &Live| {
        let snapshot = live.snapshot(live.newest());
        let methods = live.profile().methods(SampleFilter::ALL, 1);
        assert_eq!(methods.unresolved, 0, "methods are known in every part");
        [snapshot.totals.events, snapshot.exceptions.thrown, snapshot.gc.collections.iter().sum(), methods.samples.all()]
    };
    let sums = parts.iter().map(figures).fold([0; 4], |sums, part| std::array::from_fn(|i| sums[i] + part[i]));
    assert_eq!(sums, figures(&whole));
    assert!(parts.iter().all(|part| figures(part).iter().all(|figure| *figure < figures(&whole)[0])));
}

#[test]
fn analyzing_captures_uses_little_memory() {
    for name in CAPTURES {
        let bytes = capture(name);
        let mut events = 0;
        let info = measure(|| {
            let live = analyze(&bytes, Live::default());
            events = live.throughput().snapshot().events;
        });
        assert!(info.bytes_max < 16 * MB, "{name}: {info:?}");
        assert!(info.count_total * 10 < events, "{name}: {} allocations for {events} events", info.count_total);
    }
}

fn text(payload: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| payload.put_utf16z(text));
}

/// One event of every frequent kind, with its payload.
fn everyday() -> Vec<(Metadata, Vec<u8>)> {
    let native = |event_id, version, words: &[u32]| {
        let mut payload = Vec::new();
        words.iter().for_each(|word| payload.put_u32(*word));
        (Metadata { provider: RUNTIME.into(), event_id, version, ..Metadata::default() }, payload)
    };
    let described = |provider: &str, name: &str, opcode, fields: &[(&str, FieldType)], payload| {
        let fields = fields.iter().map(|(name, kind)| Field { name: (*name).into(), kind: kind.clone() }).collect();
        (Metadata { provider: provider.into(), name: name.into(), opcode, fields, ..Metadata::default() }, payload)
    };
    let mut exception = Vec::new();
    text(&mut exception, &["System.FormatException", "Input string was not in a correct format."]);
    exception.extend([0; 18]);
    let mut tick = vec![0; 10];
    tick.put_u64(100_000);
    tick.put_u64(1);
    text(&mut tick, &["System.String"]);
    tick.extend([0; 20]);
    let (mut log, mut gauge, mut counter, mut start) = (vec![2, 0, 0, 0], Vec::new(), Vec::new(), Vec::new());
    text(&mut log, &["Shop.Orders", "Order 7 is paid"]);
    text(&mut gauge, &["Shop", "heat", "room=1", "21.5"]);
    text(&mut counter, &["requests"]);
    counter.put_u64(1.5_f64.to_bits());
    text(&mut start, &["GET", "/orders?id=7"]);
    let strings = |names: &[&'static str]| names.iter().map(|name| (*name, FieldType::String)).collect::<Vec<_>>();
    vec![
        native(9, 1, &[1, 0, 0]),
        native(1, 2, &[7, 0, 0, 0, 0, 0, 0]),
        native(2, 1, &[7, 0, 0]),
        native(4, 1, &[0; 24]),
        native(3, 1, &[0]),
        (native(10, 3, &[]).0, tick),
        (native(80, 1, &[]).0, exception),
        native(81, 1, &[0]),
        native(91, 0, &[0]),
        native(50, 0, &[4, 0, 0]),
        native(55, 0, &[0, 0, 4, 3, 0]),
        (Metadata { provider: SAMPLER.into(), ..Metadata::default() }, vec![1, 0, 0, 0]),
        described(
            "Microsoft-Extensions-Logging",
            "FormattedMessage",
            None,
            &[("Level", FieldType::Int32), ("LoggerName", FieldType::String), ("FormattedMessage", FieldType::String)],
            log,
        ),
        described(
            "System.Diagnostics.Metrics",
            "GaugeValuePublished",
            None,
            &strings(&["meterName", "instrumentName", "tags", "lastValue"]),
            gauge,
        ),
        described("Shop", "EventCounters", None, &[("Name", FieldType::String), ("Increment", FieldType::Double)], counter),
        described("System.Net.Http", "RequestStart", Some(1), &strings(&["method", "path"]), start),
        described("System.Net.Http", "RequestStop", Some(2), &[], Vec::new()),
    ]
}

#[test]
fn repeated_events_allocate_nothing() {
    let header = TraceHeader::default();
    let mut encoder = Encoder::new(header);
    let kinds: Vec<_> = everyday().into_iter().map(|(record, payload)| (encoder.metadata(&record), payload)).collect();
    let rounds = |encoder: &mut Encoder, rounds: u64| {
        for round in 0..rounds {
            let stack = encoder.stack(&[round % 50 + 1, 2, 3, 4]);
            let thread = round % 8 + 1;
            for (metadata, payload) in &kinds {
                let event =
                    NewEvent { metadata: *metadata, thread, capture_thread: thread, stack, sorted: true, payload, ..NewEvent::default() };
                encoder.event(&NewEvent { activity_id: [thread as u8; 16], ..event });
            }
        }
        encoder.flush();
        encoder.take()
    };
    let (warm_up, stream) = (rounds(&mut encoder, 2000), rounds(&mut encoder, 2000));
    let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
    // Fed in one piece, so that the decoder does not have to assemble blocks.
    let mut feed = |bytes: &[u8]| decoder.feed(bytes, &mut live).expect("a readable stream");
    feed(&warm_up);
    let info = measure(|| feed(&stream));
    let snapshot = live.snapshot(live.newest());
    assert_eq!((snapshot.unreadable, snapshot.exceptions.thrown, snapshot.gc.pauses.count), (0, 4000, 4000));
    assert_eq!((snapshot.logs.by_level[2], snapshot.activities.operations[0].ended, snapshot.contention.ended), (4000, 4000, 4000));
    assert_eq!((snapshot.counters.counters.len(), live.profile().methods(SampleFilter::ALL, 1).samples.all()), (2, 4000));
    assert_eq!(info.count_total, 0, "{info:?}");
}

/// A report of samples runs no other analysis, and resolves only the names of methods that have samples.
#[test]
fn sample_only_analysis_matches_full_analysis() {
    for name in CAPTURES {
        let bytes = capture(name);
        let (live, sampled) = (analyze(&bytes, Live::default()), analyze(&bytes, SampledMethods::default()));
        assert!(!sampled.is_incomplete(), "{name}");
        for filter in [SampleFilter::ALL, SampleFilter::BUSY] {
            let (all, alone) = (live.profile().methods(filter, usize::MAX), sampled.profile().methods(filter, usize::MAX));
            assert_eq!(
                (all.samples, all.unresolved, all.folded, all.cut),
                (alone.samples, alone.unresolved, alone.folded, alone.cut),
                "{name}"
            );
            let row =
                |method: &MethodTime| (method.name.clone(), method.parameters.clone(), method.module.clone(), method.own, method.total);
            let sorted = |methods: &[MethodTime]| {
                let mut rows: Vec<_> = methods.iter().map(row).collect();
                rows.sort_by(|a, b| (&a.0, &a.1, &a.2).cmp(&(&b.0, &b.1, &b.2)));
                rows
            };
            assert_eq!(sorted(&all.methods), sorted(&alone.methods), "{name}");
        }
        assert!(sampled.symbols().methods() <= live.symbols().methods(), "{name}");
    }
}
