//! Soak test: the dashboard in a terminal with processes that start and exit, 1,000 in half an hour. They are watched and recorded; the
//! dashboard's memory and other resources must not grow.
//!
//! ```text
//! tests/soak.sh [MINUTES]
//! ```
//!
//! The processes are real, each with a simulated runtime, plus one program on each real runtime that `tests/setup.sh` has installed. Memory
//! is the median of a minute's samples of the resident set, and must stay within 1 MB of its value after the warm-up. File descriptors,
//! threads and the runtimes' open sessions are counted before the first process starts and after the last has exited.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, stdin};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dn_top::sim::{Simulated, Spec};
use support::screen::{ESC, Screen};
use support::{Invocation, Launch, Program, TIMEOUT, poll, runtimes};

/// The argument that makes this program act as one of the processes.
const RUNTIME: &str = "runtime";
/// Processes started per minute: 1,000 in thirty minutes.
const STARTS_PER_MINUTE: u32 = 1000 / 30 + 1;
/// Number of these alive at a time.
const SHORT_LIVED: usize = 12;
/// Number of processes that live throughout.
const LONG_LIVED: usize = 4;
/// Minutes after which memory must be flat; a third of a shorter soak.
const WARM_UP: usize = 5;
/// Allowed difference in memory from then on, MB.
const TOLERANCE: f64 = 1.0;
/// Time for started work to end. Idle threads of the task pool live for ten seconds.
const SETTLE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [RUNTIME] => serve(),
        [minutes] => return soak(minutes.parse().unwrap()),
        _ => println!("soak: not without a number of minutes; tests/soak.sh has one"),
    }
    ExitCode::SUCCESS
}

/// Runs as a process with a simulated runtime, until standard input is closed.
fn serve() {
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tasks.block_on(async {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let started = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
        let pid = std::process::id();
        let version = ["8.0.17", "9.0.7", "10.0.0"][pid as usize % 3];
        let socket = std::env::temp_dir().join(format!("dotnet-diagnostic-{pid}-{started}-socket"));
        let _runtime = Simulated::start(socket, Spec::new(&format!("Soak{pid}"), version, pid)).unwrap();
        tokio::task::spawn_blocking(|| stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    });
}

fn process() -> Program {
    Launch::new(&std::env::current_exe().unwrap()).arg(RUNTIME).start()
}

fn soak(minutes: usize) -> ExitCode {
    let real = [runtimes::net31(), runtimes::net8(), runtimes::net9(), runtimes::net10()]
        .into_iter()
        .flatten()
        .map(|runtime| runtime.any().start());
    let staying: Vec<Program> = real.chain(std::iter::repeat_with(process).take(LONG_LIVED)).collect();
    let mut screen = Invocation::new([] as [&str; 0]).screen(120, 40);
    screen.wait_for(&staying.last().unwrap().pid().to_string());
    std::thread::sleep(SETTLE);
    let before = Resources::by(&screen, &staying);

    println!("minute  memory MB  descriptors  threads  processes so far");
    let (mut coming, mut come) = (VecDeque::new(), 0);
    let mut memory = Vec::new();
    for minute in 1..=minutes {
        let mut samples = Vec::new();
        for turn in 0..STARTS_PER_MINUTE {
            let next = Instant::now() + Duration::from_secs(60) / STARTS_PER_MINUTE;
            coming.push_back(process());
            come += 1;
            if coming.len() > SHORT_LIVED {
                let mut oldest = coming.pop_front().unwrap();
                // Half of them are killed instead of exiting.
                if turn % 2 == 0 {
                    oldest.finish();
                }
            }
            screen.keys(keys(turn, screen.contents().contains(RECORDING)));
            samples.push(Resources::by(&screen, &[]).memory);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        samples.sort_by(f64::total_cmp);
        memory.push(samples[samples.len() / 2]);
        let Resources { descriptors, threads, .. } = Resources::by(&screen, &[]);
        println!("{minute:>6}  {:>9.2}  {descriptors:>11}  {threads:>7}  {come:>16}", memory[minute - 1]);
    }

    drop(coming);
    // All are watched, then none, and nothing is recorded.
    let quiet = || {
        screen.keys(&format!("{ESC}{ESC}gW"));
        std::thread::sleep(Duration::from_secs(2));
        (sessions(&staying) == 0 && !screen.contents().contains(RECORDING)).then_some(())
    };
    let is_quiet = poll(TIMEOUT, quiet).is_some();
    std::thread::sleep(SETTLE);
    let after = Resources::by(&screen, &staying);
    println!("\n              before  after");
    for (name, before, after) in [
        ("descriptors", before.descriptors, after.descriptors),
        ("threads", before.threads, after.threads),
        ("sessions", before.sessions, after.sessions),
    ] {
        println!("{name:<12}  {before:>6}  {after:>5}");
    }
    let flat_from = WARM_UP.min(minutes.div_ceil(3)) - 1;
    let growth = memory[flat_from..].iter().map(|later| (later - memory[flat_from]).abs()).fold(0.0, f64::max);
    println!("memory        within {growth:.2} MB since minute {}", flat_from + 1);
    screen.keys("q");
    let left = screen.wait_exit().success();
    let flat = growth <= TOLERANCE && after.descriptors <= before.descriptors && after.threads <= before.threads && after.sessions == 0;
    if flat && is_quiet && left {
        return ExitCode::SUCCESS;
    }
    println!("soak: something grows, or did not end:\n{}", screen.contents());
    ExitCode::FAILURE
}

/// Text in the table for a process being recorded.
const RECORDING: &str = "◉ recording";

/// Returns the keys pressed at one step of a minute. On a busy machine, a process may not be ready for recording at its step; then none is
/// recorded.
fn keys(turn: u32, is_recording: bool) -> &'static str {
    match turn {
        // Watch all processes, and open every tab.
        1 | 9 => "\x1bW",
        2 => "1",
        3 => "2",
        4 => "9",
        5 => "0",
        // Record a process.
        11 if !is_recording => "\x1bGt",
        12..=16 => "3",
        17 => "4",
        18 => "5",
        19 => "6",
        20 => "7",
        21 => "8",
        22 if is_recording => "3t",
        // Unwatch all processes.
        26 | 27 => "\x1bW",
        30 => "\x1bg",
        _ => "j",
    }
}

/// Resources held by a process.
struct Resources {
    /// Anonymous memory, MB. Pages of the executable do not count: they are mapped in as code first runs, and evicted under memory pressure.
    memory: f64,
    descriptors: usize,
    threads: usize,
    sessions: usize,
}

impl Resources {
    fn by(screen: &Screen, programs: &[Program]) -> Self {
        let folder = Path::new("/proc").join(screen.pid().to_string());
        let rollup = fs::read_to_string(folder.join("smaps_rollup")).unwrap();
        let own = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        let count = |name: &str| fs::read_dir(folder.join(name)).unwrap().count();
        Self { memory: own.unwrap() / 1024.0, descriptors: count("fd"), threads: count("task"), sessions: sessions(programs) }
    }
}

/// Returns the number of open sessions: each is a connection to the diagnostic socket of a runtime.
fn sessions(programs: &[Program]) -> usize {
    const CONNECTED: &str = "03";
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    let connected = |path: &Path| {
        let of = |line: &&str| line.split_whitespace().nth(5) == Some(CONNECTED) && path.to_str().is_some_and(|path| line.ends_with(path));
        sockets.lines().filter(of).count()
    };
    programs.iter().map(|program| connected(&program.socket())).sum()
}
