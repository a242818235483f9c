//! A session whose events go to user_events tracepoints of the kernel, from the request to its end. It has no stream to read and writes no file.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::sleep;

use super::plan::StartError;
use super::trace_session::{EventStream, StopLimit, TraceSession, Unfinished};
use crate::ipc::{Capabilities, CommandCode, RuntimeVersion, SessionId, UserEvents};
use crate::model::StoppedBy;
use crate::net::client::Client;
use crate::net::user_events::{Kernel, Missing, UserEventsData, UserEventsError};

/// A session that lasts as long as this value: the runtime ends it when its connection is closed, at the latest when we are killed.
#[derive(Debug)]
pub struct KernelSession {
    session: Arc<TraceSession>,
    stream: EventStream,
}

/// Byte limit of the connection, over which nothing is expected but its end.
const MAX_STREAM_BYTES: u64 = 64 << 10;
/// There is no rundown, but removing tracepoints may take as long as registering them.
const STOP: StopLimit = StopLimit { bytes: MAX_STREAM_BYTES, ..StopLimit::RUNDOWN };

/// Returns everything missing in the kernel and a runtime of this version for such a session, each as a message with a remedy.
pub fn user_events_missing(kernel: &Kernel, runtime: Option<&RuntimeVersion>) -> Vec<Missing> {
    let mut missing = kernel.missing();
    let needs = Capabilities::of(runtime).unsupported_reason(CommandCode::CollectTracing5);
    missing.extend(needs.map(|needs| Missing::Support(format!("the runtime is too old: it {needs}"))));
    missing
}

/// Why a process cannot write to user_events.
#[derive(Debug, Error)]
pub enum UserEventsUnavailable {
    /// Everything missing.
    #[error("it cannot write to user_events: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Missing(Vec<Missing>),
    /// The file cannot be opened.
    #[error("it cannot write to user_events: {0}")]
    File(#[from] UserEventsError),
}

impl UserEventsUnavailable {
    /// Whether only permissions are missing.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Missing(missing) => missing.iter().all(|missing| matches!(missing, Missing::Permission(_))),
            Self::File(error) => error.is_denied(),
        }
    }
}

/// Opens the file that such a session needs.
///
/// # Errors
/// [`UserEventsUnavailable`]
pub fn user_events_data(kernel: &Kernel, runtime: Option<&RuntimeVersion>) -> Result<UserEventsData, UserEventsUnavailable> {
    let missing = user_events_missing(kernel, runtime);
    if missing.is_empty() { Ok(kernel.open()?) } else { Err(UserEventsUnavailable::Missing(missing)) }
}

impl KernelSession {
    /// Starts the session, passing the required file to the runtime.
    ///
    /// # Errors
    /// If the runtime does not open the session.
    pub async fn start(client: Client, events: UserEvents, data: &UserEventsData) -> Result<Self, StartError> {
        let session = client.start_user_events(events, data).await?;
        let (session, stream) = TraceSession::of(client, session, MAX_STREAM_BYTES).map_err(StartError::Handle)?;
        Ok(Self { session, stream })
    }

    /// The runtime's session id.
    pub fn id(&self) -> SessionId {
        self.session.id
    }

    /// Waits for a reason to end the session: a request, the end of the duration, or the exit of the target.
    pub async fn wait_for_stop(&mut self, stop: impl Future<Output = ()>, duration: Option<Duration>) -> StoppedBy {
        tokio::select! {
            () = stop => StoppedBy::Interrupt,
            () = sleep(duration.unwrap_or(Duration::MAX)) => StoppedBy::Duration,
            () = self.stream.drain() => StoppedBy::TargetExit,
        }
    }

    /// Stops the session, and waits until it has ended.
    ///
    /// # Errors
    /// [`Unfinished`]: the runtime did not confirm the stop.
    pub async fn end(mut self) -> Result<(), Unfinished> {
        let mut drained = pin!(self.stream.drain());
        let refusal = tokio::select! {
            biased;
            () = &mut drained => None,
            // The answer is the end: no rundown follows.
            refusal = self.session.request_stop(STOP) => refusal,
        };
        if refusal.is_some() || self.session.why_cut().is_some() { Err(self.session.unfinished(refusal)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_permissions_count_as_denied() {
        let [support, permission] = [Missing::Support("old".to_owned()), Missing::Permission("root".to_owned())];
        let denied = |missing: &[&Missing]| UserEventsUnavailable::Missing(missing.iter().copied().cloned().collect()).is_denied();
        // With the permission alone, it would still not work.
        assert_eq!([denied(&[&permission]), denied(&[&support, &permission]), denied(&[&support])], [true, false, false]);
    }
}
