//! The recordings started by the dashboard, from the key press to the finished file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::exit_report;
use super::kernel;
use super::signals::Signals;
use super::tasks::boxed;
use crate::app::Msg;
use crate::model::{Phase, Recording, RecordingId};
use crate::net::client::Client;
use crate::session::{Launched, Plan, Recorder, Slot, StopRequest};

/// Time that recordings may take to finish after the dashboard has closed.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a session may still take to open after its recording was stopped: what happens from now on is better recorded briefly than not at all.
const START_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Recordings {
    requests: BTreeMap<RecordingId, watch::Sender<StopRequest>>,
    event_filters: BTreeMap<RecordingId, Slot<String>>,
    tasks: JoinSet<Option<Recording>>,
    /// Ended recordings that are not reported yet.
    over: Vec<Recording>,
}

impl Recordings {
    /// Starts a recording; progress is reported to `inbox`.
    pub(super) fn start(&mut self, client: Client, plan: Plan, inbox: mpsc::Sender<Msg>) {
        let requests = self.begin(plan.id);
        self.event_filters.insert(plan.id, plan.event_filter.clone());
        self.tasks.spawn(boxed(record(client, plan, requests, inbox, None)));
    }

    /// Starts a recording whose events go to the kernel.
    pub(super) fn start_in_kernel(&mut self, client: Client, wanted: kernel::KernelRequest, inbox: mpsc::Sender<Msg>) {
        let requests = self.begin(wanted.recording.id);
        self.tasks.spawn(boxed(kernel::run(client, wanted, requests, inbox)));
    }

    /// Starts a recording once its process is known, and then resumes the process, which is suspended until then.
    pub(super) fn await_start(&mut self, id: RecordingId, start: oneshot::Receiver<(Launched, Plan)>, inbox: mpsc::Sender<Msg>) {
        let mut requests = self.begin(id);
        self.tasks.spawn(boxed(async move {
            let (launched, plan) = tokio::select! {
                start = start => start.ok()?,
                // Canceled before the start.
                Ok(_) = requests.wait_for(|request| *request != StopRequest::None) => return None,
            };
            record(launched.client.clone(), plan, requests, inbox, Some(launched)).await
        }));
    }

    /// Removes ended recordings, and registers a new one.
    fn begin(&mut self, id: RecordingId) -> watch::Receiver<StopRequest> {
        self.active();
        self.requests.retain(|_, request| !request.is_closed());
        self.event_filters.retain(|id, _| self.requests.contains_key(id));
        let (request, requests) = watch::channel(StopRequest::None);
        self.requests.insert(id, request);
        requests
    }

    /// Sets the filter for individual events.
    pub(super) fn filter_events(&self, id: RecordingId, filter: String) {
        if let Some(shared) = self.event_filters.get(&id) {
            shared.put(filter);
        }
    }

    /// Stops or abandons a recording.
    pub(super) fn request(&self, id: RecordingId, wanted: StopRequest) {
        if let Some(request) = self.requests.get(&id) {
            request.send_replace(wanted);
        }
    }

    /// Returns the number of active recordings.
    pub(super) fn active(&mut self) -> usize {
        while let Some(over) = self.tasks.try_join_next() {
            // Keep what the report needs, not the analysis.
            let words = |recording| Recording { history: Vec::new(), threads: Arc::default(), analysis: None, ..recording };
            self.over.extend(over.ok().flatten().map(words));
        }
        self.tasks.len()
    }

    /// Reports the results of ended recordings; for use after the dashboard has closed.
    pub(super) fn print_outcomes(&mut self) {
        self.active();
        self.over.drain(..).for_each(|recording| exit_report::print(&recording));
    }

    /// Waits until all have ended, and reports the results.
    pub(super) async fn wait_for_all(&mut self) {
        self.print_outcomes();
        while let Some(over) = self.tasks.join_next().await {
            over.iter().flatten().for_each(exit_report::print);
        }
    }

    /// Stops all and waits, but not forever, and not after another signal: what does not end in time is abandoned, its file remains.
    pub(super) async fn finish(&mut self, signals: &mut Signals) {
        for (wanted, limit) in [(StopRequest::Stop, FINISH_TIMEOUT), (StopRequest::Abandon, Duration::from_secs(2))] {
            for request in self.requests.values() {
                request.send_replace(wanted);
            }
            tokio::select! {
                () = self.wait_for_all() => return,
                () = sleep(limit) => {}
                () = signals.end_again() => {}
            }
        }
    }
}

