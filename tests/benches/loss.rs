//! Events dropped by the runtime while a program floods it: when dn-top records and analyzes, compared to a plain loop that copies the
//! socket into a file.
//!
//! ```text
//! cargo bench --bench loss
//! ```
//!
//! Both open the same session on the same .NET 9 process, in turn, and write to memory. Losses are determined by counting, in the written
//! file, the sequence numbers of the events. `tests/setup.sh` installs the runtime.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use dn_top::analysis::{Throughput, Totals};
use dn_top::clr::select;
use dn_top::ipc::{BufferMb, Rundown, SessionConfig};
use dn_top::model::{Phase, Process, ProcessKey};
use dn_top::net::client::Client;
use dn_top::net::endpoint::Endpoint;
use dn_top::nettrace::{Decoder, Limits};
use dn_top::session::{Plan, Recorder};

/// Duration of each session.
const TIME: Duration = Duration::from_secs(4);
const PAIRS: usize = 4;

fn main() {
    let Some(net9) = support::runtimes::net9() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    println!("{:<28} {:>10} {:>12} {:>12} {:>10} {:>8}", "", "MB", "events", "events/s", "lost", "load");
    for megabytes in [256, 4, 1] {
        // As fast as possible: ten thousand of the program's own events in a round.
        let program = net9.program("work").arg("0").arg("10000").start();
        let process = Process { socket: Some(program.socket()), ..Process::new(ProcessKey { pid: program.pid(), started: 1 }) };
        let client = Client::new(Endpoint::of(&process).unwrap());
        let mut sums = [(0, 0); 2];
        for _ in 0..PAIRS {
            let plain = runtime.block_on(copy(&client, &config(megabytes), folder.path()));
            let recorded = runtime.block_on(record(&client, config(megabytes), folder.path()));
            for ((name, totals), sum) in [("plain loop", plain), ("recorder, all analyses", recorded)].into_iter().zip(&mut sums) {
                show(&format!("{megabytes} MB buffer, {name}"), &totals);
                *sum = (sum.0 + totals.events, sum.1 + totals.dropped + totals.dropped_at_start);
            }
        }
        let share = |(events, lost): (u64, u64)| lost as f64 * 100.0 / (events + lost) as f64;
        println!("{megabytes} MB buffer: {:.3} % lost to the plain loop, {:.3} % to the recorder\n", share(sums[0]), share(sums[1]));
    }
}

fn show(name: &str, totals: &Totals) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load = load.split(' ').next().unwrap();
    let (lost, rate) = (totals.dropped + totals.dropped_at_start, totals.events as f64 / (totals.duration_ns as f64 / 1e9));
    println!("{name:<36} {:>8.1} {:>12} {rate:>12.0} {lost:>10} {load:>8}", totals.payload_bytes as f64 / 1e6, totals.events);
}

fn config(megabytes: u32) -> SessionConfig {
    let mut config = select(&[] as &[&str], &["DnTop-Work"], None).unwrap().config;
    config.buffer = BufferMb::new(megabytes).unwrap();
    // Stack walks would slow the program down.
    config.stacks = false;
    config.rundown = Rundown::None;
    config
}

/// Copies the stream with a naive loop: read 64 KB, write them.
async fn copy(client: &Client, config: &SessionConfig, folder: &Path) -> Totals {
    let path = folder.join("plain");
    let session = client.start_session(config).await.unwrap();
    let mut stream = session.stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut file = File::create(&path).unwrap();
    let copy = tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                count => file.write_all(&buffer[..count]).unwrap(),
            }
        }
    });
    tokio::time::sleep(TIME).await;
    client.stop_session(session.id).await.unwrap();
    copy.await.unwrap();
    count(&path)
}

async fn record(client: &Client, config: SessionConfig, folder: &Path) -> Totals {
    let file = folder.join("recorded.nettrace");
    let plan = Plan::new(ProcessKey { pid: 1, started: 1 }, "work".into(), config, file.clone());
    let plan = Plan { duration: Some(TIME), analyzed: true, ..plan };
    let recording = Recorder::start(client.clone(), plan).await.unwrap().finished().await;
    assert!(matches!(&recording.phase, Phase::Done(outcome) if outcome.complete), "{recording:?}");
    let totals = count(&file);
    assert_eq!((recording.events, recording.dropped), (totals.events, totals.dropped), "what was shown is what is in the file");
    totals
}

/// Returns the totals of a file, and deletes it.
fn count(file: &Path) -> Totals {
    let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
    let (mut input, mut buffer) = (File::open(file).unwrap(), vec![0; 256 << 10]);
    loop {
        match input.read(&mut buffer).unwrap() {
            0 => break,
            count => decoder.feed(&buffer[..count], &mut tally).unwrap(),
        }
    }
    assert!(decoder.finish(&mut tally).is_complete());
    assert!(tally.snapshot().events > 100_000, "that was no flood");
    std::fs::remove_file(file).unwrap();
    tally.snapshot()
}
