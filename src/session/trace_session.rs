//! One EventPipe session, from its opening to the end of its stream: the only place that stops sessions.
//!
//! To stop, `StopTracing` goes over a second connection *while the stream is read on*, since the runtime writes its rundown before it answers (reference:
//! dotnet/diagnostics, "EventPipe session life"); the end of the stream is the end of the session. A session whose stream has ended is never stopped:
//! the runtime has freed its id, and may have given it to another session.
//!
//! A runtime is not trusted to end: once the stop is wanted, time and bytes are limited, and then the connection is closed, which makes the runtime
//! free the session when it next writes to it. A process that ends closes the stream too, even where a child of it still holds the connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::plan::StartError;
use crate::ipc::{Loss, SessionConfig, SessionId};
use crate::model::{Bytes, Trouble};
use crate::net::ExchangeError;
use crate::net::client::{Client, Session};
use crate::net::log;
use crate::net::stream::{self, BlockingStream, Closer, Stream};
use crate::nettrace::DecodeError;

/// One read of a stream takes at most this many bytes. Larger buffers gain nothing measurable, and when the first of them is freed, glibc raises the
/// size up to which it keeps freed memory instead of giving it back.
pub(super) const CHUNK: usize = 64 * 1024;

/// What a session may still take once its stop is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopLimit {
    /// How long it may go on.
    pub time: Duration,
    /// Bytes that it may still send, besides a quarter of those that came before.
    pub bytes: u64,
}

impl StopLimit {
    /// For a session that ends with a rundown: the largest programs seen take some seconds and some 10 MB.
    pub const RUNDOWN: Self = Self { time: Duration::from_secs(60), bytes: 64 << 20 };
    /// For one that does not: most runtimes need a few milliseconds. What is buffered still comes.
    pub const NO_RUNDOWN: Self = Self { time: Duration::from_secs(5), bytes: 16 << 20 };

    fn most(self, received: u64) -> u64 {
        received.saturating_add(received / 4).saturating_add(self.bytes)
    }
}

/// How long a stream may go on whose stop was refused: a process that is ending refuses, and closes its streams a moment later.
const AFTER_REFUSAL: Duration = Duration::from_secs(3);

/// Why a stream was closed from our side.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Cut {
    /// It did not end in time after the stop.
    #[error("the runtime did not end the session within {} s; another client may occupy its diagnostic socket", .0.as_secs_f32())]
    Time(Duration),
    /// It sent too much after the stop.
    #[error("the runtime kept sending after the stop, and the connection was closed after {} more", Bytes(*.0))]
    Rundown(u64),
    /// It sent more than the session can need.
    #[error("the runtime sent more than {}, and the connection was closed", Bytes(*.0))]
    Budget(u64),
    /// It sends something else.
    #[error("cannot decode the event stream: {0}")]
    Undecodable(DecodeError),
    /// A person or a signal wanted no more of it.
    #[error("stopped before the rundown was complete: method names may be missing")]
    Abandoned,
}

/// Why a stream is incomplete.
#[derive(Debug, Error)]
pub enum Unfinished {
    /// It was closed from our side.
    #[error("{0}")]
    Cut(Cut),
    /// The runtime did not do what was asked.
    #[error("the session could not be stopped: {0}")]
    NotStopped(ExchangeError),
    /// The other side closed it.
    #[error("the target ended, or closed the stream")]
    Closed,
}

/// A session that a runtime holds for us.
#[derive(Debug)]
pub(super) struct TraceSession {
    client: Client,
    id: SessionId,
    /// What was requested and is not available.
    losses: Vec<Loss>,
    /// A second handle to the stream, to close it from here.
    closer: Closer,
    received: AtomicU64,
    /// Bytes that may be received.
    most: AtomicU64,
    /// Bytes that had come when the stop was wanted.
    before: OnceLock<u64>,
    cut: OnceLock<Cut>,
    ended: watch::Sender<bool>,
}

/// What a session sends. It is to be read without a pause; dropping it closes the connection.
#[derive(Debug)]
pub(super) struct EventStream<S = Stream> {
    stream: S,
    end: StreamEnd,
}

/// Marks the stream as not read any more.
#[derive(Debug)]
struct StreamEnd(Arc<TraceSession>);