/// Waits until a recording that has not started should be given up: at once if it is abandoned, a while after it is stopped.
async fn stopped_while_starting(requests: &mut watch::Receiver<StopRequest>) {
    // The sender lives as long as the runner.
    if requests.wait_for(|request| *request != StopRequest::None).await.is_err() {
        return std::future::pending().await;
    }
    let _ = timeout(START_GRACE, requests.wait_for(|request| *request == StopRequest::Abandon)).await;
}

/// Records, and resumes the process if it is suspended. Returns the result, if the recording started.
async fn record(
    client: Client,
    plan: Plan,
    mut requests: watch::Receiver<StopRequest>,
    inbox: mpsc::Sender<Msg>,
    waiting: Option<Launched>,
) -> Option<Recording> {
    let id = plan.id;
    // The receiver is gone once the dashboard has quit; the recording continues.
    let publish = async |msg| drop(inbox.send(msg).await);
    publish(Msg::Recording(Box::new(plan.starting()))).await;
    let started = tokio::select! {
        started = Recorder::start(client, plan) => started.map_err(|error| error.to_string()),
        () = stopped_while_starting(&mut requests) => Err("Stopped before the session started.".to_owned()),
    };
    if let Some(launched) = &waiting
        && let Err(error) = launched.resume().await
    {
        publish(Msg::Failed(format!("the program is still suspended at startup: {error}").into())).await;
    }
    let recorder = match started {
        Ok(recorder) => recorder,
        Err(reason) => {
            publish(Msg::TraceFailed { id, reason: reason.into() }).await;
            return None;
        }
    };
    let mut progress = recorder.progress();
    loop {
        match *requests.borrow_and_update() {
            StopRequest::None => {}
            StopRequest::Stop => recorder.stop(),
            StopRequest::Abandon => recorder.abandon(),
        }
        tokio::select! {
            changed = progress.changed() => {
                let now = progress.borrow_and_update().clone();
                let over = changed.is_err() || matches!(now.phase, Phase::Done(_));
                publish(Msg::Recording(Box::new(now))).await;
                if over {
                    break;
                }
            }
            // The sender lives as long as the runner.
            Ok(()) = requests.changed() => {}
        }
    }
    Some(recorder.finished().await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProcessKey, TraceOptions};
    use crate::net::endpoint::Endpoint;
    use crate::net::stream::address_in;
    use crate::sim::{Fault, Simulated, Spec};

    /// Starts a simulated runtime, and plans to record it into a file of the folder.
    fn planned(fault: Option<Fault>) -> (tempfile::TempDir, Simulated, Client, Plan) {
        let folder = tempfile::tempdir().unwrap();
        let socket = address_in(folder.path(), "socket");
        let runtime = Simulated::start(socket.clone(), Spec { fault, ..Spec::new("Web", "9.0.7", 77) }).unwrap();
        let key = ProcessKey { pid: 77, started: 1 };
        let config = TraceOptions::default().select().unwrap().config;
        let plan = Plan::new(key, "Web".into(), config, folder.path().join("a.nettrace"));
        (folder, runtime, Client::new(Endpoint { key, socket }), plan)
    }

    #[tokio::test]
    async fn recording_is_stopped_while_its_session_is_being_opened() {
        for wanted in [StopRequest::Stop, StopRequest::Abandon] {
            let (folder, _runtime, client, plan) = planned(Some(Fault::Silent));
            let (request, requests) = watch::channel(StopRequest::None);
            let (inbox, mut messages) = mpsc::channel(9);
            let recording = tokio::spawn(record(client, plan, requests, inbox, None));
            assert!(matches!(messages.recv().await, Some(Msg::Recording(_))));
            let partial = folder.path().join("a.nettrace.partial");
            while !partial.exists() {
                sleep(Duration::from_millis(5)).await;
            }
            request.send_replace(wanted);
            match messages.recv().await {
                Some(Msg::TraceFailed { reason, .. }) => assert_eq!(reason, "Stopped before the session started."),
                other => panic!("{other:?}"),
            }
            assert!(recording.await.unwrap().is_none() && !partial.exists());
        }
    }

    /// A runtime may be about to answer.
    #[tokio::test]
    async fn session_that_opens_soon_after_the_stop_is_recorded() {
        let (folder, _runtime, client, plan) = planned(None);
        let (_request, requests) = watch::channel(StopRequest::Stop);
        let (inbox, _messages) = mpsc::channel(999);
        let recording = record(client, plan, requests, inbox, None).await;
        assert!(matches!(recording.unwrap().phase, Phase::Done(_)) && folder.path().join("a.nettrace").exists());
    }
}
