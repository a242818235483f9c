//! Limits that the system sets for this process (`setrlimit`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// Open files that we may need: two for each of thousands of sampled threads.
const OPEN_FILES: u64 = 32_768;

/// Allows this process as many open files as it may need, as far as permitted: usually a limit of 1024 is only the default. Also turns the signal
/// at the maximum size of a file, which would end the program, into an error of the write. What is not possible remains as it is.
pub fn adjust() {
    let _ = signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::new(AtomicBool::new(false)));
    let limit = getrlimit(Resource::Nofile);
    let possible = limit.maximum.unwrap_or(u64::MAX).min(OPEN_FILES);
    if limit.current.is_some_and(|current| current < possible) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(possible), ..limit });
    }
}
