//! One EventPipe session, from opening it to the end of its stream: the only place that stops sessions.
//!
//! `StopTracing` is sent over a second connection *while the stream is still being read*, because the runtime writes its rundown before it
//! answers (reference: dotnet/diagnostics, "EventPipe session life"); the end of the stream is the end of the session. A session whose stream
//! has ended is never stopped: the runtime has freed its id, and may have given it to another session.
//!
//! A runtime is not trusted to end a session: once the stop is requested, time and bytes are limited; beyond that the connection is closed,
//! which makes the runtime free the session at its next write. The stream is also closed when the process exits, even if a child process
//! still holds the connection.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::StartError;
use crate::ipc::{Downgrade, SessionConfig, SessionId};
use crate::model::{Bytes, Trouble};
use crate::net::client::{Client, Session};
use crate::net::stream::{self, BlockingStream, Closer, Stream};
use crate::net::{ExchangeError, log};
use crate::nettrace::{DecodeError, Decoder, StreamBuffer};

/// Maximum size of one read of a stream. Larger buffers gain nothing measurable, and freeing the first of them makes glibc raise the size up
/// to which it keeps freed memory instead of returning it.
pub(super) const CHUNK: usize = 64 * 1024;

/// Limits of a session once its stop is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopLimit {
    /// Time until the end of the stream.
    pub time: Duration,
    /// Number of bytes that may still be sent, in addition to buffered events.
    pub bytes: u64,
    /// Number of bytes of buffered events that may still be sent. Never more than a quarter of the bytes received before.
    pub buffered: u64,
}

impl StopLimit {
    /// For a session that ends with a rundown: the largest programs seen take a few seconds and about 10 MB.
    pub const RUNDOWN: Self = Self { time: Duration::from_secs(60), bytes: 64 << 20, buffered: u64::MAX };
    /// For a session without rundown: most runtimes need a few milliseconds. Buffered events are still sent.
    pub const NO_RUNDOWN: Self = Self { time: Duration::from_secs(5), bytes: 16 << 20, buffered: u64::MAX };

    /// Returns the same with at most half of this number of bytes, the free space of a disk.
    pub(super) fn within(self, free: u64) -> Self {
        Self { bytes: self.bytes.min(free / 4), buffered: self.buffered.min(free / 4), ..self }
    }
}

/// How long a stream may continue after its stop was refused: a process that is exiting refuses, and closes its streams a moment later.
const AFTER_REFUSAL: Duration = Duration::from_secs(3);

/// Why a stream was closed by us.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Cut {
    /// The stream did not end in time after the stop.
    #[error("the runtime did not end the session within {} s; another client may occupy its diagnostic socket", .0.as_secs_f32())]
    Time(Duration),
    /// The runtime sent too much after the stop.
    #[error("the runtime kept sending after the stop, and the connection was closed after {} more", Bytes(*.0))]
    Rundown(u64),
    /// The runtime sent more than the session can need.
    #[error("the runtime sent more than {}, and the connection was closed", Bytes(*.0))]
    Budget(u64),
    /// The stream cannot be decoded.
    #[error("cannot decode the event stream: {0}")]
    Undecodable(DecodeError),
    /// Canceled by the user or a signal.
    #[error("stopped before the rundown was complete: method names may be missing")]
    Abandoned,
}

/// Why a stream is incomplete.
#[derive(Debug, Error)]
pub enum Unfinished {
    /// The stream was closed by us.
    #[error("{0}")]
    Cut(Cut),
    /// The stop request failed.
    #[error("the session could not be stopped: {0}")]
    NotStopped(ExchangeError),
    /// The target closed the stream.
    #[error("the target exited or closed the stream")]
    Closed,
}

/// An open session of a runtime.
#[derive(Debug)]
pub(super) struct TraceSession {
    client: Client,
    /// The runtime's session id, unique while the session exists.
    pub(super) id: SessionId,
    /// Requested features that are not available in this runtime.
    pub(super) downgrades: Vec<Downgrade>,
    /// A second handle to the stream, for closing it.
    closer: Closer,
    received: AtomicU64,
    /// Maximum number of bytes to receive.
    most: AtomicU64,
    /// Number of bytes received before the stop was requested.
    before: OnceLock<u64>,
    cut: OnceLock<Cut>,
    ended: watch::Sender<bool>,
    /// Number of metadata records of the stream that were examined.
    examined: AtomicUsize,
}

