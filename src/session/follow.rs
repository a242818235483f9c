//! Follows what occurs in a process: events are analyzed as they arrive, and not stored.

use std::time::Duration;

use tokio::time::timeout;

use super::decoded_stream::DecodedStream;
use super::{StartError, Unfinished};
use crate::analysis::Live;
use crate::ipc::SessionConfig;
use crate::net::client::Client;
use crate::nettrace::DecodeError;

/// Events that are held back for sorting by time are delivered if nothing more arrives within this time.
const SETTLE: Duration = Duration::from_millis(100);

/// A running session whose events are analyzed as they arrive. Dropping it closes the connection; [`stop`](Self::stop) is preferred.
#[derive(Debug)]
pub struct Follower {
    events: DecodedStream<Live>,
    /// Whether events may be held back.
    may_hold: bool,
}

impl Follower {
    /// Opens a session without rundown, whose events are passed to these analyses.
    ///
    /// # Errors
    /// If the runtime does not open it.
    pub async fn start(client: Client, config: &SessionConfig, live: Live) -> Result<Self, StartError> {
        Ok(Self { events: DecodedStream::open(client, config, live).await?, may_hold: false })
    }

    /// Waits until events have arrived. Returns whether more can follow. Cancel safe: no event is lost if the future is dropped.
    ///
    /// # Errors
    /// If the stream cannot be decoded.
    pub async fn next(&mut self) -> Result<bool, DecodeError> {
        let wait = if self.may_hold { SETTLE } else { Duration::MAX };
        let read = timeout(wait, self.events.read()).await;
        self.may_hold = read.is_ok();
        match read {
            Ok(read) => read?,
            Err(_) => self.events.flush(),
        }
        Ok(!self.events.ended)
    }

    /// Returns the analyses so far.
    pub fn live(&self) -> &Live {
        &self.events.sink
    }

    /// Stops the session. Returns the analyses, and whether the stream was complete.
    pub async fn stop(self) -> (Live, Result<(), Unfinished>) {
        self.events.stop().await
    }
}
