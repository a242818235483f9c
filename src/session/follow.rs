//! Follows what occurs in a process: events are analyzed as they arrive, and not stored.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::decoded_stream::DecodedStream;
use super::names::request_names;
use super::{StartError, Unfinished};
use crate::analysis::Live;
use crate::ipc::SessionConfig;
use crate::net::client::Client;
use crate::nettrace::DecodeError;

/// Events that are held back for sorting by time are delivered if nothing more arrives within this time.
const SETTLE: Duration = Duration::from_millis(100);

/// Pauses between requests for names, each of which costs the process a rundown. Precompiled methods are only in it once they have been used.
const NAME_REQUEST_PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30)];

/// A running session whose events are analyzed as they arrive. Dropping it closes the connection; [`stop`](Self::stop) is preferred.
#[derive(Debug)]
pub struct Follower {
    events: DecodedStream<Live>,
    /// Whether events may be held back.
    may_hold: bool,
    client: Client,
    /// Number of requests for names so far, and the earliest time of the next one.
    name_requests: usize,
    next_request: Instant,
}

impl Follower {
    /// Opens a session without rundown, whose events are passed to these analyses.
    ///
    /// # Errors
    /// If the runtime does not open it.
    pub async fn start(client: Client, config: &SessionConfig, live: Live) -> Result<Self, StartError> {
        let events = DecodedStream::open(client.clone(), config, live).await?;
        Ok(Self { events, may_hold: false, client, name_requests: 0, next_request: Instant::now() })
    }

    /// Requests the names of the methods that are already compiled, unless it was done too often. Events that arrive in the meantime are analyzed.
    ///
    /// # Errors
    /// If the runtime sends no names, or the stream cannot be decoded.
    pub async fn find_names(&mut self) -> Result<(), String> {
        let now = Instant::now();
        if self.name_requests > NAME_REQUEST_PAUSES.len() || self.next_request > now {
            return Ok(());
        }
        self.next_request = now + NAME_REQUEST_PAUSES.get(self.name_requests).copied().unwrap_or_default();
        self.name_requests += 1;
        let mut names = pin!(request_names(self.client.clone()));
        loop {
            tokio::select! {
                found = &mut names => {
                    self.events.sink.add_symbols(&found?);
                    return Ok(());
                }
                read = self.events.read(), if !self.events.ended => {
                    self.may_hold = true;
                    read.map_err(|error| error.to_string())?;
                }
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{Level, Provider};
    use crate::model::ProcessKey;
    use crate::net::endpoint::Endpoint;
    use crate::net::stream::address_in;
    use crate::sim::{Simulated, Spec};

    #[tokio::test(start_paused = true)]
    async fn names_are_requested_four_times_with_pauses() {
        let folder = tempfile::tempdir().unwrap();
        let socket = address_in(folder.path(), "socket");
        let _runtime = Simulated::start(socket.clone(), Spec::new("Web", "9.0.7", 77)).unwrap();
        let client = Client::new(Endpoint { key: ProcessKey { pid: 77, started: 1 }, socket });
        let config = SessionConfig::new(Provider::new("Demo-Web", 1, Level::Verbose).unwrap().into());
        let mut follower = Follower::start(client, &config, Live::default()).await.unwrap();
        for (pause, requests) in [(0, 1), (0, 2), (0, 2), (6, 3), (6, 3), (31, 4), (1000, 4)] {
            tokio::time::advance(Duration::from_secs(pause)).await;
            follower.find_names().await.unwrap();
            assert_eq!(follower.name_requests, requests, "{pause} s later");
        }
    }
}
