//! Sessions with meters that are stopped while these are collected for the first time.

use std::time::Duration;

use crate::fatal_requests::{assert_survives, attempt};
use crate::run::threads;
use crate::support::{Invocation, Signal, TIMEOUT, poll, runtimes};

/// Stopping a session with meters while they are collected for the first time blocks the diagnostic server forever, as well as anything that
/// creates an event source.
#[test]
fn stopping_meters_does_not_block_runtime() {
    runtimes::each(runtimes::since(8, runtimes::with("work")), |runtime| {
        for duration in ["900ms", "950ms", "1s", "1050ms"] {
            let mut program = runtime.program("work").arg("1").arg("10").start();
            let words = ["counters", "PID", "--counters", "System.Runtime,DnTop.Nothing", "--format", "json", "--duration", duration];
            assert_survives(runtime, &mut program, vec![attempt(words)]);
        }
    });
}

/// The same if the process stands still when its first collection and the stop are due, and continues with both.
#[test]
fn stopping_meters_of_a_stopped_process_does_not_block_runtime() {
    runtimes::each(runtimes::since(9, runtimes::with("work")), |runtime| {
        for _ in 0..2 {
            let mut program = runtime.program("work").arg("1").arg("10").start();
            let (pid, target) = (program.pid(), program.pid().to_string());
            let words = ["counters", &target, "--counters", "System.Runtime,DnTop.Nothing", "--format", "json", "--duration", "900ms"];
            let running = Invocation::new(words).start();
            // The kernel cuts off the thread's name, "MetricsEventSource CollectWorker".
            let has_collector = || threads(pid).iter().any(|name| name.trim_end() == "MetricsEventSou").then_some(());
            assert!(poll(TIMEOUT, has_collector).is_some(), "{runtime}: {:?}", threads(pid));
            program.signal(Signal::STOP);
            std::thread::sleep(Duration::from_secs(3));
            program.signal(Signal::CONT);
            let output = running.wait();
            assert!(program.is_alive() && program.answers(), "{runtime} does not answer: {output:?} {}", program.stderr());
        }
    });
}
