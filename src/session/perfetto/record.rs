//! One recording of the service: its processes, from start to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use super::commits::{Batch, PacketQuota, Work};
use super::settings::Settings;
use super::stream::{Inlet, Outlet, Stream, Tally};
use crate::export::notices;
use crate::model::{Counted, Process, ProducerReport, RunState, SafeText};
use crate::net::Directory;
use crate::net::client::{Client, REPLY_TIMEOUT};
use crate::net::clock::monotonic;
use crate::perfetto::producer::Configuration;
use crate::session::trace_session::StopLimit;

/// How long a service waits for a data source to stop if it specifies no time.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Part of this time reserved for the last packets.
const PACKETS_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout for answers of processes.
const ANSWER_TIMEOUT: Duration = REPLY_TIMEOUT.saturating_add(Duration::from_millis(500));

/// Control signals for a recording.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) stop: watch::Receiver<bool>,
    /// Incremented to request that all descriptions are written again.
    pub(super) restart: watch::Receiver<u64>,
}

impl Control {
    /// Waits until the stop is requested, or the sender is dropped.
    async fn stopped(&mut self) {
        let _ = self.stop.wait_for(|stop| *stop).await;
    }
}

/// A requested recording.
#[derive(Debug)]
pub(super) struct ServiceRecording {
    pub(super) instance: u64,
    pub(super) configuration: Configuration,
    pub(super) settings: Settings,
    pub(super) directory: Arc<Mutex<Directory>>,
    pub(super) work: mpsc::UnboundedSender<Work>,
    /// Next free writer number.
    pub(super) writers: Arc<AtomicU16>,
    pub(super) tally: Arc<Tally>,
    /// Receives reports of the start and end.
    pub(super) events: mpsc::UnboundedSender<ProducerReport>,
}

impl ServiceRecording {
    /// Records until the stop signal.
    pub(super) async fn run(self, mut control: Control) {
        let instance = self.instance;
        let (streams, mut troubles) = match self.open(&mut control).await {
            Ok(opened) => opened,
            Err(why) => (Vec::new(), vec![format!("configuration refused: {why}")]),
        };
        if self.configuration.stalls {
            let words = "buffer_exhausted_policy: packets are dropped when the shared memory is full: a process never waits for the tracing service";
            troubles.push(words.to_owned());
        }
        if self.configuration.selects_categories {
            troubles
                .push("track_event_config is ignored: select events with profiles=, provider= or clr-events= in legacy_config".to_owned());
        }
        let troubles: Vec<_> = troubles.into_iter().map(SafeText::from).collect();
        self.note(&troubles);
        let processes = streams.iter().map(|(name, _)| SafeText::new(name)).collect();
        // The receiver is gone if the connection is closed.
        let _ = self.events.send(ProducerReport::Started { instance, processes, troubles });
        control.stopped().await;
        let limit = StopLimit { time: time_to_stop(self.configuration.stop_timeout_ms), ..StopLimit::RUNDOWN };
        let mut stopping: JoinSet<()> = streams.into_iter().map(|(_, stream)| stream.stop(limit)).collect();
        // A panic in a task is reported by the panic hook.
        while stopping.join_next().await.is_some() {}
        let _ = self.events.send(ProducerReport::Ended { instance, packets: self.tally.counts() });
    }

