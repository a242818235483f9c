//! How fast captures go through the decoder with full accounting, and through every analysis; what that allocates and how much memory it takes.
//!
//! `cargo bench --bench analysis [-- FILE.nettrace]..`; without files, a recording of more than 200 MB of a busy program on .NET 9, made the first time and
//! kept outside the tree (`tests/setup.sh` brings the runtime), and the captures of the tree. One core, by the processor's time, so that other work on
//! the machine counts less; best and median of the rounds. Files are read as they come, as `dn-top stats` reads them, before any is read whole.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use allocation_counter::measure;
use dn_top::analysis::{Live, SampleFilter, Throughput};
use dn_top::clr::select;
use dn_top::model::{Process, ProcessKey};
use dn_top::net::client::Client;
use dn_top::net::endpoint::Endpoint;
use dn_top::nettrace::{Decoder, Event, Limits, Loss, Metadata, Problem, SequencePoint, Sink, Thread, TraceHeader};

/// How long each line is measured.
const TIME: Duration = Duration::from_secs(3);
/// Pieces as a recorder reads them from a socket.
const PIECE: usize = 64 * 1024;
/// Smallest recording that is made.
const SIZE: u64 = 210_000_000;

fn main() {
    let mut files: Vec<PathBuf> = std::env::args_os().skip(1).filter(|arg| arg != "--bench").map(PathBuf::from).collect();
    if files.is_empty() {
        files.extend(recording());
        let captures = std::fs::read_dir("tests/captures").expect("run in the package's directory");
        let mut captures: Vec<_> = captures.map(|entry| entry.unwrap().path()).collect();
        captures.retain(|path| path.extension().is_some_and(|end| end == "xz"));
        captures.sort();
        files.append(&mut captures);
    }
    // What is measured is not the disk.
    files.iter().for_each(|file| drop(std::fs::read(file)));
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

/// The large recording: where it is kept, once it is made. `None` where there is no .NET 9.
fn recording() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("dn-top-benchmarks");
    let file = cache.join("net9-work.nettrace");
    if !file.is_file() {
        let program = support::runtimes::net9()?.program("work").arg("0").arg("200").start();
        std::fs::create_dir_all(&cache).unwrap();
        println!("recording {} MB from .NET 9 into {}", SIZE / 1_000_000, file.display());
        let part = file.with_extension("partial");
        record(&program, &part);
        std::fs::rename(part, &file).unwrap();
    }
    Some(file)
}

/// Everything that the runtime has to say, samples with stacks and the program's own events, until it is enough, and the rundown.
fn record(program: &support::Program, file: &Path) {
    let everything = ["Microsoft-Windows-DotNETRuntime:0x100000c019:5", "Microsoft-DotNETCore-SampleProfiler:0:4", "DnTop-Work"];
    let config = select(&[] as &[&str], &everything, None).unwrap().config;
    let process = Process { socket: Some(program.socket()), ..Process::new(ProcessKey { pid: program.pid(), started: 1 }) };
    let client = Client::new(Endpoint::of(&process).unwrap());
    let mut file = File::create(file).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let session = client.start_session(&config).await.unwrap();
        let mut stream = session.stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        let (enough, stop) = tokio::sync::oneshot::channel();
        let copy = tokio::task::spawn_blocking(move || {
            let (mut buffer, mut copied, mut enough) = (vec![0; 256 << 10], 0, Some(enough));
            loop {
                let count = stream.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                file.write_all(&buffer[..count]).unwrap();
                copied += count as u64;
                if copied > SIZE
                    && let Some(enough) = enough.take()
                {
                    enough.send(()).unwrap();
                }
            }
        });
        stop.await.unwrap();
        client.stop_session(session.id).await.unwrap();
        copy.await.unwrap();
    });
}

fn read(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut input = File::open(file).expect("a capture");
    if file.extension().is_some_and(|end| end == "xz") {
        xz2::read::XzDecoder::new(input).read_to_end(&mut bytes).expect("xz");
    } else {
        input.read_to_end(&mut bytes).expect("a file");
    }
    bytes
}

/// The events of a sink that counts.
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

/// Every analysis, with events in the order of the file instead of that of time: what the order costs is the difference.
#[derive(Default)]
struct FileOrder {
    live: Live,
    /// By [`Metadata::index`]: kinds that would come in the order of time.
    ordered: Vec<bool>,
}

impl Sink for FileOrder {
    fn trace(&mut self, header: &TraceHeader) {
        Sink::trace(&mut self.live, header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.live.metadata(metadata);
        self.ordered.resize(metadata.index as usize + 1, false);
        self.ordered[metadata.index as usize] = self.live.wants_order(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.live.event(event);
        if self.ordered.get(event.metadata.index as usize) == Some(&true) {
            self.live.ordered_event(event);
        }
    }

    fn stacks(&mut self, count: u32) {
        Sink::stacks(&mut self.live, count);
    }

    fn thread(&mut self, thread: &Thread) {
        self.live.thread(thread);
    }

    fn loss(&mut self, loss: &Loss) {
        self.live.loss(loss);
        self.live.ordered_loss(loss);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.live.sequence_point(point);
    }

    fn problem(&mut self, problem: &Problem) {
        self.live.problem(problem);
    }
}

impl Counts for FileOrder {
    fn events(&self) -> u64 {
        self.live.events()
    }
}

/// Reads a file as it comes, and tells what that takes.
fn memory<S: Counts>(name: &str, file: &Path, sink: impl Fn() -> S) {
    // The peak begins anew.
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
    time("methods", &|| _ = black_box(live.methods(SampleFilter::ALL, 200)));
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

/// What this thread has used of a processor.
fn time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
