//! Threads of the process that a client talks to, as /proc shows them.

use rustc_hash::FxHashMap;

use super::Client;
use crate::model::{ThreadUse, sanitise_bytes};

impl Client {
    /// Names of the threads of the process, by the number that the process itself knows them by. Empty where /proc does not show them.
    pub fn thread_names(&self) -> FxHashMap<u64, String> {
        let names = self.own_proc().and_then(|proc| proc.thread_names(self.endpoint.key.pid).ok()).unwrap_or_default();
        names.into_iter().map(|(thread, name)| (thread, sanitise_bytes(&name))).collect()
    }

    /// The threads of the process with the time that each has had on a processor so far, no more than `most`. Empty where /proc does not show them.
    pub fn thread_times(&self, most: usize) -> Vec<ThreadUse> {
        let times = self.own_proc().and_then(|proc| proc.thread_times(self.endpoint.key.pid, most).ok()).unwrap_or_default();
        times.into_iter().map(|(thread, name, cpu)| ThreadUse { thread, name: sanitise_bytes(&name), cpu }).collect()
    }

    /// The most memory that the process ever had resident, bytes; `None` where /proc does not show it.
    pub fn peak_memory(&self) -> Option<u64> {
        self.own_proc()?.peak_memory(self.endpoint.key.pid).ok()
    }
}
