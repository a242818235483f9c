//! Time from pressing `t` until the first hot method is shown by name, for real programs whose methods were compiled long before.
//!
//! ```text
//! cargo bench --bench names
//! ```

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be set up has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use support::{Invocation, TIMEOUT, runtimes, screen};

const TIMES: usize = 7;

fn main() {
    println!("load average before: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    for runtime in runtimes::with("known") {
        let mut times: Vec<_> = (0..TIMES).map(|_| named(&runtime)).collect();
        times.sort_unstable();
        println!("{runtime}: median {:?}, {:?} to {:?} (target 1.2 s)", times[TIMES / 2], times[0], times[TIMES - 1]);
    }
}

/// Makes one recording of a busy program.
fn named(runtime: &runtimes::Runtime) -> Duration {
    let mut program = runtime.program("known").start();
    program.carry_out("spend 300");
    program.command("spend 60000");
    let screen = Invocation::new([] as [&str; 0]).screen(120, 40);
    screen.wait_for(&format!("{} known", program.pid()));
    screen.keys(&format!(":known {}", program.pid()));
    screen.wait_for(&format!("known {}", program.pid()));
    screen.keys(screen::ENTER);
    screen.wait_for(&format!("known {} ─", program.pid()));
    let began = Instant::now();
    // Starts a recording, and switches to the tab with the methods.
    screen.keys("t");
    screen.wait_for("recording");
    screen.keys(screen::ENTER);
    screen.keys("7");
    screen.try_wait_until(TIMEOUT, |shown| shown.contains("Known.Burn")).unwrap_or_else(|shown| panic!("{runtime}:\n{shown}"));
    let took = began.elapsed();
    screen.keys("t");
    screen.try_wait_until(TIMEOUT, |shown| shown.contains("done")).unwrap_or_else(|shown| panic!("{runtime}:\n{shown}"));
    took
}
