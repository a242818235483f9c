//! The nettrace decoder over real captures. `captures/expected.json` contains the results of an independent reader.

#[path = "support/captures.rs"]
mod captures;

use std::hash::{DefaultHasher, Hash, Hasher};

use dn_top::analysis::Throughput;
use dn_top::nettrace::{BlockScanner, Counts, Decoder, Ending, Event, Limits, Loss, Metadata, Problem, SequencePoint, Sink, TraceHeader};
use serde_json::Value;

use captures::captures;

fn capture(name: &str) -> Vec<u8> {
    captures::unpack(&captures().join(format!("{name}.xz")))
}

fn expected() -> serde_json::Map<String, Value> {
    let text = std::fs::read_to_string(captures().join("expected.json")).expect("expected figures");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the results of the decoder, in the form of the expected figures.
fn found(bytes: &[u8]) -> Value {
    let (mut decoder, mut throughput) = (Decoder::new(Limits::default()), Throughput::default());
    decoder.feed(bytes, &mut throughput).expect("a readable stream");
    let ending = decoder.finish(&mut throughput);
    assert_eq!(decoder.complete_bytes(), bytes.len() as u64);
    assert_eq!(throughput.problems(), []);
    let totals = throughput.snapshot();
    let trace = throughput.trace().expect("a trace header");
    let counts: Vec<_> = throughput.counts().iter().map(|kind| serde_json::json!([kind.provider, kind.event_id, kind.count])).collect();
    serde_json::json!({
        "format_version": trace.format_version, "complete": ending == Ending::Complete, "pointer_size": trace.pointer_size,
        "process_id": trace.process_id, "processors": trace.processors, "events": totals.events, "dropped": totals.dropped,
        "stacks": totals.stacks, "threads": totals.threads, "sequence_points": totals.sequence_points, "counts": counts,
    })
}

#[test]
fn decoder_matches_independent_reader() {
    let expected = expected();
    assert!(!expected.is_empty());
    for (name, mut figures) in expected {
        for kind in figures["counts"].as_array_mut().expect("counts") {
            *kind = serde_json::json!([kind["provider"], kind["id"], kind["count"]]);
        }
        assert_eq!(found(&capture(&name)), figures, "{name}");
    }
}

/// A running hash of all calls to a sink, with one entry per event.
#[derive(Default)]
struct Digest {
    hasher: DefaultHasher,
    events: Vec<u64>,
}

impl Sink for Digest {
    fn metadata(&mut self, metadata: &Metadata) {
        metadata.hash(&mut self.hasher);
    }

    fn event(&mut self, event: &Event<'_>) {
        (event.metadata.index, event.timestamp(), event.thread(), event.capture_thread()).hash(&mut self.hasher);
        (event.processor(), event.sequence_number(), event.activity_id(), event.payload).hash(&mut self.hasher);
        event.stack().map(|stack| stack.as_bytes()).hash(&mut self.hasher);
        event.values().for_each(|(field, value)| format!("{} {value:?}", field.name).len().hash(&mut self.hasher));
        self.events.push(self.hasher.finish());
    }

    fn loss(&mut self, loss: &Loss) {
        (loss.count, loss.capture_thread, loss.timestamp).hash(&mut self.hasher);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        (point.timestamp, point.threads).hash(&mut self.hasher);
    }
}

fn digest<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Digest, Ending) {
    let (mut decoder, mut digest) = (Decoder::new(Limits::default()), Digest::default());
    for piece in pieces {
        decoder.feed(piece, &mut digest).expect("a readable stream");
    }
    let ending = decoder.finish(&mut digest);
    (digest, ending)
}

