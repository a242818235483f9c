//! The successive connections that one runtime opens to our port.
//!
//! A task holds the idle ("parked") connection until it is needed for a command, and monitors it: a runtime sends nothing unrequested, so the only
//! possible event is its end.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::peer::VerifiedStream;
use super::stream;

/// Interval for checking that the process still runs while no parked connection would show its end: during a command.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of connections waiting to be parked. A runtime opens one at a time; any excess is rejected.
const MAX_OFFERED: usize = 4;

/// Access to a runtime that connects to us.
#[derive(Debug, Clone)]
pub(super) struct ReverseConnection {
    requests: mpsc::Sender<oneshot::Sender<VerifiedStream>>,
    offered: mpsc::Sender<VerifiedStream>,
}

/// The receiving side of a [`ReverseConnection`], used by its task.
pub(super) struct ConnectionHolder {
    requests: mpsc::Receiver<oneshot::Sender<VerifiedStream>>,
    offered: mpsc::Receiver<VerifiedStream>,
}

impl ReverseConnection {
    pub(super) fn new() -> (Self, ConnectionHolder) {
        let (requests, request_receiver) = mpsc::channel(1);
        let (offered, parked) = mpsc::channel(MAX_OFFERED);
        (Self { requests, offered }, ConnectionHolder { requests: request_receiver, offered: parked })
    }

    /// Waits for the next connection, for one command. `None` when the runtime is gone.
    pub(super) async fn next(&self) -> Option<VerifiedStream> {
        let (ask, answer) = oneshot::channel();
        self.requests.send(ask).await.ok()?;
        answer.await.ok()
    }

    /// Adds a connection opened by the runtime. It is closed if there are too many, or if the task has ended.
    pub(super) fn offer(&self, stream: VerifiedStream) {
        let _ = self.offered.try_send(stream);
    }

    pub(super) fn is_open(&self) -> bool {
        !self.offered.is_closed()
    }
}

impl ConnectionHolder {
    /// Holds connections until the runtime is gone: the parked connection ends, or there is none and the process no longer runs.
    pub(super) async fn hold(mut self, is_running: impl Fn() -> bool) {
        let mut parked: Option<VerifiedStream> = None;
        loop {
            tokio::select! {
                // By opening a newer connection, the runtime has abandoned the older one.
                Some(stream) = self.offered.recv() => parked = Some(stream),
                Some(requester) = self.requests.recv(), if parked.is_some() => {
                    if let Some(stream) = parked.take() {
                        // If the receiver is gone, the connection stays parked.
                        parked = requester.send(stream).err();
                    }
                }
                () = ended(parked.as_ref()), if parked.is_some() => return,
                () = sleep(POLL_INTERVAL), if parked.is_none() => if !is_running() {
                    return;
                }
            }
        }
    }
}

async fn ended(parked: Option<&VerifiedStream>) {
    if let Some(stream) = parked {
        stream::ended(stream.as_ref()).await;
    }
}
