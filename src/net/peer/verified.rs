//! A connection whose other end has been verified.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::stream::{self, Stream};

/// A connection whose other end is the intended process. Only the checks in this module create one, and commands are sent over nothing else: the
/// stream inside can be read and written, but not exchanged for another.
#[derive(Debug)]
pub(in crate::net) struct VerifiedStream(pub(super) Stream);

impl VerifiedStream {
    /// Returns the plain connection, for the data that the runtime sends from now on.
    pub(in crate::net) fn into_stream(self) -> Stream {
        self.0
    }

    /// Waits until this many bytes can be read, without consuming them.
    pub(in crate::net) async fn await_bytes(&mut self, count: usize) -> io::Result<()> {
        stream::await_bytes(&mut self.0, count).await
    }
}

impl AsRef<Stream> for VerifiedStream {
    fn as_ref(&self) -> &Stream {
        &self.0
    }
}

impl AsyncRead for VerifiedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for VerifiedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
