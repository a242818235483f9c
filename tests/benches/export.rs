//! How fast captures become the formats of other tools, and packets for a tracing service while they come.
//!
//! `cargo bench --bench export [-- FILE.nettrace]..`; without files those of the benchmark `analysis`. One core, by the processor's time; the best of the rounds.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

mod captures;
#[path = "../support/mod.rs"]
mod support;

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use captures::{read, time};
use dn_top::export::{Export, LiveProcess, LiveTrace, Options, Overview, Part};
use dn_top::model::TraceFormat;
use dn_top::nettrace::{Decoder, Limits, Sink};
use dn_top::perfetto::producer::packets;

/// How long each line is measured.
const TIME: Duration = Duration::from_secs(2);
/// Pieces as a recorder reads them from a socket.
const PIECE: usize = 64 * 1024;
const FORMATS: [TraceFormat; 6] =
    [TraceFormat::Perfetto, TraceFormat::Speedscope, TraceFormat::Chromium, TraceFormat::Folded, TraceFormat::Pprof, TraceFormat::Csv];

fn main() {
    let files = captures::files();
    println!("load average: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    for file in &files {
        let bytes = read(file);
        println!("{}, {:.1} MB", file.file_name().unwrap_or_default().display(), bytes.len() as f64 / 1e6);
        for format in FORMATS {
            let took = best(|| export(format, &bytes));
            println!("  {:<12} {:>6.0} MB/s", format!("{format:?}"), bytes.len() as f64 / took / 1e6);
        }
        let mut count = 0;
        let took = best(|| count = live(&bytes));
        println!(
            "  {count} live packets, {:.0} ns each: {:.1} % of a core at 200,000/s",
            took * 1e9 / count as f64,
            took * 2e7 / count as f64
        );
    }
}

/// Seconds that it takes.
fn best(mut run: impl FnMut()) -> f64 {
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    let mut rounds = 0;
    while start.elapsed() < TIME || rounds < 3 {
        let before = time();
        run();
        best = best.min((time() - before).as_secs_f64());
        rounds += 1;
    }
    best
}

fn export(format: TraceFormat, bytes: &[u8]) {
    let mut overview = Overview::default();
    decode(bytes, &mut overview, |_| ());
    let options = Options { format, part: Part::default(), calls: false, tasks: false, number: 0 };
    let scratch = Box::new(tempfile::tempfile().unwrap());
    let mut export = Export::new(options, overview, Box::new(io::sink()), scratch).unwrap();
    decode(bytes, &mut export, |_| ());
    export.finish().unwrap();
}

/// Counts the packets.
fn live(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut trace = LiveTrace::new(LiveProcess { pid: 1, ..LiveProcess::default() });
    decode(bytes, &mut trace, |trace| {
        count += packets(black_box(&trace.take())).count();
        trace.arrived();
    });
    count + packets(&trace.finish(None)).count()
}

fn decode<S: Sink>(bytes: &[u8], sink: &mut S, mut taken: impl FnMut(&mut S)) {
    let mut decoder = Decoder::new(Limits::default());
    for piece in bytes.chunks(PIECE) {
        decoder.feed(piece, sink).unwrap();
        taken(sink);
    }
    decoder.finish(sink);
}
