//! Shared by the integration tests, the benchmarks and the README's screenshot: real runtimes, programs running on them, and dn-top itself
//! with and without a terminal.
//!
//! Used with `#[path = "../support/mod.rs"] mod support;`. Nothing here needs the library.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

pub(crate) mod gcdump;
mod invocation;
pub(crate) mod picture;
mod program;
pub(crate) mod runtimes;
pub(crate) mod screen;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) use invocation::{Invocation, Output, Running};
pub(crate) use program::{Launch, Program, cpu_time};
pub(crate) use rustix::process::Signal;
pub(crate) use screen::Screen;

/// Timeout of all operations on a machine that is busy with other tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// Polls every 10 ms until there is a result, or `timeout` has run out.
pub(crate) fn poll<T>(timeout: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let mut timeout = FreezeAwareTimeout::new(timeout);
    loop {
        if let Some(answer) = condition() {
            return Some(answer);
        }
        if timeout.is_expired() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A timeout that excludes time during which the machine is frozen: a virtual machine may be paused for a minute while its clock advances.
pub(crate) struct FreezeAwareTimeout {
    left: Duration,
    asked: Instant,
}

impl FreezeAwareTimeout {
    /// Maximum time that counts between two checks.
    pub(crate) const STEP: Duration = Duration::from_millis(500);

    pub(crate) fn new(left: Duration) -> Self {
        Self { left, asked: Instant::now() }
    }

    /// Must be called at least once in each [`Self::STEP`].
    pub(crate) fn is_expired(&mut self) -> bool {
        let now = Instant::now();
        self.left = self.left.saturating_sub((now - self.asked).min(Self::STEP));
        self.asked = now;
        self.left.is_zero()
    }
}

/// Returns a folder installed by `tests/setup.sh` that contains this file. `None` if the setup could not install it, which is a failure in CI.
pub(crate) fn cache(name: &str, file: &str) -> Option<std::path::PathBuf> {
    let folder = runtimes::cache().join(name);
    if folder.join(file).exists() {
        return Some(folder);
    }
    runtimes::skip_unless_ci(&format!("{} is missing; run tests/setup.sh", folder.display()));
    None
}

/// Threads that keep every processor busy four times over. Stopped on drop, so that a failed test leaves none behind.
pub(crate) struct BusyProcessors {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyProcessors {
    pub(crate) fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..4 * std::thread::available_parallelism().unwrap().get()).map(start).collect();
        Self { over, threads }
    }
}

impl Drop for BusyProcessors {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Returns whether a file is a finished recording of a session: not one being written, nor separate CPU samples.
pub(crate) fn is_recording(file: &std::path::Path) -> bool {
    let name = file.to_str().unwrap_or_default();
    name.ends_with(".nettrace") && !name.ends_with(".cpu.nettrace")
}

/// Creates an empty folder with a short path: socket paths are limited to 108 bytes.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("dn").tempdir_in("/tmp").unwrap()
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    // An exited process needs no signal.
    let _ = rustix::process::kill_process(pid, signal);
}
