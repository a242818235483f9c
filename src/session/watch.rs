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
/// The values between the first two looks for it: each look reads all that is mapped. Every pause is twice the one before.
const FIRST_PAUSE: u32 = 10;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

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

/// When it is looked for something that may never come, less and less often.
#[derive(Debug)]
struct Search {
    /// Values before the next look.
    left: u32,
    pause: u32,
    longest: u32,
}

impl Search {
    /// The first look is due at once; then come pauses of so many values, one in each `interval`.
    fn new(interval: Duration) -> Self {
        let longest = (LONGEST_PAUSE.as_secs_f64() / interval.as_secs_f64().max(1e-3)) as u32;
        Self { left: 0, pause: FIRST_PAUSE, longest: longest.max(FIRST_PAUSE) }
    }

    /// Whether a look is due at this value. Each value asks once.
    fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        if is_due {
            self.left = self.pause;
            self.pause = self.pause.saturating_mul(2).min(self.longest);
        }
        self.left -= 1;
        is_due
    }
}

/// Watches until the process ends or `stop` is true, or gone, and ends the session before it returns. `publish` gets the counters whenever there are
/// new values, and what the process took of the processors meanwhile.
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
    let mut search = Search::new(watch.interval);
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
                let mut may_send = || search.is_due() && client.maps(HTTP_CLIENT);
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
    fn a_library_that_never_comes_is_looked_for_less_and_less_often() {
        let looks = |seconds| {
            let mut search = Search::new(Duration::from_secs(seconds));
            (0..3000).filter(|_| search.is_due()).collect::<Vec<u32>>()
        };
        assert_eq!(looks(1), [0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430]);
        assert_eq!(looks(60)[..4], [0, 10, 20, 30], "ten minutes are the longest pause");
    }
}
