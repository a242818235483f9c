//! Speed of exporting captures to other tools' formats, and of converting them to packets for a tracing service live.
//!
//! `cargo bench --bench export [-- FILE.nettrace]..`; without files, those of the benchmark `analysis`. One core, measured in CPU time; the
//! best of the rounds. Always also measures exceptions with messages and stacks, converted to packets at full speed.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

mod captures;
#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use captures::{read, time};
use dn_top::export::{Export, LivePackets, LiveProcess, LiveTrace, Options, Overview, Part};
use dn_top::model::TraceFormat;
use dn_top::net::perfetto::SharedMemory;
use dn_top::nettrace::{Decoder, Encoder, Limits, Metadata, NewEvent, Sink, StreamBuffer, TraceHeader};
use dn_top::perfetto::chunk::{ChunkWriter, WriterId};
use dn_top::perfetto::page::PageSize;
use dn_top::wire::Put;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// Measuring time of each line.
const TIME: Duration = Duration::from_secs(2);
/// Sizes of the pieces in which files and sockets are read.
const FILE_PIECE: usize = 512 << 10;
const SOCKET_PIECE: usize = 64 << 10;
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
        measure_live(&bytes);
    }
    println!("exceptions");
    measure_live(&exceptions());
}

fn measure_live(bytes: &[u8]) {
    let mut count = 0;
    // What the kernel does when a socket is read is not part of the conversion.
    let read = best(|| {
        let (mut buffer, mut rest) = (StreamBuffer::default(), bytes);
        while let Some(count) = read_piece(&mut rest, &mut buffer) {
            buffer.filled(count);
            buffer.consume(count);
        }
    });
    let mut measure = |mut service: Option<Service>| {
        let took = best(|| count = live(bytes, service.as_mut())) - read;
        (took * 1e9 / count as f64, took * 2e7 / count as f64)
    };
    let ((made, made_share), (put, put_share)) = (measure(None), measure(Some(Service::new())));
    println!("  {count} live packets, {made:.0} ns each: {made_share:.1} % of a core at 200,000/s");
    println!("    and put into the memory of a service, {put:.0} ns each: {put_share:.1} % of a core at 200,000/s");
}

/// Returns a stream of exceptions thrown and caught, as .NET 9 writes them: four events each. Every 16th message is new.
fn exceptions() -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 1, ..TraceHeader::default() });
    let [thrown, caught, caught_end, thrown_end] = [80, 250, 251, 256].map(|event_id| {
        let provider = "Microsoft-Windows-DotNETRuntime".to_owned();
        encoder.metadata(&Metadata { provider, event_id, version: 1, level: 2, ..Metadata::default() })
    });
    let text = |texts: &[&str]| {
        let mut payload = Vec::new();
        texts.iter().for_each(|text| payload.put_utf16z(text));
        payload
    };
    for number in 0..100_000_i64 {
        let (timestamp, thread) = (number * 5_000, 10 + number as u64 % 8);
        let message = format!("Order {} has been shipped already", 4711 + number / 16);
        let mut exception = text(&["System.InvalidOperationException", &message]);
        exception.put_u64(0x7f00_0000_1000);
        exception.put_u32(0x8013_1509);
        exception.put_u16(0x10);
        exception.put_u16(0);
        let mut handler = vec![0; 16];
        handler.put(&text(&["instance void [Shop] Shop.Orders::Ship(int32)"]));
        let frames: Vec<u64> =
            (0..20).map(|depth| 0x7f00_0000_0000 + depth * 0x100 + (number as u64 % 50) * u64::from(depth < 4)).collect();
        let stack = encoder.stack(&frames);
        for (index, (metadata, payload)) in (0..).zip([(thrown, &*exception), (caught, &*handler), (caught_end, &[]), (thrown_end, &[])]) {
            let timestamp = timestamp + index;
            encoder.event(&NewEvent {
                metadata,
                timestamp,
                thread,
                capture_thread: thread,
                stack,
                sorted: true,
                payload,
                ..NewEvent::default()
            });
        }
        if number % 20_000 == 19_999 {
            encoder.sequence_point(timestamp + 10);
        }
    }
    encoder.end();
    encoder.take()
}

/// Returns the best time, in seconds.
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
    decode(bytes, &mut overview);
    let options = Options::new(format, Part::default());
    let scratch = Box::new(tempfile::tempfile().unwrap());
    let mut export = Export::new(options, overview, Box::new(io::sink()), scratch).unwrap();
    decode(bytes, &mut export);
    export.finish().unwrap();
}

/// Counts the packets, and optionally writes them to shared memory, as with a tracing service.
fn live(bytes: &[u8], mut service: Option<&mut Service>) -> u64 {
    let mut count = 0;
    let mut trace = LiveTrace::new(LiveProcess { pid: 1, ..LiveProcess::default() });
    let mut commit = |packets: LivePackets| {
        count += packets.count;
        match &mut service {
            Some(service) => service.commit(packets.bytes),
            None => drop(black_box(packets.bytes)),
        }
    };
    let (mut decoder, mut buffer) = (Decoder::new(Limits::LIVE), StreamBuffer::default());
    let mut rest = bytes;
    while let Some(count) = read_piece(&mut rest, &mut buffer) {
        let used = decoder.feed_blocks(buffer.filled(count), &mut trace).unwrap();
        buffer.consume(used);
        commit(trace.take());
        trace.acknowledge();
    }
    decoder.feed(buffer.unused(), &mut trace).unwrap();
    decoder.finish(&mut trace);
    commit(trace.finish(None));
    count
}

/// Reads as much as from a socket; `None` at the end.
fn read_piece(rest: &mut &[u8], buffer: &mut StreamBuffer) -> Option<usize> {
    rest.take(SOCKET_PIECE as u64).read(buffer.space()).ok().filter(|count| *count > 0)
}

/// Shared memory of a service that frees complete chunks at once.
struct Service {
    memory: SharedMemory,
    file: File,
    chunks: ChunkWriter,
}

impl Service {
    fn new() -> Self {
        let file = memfd_create("memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 4 << 20).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        let memory = SharedMemory::map(vec![file.try_clone().unwrap()], Some(PageSize::MAX)).unwrap();
        Self { memory, file: file.into(), chunks: ChunkWriter::new(WriterId::new(1).unwrap()) }
    }

    fn commit(&mut self, trace: Vec<u8>) {
        self.chunks.push(trace);
        while !self.chunks.is_empty() {
            let slot = self.memory.take(self.chunks.required_size()).unwrap();
            assert!(self.memory.put(&slot, &self.chunks.chunk(slot.size()).unwrap()));
            self.file.write_all_at(&[0; 4], u64::from(slot.page) * PageSize::MAX.bytes() as u64).unwrap();
        }
    }
}

fn decode(bytes: &[u8], sink: &mut impl Sink) {
    let mut decoder = Decoder::new(Limits::default());
    for piece in bytes.chunks(FILE_PIECE) {
        decoder.feed(piece, sink).unwrap();
    }
    decoder.finish(sink);
}