/// Returns a pseudorandom generator with a fixed seed.
fn rng() -> impl FnMut(usize) -> usize {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

const SPLIT_CAPTURES: [&str; 2] = ["net9-heavy-norundown.nettrace", "v6-record-trace-oncpu-offcpu.nettrace"];

#[test]
fn decoding_is_independent_of_chunk_size() {
    let mut rng = rng();
    for name in SPLIT_CAPTURES {
        let bytes = capture(name);
        let (whole, ending) = digest(std::iter::once(&bytes[..]));
        assert_eq!(ending, Ending::Complete);
        let mut rest = &bytes[..];
        let random = std::iter::from_fn(|| {
            let (piece, more) = rest.split_at(rest.len().min(1 + rng(70_000)));
            rest = more;
            (!piece.is_empty()).then_some(piece)
        });
        assert!(digest(random).0.events == whole.events, "{name} in random pieces");
        assert!(digest(bytes.chunks(1)).0.events == whole.events, "{name} byte by byte");
    }
}

#[test]
fn truncated_capture_has_events_before_the_cut() {
    let mut rng = rng();
    for name in SPLIT_CAPTURES {
        let bytes = capture(name);
        let (whole, _) = digest(std::iter::once(&bytes[..]));
        let mut cuts: Vec<_> = (0..20).map(|_| rng(bytes.len())).collect();
        cuts.push(bytes.len() - 1);
        cuts.sort_unstable();
        let mut before = 0;
        for cut in cuts {
            let (part, ending) = digest(std::iter::once(&bytes[..cut]));
            assert!(matches!(ending, Ending::Truncated { .. }), "{name} at {cut}");
            assert!(part.events.len() >= before && whole.events.starts_with(&part.events), "{name} at {cut}");
            before = part.events.len();
        }
        assert_eq!(before, whole.events.len(), "{name}: only its end is missing");
    }
}

/// Counts events, and how many of them were counted by whole blocks.
#[derive(Default)]
struct Tally {
    throughput: Throughput,
    counted: u64,
}

impl Sink for Tally {
    fn trace(&mut self, header: &TraceHeader) {
        Sink::trace(&mut self.throughput, header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.throughput.metadata(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.throughput.event(event);
    }

    fn counted(&mut self, counts: &Counts<'_>) -> bool {
        let is_taken = self.throughput.counted(counts);
        self.counted += if is_taken { counts.kinds.iter().map(|kind| kind.events).sum() } else { 0 };
        is_taken
    }

    fn stacks(&mut self, count: u32) {
        self.throughput.stacks(count);
    }

    fn loss(&mut self, loss: &Loss) {
        self.throughput.loss(loss);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.throughput.sequence_point(point);
    }

    fn problem(&mut self, problem: &Problem) {
        self.throughput.problem(problem);
    }
}

impl Tally {
    /// Formats all results as text.
    fn words(&self, decoder: &Decoder, ending: &Ending) -> String {
        let Self { throughput: all, .. } = self;
        format!("{ending:?} {:?} {:?} {:?} {:?} {:?}", decoder.trace(), all.snapshot(), all.span(), all.counts(), all.problems())
    }
}

/// Reads a stream in pieces of at most `most` bytes, and counts blocks before they are decoded.
fn counted_ahead(bytes: &[u8], most: usize) -> (String, u64) {
    let (mut scanner, mut decoder, mut tally) = (BlockScanner::new(Limits::default()), Decoder::new(Limits::default()), Tally::default());
    let (mut from, mut to) = (0, 0);
    while from < bytes.len() {
        let is_last = to == bytes.len();
        to = bytes.len().min(from + most);
        let here = &bytes[from..to];
        let mut cut = scanner.scan(here);
        if is_last || cut.size() == 0 && here.len() == most {
            cut.extend(here.len());
        }
        cut.count(here);
        from += cut.size();
        if decoder.feed_scanned(here, cut, &mut tally).is_err() {
            break;
        }
    }
    let ending = decoder.finish(&mut tally);
    (tally.words(&decoder, &ending), tally.counted)
}

fn decoded(bytes: &[u8]) -> String {
    let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Tally::default());
    let _ = decoder.feed(bytes, &mut tally);
    let ending = decoder.finish(&mut tally);
    tally.words(&decoder, &ending)
}

#[test]
fn counting_blocks_ahead_does_not_change_results() {
    for name in expected().keys() {
        let bytes = capture(name);
        let (expected, total) = (decoded(&bytes), found(&bytes)["events"].as_u64().expect("a number"));
        for most in [200_000, 1 << 20] {
            let (found, counted) = counted_ahead(&bytes, most);
            assert_eq!(found, expected, "{name}, {most} bytes at a time");
            eprintln!("{name}, {most} bytes at a time: {counted} of {total} events counted ahead");
            assert!(counted > 0, "{name}: nothing was counted ahead");
        }
    }
}

#[test]
fn counting_damaged_blocks_ahead_does_not_change_results() {
    let mut rng = rng();
    for name in SPLIT_CAPTURES {
        let whole = capture(name);
        let whole = &whole[..whole.len().min(600_000)];
        for round in 0..60 {
            let mut bytes = whole[..whole.len() - rng(1000)].to_vec();
            for _ in 0..round % 5 {
                let at = rng(bytes.len());
                bytes[at] = rng(256) as u8;
            }
            assert_eq!(counted_ahead(&bytes, 150_000).0, decoded(&bytes), "{name}, round {round}");
        }
    }
}
