//! A session whose events go to tracepoints of the kernel: from the request to its end. It has no stream to read and writes no file.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::sleep;

use crate::ipc::{Capabilities, CommandCode, RuntimeVersion, SessionId, UserEvents};
use crate::model::StoppedBy;
use crate::net::ExchangeError;
use crate::net::client::{Client, Session};
use crate::net::user_events::{Kernel, UserEventsData};

/// A session that goes on for as long as this is held: a runtime ends one whose connection is closed, at the latest when we are killed.
#[derive(Debug)]
pub struct KernelSession {
    client: Client,
    session: Session,
    /// The target is gone, and the session with it.
    gone: bool,
}

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
    /// [`ExchangeError`].
    pub async fn start(client: Client, events: UserEvents, data: &UserEventsData) -> Result<Self, ExchangeError> {
        let session = client.start_user_events(events, data).await?;
        Ok(Self { client, session, gone: false })
    }

    /// What the runtime called it.
    pub fn id(&self) -> SessionId {
        self.session.id
    }

    /// Waits until there is a reason to end it: somebody wants that, the time is over, or the target has ended.
    pub async fn hold(&mut self, stop: impl Future<Output = ()>, duration: Option<Duration>) -> StoppedBy {
        let target_exit = async {
            // Nothing comes but the end.
            while let Ok(1..) = self.session.stream.read(&mut [0; 64]).await {}
        };
        let stopped_by = tokio::select! {
            () = stop => StoppedBy::Interrupt,
            () = sleep(duration.unwrap_or(Duration::MAX)) => StoppedBy::Duration,
            () = target_exit => StoppedBy::TargetExit,
        };
        self.gone = stopped_by == StoppedBy::TargetExit;
        stopped_by
    }

    /// Ends it, and waits until it has.
    ///
    /// # Errors
    /// [`ExchangeError`]: the runtime did not say that it has ended.
    pub async fn end(self) -> Result<(), ExchangeError> {
        // The id may be another session's once the target is gone.
        if self.gone { Ok(()) } else { self.client.stop_session(self.session.id).await }
    }
}
