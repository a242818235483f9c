//! Method calls on a port over its socket.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::address::Address;
use super::error::{Cause, PerfettoError};
use super::socket::{self, FrameReceiver, Handle, Writer};
use crate::perfetto::call::{Calls, Method, Reply, bind};
use crate::perfetto::ipc::{Body, Frame};

/// Time limit for a reply.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of frames queued for sending: a service that leaves so many unread does not read at all.
const MAX_OUTGOING: usize = 1024;
/// Maximum number of received frames queued, each with up to two files. Further frames stay in the socket.
const MAX_INCOMING: usize = 64;
/// Maximum number of replies kept while waiting for another one. A service sends few: the commands of some data sources, or the end of a recording.
const MAX_PENDING: usize = 64;

/// The first request of a connection.
const METHODS: &str = "the request for its methods";

/// A connection to a port of the service. `T` identifies the call of a reply. Dropping it closes the connection.
#[derive(Debug)]
pub struct Connection<M, T> {
    address: Address,
    calls: Calls<M, T>,
    out: mpsc::Sender<Vec<u8>>,
    frames: mpsc::Receiver<Result<(Frame, Vec<Handle>), Cause>>,
    /// Replies received while waiting for another one.
    pending: VecDeque<IncomingReply<T>>,
    _tasks: JoinSet<()>,
}

/// A reply.
#[derive(Debug)]
pub struct IncomingReply<T> {
    /// Identifies the call.
    pub token: T,
    /// The reply itself.
    pub reply: Reply,
    /// Files passed with it.
    pub files: Vec<Handle>,
}

impl<M: Method, T: Clone + PartialEq> Connection<M, T> {
    /// Connects to the socket and binds the port.
    ///
    /// # Errors
    /// [`PerfettoError`]
    pub async fn open(address: Address) -> Result<Self, PerfettoError> {
        let opened = timeout(REPLY_TIMEOUT, Self::try_open(address.clone())).await;
        let timed_out = || Cause::Timeout { what: METHODS, limit: REPLY_TIMEOUT };
        opened.unwrap_or_else(|_| Err(timed_out())).map_err(|cause| PerfettoError { address, cause })
    }

    async fn try_open(address: Address) -> Result<Self, Cause> {
        let (read, mut write) = socket::connect(&address).await?.into_split();
        let mut receiver = FrameReceiver::new(read);
        let request = bind::<M>().map_err(crate::perfetto::call::CallError::from)?;
        write.write_all(&request).await?;
        let (reply, _) = receiver.next().await?;
        if let Body::RequestError(message) = &reply.body {
            return Err(Cause::refused(METHODS, Some(message)));
        }
        let calls = Calls::bound(reply)?;
        let (out, outgoing) = mpsc::channel(MAX_OUTGOING);
        let (received, frames) = mpsc::channel(MAX_INCOMING);
        let mut tasks = JoinSet::new();
        tasks.spawn(send_all(write, outgoing));
        tasks.spawn(receive_all(receiver, received));
        Ok(Self { address, calls, out, frames, pending: VecDeque::new(), _tasks: tasks })
    }

    /// Address of the service.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns an error of this connection.
    pub fn error(&self, cause: impl Into<Cause>) -> PerfettoError {
        PerfettoError { address: self.address.clone(), cause: cause.into() }
    }

    /// Calls a method whose replies are identified by `token`. Never blocks.
    ///
    /// # Errors
    /// [`PerfettoError`]
    pub fn call(&mut self, method: M, arguments: Vec<u8>, token: T) -> Result<(), PerfettoError> {
        let frame = self.calls.call(method, arguments, token).map_err(|error| self.error(error))?;
        self.put(frame)
    }

    /// Calls a method and ignores its reply. Never blocks.
    ///
    /// # Errors
    /// [`PerfettoError`]
    pub fn send(&mut self, method: M, arguments: Vec<u8>) -> Result<(), PerfettoError> {
        let frame = self.calls.send(method, arguments).map_err(|error| self.error(error))?;
        self.put(frame)
    }

    fn put(&self, frame: Vec<u8>) -> Result<(), PerfettoError> {
        self.out.try_send(frame).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => self.error(Cause::NotReading),
            mpsc::error::TrySendError::Closed(_) => self.error(Cause::Closed),
        })
    }

    /// Calls a method and waits for its reply. Other replies are kept for [`next`](Self::next).
    ///
    /// # Errors
    /// [`PerfettoError`]; also if the method was not executed, or no reply arrived in time.
    pub async fn ask(&mut self, method: M, arguments: Vec<u8>, token: T, limit: Duration) -> Result<IncomingReply<T>, PerfettoError> {
        self.call(method, arguments, token.clone())?;
        let asked = timeout(limit, async {
            loop {
                let incoming = self.receive().await?;
                if incoming.token == token {
                    return Ok(incoming);
                }
                // One call may have any number of replies.
                if self.pending.len() == MAX_PENDING {
                    return Err(self.error(Cause::OtherReplies { what: method.name(), limit: MAX_PENDING }));
                }
                self.pending.push_back(incoming);
            }
        });
        let incoming = match asked.await {
            Ok(incoming) => incoming?,
            Err(_) => return Err(self.error(Cause::Timeout { what: method.name(), limit })),
        };
        if incoming.reply.success { Ok(incoming) } else { Err(self.error(Cause::refused(method.name(), incoming.reply.error.as_deref()))) }
    }

    /// Returns the next reply. Cancel safe.
    ///
    /// # Errors
    /// [`PerfettoError`]: the connection is no longer usable.
    pub async fn next(&mut self) -> Result<IncomingReply<T>, PerfettoError> {
        match self.pending.pop_front() {
            Some(incoming) => Ok(incoming),
            None => self.receive().await,
        }
    }

    async fn receive(&mut self) -> Result<IncomingReply<T>, PerfettoError> {
        loop {
            let received = self.frames.recv().await.unwrap_or(Err(Cause::Closed));
            let (frame, files) = received.map_err(|cause| self.error(cause))?;
            if let Some((token, reply)) = self.calls.reply(frame) {
                return Ok(IncomingReply { token, reply, files });
            }
        }
    }
}

async fn send_all(mut socket: Writer, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        // A closed connection is reported by the receiving half.
        if socket.write_all(&frame).await.is_err() {
            return;
        }
    }
}

async fn receive_all(mut receiver: FrameReceiver, frames: mpsc::Sender<Result<(Frame, Vec<Handle>), Cause>>) {
    loop {
        let received = receiver.next().await;
        let is_over = received.is_err();
        if frames.send(received).await.is_err() || is_over {
            return;
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
