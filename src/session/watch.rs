//! Watch of a process: a small session for the runtime's counters, written to no file.

use std::time::Duration;

use tokio::sync::watch;

use super::blocking::read_process;
use super::counters::{CounterError, CounterEvent, CounterMonitor, CounterOptions, CounterSelection};
use super::cpu_use::CpuMonitor;
use super::plan::StartError;
use crate::analysis::{CountersSnapshot, RequestDurations};
use crate::clr::COUNTERS_PROVIDER;
use crate::ipc::BufferMb;
use crate::model::{Process, ProcessUse, ResourceUse, Trouble};
use crate::net::client::Client;

/// Size of the event buffer in the target, in MB: the minimum.
const BUFFER_MB: u32 = 1;

/// The library of `HttpClient`.
const HTTP_CLIENT: &str = "System.Net.Http.dll";
/// Number of values between checks for the library: each check reads all mappings.
const VALUES_BETWEEN_CHECKS: u32 = 5;

/// What to watch.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The process to watch.
    pub process: Process,
    /// Interval between values.
    pub interval: Duration,
    /// Whether to collect all meters as well.
    pub meters: bool,
}

/// Schedule of the checks for a library that may be loaded at any time: after other assemblies were loaded.
#[derive(Debug, Default)]
struct Search {
    /// Number of assemblies at the last check.
    seen: Option<f64>,
    /// Number of values since the last check.
    since: u32,
}

impl Search {
    /// Whether a check is due. To be called once for each set of values.
    fn is_due(&mut self, assemblies: Option<f64>) -> bool {
        self.since = self.since.saturating_add(1);
        let is_due = assemblies.is_some() && assemblies != self.seen && (self.seen.is_none() || self.since >= VALUES_BETWEEN_CHECKS);
        if is_due {
            (self.seen, self.since) = (assemblies, 0);
        }
        is_due
    }
}

/// Returns the number of loaded assemblies.
fn assemblies(counters: &CountersSnapshot) -> Option<f64> {
    counters.find(COUNTERS_PROVIDER, "assembly-count")?.history.last().map(|(_, count)| *count)
}

/// Watches until the process exits, or `stop` is true or its sender is dropped, and ends the session before it returns. `publish` receives
/// each set of counter values, and what /proc shows about the process.
///
/// # Errors
/// An error message: why the session could not be started, or why it ended.
pub async fn watch<F: Future<Output = ()>>(
    client: &Client,
    watch: &WatchOptions,
    mut stop: watch::Receiver<bool>,
    publish: impl Fn(CountersSnapshot, ProcessUse) -> F,
) -> Result<(), String> {
    let buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
    let (selection, version) = (CounterSelection::runtime(watch.meters), watch.process.runtime.as_ref());
    // Meters cost the target a thread: request meters are collected only if there are requests, or the library that sends them is loaded.
    let has_durations = version.is_some_and(|version| version.major() >= RequestDurations::SINCE);
    let mut durations = (false, false);
    let mut search = Search::default();
    let options = CounterOptions { collections: true, ..CounterOptions::new(selection.clone(), watch.interval, buffer) };
    let monitor = CounterMonitor::new(client.clone(), version, options);
    let mut monitor = monitor.map_err(|error| error.to_string())?;
    let mut cpu_use = CpuMonitor::default();
    loop {
        let event = tokio::select! {
            // An error means that the sender was dropped.
            _ = stop.wait_for(|stop| *stop) => break,
            event = monitor.next() => match event {
                // It ended before the session was open.
                Err(CounterError::Start(StartError::Exchange(error))) if error.trouble() == Some(Trouble::Stale) => break,
                event => event.map_err(|error| error.to_string())?,
            },
        };
        match event {
            CounterEvent::Values(counters) => {
                let (served, sent) = durations;
                let is_due = has_durations && !sent && search.is_due(assemblies(&counters));
                // /proc may be slow.
                let read = async {
                    let may_send = is_due && read_process(client, |client| client.maps(HTTP_CLIENT)).await.unwrap_or(false);
                    let (cpu, disk_waiters) = (cpu_use.read(client).await, cpu_use.disk_waiters(client).await);
                    let resources = read_process(client, Client::resources).await.unwrap_or_default();
                    (may_send, cpu, ResourceUse { disk_waiters, ..resources })
                };
                let (may_send, cpu, resources) = tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => break,
                    read = read => read,
                };
                let now = (served || CounterSelection::serves_requests(&counters), sent || may_send);
                if has_durations && std::mem::replace(&mut durations, now) != now {
                    monitor.select(selection.with_request_durations(now.0, now.1)).map_err(|error| error.to_string())?;
                }
                publish(*counters, ProcessUse { cpu, resources }).await;
            }
            CounterEvent::OtherLimits(_) => {}
            CounterEvent::Ended => break,
        }
    }
    // The process exited, or is no longer watched: how the session ended makes no difference.
    let _ = monitor.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_check_runs_after_assemblies_are_loaded() {
        let checks = |counts: &[Option<f64>]| {
            let mut search = Search::default();
            counts.iter().map(|count| search.is_due(*count)).enumerate().filter_map(|(at, is_due)| is_due.then_some(at)).collect::<Vec<_>>()
        };
        let quiet = [vec![None; 2], vec![Some(20.0); 900]].concat();
        assert_eq!(checks(&quiet), [2], "once, and never again");
        assert_eq!(checks(&[quiet, vec![Some(31.0); 900]].concat()), [2, 902], "at once, however late");
        let always: Vec<_> = (0..12).map(|count| Some(f64::from(count))).collect();
        assert_eq!(checks(&always), [0, 5, 10]);
    }
}
