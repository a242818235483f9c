//! Decoding speed of captures with full accounting: metadata, stacks, threads, loss and counts by event.
//!
//! `cargo bench --bench nettrace [-- FILE.nettrace]..`; without files, the captures in the repository. One core, measured in CPU time, so
//! that other load on the machine matters less.

use std::hint::black_box;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dn_top::analysis::Throughput;
use dn_top::nettrace::{Decoder, Limits, Sink};

/// Measuring time of each line.
const TIME: Duration = Duration::from_secs(2);
/// Chunk size with which a recorder reads from a socket.
const PIECE: usize = 64 * 1024;

struct Nothing;
impl Sink for Nothing {}

fn main() {
    let mut files: Vec<PathBuf> = std::env::args_os().skip(1).filter(|arg| arg != "--bench").map(PathBuf::from).collect();
    if files.is_empty() {
        let captures = std::fs::read_dir("tests/captures").expect("run in the package's directory");
        files =
            captures.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some_and(|end| end == "xz")).collect();
        files.sort();
    }
    println!("{:<52} {:>8} {:>8} {:>12}", "capture", "MB", "GB/s", "M events/s");
    for file in files {
        let bytes = read(&file);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        measure(&format!("{name}, decode"), &bytes, usize::MAX, || Nothing);
        measure(&format!("{name}, + accounting"), &bytes, usize::MAX, Throughput::default);
        measure(&format!("{name}, + in pieces"), &bytes, PIECE, Throughput::default);
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

fn measure<S: Sink>(name: &str, bytes: &[u8], piece: usize, sink: impl Fn() -> S) {
    let mut counts = Throughput::default();
    decode(bytes, usize::MAX, &mut counts);
    let events = counts.snapshot().events as f64;
    let (start, before, mut rounds) = (Instant::now(), time(), 0.0);
    while start.elapsed() < TIME {
        let mut sink = sink();
        decode(black_box(bytes), piece, &mut sink);
        black_box(&sink);
        rounds += 1.0;
    }
    let (size, seconds) = (bytes.len() as f64, (time() - before).as_secs_f64());
    println!("{name:<52} {:>8.1} {:>8.2} {:>12.1}", size / 1e6, size * rounds / seconds / 1e9, events * rounds / seconds / 1e6);
}

/// Returns the CPU time used by this thread.
fn time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}

fn decode(bytes: &[u8], piece: usize, sink: &mut impl Sink) {
    let mut decoder = Decoder::new(Limits::default());
    for piece in bytes.chunks(piece.min(bytes.len())) {
        decoder.feed(piece, sink).expect("a readable stream");
    }
    assert!(decoder.finish(sink).is_complete());
}