    /// Opens a session in each process, until the stop signal. Also returns error messages for processes without one.
    async fn open(&self, control: &mut Control) -> Result<(Vec<(String, Stream)>, Vec<String>), String> {
        let settings = self.settings.with(&self.configuration.text)?;
        let selected = settings.select()?;
        let (targets, mut troubles) = tokio::select! {
            found = self.find(&settings.targets) => found?,
            () = control.stopped() => return Ok((Vec::new(), vec!["stopped before the processes were found: nothing is recorded".to_owned()])),
        };
        // Those about the command line are displayed when it is parsed.
        if !self.configuration.text.is_empty() {
            troubles.extend(selected.warnings);
        }
        let mut opening = JoinSet::new();
        for (process, client) in targets {
            let Some(outlet) = self.outlet() else {
                troubles.push("this connection has no more packet sequences: start `dn-top perfetto serve` again".to_owned());
                break;
            };
            let inlet = Inlet { outlet, restart: control.restart.clone(), tally: self.tally.clone() };
            let config = selected.config.clone();
            opening.spawn(async move {
                let called = format!("{} ({})", process.name, process.key.pid);
                match Stream::open(client, &process, &config, inlet).await {
                    Ok(stream) => Ok((called, stream)),
                    Err(error) => Err(format!("{called}: {error}")),
                }
            });
        }
        let (mut streams, mut is_stopped, mut unopened) = (Vec::new(), false, 0);
        loop {
            let opened = tokio::select! {
                biased;
                opened = opening.join_next() => opened,
                () = control.stopped(), if !is_stopped => {
                    // A session that is still requested ends with its connection.
                    opening.abort_all();
                    is_stopped = true;
                    continue;
                }
            };
            match opened {
                None => break,
                Some(Ok(Ok(stream))) => streams.push(stream),
                Some(Ok(Err(why))) => troubles.push(why),
                // A panic is reported by the panic hook.
                Some(Err(error)) => unopened += u64::from(error.is_cancelled()),
            }
        }
        if unopened > 0 {
            troubles.push(format!("stopped before the sessions of {:#} were open", Counted(unopened, "process")));
        }
        Ok((streams, troubles))
    }

    /// Returns the selected processes that can be recorded, and error messages for the others.
    async fn find(&self, targets: &[String]) -> Result<(Vec<(Process, Client)>, Vec<String>), String> {
        let mut directory = self.directory.lock().await;
        let (mut processes, mut troubles) = (Vec::<Process>::new(), Vec::new());
        for target in targets {
            match directory.resolve(target, ANSWER_TIMEOUT).await {
                Ok(process) if processes.iter().any(|known| known.key == process.key) => {}
                Ok(process) => processes.push(process),
                Err(error) => troubles.push(error.to_string()),
            }
        }
        if targets.is_empty() {
            processes = directory.refresh(ANSWER_TIMEOUT).await.map_err(|error| format!("the processes cannot be listed: {error}"))?;
            processes.retain(|process| process.contact.is_attachable());
        }
        let mut found = Vec::new();
        for process in processes {
            let name = format!("{} ({})", process.name, process.key.pid);
            match directory.clients().of(&process) {
                _ if !process.contact.is_attachable() => {
                    troubles.push(format!("{name}: {}", process.contact.reason().unwrap_or("it cannot be reached")));
                }
                _ if process.run_state == RunState::Suspended => troubles.push(format!("{name} is suspended at startup")),
                Some(client) => found.push((process, client)),
                None => troubles.push(format!("{name} serves no diagnostic socket")),
            }
        }
        if found.is_empty() && troubles.is_empty() {
            troubles.push("no .NET process that can be recorded is running".to_owned());
        }
        Ok((found, troubles))
    }

    fn outlet(&self) -> Option<Outlet> {
        Outlet::new(&self.writers, self.configuration.target_buffer, self.work.clone())
    }

    /// Writes error messages into the trace.
    fn note(&self, troubles: &[SafeText]) {
        let Some(outlet) = self.outlet().filter(|_| !troubles.is_empty()) else { return };
        let packets = notices(monotonic().as_nanos() as u64, troubles);
        if let Some(share) = PacketQuota::default().take(packets.len(), true) {
            let Outlet { writer, buffer, work } = outlet;
            // If the connection is closed, packets are not needed.
            let _ = work.send(Work::Packets(Batch { writer, buffer, packets, _share: share }));
        }
    }
}

/// Returns the time for ending the sessions, given what the service waits for a data source to stop, in milliseconds.
fn time_to_stop(stop_timeout_ms: u32) -> Duration {
    let allowed = match stop_timeout_ms {
        0 => STOP_TIMEOUT,
        milliseconds => Duration::from_millis(milliseconds.into()),
    };
    allowed.saturating_sub(PACKETS_TIMEOUT).max(allowed / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_for_the_last_packets_is_left_of_that_of_the_service() {
        for (timeout_ms, expected_ms) in [(0, 4000), (10_000, 9000), (1500, 750), (500, 250)] {
            assert_eq!(time_to_stop(timeout_ms), Duration::from_millis(expected_ms), "{timeout_ms}");
        }
    }
}
