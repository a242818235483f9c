//! The recordings that the dashboard started, from the key to the finished file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::exit_report;
use super::kernel;
use super::signals::Signals;
use crate::app::Msg;
use crate::model::{Phase, Recording, RecordingId};
use crate::net::client::Client;
use crate::session::{Launched, Plan, Recorder, Slot, StopRequest};

/// How long recordings may take to finish after the dashboard has gone.
const LAST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Recordings {
    requests: BTreeMap<RecordingId, watch::Sender<StopRequest>>,
    event_filters: BTreeMap<RecordingId, Slot<String>>,
    tasks: JoinSet<Option<Recording>>,
    /// Those that have ended, until they are reported.
    over: Vec<Recording>,
}

impl Recordings {
    /// Begins one; how it goes is reported to `inbox`.
    pub(super) fn start(&mut self, client: Client, plan: Plan, inbox: mpsc::Sender<Msg>) {
        let requests = self.begin(plan.id);
        self.event_filters.insert(plan.id, plan.event_filter.clone());
        self.tasks.spawn(record(client, plan, requests, inbox, None));
    }

    /// Begins one whose events go to the kernel.
    pub(super) fn start_in_kernel(&mut self, client: Client, wanted: kernel::KernelRequest, inbox: mpsc::Sender<Msg>) {
        let requests = self.begin(wanted.recording.id);
        self.tasks.spawn(kernel::hold(client, wanted, requests, inbox));
    }

    /// Begins one once it is known of what, and then lets that process run, which waits for it.
    pub(super) fn await_start(&mut self, id: RecordingId, start: oneshot::Receiver<(Launched, Plan)>, inbox: mpsc::Sender<Msg>) {
        let mut requests = self.begin(id);
        self.tasks.spawn(async move {
            let (launched, plan) = tokio::select! {
                start = start => start.ok()?,
                // It is not needed any more.
                Ok(_) = requests.wait_for(|request| *request != StopRequest::None) => return None,
            };
            record(launched.client.clone(), plan, requests, inbox, Some(launched)).await
        });
    }

    /// Drops those that have ended and makes room for another.
    fn begin(&mut self, id: RecordingId) -> watch::Receiver<StopRequest> {
        self.active();
        self.requests.retain(|_, request| !request.is_closed());
        self.event_filters.retain(|id, _| self.requests.contains_key(id));
        let (request, requests) = watch::channel(StopRequest::None);
        self.requests.insert(id, request);
        requests
    }

    pub(super) fn stop(&self, id: RecordingId) {
        self.request(id, StopRequest::Stop);
    }

    pub(super) fn abandon(&self, id: RecordingId) {
        self.request(id, StopRequest::Abandon);
    }

    /// Chooses the single events that are kept.
    pub(super) fn filter_events(&self, id: RecordingId, filter: String) {
        if let Some(shared) = self.event_filters.get(&id) {
            shared.put(filter);
        }
    }

    fn request(&self, id: RecordingId, wanted: StopRequest) {
        if let Some(request) = self.requests.get(&id) {
            request.send_replace(wanted);
        }
    }

    /// How many are not over.
    pub(super) fn active(&mut self) -> usize {
        while let Some(over) = self.tasks.try_join_next() {
            // For the words at the end: not what was analysed.
            let words = |recording| Recording { history: Vec::new(), threads: Arc::default(), analysis: None, ..recording };
            self.over.extend(over.ok().flatten().map(words));
        }
        self.tasks.len()
    }

    /// Reports the end of those that are over, for when the dashboard has gone.
    pub(super) fn print_outcomes(&mut self) {
        self.active();
        self.over.drain(..).for_each(|recording| exit_report::print(&recording));
    }

    /// Waits until all are over, and reports how each ended.
    pub(super) async fn all_over(&mut self) {
        self.print_outcomes();
        while let Some(over) = self.tasks.join_next().await {
            over.iter().flatten().for_each(exit_report::print);
        }
    }

    /// Stops all and waits, but not for ever, and not against another signal: what does not end in time is abandoned, its file stays.
    pub(super) async fn finish(&mut self, signals: &mut Signals) {
        for (wanted, limit) in [(StopRequest::Stop, LAST_WAIT), (StopRequest::Abandon, Duration::from_secs(2))] {
            for request in self.requests.values() {
                request.send_replace(wanted);
            }
            tokio::select! {
                () = self.all_over() => return,
                () = sleep(limit) => {}
                () = signals.end() => {}
            }
        }
    }
}

/// Records, and lets the process run that waits for it, if it does; gives how it ended, if it began.
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
    let started = Recorder::start(client, plan).await;
    if let Some(launched) = &waiting
        && let Err(error) = launched.resume().await
    {
        publish(Msg::Failed(format!("the program is still suspended at startup: {error}").into())).await;
    }
    let recorder = match started {
        Ok(recorder) => recorder,
        Err(error) => {
            publish(Msg::TraceFailed { id, reason: error.to_string().into() }).await;
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
            // The sender exists as long as the runner.
            Ok(()) = requests.changed() => {}
        }
    }
    Some(recorder.finished().await)
}
