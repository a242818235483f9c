//! Sessions whose events go to tracepoints of the kernel, from the key press to the end.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use crate::app::Msg;
use crate::ipc::UserEvents;
use crate::model::{Outcome, Phase, Recording, StoppedBy};
use crate::net::client::Client;
use crate::net::user_events::UserEventsData;
use crate::session::{KernelSession, StopRequest};

/// A request for such a session.
pub(super) struct KernelRequest {
    /// Initial state of the recording.
    pub(super) recording: Recording,
    pub(super) events: UserEvents,
    /// The file that the runtime needs, or a sentence about everything that is missing.
    pub(super) data: Result<UserEventsData, String>,
    /// Stop after this time.
    pub(super) duration: Option<Duration>,
}

/// Runs a session until it is stopped, the time is over, or the process exits. Returns the result, if the session started.
pub(super) async fn run(
    client: Client,
    wanted: KernelRequest,
    mut requests: watch::Receiver<StopRequest>,
    inbox: mpsc::Sender<Msg>,
) -> Option<Recording> {
    let KernelRequest { mut recording, events, data, duration } = wanted;
    let id = recording.id;
    // The receiver is gone once the dashboard has quit.
    let publish = async |msg| drop(inbox.send(msg).await);
    let begun = Instant::now();
    let started = match data {
        Ok(data) => tokio::select! {
            started = KernelSession::start(client, events, &data) => started.map_err(|error| error.to_string()),
            // The runtime notices the closed connection, and ends a session that it may have started.
            _ = requests.wait_for(|request| *request != StopRequest::None) => Err("Stopped before the session started.".to_owned()),
        },
        Err(missing) => Err(missing),
    };
    let mut session = match started {
        Ok(session) => session,
        Err(reason) => {
            publish(Msg::TraceFailed { id, reason: reason.into() }).await;
            return None;
        }
    };
    let called = session.id().to_string();
    recording.kernel.iter_mut().for_each(|kernel| kernel.session = Some(called.clone()));
    let mut step = |phase| {
        recording.phase = phase;
        recording.elapsed = begun.elapsed();
        recording.clone()
    };
    publish(Msg::Recording(Box::new(step(Phase::Recording)))).await;
    let stop_requested = async { drop(requests.wait_for(|request| *request != StopRequest::None).await) };
    let stopped_by = session.wait_for_stop(stop_requested, duration).await;
    publish(Msg::Recording(Box::new(step(Phase::Stopping { since: Duration::ZERO, bytes: 0 })))).await;
    let ended = tokio::select! {
        ended = session.end() => ended.map_err(|error| error.to_string()),
        _ = requests.wait_for(|request| *request == StopRequest::Abandon) => Err("Stopped without waiting for the end of the session.".to_owned()),
    };
    let complete = ended.is_ok() && stopped_by != StoppedBy::TargetExit;
    let over = step(Phase::Done(Outcome { stopped_by, complete, file: None, trouble: ended.err().map(Into::into) }));
    publish(Msg::Recording(Box::new(over.clone()))).await;
    Some(over)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::model::{KernelTrace, ProcessKey, RecordingId, TraceOptions};
    use crate::net::endpoint::Endpoint;
    use crate::sim::{Simulated, Spec};
    use crate::tui::recordings::Recordings;

    struct Bench {
        folder: tempfile::TempDir,
        runtime: Option<Simulated>,
        client: Client,
        recordings: Recordings,
        inbox: mpsc::Receiver<Msg>,
    }

    /// Starts a simulated runtime of a version, and requests a session.
    fn bench(version: &str, duration: Option<Duration>, data: Result<(), String>) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let (key, socket) = (ProcessKey { pid: 1, started: 1 }, folder.path().join("socket"));
        let runtime = Simulated::start(socket.clone(), Spec::new("Web", version, 1)).unwrap();
        let client = Client::new(Endpoint { key, socket });
        let order = TraceOptions { tracepoints: vec!["all".to_owned()], ..TraceOptions::default() };
        let (events, kernel) = order.user_events().unwrap().unwrap();
        let start = Recording::starting(RecordingId(1), key, "Web".into(), vec!["gc".to_owned()], Default::default());
        let data = data.map(|()| UserEventsData::simulated(folder.path()));
        let wanted = KernelRequest { recording: Recording { kernel: Some(kernel), ..start }, events, data, duration };
        let (sender, inbox) = mpsc::channel(9);
        let mut recordings = Recordings::default();
        recordings.start_in_kernel(client.clone(), wanted, sender);
        Bench { folder, runtime: Some(runtime), client, recordings, inbox }
    }

    impl Bench {
        async fn next(&mut self) -> Recording {
            match self.inbox.recv().await {
                Some(Msg::Recording(recording)) => *recording,
                other => panic!("{other:?}"),
            }
        }

        /// Waits for the end of the session.
        async fn over(&mut self) -> Outcome {
            loop {
                if let Phase::Done(outcome) = self.next().await.phase {
                    return outcome;
                }
            }
        }

        /// Whether the runtime has no open session: it accepts the maximum number.
        async fn has_no_session(&self) -> bool {
            let mut held = Vec::new();
            for _ in 0..64 {
                let data = UserEventsData::simulated(self.folder.path());
                let (events, _) =
                    TraceOptions { tracepoints: vec!["all".to_owned()], ..TraceOptions::default() }.user_events().unwrap().unwrap();
                held.push(self.client.start_user_events(events, &data).await);
            }
            held.iter().all(Result::is_ok)
        }
    }

    #[tokio::test]
    async fn a_session_continues_until_it_is_stopped() {
        let mut bench = bench("10.0.9", None, Ok(()));
        let begun = bench.next().await;
        assert_eq!(begun.phase, Phase::Recording);
        let Some(KernelTrace { session: Some(session), .. }) = &begun.kernel else { panic!("{begun:?}") };
        assert!(session.starts_with("0x"), "{session}");
        assert!(bench.client.process_info().await.unwrap().is_some(), "the runtime is there for others");
        assert!(bench.inbox.try_recv().is_err(), "it goes on");
        bench.recordings.request(RecordingId(1), StopRequest::Stop);
        assert!(matches!(bench.next().await.phase, Phase::Stopping { .. }));
        let outcome = bench.over().await;
        assert_eq!(outcome, Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: None, trouble: None });
        assert!(bench.has_no_session().await);
    }

    #[tokio::test]
    async fn session_ends_after_duration_or_target_exit() {
        let mut timed = bench("10.0.9", Some(Duration::from_millis(10)), Ok(()));
        assert_eq!(timed.over().await.stopped_by, StoppedBy::Duration);
        assert!(timed.has_no_session().await);
        let mut lost = bench("10.0.9", None, Ok(()));
        lost.next().await;
        lost.runtime = None;
        let outcome = lost.over().await;
        assert_eq!(outcome, Outcome { stopped_by: StoppedBy::TargetExit, complete: false, file: None, trouble: None });
    }

    #[tokio::test]
    async fn a_start_can_be_canceled() {
        let mut bench = bench("10.0.9", None, Ok(()));
        // Stopped before the session had time to start.
        bench.recordings.request(RecordingId(1), StopRequest::Stop);
        match bench.inbox.recv().await {
            Some(Msg::TraceFailed { reason, .. }) => assert_eq!(reason, "Stopped before the session started."),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn failed_start_reports_the_reason() {
        for (version, data, why) in
            [("10.0.9", Err("tracefs is not mounted".to_owned()), "tracefs is not mounted"), ("9.0.7", Ok(()), "needs .NET 10")]
        {
            let mut bench = bench(version, None, data);
            match bench.inbox.recv().await {
                Some(Msg::TraceFailed { id: RecordingId(1), reason }) => assert!(reason.contains(why), "{reason}"),
                other => panic!("{other:?}"),
            }
            assert!(bench.inbox.recv().await.is_none());
        }
    }
}
