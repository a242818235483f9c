//! A session that is decoded as it arrives, in the task that uses the result: for streams of some kilobytes a second.

use std::io;
use std::sync::Arc;

use super::plan::StartError;
use super::trace_session::{Cut, EventStream, StopLimit, TraceSession, Unfinished};
use crate::ipc::SessionConfig;
use crate::net::client::Client;
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};

/// Maximum size of one read.
const CHUNK: usize = 16 * 1024;

/// A session and what its events are passed to. Dropping it closes the connection; [`stop`](Self::stop) is preferred.
#[derive(Debug)]
pub(super) struct DecodedStream<S> {
    pub(super) session: Arc<TraceSession>,
    stream: EventStream,
    // `dyn Sink` shares the decoder instantiation that reads files, which is fast enough here.
    decoder: Decoder,
    pub(super) sink: S,
    buffer: Vec<u8>,
    /// Whether the stream has ended.
    pub(super) ended: bool,
}

impl<S: Sink> DecodedStream<S> {
    /// Opens the session.
    ///
    /// # Errors
    /// If the runtime does not open it.
    pub(super) async fn open(client: Client, config: &SessionConfig, sink: S) -> Result<Self, StartError> {
        let (session, stream) = TraceSession::open(client, config, u64::MAX).await?;
        Ok(Self { session, stream, decoder: Decoder::new(Limits::LIVE), sink, buffer: vec![0; CHUNK], ended: false })
    }

    /// Waits for data, and decodes it. Cancel safe: no data is lost if the future is dropped.
    ///
    /// # Errors
    /// If it cannot be decoded.
    pub(super) async fn read(&mut self) -> Result<(), DecodeError> {
        let read = self.stream.read(&mut self.buffer).await;
        self.take(read)
    }

    /// Decodes a piece of the data that has arrived. Returns whether there may be more.
    ///
    /// # Errors
    /// If it cannot be decoded.
    pub(super) async fn read_available(&mut self) -> Result<bool, DecodeError> {
        let read = tokio::select! {
            biased;
            read = self.stream.read(&mut self.buffer) => read,
            () = std::future::ready(()) => return Ok(false),
        };
        self.take(read)?;
        Ok(!self.ended)
    }

    fn take(&mut self, read: io::Result<usize>) -> Result<(), DecodeError> {
        match read {
            Ok(count @ 1..) => {
                self.decoder.feed(&self.buffer[..count], &mut (&mut self.sink as &mut dyn Sink))?;
                self.session.examine(&self.decoder);
            }
            Ok(0) | Err(_) => self.ended = true,
        }
        Ok(())
    }

    /// Delivers the events that were held back for sorting by time. A runtime writes all pending events ten times a second: if nothing more has
    /// arrived within that time, nothing older can.
    pub(super) fn flush(&mut self) {
        self.decoder.flush(&mut (&mut self.sink as &mut dyn Sink));
    }

    /// Stops the session. Returns what its events were passed to, and whether the stream was complete.
    pub(super) async fn stop(self) -> (S, Result<(), Unfinished>) {
        let Self { session, mut stream, mut decoder, mut sink, mut buffer, .. } = self;
        let rest = async {
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                if let Err(error) = decoder.feed(&buffer[..count], &mut (&mut sink as &mut dyn Sink)) {
                    session.cut(Cut::Undecodable(error));
                    break;
                }
                session.examine(&decoder);
            }
            drop(stream);
        };
        let ((), refusal) = tokio::join!(rest, session.stop(StopLimit::NO_RUNDOWN));
        let complete = decoder.finish(&mut (&mut sink as &mut dyn Sink)).is_complete();
        (sink, if complete { Ok(()) } else { Err(session.unfinished(refusal)) })
    }
}
