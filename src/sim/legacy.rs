//! What a preview of .NET Core 3.0 makes of a connection: one read, one answer of eight bytes, or none and the end.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::runtime::{Answer, Runtime, Way};
use crate::ipc::{BufferMb, Command, LegacyRequest, MAX_MESSAGE};
use crate::net::stream::Stream;

pub(super) async fn serve(mut connection: Stream, runtime: &mut Runtime) {
    let mut bytes = vec![0; MAX_MESSAGE];
    let Ok(count) = connection.read(&mut bytes).await else { return };
    let command = match LegacyRequest::decode(&bytes[..count]) {
        Some(LegacyRequest::Stop(session)) => Command::StopTracing { session },
        Some(LegacyRequest::Collect { buffer_mb, providers }) => {
            let Ok(buffer) = BufferMb::new(buffer_mb) else { return };
            Command::CollectTracing { buffer, providers }
        }
        None => return,
    };
    let stopped = if let Command::StopTracing { session } = &command { session.0 } else { 0 };
    let answer = runtime.answer(command, Way::Socket).await;
    let id = if let Answer::Stream(starting) = &answer { starting.id() } else { stopped };
    // A client that has gone gets no answer, and its stream ends at the first write.
    let sent = connection.write_all(&id.to_le_bytes()).await;
    if let (Answer::Stream(starting), Ok(())) = (answer, sent) {
        runtime.stream(connection, *starting);
    }
}
