//! A diagnostic port with 500 connected runtimes, and the overhead of `run` for a program.
//!
//! ```text
//! cargo bench --bench port
//! ```
//!
//! The runtimes are simulated in this process; the port belongs to a dn-top in its own terminal, whose idle figures are over ten seconds.
//! The time to resume all runtimes is measured with the library in this process, and so includes the runtimes' own part. The overhead of
//! `run` is a difference of medians: relative to the program alone, and with a session, relative to the same program with a session started
//! by the runtime itself, since the runtime's cost of a session is the same for every client.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dn_top::ipc::Command;
use dn_top::net::discovery::Sources;
use dn_top::net::port::{self, ConnectedRuntime, Port};
use dn_top::sim::{ConnectPort, Fleet, Simulated, Spec};
use support::{Invocation, TIMEOUT, folder, poll, runtimes};
use tokio::task::JoinSet;

const COUNT: usize = 500;
const IDLE: Duration = Duration::from_secs(10);
const RUNS: usize = 15;

fn main() {
    println!("load average before: {}", fs::read_to_string("/proc/loadavg").unwrap());
    port::raise_file_limit();
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let place = folder();
    // Entries that discovery finds for the PIDs; the runtimes that connect are separate simulations with the same PIDs.
    let _fleet = tasks.block_on(async { Fleet::uniform(place.path(), COUNT) }).unwrap();
    let path = place.path().join("port");
    let runtimes = tasks.block_on(async { connecting(place.path(), &path) });
    resume_all(&tasks, place.path(), &path, &runtimes);
    idle(place.path(), &path);
    launch();
}

fn connecting(place: &Path, path: &Path) -> Vec<Simulated> {
    let port = |suspend| Some(ConnectPort { path: path.to_owned(), suspend });
    let runtime = |i: usize| {
        let pid = 1200 + 37 * i as u32;
        Simulated::start(place.join(format!("s{i}")), Spec { port: port(true), ..Spec::new("Service", "9.0.7", pid) }).unwrap()
    };
    (0..COUNT).map(runtime).collect()
}

fn resume_all(tasks: &tokio::runtime::Runtime, place: &Path, path: &Path, runtimes: &[Simulated]) {
    tasks.block_on(async {
        let began = Instant::now();
        let port = Port::serve(path, &Sources::below(place)).unwrap();
        while port.runtimes().len() < COUNT {
            assert!(began.elapsed() < TIMEOUT, "{} came", port.runtimes().len());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!("{COUNT} runtimes found a new port in {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        let resume = |runtime: ConnectedRuntime| async move { runtime.client.run(&Command::ResumeRuntime).await };
        let resumed = port.runtimes().into_iter().map(resume).collect::<JoinSet<_>>().join_all().await;
        let took = began.elapsed();
        let failed = resumed.iter().filter(|result| result.is_err()).count();
        let running = runtimes.iter().filter(|runtime| !*runtime.suspension().borrow()).count();
        println!("resume all: {:.1} ms, {running} run, {failed} failed (target 250 ms)", took.as_secs_f64() * 1e3);
    });
}

fn idle(place: &Path, path: &Path) {
    let screen = Invocation::new(["--sim".as_ref(), place.as_os_str(), "--port".as_ref(), path.as_os_str()]).screen(120, 40);
    let connections = || fs::read_dir(format!("/proc/{}/fd", screen.pid())).unwrap().count();
    poll(TIMEOUT, || (connections() > COUNT).then_some(())).unwrap_or_else(|| panic!("{} handles", connections()));
    std::thread::sleep(Duration::from_secs(3));
    let before = running(screen.pid());
    std::thread::sleep(IDLE);
    let used = (running(screen.pid()) - before).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", screen.pid())).unwrap();
    let resident = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap().trim().to_owned();
    println!("dashboard with {COUNT} at its port, idle: {used:.2} % of a core (target 1), {resident} resident (target 30 MB)");
}

/// Returns the CPU time of all threads.
fn running(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::io::Result<fs::DirEntry>| fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap_or_default();
    Duration::from_nanos(tasks.map(of).filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok()).sum())
}

fn launch() {
    let place = folder();
    let options = |name: &str| ["run", "--rundown", "none", "-o", name, "--"].map(PathBuf::from);
    let under_run = |name: &str, words: &[PathBuf]| {
        let file = place.path().join(name);
        median(|run| Invocation::new(options(&format!("{}{run}", file.display())).iter().chain(words)))
    };
    let shell = ["sh", "-c", ":"].map(PathBuf::from);
    let (alone, run) = (median(|_| Invocation::of(&shell[0], &shell[1..])), under_run("sh", &shell));
    println!("sh: {alone:.1} ms alone, under run {:.1} ms more (target 30)", run - alone);
    let Some(net9) = runtimes::net9() else { return };
    let words = net9.program("known").words().to_vec();
    let alone = median(|_| Invocation::of(&words[0], &words[1..]));
    let own = median(|run| {
        let file = place.path().join(format!("own{run}"));
        let providers = "Microsoft-Windows-DotNETRuntime:14c14fccbd:5";
        let invocation = Invocation::of(&words[0], &words[1..]).env("DOTNET_EnableEventPipe", "1");
        invocation.env("DOTNET_EventPipeConfig", providers).env("DOTNET_EventPipeRundown", "0").env("DOTNET_EventPipeOutputPath", file)
    });
    let run = under_run("net9", &words);
    println!("a .NET 9 program: {alone:.1} ms alone; the session that its runtime starts by itself takes {:.1} ms more,", own - alone);
    println!("    that of run {:.1} ms more than that (target 30)", run - own);
}

/// Returns the median duration of a command, in milliseconds.
fn median(command: impl Fn(usize) -> Invocation) -> f64 {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|run| {
            let began = Instant::now();
            assert_eq!(command(run).run().code, 0);
            began.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2].as_secs_f64() * 1e3
}
