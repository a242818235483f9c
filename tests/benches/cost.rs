//! What being observed costs a program: how much less work the eight busy threads of a real .NET 9 program do.
//!
//! ```text
//! cargo bench --bench cost [-- ROUNDS]
//! ```
//!
//! Each round measures the work beside each observer, and before and after it without one: the processors of a virtual machine become faster and
//! slower all the time. The first observer only sleeps; its cost is the error of the measurement. `perf record` is measured if it is installed:
//! of all processors (as root), and of the program with call chains. `tests/setup.sh` installs the runtime.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::process::Command;
use std::time::Duration;

use support::{Invocation, Program, Signal, cpu_time, folder};

const THREADS: u32 = 8;
/// Duration of each measurement. Longer ones are not more exact: the speed of the processors varies as much from one minute to the next as from one
/// second to the next.
const TIME: Duration = Duration::from_secs(2);
/// How long an observer needs to begin.
const START: Duration = Duration::from_secs(2);
const DN_TOP: &str = env!("CARGO_BIN_EXE_dn-top");
/// Each with `PID` for that of the program.
const OBSERVERS: [&[&str]; 7] = [
    &["sleep", "1000"],
    // The interrupts alone, without call chains: no sampler of this frequency can cost less.
    &["perf", "record", "-F", "999", "-e", "cpu-clock", "-a", "-o", "/dev/null"],
    &[DN_TOP, "cpu", "PID", "--duration", "1h"],
    &["perf", "record", "-F", "999", "-e", "cpu-clock", "-g", "-p", "PID"],
    &[DN_TOP, "trace", "PID", "--profile", "cpu"],
    &[DN_TOP, "trace", "PID", "--profile", "cpu-sampling"],
    &[DN_TOP, "counters", "PID"],
];

fn main() {
    let Some(net9) = support::runtimes::net9() else { return };
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(20);
    let mut program = net9.program("known").start();
    assert_eq!(program.line(), "ready");
    let is_possible = |observer: &&[&str]| {
        let is_allowed = !observer.contains(&"-a") || rustix::process::geteuid().is_root();
        observer[0] != "perf" || is_allowed && Command::new("perf").arg("--version").output().is_ok()
    };
    let observers: Vec<_> = OBSERVERS.into_iter().filter(is_possible).collect();
    let mut costs = vec![Vec::new(); observers.len()];
    work(&mut program);
    std::thread::sleep(START);
    let mut before = work(&mut program);
    for _ in 0..rounds {
        for (observer, costs) in observers.iter().zip(&mut costs) {
            let (beside, used) = beside(&mut program, observer);
            // As before the observed work: after a rest, the processors are faster for a while.
            std::thread::sleep(START);
            let after = work(&mut program);
            costs.push((100.0 * (1.0 - beside / f64::midpoint(before, after)), used));
            before = after;
        }
    }
    println!("{:<56} {:>18} {:>16}", "% of the work, with the standard error", "", "of a core itself");
    for (observer, costs) in observers.iter().zip(costs) {
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / costs.len() as f64;
        let cost = mean(&mut costs.iter().map(|(cost, _)| *cost));
        let variance = mean(&mut costs.iter().map(|(each, _)| (each - cost).powi(2)));
        let error = (variance / (costs.len() - 1).max(1) as f64).sqrt();
        let used = mean(&mut costs.iter().map(|(_, used)| *used));
        println!("{:<56} {cost:>8.2} +- {error:>6.2} {used:>14.2} %", observer.join(" ").replace(DN_TOP, "dn-top"));
    }
}

/// Returns the amount of work done within the time.
fn work(program: &mut Program) -> f64 {
    let output = program.carry_out(&format!("work {THREADS} {}", TIME.as_millis()));
    output.iter().find_map(|line| line.strip_prefix("worked ")).unwrap().parse().unwrap()
}

/// Returns the amount of work done beside an observer, and the observer's own CPU time in percent of a core.
fn beside(program: &mut Program, observer: &[&str]) -> (f64, f64) {
    let (folder, pid) = (folder(), program.pid().to_string());
    let words = observer[1..].iter().map(|word| if *word == "PID" { pid.as_str() } else { word });
    let mut running = Invocation::of(observer[0], words).current_dir(folder.path()).start();
    std::thread::sleep(START);
    let used = cpu_time(running.pid());
    let worked = work(program);
    let used = cpu_time(running.pid()) - used;
    assert!(running.is_alive(), "{observer:?}: {}", running.stderr());
    running.signal(Signal::INT);
    running.wait();
    (worked, 100.0 * used.as_secs_f64() / TIME.as_secs_f64())
}
