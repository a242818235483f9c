//! Watching a process: a small session of its runtime's own counters, written to no file.

use std::time::Duration;

use tokio::sync::watch;

use super::counters::{CounterEvent, CounterMonitor, CounterOptions, CounterSelection};
use crate::analysis::CountersSnapshot;
use crate::ipc::BufferMb;
use crate::model::Process;
use crate::net::client::Client;

/// Room for events in the target, MB: the least there is.
const BUFFER_MB: u32 = 1;

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

/// Watches until the process ends or `stop` is true, or gone, and ends the session before it returns. `publish` gets the counters whenever there are
/// new values.
///
/// # Errors
/// A sentence: why there is no session, or why it ended.
pub async fn watch<F: Future<Output = ()>>(
    client: &Client,
    watch: &Watch,
    mut stop: watch::Receiver<bool>,
    publish: impl Fn(CountersSnapshot) -> F,
) -> Result<(), String> {
    let buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
    let (selection, version) = (CounterSelection::runtime(watch.meters), watch.process.runtime.as_ref());
    // Meters cost the target a thread: those of requests are collected only where there are requests.
    let mut durations = version.and_then(|version| selection.with_request_durations(version.major()));
    let options = CounterOptions { collections: true, ..CounterOptions::new(selection, watch.interval, buffer) };
    let monitor = CounterMonitor::new(client.clone(), version, options);
    let mut monitor = monitor.map_err(|error| error.to_string())?;
    loop {
        let event = tokio::select! {
            // An error means that the sender is gone.
            _ = stop.wait_for(|stop| *stop) => break,
            event = monitor.next() => event.map_err(|error| error.to_string())?,
        };
        match event {
            CounterEvent::Values(counters) => {
                if let Some(selection) = durations.take_if(|_| CounterSelection::serves_requests(&counters)) {
                    monitor.select(selection).map_err(|error| error.to_string())?;
                }
                publish(*counters).await;
            }
            CounterEvent::OtherLimits(_) => {}
            CounterEvent::Ended => break,
        }
    }
    // The process ended, or is not watched any more: how the session ended makes no difference.
    let _ = monitor.stop().await;
    Ok(())
}
