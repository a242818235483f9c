//! The whole program, measured from outside: a release build in a terminal of 120×40.
//!
//! ```text
//! cargo bench --bench program                     dn-top with simulated runtimes in another process
//! cargo bench --bench program -- htop             another program in the same terminal, to compare
//! ```
//!
//! Startup is the median of several runs. Idle figures are over twenty seconds: CPU time from `schedstat` and wake-ups from
//! `voluntary_ctxt_switches`, both summed over all threads, memory from `smaps_rollup`, bytes as they reach the terminal. Latency is from
//! writing a key to the first byte of output, at random phase to the refresh. Last, a real .NET 9 program is measured, if `tests/setup.sh`
//! has installed .NET 9.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use support::{Invocation, Running, Screen, TIMEOUT, folder, poll, runtimes, screen};

const STARTS: usize = 11;
const IDLE: Duration = Duration::from_secs(20);
const PRESSES: usize = 200;
/// A heading of the process table: once it is shown, so is the frame around it.
const HEADING: &str = "PID";
/// Text on the screen while a process is recorded.
const RECORDING: &str = "recording";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    println!("load average before: {load}");
    if !words.is_empty() {
        // The only assumption about another program is that it fills the screen.
        let open = || Invocation::of(&words[0], &words[1..]).screen(120, 40);
        measure(&open, &|shown| shown.lines().filter(|line| !line.trim().is_empty()).count() > 10);
        return;
    }
    println!("stripped binary: {:.2} MB (target 5)", stripped_size() as f64 / 1e6);
    for count in [50, 500] {
        println!("\n{count} simulated processes");
        let Some(processes) = SimulatedProcesses::start(count) else {
            println!("not measured: `dn-top sim {count} FOLDER` serves no sockets");
            continue;
        };
        let open = || Invocation::new(["--sim".as_ref(), processes.folder.path()]).screen(120, 40);
        let screen = measure(&open, &|shown| shown.contains(HEADING));
        first_row(&open, &processes.pids);
        recording(&screen, &["t"]);
    }
    flooded();
}

/// Measures keys while a real program writes events as fast as it can, and every event is recorded and analyzed.
fn flooded() {
    let Some(net9) = runtimes::net9() else { return };
    println!("\na .NET 9 program that writes events as fast as it can, on the same processors");
    // Two programs, so that the selection can move.
    let (program, other) = (net9.program("work").arg("0").arg("10000").start(), net9.program("known").start());
    let screen = Invocation::new([] as [&str; 0]).screen(120, 40);
    screen.wait_for(&format!(" {} known", other.pid()));
    screen.keys(&format!(":work {}", program.pid()));
    screen.wait_for(&format!("work {}", program.pid()));
    screen.keys(screen::ENTER);
    screen.wait_for(&format!("work {} ─", program.pid()));
    screen.keys("O");
    screen.wait_for("Record ·");
    screen.keys(&format!("{}{}DnTop-Work{}", screen::ctrl('u'), screen::TAB, screen::ENTER));
    recording(&screen, &[]);
    screen.keys(&format!(":work {}", program.pid()));
    screen.wait_for("work");
    screen.keys(screen::ENTER);
    screen.wait_for(&format!("work {} ─", program.pid()));
    screen.keys("t");
    screen.try_wait_until(TIMEOUT, |shown| shown.contains("done")).unwrap();
    let whole = |file: &Path| file.extension().is_some_and(|end| end == "nettrace");
    let file = fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path()).find(|file| whole(file)).unwrap();
    let stats = Invocation::new(["stats".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json();
    let number = |name: &str| stats[name].as_f64().unwrap();
    println!("{:.1} M events/s, {} lost", number("events") / number("duration_ms") / 1e3, number("dropped"));
}

/// Simulated runtimes in a separate process, so that their work is not attributed to the dashboard: `dn-top sim COUNT FOLDER` serves them
/// until killed, and `dn-top --sim FOLDER` shows them instead of this machine's processes.
struct SimulatedProcesses {
    folder: tempfile::TempDir,
    /// PIDs in the names of the sockets.
    pids: BTreeSet<String>,
    _server: Running,
}

impl SimulatedProcesses {
    fn start(count: usize) -> Option<Self> {
        let folder = folder();
        let mut server = Invocation::new(["sim", &count.to_string(), folder.path().to_str()?]).start();
        let pids = poll(TIMEOUT, || {
            let pids = pids(&folder.path().join("tmp"));
            (pids.len() >= count || !server.is_alive()).then_some(pids)
        })?;
        (pids.len() >= count).then_some(Self { folder, pids, _server: server })
    }
}

fn pids(folder: &Path) -> BTreeSet<String> {
    // The folder does not exist until the server has created it.
    let names = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| Some(name.strip_prefix("dotnet-diagnostic-")?.split_once('-')?.0.to_owned())).collect()
}

