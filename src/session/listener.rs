//! A session whose events are taken in while they come, and not kept.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::blocking::blocking;
use super::plan::StartError;
use crate::ipc::{SessionConfig, SessionId};
use crate::net::client::Client;
use crate::nettrace::{Decoder, Ending, Limits, Sink};

/// One read takes at most this much.
const CHUNK: usize = 256 * 1024;
/// How often it is looked whether a stream has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A running session. A thread of its own feeds everything that comes to a sink, which can be looked at meanwhile.
///
/// Dropping it ends the stream from our side; the runtime frees the session when it next writes to it. [`stop`](Self::stop) is better.
#[derive(Debug)]
pub struct Listener<S> {
    client: Client,
    session: SessionId,
    /// A second handle to the stream, to end it from here.
    stream: UnixStream,
    sink: Arc<Mutex<S>>,
    reading: Option<JoinHandle<Ending>>,
}

impl<S: Sink + Send + 'static> Listener<S> {
    /// Opens the session and begins to listen.
    ///
    /// # Errors
    /// When the runtime does not open it.
    pub async fn start(client: Client, config: &SessionConfig, sink: S) -> Result<Self, StartError> {
        let session = client.start_session(config).await?;
        let (reading, stream) = blocking(session.stream).map_err(StartError::Handle)?;
        let sink = Arc::new(Mutex::new(sink));
        let reading = {
            let sink = Arc::clone(&sink);
            tokio::task::spawn_blocking(move || listen(reading, &sink))
        };
        Ok(Self { client, session: session.id, stream, sink, reading: Some(reading) })
    }

    /// Looks at what has come. Nothing more is taken in meanwhile: be short.
    pub fn look<T>(&self, look: impl FnOnce(&S) -> T) -> T {
        look(&self.sink.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what has come out of it.
    pub fn take(&self) -> S
    where
        S: Default,
    {
        std::mem::take(&mut *self.sink.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the stream has ended: the target did, or the session was stopped.
    pub fn is_over(&self) -> bool {
        self.reading.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the session and takes in what the runtime still sends: its rundown, where one was asked for. After `limit`, or where the runtime does not
    /// stop, it does without. Says whether the stream came to its proper end.
    pub async fn stop(&mut self, limit: Duration) -> bool {
        let (client, session) = (self.client.clone(), self.session);
        // A session whose stream has ended must not be stopped: its id may be another's by then.
        let mut request = (!self.is_over()).then(|| tokio::spawn(async move { client.stop_session(session).await }));
        let deadline = Instant::now() + limit;
        while !self.is_over() {
            tokio::select! {
                () = sleep(LOOK) => {}
                () = sleep_until(deadline) => self.hang_up(),
            }
            if request.as_ref().is_some_and(JoinHandle::is_finished)
                && let Some(answered) = request.take()
                && !matches!(answered.await, Ok(Ok(())))
            {
                self.hang_up();
            }
        }
        if let Some(request) = request {
            request.abort();
        }
        match self.reading.take() {
            Some(reading) => reading.await.is_ok_and(|ending| ending.is_complete()),
            None => false,
        }
    }
}

impl<S> Listener<S> {
    /// What took everything in; `None` while the stream has not ended.
    pub fn into_sink(self) -> Option<S> {
        let sink = Arc::clone(&self.sink);
        drop(self);
        Some(Arc::into_inner(sink)?.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the stream from our side: the thread reads what is still in the socket and then its end.
    fn hang_up(&self) {
        // It fails only where the stream has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl<S> Drop for Listener<S> {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// Feeds a stream to a sink until it ends. One that makes no sense is read on and thrown away: a runtime that is being stopped must be drained.
fn listen<S: Sink>(mut stream: UnixStream, sink: &Mutex<S>) -> Ending {
    // The decoder is the one that reads files.
    let lock = || sink.lock().unwrap_or_else(PoisonError::into_inner);
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            // The error comes again from finish.
            Ok(count) => drop(decoder.feed(&buffer[..count], &mut (&mut *lock() as &mut dyn Sink))),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    decoder.finish(&mut (&mut *lock() as &mut dyn Sink))
}
