//! What the integration tests, the benchmarks and the README's picture stand on: real runtimes, programs running on
//! them, and dn-top itself with and without a terminal.
//!
//! A test uses it with `#[path = "../support/mod.rs"] mod support;`. Nothing here needs the library.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

pub(crate) mod gcdump;
mod invocation;
pub(crate) mod picture;
mod program;
pub(crate) mod runtimes;
pub(crate) mod screen;

use std::time::{Duration, Instant};

pub(crate) use invocation::{Invocation, Output, Running};
pub(crate) use program::{Launch, Program};
pub(crate) use rustix::process::Signal;
pub(crate) use screen::Screen;

/// How long anything may take on a machine that is busy with other tests before it counts as broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Asks every 10 ms until there is an answer, or `patience` has run out.
pub(crate) fn poll<T>(patience: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let mut patience = Patience::new(patience);
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if patience.is_out() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How long is waited, not counting what a machine stands still in between: a virtual machine may be frozen for a minute, and its clock goes on.
pub(crate) struct Patience {
    left: Duration,
    asked: Instant,
}

impl Patience {
    /// The longest that counts between two questions.
    pub(crate) const STEP: Duration = Duration::from_millis(500);

    pub(crate) fn new(left: Duration) -> Self {
        Self { left, asked: Instant::now() }
    }

    /// To be asked at least once in each [`Self::STEP`].
    pub(crate) fn is_out(&mut self) -> bool {
        let now = Instant::now();
        self.left = self.left.saturating_sub((now - self.asked).min(Self::STEP));
        self.asked = now;
        self.left.is_zero()
    }
}

/// A folder of what `tests/setup.sh` brought, which holds this file. `None` where the set-up could not get it, which is a failure in CI.
pub(crate) fn cache(name: &str, file: &str) -> Option<std::path::PathBuf> {
    let folder = runtimes::cache().join(name);
    if folder.join(file).exists() {
        return Some(folder);
    }
    assert!(std::env::var("CI").is_err(), "{} is missing: run tests/setup.sh", folder.display());
    runtimes::skip(&format!("{} is missing, run tests/setup.sh", folder.display()));
    None
}

/// Whether a file is a whole recording of a session: not one that is being written, nor the samples of the kernel beside one.
pub(crate) fn is_recording(file: &std::path::Path) -> bool {
    let name = file.to_str().unwrap_or_default();
    name.ends_with(".nettrace") && !name.ends_with(".cpu.nettrace")
}

/// A new empty folder with a short path: socket paths end at 108 bytes.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("dn").tempdir_in("/tmp").unwrap()
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    // A process that is gone needs no signal.
    let _ = rustix::process::kill_process(pid, signal);
}