/// Event stream of a session. It must be read continuously; dropping it closes the connection.
#[derive(Debug)]
pub(super) struct EventStream<S = Stream> {
    stream: S,
    end: StreamEnd,
}

/// Marks the stream as ended when dropped.
#[derive(Debug)]
struct StreamEnd(Arc<TraceSession>);

impl TraceSession {
    /// Opens a session that may send at most `most` bytes before it is stopped.
    pub(super) async fn open(client: Client, config: &SessionConfig, most: u64) -> Result<(Arc<Self>, EventStream), StartError> {
        let session = client.start_session(config).await?;
        Self::of(client, session, most).map_err(StartError::Handle)
    }

    /// Wraps a session that was just opened.
    pub(super) fn of(client: Client, session: Session, most: u64) -> io::Result<(Arc<Self>, EventStream)> {
        let closer = Closer::of(&session.stream)?;
        let this = Arc::new(Self {
            client,
            id: session.id,
            downgrades: session.downgrades,
            closer,
            received: AtomicU64::new(0),
            most: AtomicU64::new(most),
            before: OnceLock::new(),
            cut: OnceLock::new(),
            ended: watch::Sender::new(false),
            examined: AtomicUsize::new(0),
        });
        let watched = Arc::clone(&this);
        tokio::spawn(async move {
            tokio::select! {
                // Data already sent is still read.
                () = watched.client.process_exit() => watched.close(),
                () = watched.ended() => {}
            }
        });
        log::note(format_args!("session {} of process {} has begun", this.id, this.client.endpoint().key.pid));
        let end = StreamEnd(Arc::clone(&this));
        Ok((this, EventStream { stream: session.stream, end }))
    }

    /// Waits for the end of the stream, whichever side closes it.
    pub(super) async fn ended(&self) {
        // The sender lives as long as `self`.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Examines what was decoded of the stream so far. A runtime writes the metadata of an event just before the first one.
    pub(super) fn examine(&self, decoder: &Decoder) {
        let records = decoder.metadata();
        let examined = self.examined.swap(records.len(), Ordering::Relaxed);
        for record in records.iter().skip(examined) {
            self.client.event_kind_seen(self.id, &record.provider, &record.name);
        }
    }

    /// Waits until a stop does no harm to the target, or the stream ends. The limits of a stop apply from then on.
    pub(super) async fn until_stoppable(&self) {
        tokio::select! {
            () = self.ended() => {}
            () = self.client.until_stoppable(self.id) => {}
        }
    }

    /// Stops the session and waits for the end of its stream, which must be read, and [examined](Self::examine), until then. Returns the error if
    /// the request failed.
    pub(super) async fn stop(&self, limit: StopLimit) -> Option<ExchangeError> {
        self.until_stoppable().await;
        let deadline = Instant::now() + limit.time;
        let refusal = self.request_stop(limit).await;
        let deadline = if refusal.is_some() { deadline.min(Instant::now() + AFTER_REFUSAL) } else { deadline };
        tokio::select! {
            () = self.ended() => {}
            () = sleep_until(deadline) => {
                self.cut(Cut::Time(limit.time));
                self.ended().await;
            }
        }
        refusal
    }

    /// Requests the stop and waits for the answer, the end of the stream, or the time limit. Returns the error if the request failed.
    pub(super) async fn request_stop(&self, limit: StopLimit) -> Option<ExchangeError> {
        self.until_stoppable().await;
        // From now on, whether or not the runtime has received the request.
        let before = *self.before.get_or_init(|| self.received.load(Ordering::Relaxed));
        self.most.fetch_min(before.saturating_add(limit.buffered.min(before / 4)).saturating_add(limit.bytes), Ordering::Relaxed);
        tokio::select! {
            biased;
            // After the end of the stream, the request must not be sent any more.
            () = self.ended() => None,
            answered = self.client.stop_session(self.id) => answered.err(),
            () = sleep(limit.time) => {
                self.cut(Cut::Time(limit.time));
                None
            }
        }
    }

    /// Closes the stream and records the reason. Data in the socket is still read.
    pub(super) fn cut(&self, why: Cut) {
        // The first reason is kept.
        let _ = self.cut.set(why);
        self.close();
    }

    /// Why the stream is incomplete, if it is.
    pub(super) fn unfinished(&self, refusal: Option<ExchangeError>) -> Unfinished {
        match (self.cut.get(), refusal) {
            // A process that has exited needs no stop.
            (None, Some(error)) if error.trouble() == Some(Trouble::Stale) => Unfinished::Closed,
            (Some(Cut::Time(_)) | None, Some(error)) => Unfinished::NotStopped(error),
            (Some(cut), _) => Unfinished::Cut(cut.clone()),
            (None, None) => Unfinished::Closed,
        }
    }

    /// Why the stream was closed by us, if it was.
    pub(super) fn why_cut(&self) -> Option<&Cut> {
        self.cut.get()
    }

    /// Closes the stream; data in the socket is still read.
    pub(super) fn close(&self) {
        self.closer.close();
    }

    /// Whether more may be read.
    fn has_room(&self) -> bool {
        let (received, most) = (self.received.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed));
        if received < most {
            return true;
        }
        self.cut(match self.before.get() {
            Some(before) => Cut::Rundown(received.saturating_sub(*before)),
            None => Cut::Budget(most),
        });
        false
    }

