//! The diagnostic server of a simulated runtime.
//!
//! Like the real one it is single-threaded: it accepts one connection, reads one message without a time limit, executes the command, closes
//! the connection, and only then accepts the next. Only event streams run concurrently.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::fatal_requests::is_fatal;
use super::port::PortConnection;
use super::runtime::{Answer, CommandChannel, Runtime};
use super::{Fault, Spec, handle, tolerated};
use crate::ipc::{
    Advertise, BufferMb, Command, CommandCode, Destination, Failure, FrameError, HEADER_BYTES, Hresult, LegacyRequest, MAX_MESSAGE, Message,
};
use crate::net::stream::{Listener, Stream};

/// The profiler command set.
const PROFILER: u8 = 3;

/// A running simulated runtime. Dropping it is a clean exit, which removes the socket file.
#[derive(Debug)]
pub struct Simulated {
    socket: PathBuf,
    suspended: watch::Receiver<bool>,
    server: JoinHandle<()>,
}

impl Simulated {
    /// Starts a runtime that listens at `socket`. Requested files other than dumps (perf maps) are written to the socket's folder.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn start(socket: PathBuf, spec: Spec) -> io::Result<Self> {
        let listener = Listener::simulated(&socket)?;
        let folder = socket.parent().unwrap_or(Path::new(".")).to_owned();
        let advertise = Advertise { cookie: spec.cookie(), pid: spec.pid.into() };
        let port_connection = spec.port.clone().map(|port| PortConnection::new(port, advertise));
        let runtime = Runtime::new(spec, folder);
        let suspended = runtime.suspension();
        let server = tokio::spawn(serve(listener, port_connection, runtime));
        Ok(Self { socket, suspended, server })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns a receiver for whether it is suspended at startup.
    pub fn suspension(&self) -> watch::Receiver<bool> {
        self.suspended.clone()
    }

    /// Whether it is running: a request that crashes a real runtime ends this one.
    pub fn is_alive(&self) -> bool {
        !self.server.is_finished()
    }

    /// Ends it as SIGKILL does: all connections are cut, and the socket file is left behind.
    pub fn kill(mut self) {
        self.server.abort();
        self.socket = PathBuf::new();
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.server.abort();
        // Already gone if the runtime was killed.
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn serve(listener: Listener, mut port_connection: Option<PortConnection>, mut runtime: Runtime) {
    // Connections that a real runtime leaks after some errors.
    let mut leaked = Vec::new();
    loop {
        let (channel, mut connection) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(connection) => (CommandChannel::Socket, connection),
                Err(_) => return,
            },
            connection = next_connection(port_connection.as_mut()) => (CommandChannel::Port, connection),
        };
        match &runtime.spec.fault {
            Some(Fault::HangUp) => continue,
            Some(Fault::Silent) => std::future::pending().await,
            _ => {}
        }
        if runtime.spec.is_legacy() {
            serve_legacy(connection, &mut runtime).await;
            continue;
        }
        let request = match read_request(&mut connection, runtime.spec.major()).await {
            Ok(request) => request,
            Err(hresult) => {
                let _ = send(&mut connection, &runtime, &Answer::Failure(hresult.into()).bytes()).await;
                continue;
            }
        };
        let Ok(Some((message, _))) = Message::decode(&request) else { continue };
        if is_fatal(&message, runtime.spec.major(), runtime.is_suspended()) {
            return;
        }
        let code = CommandCode::of(message.set, message.id).filter(|code| code.since() <= runtime.spec.major());
        let answer = match code.map(|_| tolerated::read(&message)) {
            // 3.1 ignores the command id in the profiler set: it decodes every command as an attach.
            None if message.set == PROFILER && runtime.spec.major() < 5 => Answer::Failure(Hresult::BAD_ENCODING.into()),
            None => Answer::Failure(Hresult::UNKNOWN_COMMAND.into()),
            Some(Ok(
                command @ (Command::CollectTracing5 { session: Destination::UserEvents(_) }
                | Command::CollectTracing6 { session: Destination::UserEvents(_) }),
            )) => runtime.trace_to_user_events(command.code(), handle::receive(&connection).await),
            Some(Ok(command)) => runtime.answer(command, channel).await,
            Some(Err(answer)) => answer,
        };
        if runtime.has_crashed() && code != Some(CommandCode::ResumeRuntime) {
            return;
        }
        let sent = send(&mut connection, &runtime, &tolerated::answered(&message, &answer)).await;
        if runtime.has_crashed() {
            return;
        }
        match (answer, code) {
            (Answer::Stream(stream), _) if sent.is_ok() => runtime.stream(connection, *stream),
            // .NET Core 3.x crashes if the connection of a session is closed before its reply.
            (Answer::Stream(_), _) if runtime.spec.major() == 3 => return,
            // The connection stays open after an unknown profiler command, and since .NET 9 after a session request that cannot be decoded.
            (Answer::Failure(_), None) if runtime.spec.major() >= 5 && message.set == PROFILER => leaked.push(connection),
            (Answer::Failure(Failure { hresult: Hresult::BAD_ENCODING, .. }), Some(code))
                if runtime.spec.major() >= 9 && code.starts_session() =>
            {
                leaked.push(connection);
            }
            _ => {}
        }
    }
}

