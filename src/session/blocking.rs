//! A stream that is read by a thread.

use std::io;
use std::os::unix::net::UnixStream;

/// Two handles to the stream, for a thread that blocks.
pub(super) fn blocking(stream: tokio::net::UnixStream) -> io::Result<(UnixStream, UnixStream)> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let other = stream.try_clone()?;
    Ok((stream, other))
}
