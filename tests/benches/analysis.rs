//! How fast captures go through every analysis.
//!
//! `cargo bench --bench analysis [-- FILE.nettrace]..`; without files, the captures of the tree. One core, in pieces as a recorder reads them; median
//! and best of the rounds, and how long the snapshots took at the end.

use std::hint::black_box;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dn_top::analysis::{Live, SampleCount, SampleFilter, Throughput};
use dn_top::nettrace::{Decoder, Limits, Sink};

/// How long each line is measured.
const TIME: Duration = Duration::from_secs(2);
/// Pieces as a recorder reads them from a socket.
const PIECE: usize = 64 * 1024;

fn main() {
    let mut files: Vec<PathBuf> = std::env::args_os().skip(1).filter(|arg| arg != "--bench").map(PathBuf::from).collect();
    if files.is_empty() {
        let captures = std::fs::read_dir("tests/captures").expect("run in the package's directory");
        files =
            captures.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some_and(|end| end == "xz")).collect();
        files.sort();
    }
    println!("{:<52} {:>8} {:>10} {:>10} {:>12}", "capture", "MB", "MB/s", "best MB/s", "M events/s");
    for file in files {
        let bytes = read(&file);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        measure(&format!("{name}, accounting"), &bytes, Throughput::default, Throughput::snapshot);
        measure(&format!("{name}, every analysis"), &bytes, Live::default, |live| live.throughput().snapshot());
        snapshots(&bytes);
    }
}

fn read(file: &PathBuf) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut input = std::fs::File::open(file).expect("a capture");
    if file.extension().is_some_and(|end| end == "xz") {
        xz2::read::XzDecoder::new(input).read_to_end(&mut bytes).expect("xz");
    } else {
        input.read_to_end(&mut bytes).expect("a file");
    }
    bytes
}

fn measure<S: Sink>(name: &str, bytes: &[u8], sink: impl Fn() -> S, totals: impl Fn(&S) -> dn_top::analysis::Totals) {
    let mut rounds = Vec::new();
    let mut events = 0;
    let start = Instant::now();
    while start.elapsed() < TIME {
        let mut sink = sink();
        let round = Instant::now();
        decode(black_box(bytes), &mut sink);
        rounds.push(round.elapsed().as_secs_f64());
        events = totals(&sink).events;
    }
    rounds.sort_by(f64::total_cmp);
    let (best, median) = (rounds[0], rounds[rounds.len() / 2]);
    let mb = bytes.len() as f64 / 1e6;
    println!("{name:<52} {mb:>8.1} {:>10.0} {:>10.0} {:>12.1}", mb / median, mb / best, events as f64 / 1e6 / median);
}

fn snapshots(bytes: &[u8]) {
    let mut live = Live::default();
    decode(bytes, &mut live);
    let time = |what: &str, ask: &dyn Fn()| {
        let start = Instant::now();
        ask();
        print!("  {what} {:.0} µs", start.elapsed().as_secs_f64() * 1e6);
    };
    time("snapshot", &|| _ = black_box(live.snapshot(live.newest())));
    time("methods", &|| _ = black_box(live.methods(SampleFilter::ALL, 200)));
    time("call tree", &|| _ = black_box(live.profile().count(SampleFilter::ALL).call_tree(SampleCount::all, 2000)));
    println!();
}

fn decode(bytes: &[u8], sink: &mut impl Sink) {
    let mut decoder = Decoder::new(Limits::default());
    for piece in bytes.chunks(PIECE) {
        decoder.feed(piece, sink).expect("a readable stream");
    }
    assert!(decoder.finish(sink).is_complete());
}
