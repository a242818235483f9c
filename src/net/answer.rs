//! Reads one reply of a diagnostic server from its connection.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::Cause;
use crate::ipc::{CommandCode, HEADER_BYTES, Message, Reply, ReplyError};

/// Returns the error for a success reply in the form that belongs to another command. The codec never produces one, so the other end is not a
/// runtime.
pub(super) fn unexpected_reply() -> Cause {
    ReplyError::NotAReply { set: 0xff, id: 0 }.into()
}

/// Reads the reply to a message, given the result of sending it.
pub(super) async fn reply_after(
    sent: io::Result<()>,
    stream: &mut (impl AsyncRead + Unpin),
    to: CommandCode,
) -> Result<Result<Reply, ReplyError>, Cause> {
    match sent.map_err(|error| Cause::of_stream(error, 0)) {
        // A server that closes immediately may have sent a reason first.
        Ok(()) | Err(Cause::Closed) => read_reply(stream, to).await,
        // The runtime waits for the rest and serves no other client until the connection is closed.
        Err(cause) => Err(cause),
    }
}

/// Reads one message and not a byte more: the reply to a session start is followed by the event stream.
async fn read_reply(stream: &mut (impl AsyncRead + Unpin), to: CommandCode) -> Result<Result<Reply, ReplyError>, Cause> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    loop {
        if let Some((message, _)) = Message::decode(&bytes)? {
            return Ok(Reply::decode(to, &message));
        }
        let whole = match bytes.get(14..16) {
            Some(&[low, high]) if bytes.len() >= HEADER_BYTES => usize::from(u16::from_le_bytes([low, high])),
            _ => HEADER_BYTES,
        };
        let room = (whole - bytes.len()) as u64;
        match stream.take(room).read_buf(&mut bytes).await {
            Ok(0) if bytes.is_empty() => return Err(Cause::Closed),
            Ok(0) => return Err(Cause::CutOff(bytes.len())),
            Ok(_) => {}
            Err(error) => return Err(Cause::of_stream(error, bytes.len())),
        }
    }
}
