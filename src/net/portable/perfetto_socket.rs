//! Sockets of Perfetto's tracing service: dn-top connects to them only on Linux.

use tokio::io::Empty;

use super::address::Address;
use super::error::Cause;
use crate::perfetto::ipc::Frame;

/// An open file passed by the service; cannot be created.
#[derive(Debug)]
pub enum Handle {}

/// The writing half of a connection.
pub(super) type Writer = Empty;

/// A connection; cannot be created.
pub(super) enum Connected {}

impl Connected {
    pub(super) fn into_split(self) -> (Self, Writer) {
        match self {}
    }
}

/// Always fails.
pub(super) async fn connect(_: &Address) -> Result<Connected, Cause> {
    Err(Cause::Io(std::io::Error::other("supported on Linux only")))
}

/// The receiving half of a socket.
pub(super) struct FrameReceiver(Connected);

impl FrameReceiver {
    pub(super) fn new(stream: Connected) -> Self {
        Self(stream)
    }

    pub(super) async fn next(&mut self) -> Result<(Frame, Vec<Handle>), Cause> {
        match self.0 {}
    }
}
