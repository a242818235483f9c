//! The connections that one runtime offers, one after the other.
//!
//! A task holds the connection that waits ("parked"), hands it over for a command, and watches it until then: a runtime sends nothing unasked,
//! so that the only thing to come is the end.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::peer::VerifiedStream;
use super::stream;

/// How often to look whether the process runs while it has no open connection that would show it: during a command.
const LOOK: Duration = Duration::from_secs(1);
/// Connections that may wait to be parked. A runtime offers one at a time; what floods us is turned away.
const MOST_OFFERED: usize = 4;

/// The way to a runtime that connects to us.
#[derive(Debug, Clone)]
pub(super) struct ReverseConnection {
    wanted: mpsc::Sender<oneshot::Sender<VerifiedStream>>,
    offered: mpsc::Sender<VerifiedStream>,
}

/// The other end of a connection: what its task needs.
pub(super) struct ConnectionHolder {
    wanted: mpsc::Receiver<oneshot::Sender<VerifiedStream>>,
    offered: mpsc::Receiver<VerifiedStream>,
}

impl ReverseConnection {
    pub(super) fn new() -> (Self, ConnectionHolder) {
        let (wanted, asked) = mpsc::channel(1);
        let (offered, parked) = mpsc::channel(MOST_OFFERED);
        (Self { wanted, offered }, ConnectionHolder { wanted: asked, offered: parked })
    }

    /// The next connection, for one command; waits for it. `None` when the runtime has gone.
    pub(super) async fn next(&self) -> Option<VerifiedStream> {
        let (ask, answer) = oneshot::channel();
        self.wanted.send(ask).await.ok()?;
        answer.await.ok()
    }

    /// Takes what a runtime offers; `false` if this connection is at its end.
    pub(super) fn offer(&self, stream: VerifiedStream) -> bool {
        !matches!(self.offered.try_send(stream), Err(mpsc::error::TrySendError::Closed(_)))
    }

    pub(super) fn is_open(&self) -> bool {
        !self.offered.is_closed()
    }
}

impl ConnectionHolder {
    /// Holds connections until the runtime has gone: its parked connection ends, or there is none and the process does not live.
    pub(super) async fn hold(mut self, lives: impl Fn() -> bool) {
        let mut parked: Option<VerifiedStream> = None;
        loop {
            tokio::select! {
                // A newer connection of a runtime means that it has given the older one up.
                Some(stream) = self.offered.recv() => parked = Some(stream),
                Some(asker) = self.wanted.recv(), if parked.is_some() => {
                    if let Some(stream) = parked.take() {
                        // A waiter that has gone gives it back.
                        parked = asker.send(stream).err();
                    }
                }
                () = ended(parked.as_ref()), if parked.is_some() => return,
                () = sleep(LOOK), if parked.is_none() => if !lives() {
                    return;
                }
            }
        }
    }
}

async fn ended(parked: Option<&VerifiedStream>) {
    if let Some(stream) = parked {
        stream::ended(stream).await;
    }
}
