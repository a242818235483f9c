//! Watching a process: a small session of its runtime's own counters, written to no file.

use std::time::Duration;

use tokio::sync::watch;

use super::counters::{CounterEvent, CounterMonitor, CounterOptions, CounterSelection};
use super::cpu_use::CpuMonitor;
use crate::analysis::CountersSnapshot;
use crate::ipc::BufferMb;
use crate::model::{CpuUse, Process};
use crate::net::client::Client;

/// Room for events in the target, MB: the least there is.
const BUFFER_MB: u32 = 1;

/// The library of `HttpClient`.
const HTTP_CLIENT: &str = "System.Net.Http.dll";
/// Values between two looks for it: each look reads all that is mapped.
const PAUSE: u32 = 5;

/// What is watched.
#[derive(Debug, Clone)]
pub struct Watch {
    /// The process.
    pub process: Process,
    /// Time between two values.
    pub interval: Duration,
    /// Whether all meters are collected, too.
    pub meters: bool,
}

/// When a library that may be loaded at any time is looked for: once the program has loaded something.
#[derive(Debug, Default)]
struct Search {
    /// The number of assemblies at the last look.
    seen: Option<f64>,
    /// Values since the last look.
    since: u32,
}

impl Search {
    /// Whether a look is due at these values. Each asks once.
    fn is_due(&mut self, assemblies: Option<f64>) -> bool {
        self.since = self.since.saturating_add(1);
        let is_due = assemblies.is_some() && assemblies != self.seen && (self.seen.is_none() || self.since >= PAUSE);
        if is_due {
            (self.seen, self.since) = (assemblies, 0);
        }
        is_due
    }
}

/// How many assemblies a program has loaded.
fn assemblies(counters: &CountersSnapshot) -> Option<f64> {
    let counter = counters.counters.iter().find(|counter| counter.group == "System.Runtime" && counter.name == "assembly-count")?;
    counter.history.last().map(|(_, count)| *count)
}

/// Watches until the process ends or `stop` is true, or gone, and ends the session before it returns. `publish` gets the counters whenever there are
/// new values, and the CPU time of the process since the last.
///
/// # Errors
/// A sentence: why there is no session, or why it ended.
pub async fn watch<F: Future<Output = ()>>(
    client: &Client,
    watch: &Watch,
    mut stop: watch::Receiver<bool>,
    publish: impl Fn(CountersSnapshot, Option<CpuUse>) -> F,
) -> Result<(), String> {
    let buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
    let (selection, version) = (CounterSelection::runtime(watch.meters), watch.process.runtime.as_ref());
    // Meters cost the target a thread: those of requests are collected only where there are requests, or the library that sends them.
    let has_durations = version.is_some_and(|version| CounterSelection::has_request_durations(version.major()));
    let mut durations = (false, false);
    let mut search = Search::default();
    let options = CounterOptions { collections: true, ..CounterOptions::new(selection.clone(), watch.interval, buffer) };
    let monitor = CounterMonitor::new(client.clone(), version, options);
    let mut monitor = monitor.map_err(|error| error.to_string())?;
    let mut cpu = CpuMonitor::default();
    loop {
        let event = tokio::select! {
            // An error means that the sender is gone.
            _ = stop.wait_for(|stop| *stop) => break,
            event = monitor.next() => event.map_err(|error| error.to_string())?,
        };
        match event {
            CounterEvent::Values(counters) => {
                let (served, sent) = durations;
                let mut may_send = || search.is_due(assemblies(&counters)) && client.maps(HTTP_CLIENT);
                let now = (served || CounterSelection::serves_requests(&counters), sent || has_durations && may_send());
                if has_durations && std::mem::replace(&mut durations, now) != now {
                    monitor.select(selection.with_request_durations(now.0, now.1)).map_err(|error| error.to_string())?;
                }
                publish(*counters, cpu.look(client)).await;
            }
            CounterEvent::OtherLimits(_) => {}
            CounterEvent::Ended => break,
        }
    }
    // The process ended, or is not watched any more: how the session ended makes no difference.
    let _ = monitor.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_looked_for_when_the_program_has_loaded_something() {
        let looks = |counts: &[Option<f64>]| {
            let mut search = Search::default();
            counts.iter().map(|count| search.is_due(*count)).enumerate().filter_map(|(at, is_due)| is_due.then_some(at)).collect::<Vec<_>>()
        };
        let quiet = [vec![None; 2], vec![Some(20.0); 900]].concat();
        assert_eq!(looks(&quiet), [2], "once, and never again");
        assert_eq!(looks(&[quiet, vec![Some(31.0); 900]].concat()), [2, 902], "at once, however late");
        let always: Vec<_> = (0..12).map(|count| Some(f64::from(count))).collect();
        assert_eq!(looks(&always), [0, 5, 10]);
    }
}
