//! The bodies of the fuzz targets, on bytes that a property test makes up, and on captures that it damages. `tests/fuzz.sh` goes on where this ends.

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "fuzz/seeds.rs"]
mod seeds;

use std::time::{Duration, Instant};

use allocation_counter::measure;
use bodies::TARGETS;
use dn_top::analysis::{Live, Throughput};
use dn_top::nettrace::{Decoder, Encoder, Field, FieldType, Limits, Metadata, NewEvent, TraceHeader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

const MB: u64 = 1 << 20;

/// What is done to a seed: bytes are changed, taken out, put in, or said to be very many.
#[derive(Debug, Clone)]
enum Damage {
    Set(Index, u8),
    Cut(Index, Index),
    Insert(Index, Vec<u8>),
    Huge(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => any::<(Index, Index)>().prop_map(|(at, length)| Damage::Cut(at, length)),
        1 => (any::<Index>(), vec(any::<u8>(), 0..40)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => any::<Index>().prop_map(Damage::Huge),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            _ if bytes.len() < 8 => {}
            Self::Set(at, byte) => *at.get_mut(bytes) = *byte,
            Self::Cut(at, length) => {
                let at = at.index(bytes.len());
                bytes.drain(at..bytes.len().min(at + length.index(64)));
            }
            Self::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Huge(at) => {
                let at = at.index(bytes.len() - 4);
                bytes[at..at + 4].copy_from_slice(&[0xff; 4]);
            }
        }
    }
}

/// Runs a target and looks at what it takes: not more than a little, and a little for every byte.
fn run(target: fn(&[u8]), bytes: &[u8]) {
    let info = measure(|| target(bytes));
    assert!(info.bytes_max < 24 * MB + 256 * bytes.len() as u64, "{info:?} for {} bytes", bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..3000)) {
        TARGETS.iter().for_each(|(_, target)| run(*target, &bytes));
    }

    #[test]
    fn damaged_seeds_are_survived(which: Index, damages in vec(damage(), 1..12)) {
        run_damaged(&which, &damages);
    }
}

/// Damages a seed of each target.
fn run_damaged(which: &Index, damages: &[Damage]) {
    for (name, target) in TARGETS {
        let mut bytes = SEEDS.with(|seeds| which.get(&seeds.iter().find(|(of, _)| *of == name).expect("seeds").1).clone());
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        run(target, &bytes);
    }
}

