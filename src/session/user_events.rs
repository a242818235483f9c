//! A session whose events go to tracepoints of the kernel: from the request to its end. It has no stream to read and writes no file.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::plan::StartError;
use super::trace_session::{EventStream, StopLimit, TraceSession, Unfinished};
use crate::ipc::{Capabilities, CommandCode, RuntimeVersion, SessionId, UserEvents};
use crate::model::StoppedBy;
use crate::net::client::Client;
use crate::net::user_events::{Kernel, UserEventsData};

/// A session that goes on for as long as this is held: a runtime ends one whose connection is closed, at the latest when we are killed.
#[derive(Debug)]
pub struct KernelSession {
    session: Arc<TraceSession>,
    stream: EventStream,
}

/// Nothing is to come over the connection but its end; what comes all the same is not read for long.
const MOST: u64 = 64 << 10;
/// The runtime writes its rundown to the tracepoints before it answers.
const STOP: StopLimit = StopLimit { bytes: MOST, ..StopLimit::RUNDOWN };

/// Everything that a runtime of this version lacks here for such a session, each as a sentence about what would help.
pub fn user_events_missing(kernel: &Kernel, runtime: Option<&RuntimeVersion>) -> Vec<String> {
    let mut missing = kernel.missing();
    let needs = Capabilities::of(runtime).missing(CommandCode::CollectTracing5);
    missing.extend(needs.map(|needs| format!("the runtime is too old: it {needs}")));
    missing
}

/// Opens what it needs.
///
/// # Errors
/// A sentence with everything that is missing.
pub fn user_events_data(kernel: &Kernel, runtime: Option<&RuntimeVersion>) -> Result<UserEventsData, String> {
    let missing = user_events_missing(kernel, runtime);
    if missing.is_empty() {
        return kernel.open().map_err(|error| error.to_string());
    }
    Err(format!("it cannot write to user_events: {}", missing.join("; ")))
}

impl KernelSession {
    /// Has the runtime begin, with the file that it needs.
    ///
    /// # Errors
    /// When the runtime does not open the session.
    pub async fn start(client: Client, events: UserEvents, data: &UserEventsData) -> Result<Self, StartError> {
        let session = client.start_user_events(events, data).await?;
        let (session, stream) = TraceSession::of(client, session, MOST).map_err(StartError::Handle)?;
        Ok(Self { session, stream })
    }

    /// What the runtime called it.
    pub fn id(&self) -> SessionId {
        self.session.id()
    }

    /// Waits until there is a reason to end it: a request, the end of the time, or the end of the target.
    pub async fn hold(&mut self, stop: impl Future<Output = ()>, duration: Option<Duration>) -> StoppedBy {
        let target_exit = async { while let Ok(1..) = self.stream.read(&mut [0; 64]).await {} };
        tokio::select! {
            () = stop => StoppedBy::Interrupt,
            () = sleep(duration.unwrap_or(Duration::MAX)) => StoppedBy::Duration,
            () = target_exit => StoppedBy::TargetExit,
        }
    }

    /// Ends it, and waits until it has.
    ///
    /// # Errors
    /// [`Unfinished`]: the runtime did not confirm its end.
    pub async fn end(self) -> Result<(), Unfinished> {
        let mut drained = pin!(self.stream.drain());
        let refusal = tokio::select! {
            biased;
            () = &mut drained => None,
            // The answer is the end: there is no rundown to wait for.
            refusal = self.session.request_stop(STOP) => refusal,
        };
        if refusal.is_some() || self.session.why_cut().is_some() { Err(self.session.unfinished(refusal)) } else { Ok(()) }
    }
}
