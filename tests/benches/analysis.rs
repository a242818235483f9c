//! Throughput, allocations and memory use of the decoder with full accounting, and of every analysis, on captures.
//!
//! `cargo bench --bench analysis [-- FILE.nettrace]..`; without files, a recording of more than 200 MB of a busy program on .NET 9, made on
//! the first run and kept outside the repository (`tests/setup.sh` installs the runtime), and the captures in the repository. One core,
//! measured in CPU time, so that other load on the machine matters less; best and median of the rounds. Files are first read in chunks, as
//! `dn-top stats` reads them, then measured from memory.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

mod captures;
#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::hint::black_box;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use captures::{read, time};
use dn_top::analysis::{Live, SampleFilter, Throughput};
use dn_top::nettrace::{Decoder, Event, Limits, Loss, Metadata, Sink, forward_sink};

/// Measuring time of each line.
const TIME: Duration = Duration::from_secs(3);
/// Chunk size with which a recorder reads from a socket.
const PIECE: usize = 64 * 1024;

fn main() {
    let files = captures::files();
    println!("load average: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "nettrace")) {
        println!("{}, read as it comes", file.display());
        memory("decode, accounting", file, Throughput::default);
        memory("every analysis", file, Live::default);
    }
    println!("{:<52} {:>8} {:>8} {:>8} {:>12}", "capture", "MB", "GB/s", "median", "M events/s");
    for file in &files {
        let bytes = read(file);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        speed(&format!("{name}, decode, accounting"), &bytes, Throughput::default);
        speed(&format!("{name}, every analysis"), &bytes, Live::default);
        speed(&format!("{name}, the same in the order of the file"), &bytes, FileOrder::default);
        snapshots(&bytes);
    }
}

/// A sink that counts events.
trait Counts: Sink {
    fn events(&self) -> u64;
}

impl Counts for Throughput {
    fn events(&self) -> u64 {
        self.snapshot().events
    }
}

impl Counts for Live {
    fn events(&self) -> u64 {
        self.throughput().snapshot().events
    }
}

/// Every analysis, with events in file order instead of time order: the difference is the cost of ordering.
#[derive(Default)]
struct FileOrder {
    live: Live,
    /// Indexed by [`Metadata::index`]: whether these events are normally put in time order.
    ordered: Vec<bool>,
}

impl Sink for FileOrder {
    forward_sink!(self => [self.live]: trace stacks thread sequence_point problem);

    fn metadata(&mut self, metadata: &Metadata) {
        self.live.metadata(metadata);
        self.ordered.resize(metadata.index as usize + 1, false);
        self.ordered[metadata.index as usize] = self.live.needs_order(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.live.event(event);
        if self.ordered.get(event.metadata.index as usize) == Some(&true) {
            self.live.ordered_event(event);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.live.loss(loss);
        self.live.ordered_loss(loss);
    }
}

impl Counts for FileOrder {
    fn events(&self) -> u64 {
        self.live.events()
    }
}

/// Reads a file in chunks, and measures time and memory.
fn memory<S: Counts>(name: &str, file: &Path, sink: impl Fn() -> S) {
    // Resets the peak RSS.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (mut sink, mut input, mut buffer) = (sink(), File::open(file).unwrap(), vec![0; 256 << 10]);
    let (before, begun) = (time(), Instant::now());
    let info = measure(|| {
        let mut decoder = Decoder::new(Limits::default());
        loop {
            match input.read(&mut buffer).unwrap() {
                0 => break,
                count => decoder.feed(&buffer[..count], &mut sink).unwrap(),
            }
        }
        assert!(decoder.finish(&mut sink).is_complete());
    });
    let (busy, took, events) = (time() - before, begun.elapsed(), sink.events());
    let mb = file.metadata().unwrap().len() as f64 / 1e6;
    let peak = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned();
    println!(
        "  {name:<24} {:.0} MB/s with reading ({:.0} by the clock), {:.1} M events, {} allocations ({:.4} an event), {:.1} MB of them at most, peak resident {peak}",
        mb / busy.as_secs_f64(),
        mb / took.as_secs_f64(),
        events as f64 / 1e6,
        info.count_total,
        info.count_total as f64 / events as f64,
        info.bytes_max as f64 / 1e6,
    );
}

fn speed<S: Counts>(name: &str, bytes: &[u8], sink: impl Fn() -> S) {
    let (mut rounds, mut events) = (Vec::new(), 0);
    let start = Instant::now();
    let times = (100_000_000 / bytes.len()).max(1);
    while start.elapsed() < TIME || rounds.len() < 3 {
        let before = time();
        for _ in 0..times {
            let mut sink = sink();
            decode(black_box(bytes), &mut sink);
            events = sink.events();
        }
        rounds.push((time() - before).as_secs_f64() / times as f64);
    }
    rounds.sort_by(f64::total_cmp);
    let (best, median) = (rounds[0], rounds[rounds.len() / 2]);
    let size = bytes.len() as f64;
    println!("{name:<52} {:>8.1} {:>8.2} {:>8.2} {:>12.1}", size / 1e6, size / best / 1e9, size / median / 1e9, events as f64 / best / 1e6);
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
    time("methods", &|| _ = black_box(live.profile().methods(SampleFilter::ALL, 200)));
    time("profile", &|| _ = black_box(live.profile()));
    println!();
}

fn decode(bytes: &[u8], sink: &mut impl Sink) {
    let mut decoder = Decoder::new(Limits::default());
    for piece in bytes.chunks(PIECE) {
        decoder.feed(piece, sink).expect("a readable stream");
    }
    assert!(decoder.finish(sink).is_complete());
}
