//! Perfetto's tracing service has no socket on other systems than Linux that this program uses.

use tokio::io::Empty;

use super::address::Address;
use super::error::Cause;
use crate::perfetto::ipc::Frame;

/// An open file that the service hands over. There is none.
#[derive(Debug)]
pub enum Handle {}

/// The half of a connection that is written to.
pub(super) type Writer = Empty;

/// A connection. There is none.
pub(super) enum Connected {}

impl Connected {
    pub(super) fn into_split(self) -> (Self, Writer) {
        match self {}
    }
}

/// There is no service to connect to.
pub(super) async fn connect(_: &Address) -> Result<Connected, Cause> {
    Err(Cause::Io(std::io::Error::other("dn-top reaches it on Linux only")))
}

/// What comes from a socket.
pub(super) struct Incomings(Connected);

impl Incomings {
    pub(super) fn new(stream: Connected) -> Self {
        Self(stream)
    }

    pub(super) async fn next(&mut self) -> Result<(Frame, Vec<Handle>), Cause> {
        match self.0 {}
    }
}