impl TraceSession {
    /// Opens a session that may send no more than so many bytes before it is stopped.
    pub(super) async fn open(client: Client, config: &SessionConfig, most: u64) -> Result<(Arc<Self>, EventStream), StartError> {
        let session = client.start_session(config).await?;
        Self::of(client, session, most).map_err(StartError::Handle)
    }

    /// A session that was just opened.
    pub(super) fn of(client: Client, session: Session, most: u64) -> io::Result<(Arc<Self>, EventStream)> {
        let closer = Closer::of(&session.stream)?;
        let this = Arc::new(Self {
            client,
            id: session.id,
            losses: session.losses,
            closer,
            received: AtomicU64::new(0),
            most: AtomicU64::new(most),
            before: OnceLock::new(),
            cut: OnceLock::new(),
            ended: watch::Sender::new(false),
        });
        let watched = Arc::clone(&this);
        tokio::spawn(async move {
            tokio::select! {
                // What it had sent is read all the same.
                () = watched.client.process_exit() => watched.close(),
                () = watched.ended() => {}
            }
        });
        log::note(format_args!("session {} of process {} has begun", this.id, this.client.endpoint().key.pid));
        let end = StreamEnd(Arc::clone(&this));
        Ok((this, EventStream { stream: session.stream, end }))
    }

    /// The runtime's id of it, unique while it exists.
    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    /// What was requested and is not available in this runtime.
    pub(super) fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Waits for the end of the stream, on whichever side it is closed.
    pub(super) async fn ended(&self) {
        // The sender exists as long as this.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Stops the session and waits for the end of its stream, which must be read until then. Also gives the failure of the request.
    pub(super) async fn stop(&self, limit: StopLimit) -> Option<ExchangeError> {
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

    /// Asks for the stop and waits for the answer, for the end of the stream, or until the time is over. Gives the failure, if there is one.
    pub(super) async fn request_stop(&self, limit: StopLimit) -> Option<ExchangeError> {
        self.limit(limit);
        tokio::select! {
            biased;
            // From here on the request must not be sent any more.
            () = self.ended() => None,
            answered = self.client.stop_session(self.id) => answered.err(),
            () = sleep(limit.time) => {
                self.cut(Cut::Time(limit.time));
                None
            }
        }
    }

    /// The stop is wanted: from now on bytes are limited, whether or not the runtime has taken the request.
    fn limit(&self, limit: StopLimit) {
        let before = *self.before.get_or_init(|| self.received.load(Ordering::Relaxed));
        self.most.fetch_min(limit.most(before), Ordering::Relaxed);
    }

    /// Closes the stream and remembers why. What is in the socket is still read.
    pub(super) fn cut(&self, why: Cut) {
        // The first reason is the one.
        let _ = self.cut.set(why);
        self.close();
    }

    /// Why the stream is incomplete, where it is.
    pub(super) fn unfinished(&self, refusal: Option<ExchangeError>) -> Unfinished {
        match (self.cut.get(), refusal) {
            // A process that has ended needs no stop.
            (None, Some(error)) if error.trouble() == Some(Trouble::Stale) => Unfinished::Closed,
            (Some(Cut::Time(_)) | None, Some(error)) => Unfinished::NotStopped(error),
            (Some(cut), _) => Unfinished::Cut(cut.clone()),
            (None, None) => Unfinished::Closed,
        }
    }

    /// Why it was closed from our side, where it was.
    pub(super) fn why_cut(&self) -> Option<&Cut> {
        self.cut.get()
    }

    /// Closes the stream from our side; what is in the socket is still read.
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

    /// Counts what was read. A target that exits with bytes of ours unread resets the stream: an end like any other.
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
    /// Waits for the next bytes; 0 at the end, which is also where no more may come.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.end.0.has_room() {
            return Ok(0);
        }
        self.end.0.take(self.stream.read(buffer).await)
    }

    /// Reads everything and throws it away.
    pub(super) async fn drain(mut self) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(1..) = self.read(&mut buffer).await {}
    }

    /// For a thread of its own, which may block.
    pub(super) fn into_blocking(self) -> io::Result<EventStream<BlockingStream>> {
        Ok(EventStream { stream: stream::into_blocking(self.stream)?, end: self.end })
    }
}

impl EventStream<BlockingStream> {
    /// Blocks until bytes come; 0 at the end, which is also where no more may come.
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