/// The same for as many seconds as `DN_TOP_FUZZ_SECONDS` says; for half a minute where `CI` is true.
#[test]
fn damaged_seeds_are_survived_for_long() {
    let set = |name: &str| std::env::var(name).ok();
    let usual = if set("CI").as_deref() == Some("true") { 30 } else { 0 };
    let seconds = set("DN_TOP_FUZZ_SECONDS").map_or(usual, |text| text.parse().expect("DN_TOP_FUZZ_SECONDS: a number of seconds"));
    let begun = Instant::now();
    let config = ProptestConfig { cases: 64, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let outcome = runner.run(&(any::<Index>(), vec(damage(), 1..12)), |(which, damages)| {
            run_damaged(&which, &damages);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

thread_local! {
    static SEEDS: Vec<(&'static str, Vec<Vec<u8>>)> = TARGETS.map(|(name, _)| (name, seeds::seeds(name))).into();
}

#[test]
fn seeds_make_sense() {
    for (name, target) in TARGETS {
        let seeds = seeds::seeds(name);
        assert!(seeds.len() >= 5, "{name}: {} seeds", seeds.len());
        seeds.iter().for_each(|seed| run(target, seed));
    }
    // A script says the same as the stream that it was made from.
    let kinds = |bytes: &[u8]| {
        let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
        let _ = decoder.feed(bytes, &mut live);
        live.snapshot(live.newest())
    };
    let script = bodies::Scribe::script_of(&seeds::seeds("stream")[2]);
    assert!(!script.is_empty() && kinds(&seeds::seeds("stream")[2]).totals.events > 0);
    if let Ok(folder) = std::env::var("DN_TOP_SEEDS") {
        for (name, _) in TARGETS {
            let folder = std::path::Path::new(&folder).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            for (number, seed) in seeds::seeds(name).iter().enumerate() {
                std::fs::write(folder.join(format!("seed-{number}")), seed).unwrap();
            }
        }
    }
}

/// Every length in a stream, one after the other, says 4 GiB; and every one says one more than there is.
#[test]
fn lengths_of_4_gib_are_survived() {
    for seed in seeds::seeds("stream").iter().filter(|seed| seed.len() < 1000) {
        for at in 0..seed.len() - 4 {
            let mut bytes = seed.clone();
            bytes[at..at + 4].copy_from_slice(&[0xff; 4]);
            run(bodies::stream, &bytes);
        }
    }
}

/// Wherever a stream is cut off, in a header, a block of any kind or between two, all whole events before the cut are there, and salvaged.
#[test]
fn every_prefix_is_salvaged() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let record = Metadata {
        provider: "Shop".into(),
        name: "Sold".into(),
        fields: vec![Field { name: "n".into(), kind: FieldType::Int32 }],
        ..Metadata::default()
    };
    for round in 0..3_u8 {
        let metadata = encoder.metadata(&Metadata { event_id: round.into(), ..record.clone() });
        for thread in 1..4 {
            let stack = encoder.stack(&[thread, 2, 3]);
            let event = NewEvent { metadata, thread, capture_thread: thread, stack, payload: &[round, 0, 0, 0], ..NewEvent::default() };
            encoder.event(&NewEvent { activity_id: [round; 16], ..event });
        }
        encoder.sequence_point(round.into());
    }
    encoder.end();
    let mut streams = seeds::seeds("stream");
    streams.retain(|stream| stream.len() < 10_000);
    streams.push(encoder.take());
    for stream in streams {
        (0..=stream.len()).for_each(|length| bodies::stream(&stream[..length]));
    }
}

/// A kind of event may say that it has any number of fields that take no bytes: an event of a few bytes must not cost what they are.
#[test]
fn nonsense_that_describes_itself_costs_little() {
    let nested = |depth: usize| {
        (0..depth).fold(FieldType::Object(Vec::new()), |kind, _| FieldType::Object(vec![Field { name: String::new(), kind }]))
    };
    let many = |kind: FieldType| vec![Field { name: String::new(), kind }; 50_000];
    let shapes = [
        many(FieldType::Object(Vec::new())),
        many(nested(10)),
        vec![Field { name: String::new(), kind: FieldType::Object(many(nested(3))) }],
    ];
    for fields in shapes {
        let mut encoder = Encoder::new(TraceHeader::default());
        let record =
            Metadata { provider: "System.Diagnostics.Metrics".into(), name: "GaugeValuePublished".into(), fields, ..Metadata::default() };
        let metadata = encoder.metadata(&record);
        for _ in 0..20_000 {
            encoder.event(&NewEvent { metadata, ..NewEvent::default() });
        }
        encoder.end();
        let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
        decoder.feed(&encoder.take(), &mut live).unwrap();
        assert_eq!(live.throughput().snapshot().events, 20_000);
    }
}

/// Ids that jump, a million records, and time that goes back: what is kept has an end, and what is counted is right.
#[test]
fn a_million_records_with_ids_that_jump_are_counted() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let mut state = 1_u64;
    for number in 0..1_000_000_u32 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let metadata = encoder.metadata(&Metadata { event_id: number, ..Metadata::default() });
        let thread = state >> 20;
        let timestamp = state as i64;
        encoder.event(&NewEvent { metadata, timestamp, thread, capture_thread: thread % 1000, ..NewEvent::default() });
    }
    encoder.end();
    let stream = encoder.take();
    let mut events = 0;
    let info = measure(|| {
        let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
        stream.chunks(1 << 16).for_each(|piece| decoder.feed(piece, &mut live).unwrap());
        assert!(decoder.finish(&mut live).is_complete());
        events = live.throughput().snapshot().events;
        live.snapshot(live.newest());
    });
    assert_eq!(events, 1_000_000);
    assert!(info.bytes_max < 128 * MB, "{info:?}");
    let mut tally = Throughput::default();
    Decoder::new(Limits::default()).feed(&stream, &mut tally).unwrap();
    assert_eq!(tally.snapshot().dropped, 0);
}
