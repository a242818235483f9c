//! Recording from a saturating simulated runtime, compared to a plain loop that copies the same stream from the socket into a file: the
//! ratio is the cost of counting events, publishing and finishing.
//!
//! ```text
//! cargo bench --bench recording
//! ```
//!
//! Both read the same bytes from the same server, in turn, into a folder in memory, so that no disk hides the difference; the first pair is
//! discarded. The plain loop is naive: read 64 KB, write them.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dn_top::ipc::{Level, Provider, SessionConfig};
use dn_top::model::{Phase, Process, ProcessKey};
use dn_top::net::client::Client;
use dn_top::net::endpoint::Endpoint;
use dn_top::nettrace::{Encoder, Metadata, NewEvent, TraceHeader};
use dn_top::session::{Plan, Recorder};
use dn_top::sim::{Script, Simulated, Spec};

const STREAM: usize = 256 << 20;
const PAIRS: usize = 25;

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("load average before: {}", load.trim());
    let (stream, events) = stream();
    println!("stream: {} MB, {:.1} M events", stream.len() >> 20, events as f64 / 1e6);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut ratios = Vec::new();
    let mut best = [f64::INFINITY; 2];
    for pair in 0..=PAIRS {
        let plain = runtime.block_on(plain_copy(folder.path(), &stream));
        let (recorded, counted) = runtime.block_on(record(folder.path(), &stream));
        assert_eq!(counted, events, "every event is counted");
        if pair > 0 {
            ratios.push(plain.as_secs_f64() / recorded.as_secs_f64());
            best = [best[0].min(plain.as_secs_f64()), best[1].min(recorded.as_secs_f64())];
        }
    }
    ratios.sort_by(f64::total_cmp);
    let speed = |seconds: f64| STREAM as f64 / 1e9 / seconds;
    println!("plain copy, best:   {:.2} GB/s", speed(best[0]));
    println!("recorder, best:     {:.2} GB/s, {:.1} M events/s counted", speed(best[1]), events as f64 / 1e6 / best[1]);
    println!("recorder / plain:   median {:.2}, {:.2} to {:.2} (target 0.9)", ratios[PAIRS / 2], ratios[0], ratios[PAIRS - 1]);
}

/// Returns a stream like that of a busy program: events of some 60 bytes from eight threads, some with stacks.
fn stream() -> (Arc<[u8]>, u64) {
    let header = TraceHeader::default();
    let mut encoder = Encoder::new(header);
    let record = Metadata { provider: "Demo-Busy".to_owned(), event_id: 1, name: "Item".to_owned(), level: 4, ..Metadata::default() };
    let metadata = encoder.metadata(&record);
    let mut bytes = Vec::with_capacity(STREAM + (1 << 20));
    let mut events = 0;
    while bytes.len() < STREAM {
        for _ in 0..1000 {
            let thread = 100 + events % 8;
            let stack = if events % 4 == 0 { encoder.stack(&[0x7000_0000 + events % 64, 0x7000_1000, 0x7000_2000]) } else { 0 };
            let payload = [events as u8; 48];
            let timestamp = events as i64 * 700;
            let event = NewEvent { metadata, timestamp, thread, capture_thread: thread, stack, payload: &payload, ..NewEvent::default() };
            encoder.event(&event);
            events += 1;
        }
        bytes.append(&mut encoder.take());
    }
    encoder.sequence_point(events as i64 * 700);
    encoder.end();
    bytes.append(&mut encoder.take());
    (bytes.into(), events)
}

fn serve(folder: &Path, stream: &Arc<[u8]>) -> (Simulated, Client) {
    let socket = folder.join("socket");
    let spec = Spec { script: Script::Canned(stream.clone()), ..Spec::new("Busy", "9.0.7", 1) };
    let runtime = Simulated::start(socket.clone(), spec).unwrap();
    let process = Process { socket: Some(socket), ..Process::new(ProcessKey { pid: 1, started: 1 }) };
    let client = Client::new(Endpoint::of(&process).unwrap());
    (runtime, client)
}

fn config() -> SessionConfig {
    SessionConfig::new(Provider::new("Demo-Busy", u64::MAX, Level::Verbose).unwrap().into())
}

async fn plain_copy(folder: &Path, stream: &Arc<[u8]>) -> Duration {
    let (_runtime, client) = serve(folder, stream);
    let session = client.start_session(&config()).await.unwrap();
    let mut reading = session.stream.into_std().unwrap();
    reading.set_nonblocking(false).unwrap();
    let (path, length) = (folder.join("plain"), stream.len());
    let copy = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let mut file = File::create(&path).unwrap();
        let mut buffer = vec![0; 64 << 10];
        let mut copied = 0;
        while copied < length {
            let count = reading.read(&mut buffer).unwrap();
            file.write_all(&buffer[..count]).unwrap();
            copied += count;
        }
        let took = begun.elapsed();
        std::fs::remove_file(path).unwrap();
        took
    });
    let took = copy.await.unwrap();
    client.stop_session(session.id).await.unwrap();
    took
}

async fn record(folder: &Path, stream: &Arc<[u8]>) -> (Duration, u64) {
    let (_runtime, client) = serve(folder, stream);
    let file = folder.join("recorded.nettrace");
    let begun = Instant::now();
    let plan = Plan {
        // Stops after the whole stream.
        max_bytes: Some(stream.len() as u64),
        analyzed: std::env::args().any(|argument| argument == "analyzed"),
        ..Plan::new(ProcessKey { pid: 1, started: 1 }, "Busy".into(), config(), file.clone())
    };
    let recording = Recorder::start(client, plan).await.unwrap().finished().await;
    let took = begun.elapsed();
    assert!(matches!(recording.phase, Phase::Done(outcome) if outcome.complete));
    std::fs::remove_file(file).unwrap();
    (took, recording.events)
}