async fn next_connection(port_connection: Option<&mut PortConnection>) -> Stream {
    match port_connection {
        Some(port_connection) => port_connection.next_connection().await,
        None => std::future::pending().await,
    }
}

/// Reads one request. A 3.1 runtime reads header and payload with one call each and refuses requests that arrive in more pieces; newer ones
/// wait for the rest without a time limit.
async fn read_request(connection: &mut Stream, major: u32) -> Result<Vec<u8>, Hresult> {
    let mut request = vec![0; HEADER_BYTES];
    fill(connection, &mut request, major).await?;
    // The size field counts regardless of the magic: the runtime reads the payload before it checks.
    let size = usize::from(u16::from_le_bytes([request[14], request[15]])).min(MAX_MESSAGE);
    if size > HEADER_BYTES {
        request.resize(size, 0);
        fill(connection, &mut request[HEADER_BYTES..], major).await?;
    }
    match Message::decode(&request) {
        Ok(Some(_)) => Ok(request),
        Ok(None) => Err(Hresult::BAD_ENCODING),
        Err(error @ (FrameError::Magic | FrameError::Size(_))) => Err(error.hresult()),
    }
}

async fn fill(connection: &mut Stream, bytes: &mut [u8], major: u32) -> Result<(), Hresult> {
    let mut got = 0;
    while got < bytes.len() {
        match connection.read(&mut bytes[got..]).await {
            Ok(count) if count > 0 => got += count,
            _ => return Err(Hresult::BAD_ENCODING),
        }
        if major < 5 && got < bytes.len() {
            return Err(Hresult::BAD_ENCODING);
        }
    }
    Ok(())
}

/// Sends a reply, modified by the runtime's fault.
async fn send(connection: &mut Stream, runtime: &Runtime, bytes: &[u8]) -> io::Result<()> {
    match &runtime.spec.fault {
        Some(Fault::Garbage(garbage)) => {
            connection.write_all(garbage).await?;
            Err(io::ErrorKind::InvalidData.into())
        }
        Some(Fault::CutReply(length)) => {
            connection.write_all(&bytes[..bytes.len().min(*length)]).await?;
            Err(io::ErrorKind::UnexpectedEof.into())
        }
        Some(Fault::Late(time)) => {
            sleep(*time).await;
            connection.write_all(bytes).await
        }
        _ => connection.write_all(bytes).await,
    }
}

/// Handles a connection like a preview of .NET Core 3.0: one read, then an answer of eight bytes, or none.
async fn serve_legacy(mut connection: Stream, runtime: &mut Runtime) {
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
    let answer = runtime.answer(command, CommandChannel::Socket).await;
    let id = if let Answer::Stream(starting) = &answer { starting.id } else { stopped };
    // If the client has disconnected, it gets no answer, and its stream ends at the first write.
    let sent = connection.write_all(&id.to_le_bytes()).await;
    if let (Answer::Stream(starting), Ok(())) = (answer, sent) {
        runtime.stream(connection, *starting);
    }
}
