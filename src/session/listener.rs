//! A session whose events are processed as they arrive, and not stored.

use std::sync::{Arc, Mutex, PoisonError};

use super::blocking::{Blocking, start_blocking};
use super::plan::StartError;
use super::trace_session::{EventStream, StopLimit, TraceSession, Unfinished};
use crate::ipc::SessionConfig;
use crate::net::client::Client;
use crate::net::stream::BlockingStream;
use crate::nettrace::{Decoder, Ending, Limits, Sink};

/// A running session. A thread of its own feeds all events to a sink, which can be read at any time.
///
/// Dropping it closes the connection; the runtime frees the session at its next write. [`stop`](Self::stop) is preferred.
#[derive(Debug)]
pub(super) struct Listener<S> {
    session: Arc<TraceSession>,
    sink: Arc<Mutex<S>>,
    reading: Option<Blocking<Ending>>,
}

impl<S: Sink + Send + 'static> Listener<S> {
    /// Opens the session and starts reading. `most` is the maximum number of bytes before it is stopped.
    ///
    /// # Errors
    /// If the runtime does not open the session.
    pub(super) async fn start(client: Client, config: &SessionConfig, sink: S, most: u64) -> Result<Self, StartError> {
        let (session, stream) = TraceSession::open(client, config, most).await?;
        let stream = stream.into_blocking().map_err(StartError::Handle)?;
        let sink = Arc::new(Mutex::new(sink));
        let to = Arc::clone(&sink);
        let reading = start_blocking(move || listen(stream, &*to));
        Ok(Self { session, sink, reading: Some(reading) })
    }

    /// Accesses the sink. The stream is not read until `action` returns, so it must be short.
    pub(super) fn with_sink<T>(&self, action: impl FnOnce(&mut S) -> T) -> T {
        action(&mut self.sink.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the sink, for other threads. The stream is not read while it is locked.
    pub(super) fn sink(&self) -> Arc<Mutex<S>> {
        Arc::clone(&self.sink)
    }

    /// Whether the stream has ended: the target exited, the session was stopped, or the data was too much or undecodable.
    pub(super) fn is_over(&self) -> bool {
        self.session.has_ended()
    }

    /// Waits until the stream has ended.
    pub(super) async fn ended(&self) {
        self.session.ended().await;
    }

    /// Stops the session if it has not ended, and processes the remaining data, including any requested rundown.
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
    /// Returns the sink; `None` while the stream has not ended.
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

/// Feeds a stream to a sink until it ends or cannot be decoded.
fn listen(mut stream: EventStream<BlockingStream>, sink: &Mutex<dyn Sink + Send>) -> Ending {
    // `dyn Sink` shares the decoder instantiation that reads files.
    let lock = || sink.lock().unwrap_or_else(PoisonError::into_inner);
    let mut decoder = Decoder::new(Limits::LIVE);
    let session = Arc::clone(stream.session());
    let rest = stream.feed_all(|bytes| {
        let used = decoder.feed_blocks(bytes, &mut (&mut *lock() as &mut dyn Sink))?;
        session.examine(&decoder);
        Ok(used)
    });
    // `finish` returns the error, if there is one.
    let _ = decoder.feed(rest.unused(), &mut (&mut *lock() as &mut dyn Sink));
    decoder.finish(&mut (&mut *lock() as &mut dyn Sink))
}
