//! A session whose events are taken in while they come, and not kept.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use super::plan::StartError;
use super::trace_session::{CHUNK, Cut, EventStream, StopLimit, TraceSession, Unfinished};
use crate::ipc::SessionConfig;
use crate::net::client::Client;
use crate::net::stream::BlockingStream;
use crate::nettrace::{Decoder, Ending, Limits, Sink};

/// A running session. A thread of its own feeds everything that comes to a sink, which can be looked at while it runs.
///
/// Dropping it closes the connection; the runtime frees the session when it next writes to it. [`stop`](Self::stop) is better.
#[derive(Debug)]
pub(super) struct Listener<S> {
    session: Arc<TraceSession>,
    sink: Arc<Mutex<S>>,
    reading: Option<JoinHandle<Ending>>,
}

impl<S: Sink + Send + 'static> Listener<S> {
    /// Opens the session and begins to listen. It may send so many bytes before it is stopped.
    ///
    /// # Errors
    /// When the runtime does not open it.
    pub(super) async fn start(client: Client, config: &SessionConfig, sink: S, most: u64) -> Result<Self, StartError> {
        let (session, stream) = TraceSession::open(client, config, most).await?;
        let stream = stream.into_blocking().map_err(StartError::Handle)?;
        let sink = Arc::new(Mutex::new(sink));
        let reading = {
            let (sink, session) = (Arc::clone(&sink), Arc::clone(&session));
            tokio::task::spawn_blocking(move || listen(stream, &session, &sink))
        };
        Ok(Self { session, sink, reading: Some(reading) })
    }

    /// Looks at what has come. The stream is not read until it returns: be short.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut S) -> T) -> T {
        look(&mut self.sink.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what has come out of it.
    pub(super) fn take(&self) -> S
    where
        S: Default,
    {
        std::mem::take(&mut *self.sink.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the stream has ended: the target did, the session was stopped, or what came was too much or could not be decoded.
    pub(super) fn is_over(&self) -> bool {
        self.session.has_ended()
    }

    /// Stops the session, if it has not ended, and takes in what the runtime still sends: its rundown, where one was requested.
    ///
    /// # Errors
    /// Why the stream is incomplete.
    pub(super) async fn stop(&mut self, limit: StopLimit) -> Result<(), Unfinished> {
        let refusal = self.session.stop(limit).await;
        let ending = match self.reading.take() {
            Some(reading) => reading.await.ok(),
            None => None,
        };
        if ending.is_some_and(|ending| ending.is_complete()) { Ok(()) } else { Err(self.session.unfinished(refusal)) }
    }
}

impl<S> Listener<S> {
    /// What took everything in; `None` while the stream has not ended.
    pub(super) fn into_sink(self) -> Option<S> {
        let sink = Arc::clone(&self.sink);
        drop(self);
        Some(Arc::into_inner(sink)?.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S> Drop for Listener<S> {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// Feeds a stream to a sink until it ends. One that cannot be decoded ends there.
fn listen<S: Sink>(mut stream: EventStream<BlockingStream>, session: &TraceSession, sink: &Mutex<S>) -> Ending {
    // The decoder is the one that reads files.
    let lock = || sink.lock().unwrap_or_else(PoisonError::into_inner);
    let mut decoder = Decoder::new(Limits::LIVE);
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if let Err(error) = decoder.feed(&buffer[..count], &mut (&mut *lock() as &mut dyn Sink)) {
            session.cut(Cut::Undecodable(error));
            break;
        }
    }
    decoder.finish(&mut (&mut *lock() as &mut dyn Sink))
}