/// Measures startup, idle and keys. Returns the program, still running.
fn measure(open: &dyn Fn() -> Screen, is_full: &dyn Fn(&str) -> bool) -> Screen {
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let screen = open();
        bytes.push(screen.first_byte(TIMEOUT).expect("the program writes nothing") - screen.started());
        screen.try_wait_until(TIMEOUT, is_full).unwrap_or_else(|shown| panic!("no full frame:\n{shown}"));
        frames.push(screen.started().elapsed());
    }
    report("start to first byte", &mut bytes, "no target");
    report("start to first full frame", &mut frames, "target p50 15 ms");

    let screen = open();
    screen.try_wait_until(TIMEOUT, is_full).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let (before, written) = (Usage::of(screen.pid()), screen.bytes());
    std::thread::sleep(IDLE);
    let (after, written) = (Usage::of(screen.pid()), screen.bytes() - written);
    let seconds = IDLE.as_secs_f64();
    println!("idle processor time       {:8.3} % of a core (target 0.3)", (after.running - before.running).as_secs_f64() / seconds * 100.0);
    println!(
        "idle wake-ups             {:8.1} /s (target 2), {} threads",
        (after.wakeups - before.wakeups) as f64 / seconds,
        after.threads
    );
    println!("idle bytes to terminal    {:8.0} /s", written as f64 / seconds);
    println!("memory resident           {:8.1} MB (target 12), {:.1} MB proportional", after.resident / 1e6, after.proportional / 1e6);
    keys(&screen, "key to first byte", "targets p50 1 ms, p99 8 ms");
    screen
}

/// Measures the time from start until the first simulated process is shown.
fn first_row(open: &dyn Fn() -> Screen, pids: &BTreeSet<String>) {
    let mut rows = Vec::new();
    for _ in 0..STARTS {
        let screen = open();
        let shows_row = |shown: &str| shown.split_whitespace().any(|word| pids.contains(word));
        if let Err(shown) = screen.try_wait_until(TIMEOUT, shows_row) {
            println!("no process row:\n{shown}");
            return;
        }
        rows.push(screen.started().elapsed());
    }
    report("start to first row", &mut rows, "target p50 60 ms");
}

/// Presses the keys that start a recording of the selected process, then measures key latency.
fn recording(screen: &Screen, start: &[&str]) {
    for key in start {
        screen.keys(key);
        std::thread::sleep(Duration::from_millis(300));
    }
    match screen.try_wait_until(Duration::from_secs(5), |shown| shown.to_lowercase().contains(RECORDING)) {
        Ok(_) => keys(screen, "the same while recording", "targets p50 1 ms, p99 16 ms"),
        Err(shown) => println!("keys while recording: not measured, no recording begins:\n{shown}"),
    }
}

fn keys(screen: &Screen, name: &str, target: &str) {
    let (mut latencies, mut unanswered, before) = (Vec::new(), 0, screen.bytes());
    for press in 0..PRESSES {
        // Never in step with a refresh: 20 to 116 ms, in an order with a long period.
        std::thread::sleep(Duration::from_millis(20 + (press as u64 * 61) % 97));
        screen.watch();
        let pressed = Instant::now();
        screen.keys(if press % 2 == 0 { screen::DOWN } else { screen::UP });
        match screen.first_byte(Duration::from_secs(1)) {
            Some(answered) => latencies.push(answered - pressed),
            None => unanswered += 1,
        }
    }
    let each = (screen.bytes() - before) / PRESSES as u64;
    report(name, &mut latencies, &format!("{target}; {each} bytes each, {unanswered} unanswered"));
}

fn report(name: &str, times: &mut [Duration], remark: &str) {
    times.sort();
    if times.is_empty() {
        println!("{name:<26}no answer at all");
        return;
    }
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1e3;
    println!("{name:<26}p50 {:.2}, p95 {:.2}, p99 {:.2}, max {:.2} ms ({remark})", at(0.5), at(0.95), at(0.99), at(1.0));
}

/// Resources used by a process since its start.
struct Usage {
    running: Duration,
    wakeups: u64,
    threads: usize,
    resident: f64,
    proportional: f64,
}

impl Usage {
    fn of(pid: u32) -> Self {
        let tasks: Vec<_> = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path()).collect();
        // A thread may exit during the reads.
        let read = |task: &Path, file: &str| fs::read_to_string(task.join(file)).unwrap_or_default();
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let running = tasks.iter().filter_map(|task| field(&read(task, "schedstat"), "")).sum();
        Self {
            running: Duration::from_nanos(running),
            wakeups: tasks.iter().filter_map(|task| field(&read(task, "status"), "voluntary_ctxt_switches:")).sum(),
            threads: tasks.len(),
            resident: field(&rollup, "Rss:").unwrap() as f64 * 1024.0,
            proportional: field(&rollup, "Pss:").unwrap() as f64 * 1024.0,
        }
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Returns the size of the stripped binary; the benchmark's build keeps symbols for profilers.
fn stripped_size() -> u64 {
    let folder = folder();
    let copy = folder.path().join("dn-top");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(env!("CARGO_BIN_EXE_dn-top")).status();
    assert!(status.unwrap().success());
    fs::metadata(copy).unwrap().len()
}