    /// Counts the bytes read. A target that exits with unread bytes of ours resets the stream, which counts as a normal end.
    fn take(&self, read: io::Result<usize>) -> io::Result<usize> {
        match read {
            Ok(count) => {
                self.received.fetch_add(count as u64, Ordering::Relaxed);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            Err(error) => Err(error),
        }
    }
}

impl Drop for StreamEnd {
    fn drop(&mut self) {
        self.0.close();
        let (session, received) = (&self.0, self.0.received.load(Ordering::Relaxed));
        log::note(format_args!("session {} of process {} has ended after {received} bytes", session.id, session.client.endpoint().key.pid));
        self.0.ended.send_replace(true);
    }
}

impl EventStream {
    /// Waits for the next bytes; returns 0 at the end of the stream, and when the byte limit is reached.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.end.0.has_room() {
            return Ok(0);
        }
        self.end.0.take(self.stream.read(buffer).await)
    }

    /// Reads and discards everything.
    pub(super) async fn drain(&mut self) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(1..) = self.read(&mut buffer).await {}
    }

    /// Converts the stream for use on a blocking thread.
    pub(super) fn into_blocking(self) -> io::Result<EventStream<BlockingStream>> {
        Ok(EventStream { stream: stream::into_blocking(self.stream)?, end: self.end })
    }
}

impl EventStream<BlockingStream> {
    /// The session of the stream.
    pub(super) fn session(&self) -> &Arc<TraceSession> {
        &self.end.0
    }

    /// Feeds everything until the stream ends. `feed` returns the number of bytes used, and gets the others again, followed by the next ones; the last
    /// of them are returned. The session is cut if the bytes cannot be decoded.
    pub(super) fn feed_all(&mut self, mut feed: impl FnMut(&[u8]) -> Result<usize, DecodeError>) -> StreamBuffer {
        let mut buffer = StreamBuffer::default();
        while let Ok(count @ 1..) = self.read(buffer.space()) {
            match feed(buffer.filled(count)) {
                Ok(used) => buffer.consume(used),
                Err(error) => {
                    self.end.0.cut(Cut::Undecodable(error));
                    break;
                }
            }
        }
        buffer
    }

    /// Blocks until bytes arrive; returns 0 at the end of the stream, and when the byte limit is reached.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::Read;
        while self.end.0.has_room() {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return self.end.0.take(read),
            }
        }
        Ok(0)
    }
}
