//! A client for one runtime: commands and their replies.
//!
//! Each command uses its own connection. The message is encoded before connecting and sent in a single write: a runtime serves one client at a time
//! and would block on missing bytes, and a 3.x runtime does not accept a message in pieces. We always close first; dropping a call also closes its
//! connection, but for the start of a session of .NET Core 3.x.

mod exchange;
mod process;
mod start;
mod turn;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::Instant;

pub use self::start::wait_until_answered;
use super::access::Access;
use super::answer::unexpected_reply;
use super::command_lock::{Busy, CommandLock};
use super::dump_writer;
use super::endpoint::Endpoint;
use super::error::{Cause, ExchangeError};
use super::legacy;
use super::meters::MeterSessions;
use super::peer::PeerError;
use super::proc::Proc;
use super::reverse_connection::ReverseConnection;
use super::stream::Stream;
use super::user_events::UserEventsData;
use crate::ipc::{
    Attempt, Command, CommandCode, CommandSupport, Destination, Downgrade, DumpRequest, HEADER_BYTES, Hresult, LegacyRequest, ProcessInfo,
    Reply, ReplyError, SessionConfig, SessionId, UserEvents, Variable, decode_environment, environment_bytes,
};
use crate::model::EnvironmentSource;

/// Time limit for a reply that takes the runtime no work.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the reply to a stop: the runtime sends its rundown first, at the pace of the stream's reader.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for loading a profiler, running a startup hook, or registering tracepoints.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for starting a session that triggers a GC: the runtime replies once it has reported the whole heap.
const INDUCED_GC_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for a reply after the process has exited: it may have been sent before.
const FINAL_REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Command support of a runtime as learned from its replies, shared by all its clients.
pub(super) type SharedSupport = Arc<Mutex<CommandSupport>>;

/// Sends commands to one runtime, one at a time. Clones share the turn.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    command_lock: Arc<CommandLock>,
    /// Learned from the replies so far.
    support: SharedSupport,
    /// Used to inspect the process before a command that could harm it.
    proc: Option<Arc<Proc>>,
    connection: Option<ReverseConnection>,
    /// Determines when sessions with meters may be stopped.
    meters: Arc<MeterSessions>,
    /// Requests that may be sent.
    access: Access,
    /// Whether only the protocol of the .NET Core 3.0 previews is used.
    legacy: bool,
}

/// A started trace session.
#[derive(Debug)]
pub struct Session {
    /// Session id for [`Client::stop_session`]; invalid once the stream has ended.
    pub id: SessionId,
    /// Requested options that the runtime does not support.
    pub downgrades: Vec<Downgrade>,
    /// The event stream from its first byte. If dropped without a stop, the session remains until the runtime notices at its next event.
    pub stream: Stream,
}

impl Client {
    /// Creates a client for a simulated process: the listener must belong to our own user, and nothing else is checked.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            command_lock: Arc::default(),
            support: Arc::default(),
            proc: None,
            connection: None,
            meters: Arc::default(),
            access: Access::Full,
            legacy: false,
        }
    }

    /// Returns a client that uses the protocol of .NET Core 3.0 previews 4 and 5, which can only start and stop trace sessions. Other runtimes
    /// do not understand it, and serve no other client until this one gives up: never try it on an unknown runtime.
    #[must_use]
    pub fn legacy(self) -> Self {
        Self { legacy: true, ..self }
    }

    /// Creates a client for a process that `proc` shows, or for one in another pid namespace. It inspects the process before each connection, and
    /// before a command that could harm it.
    pub(super) fn for_process(endpoint: Endpoint, proc: Arc<Proc>) -> Self {
        Self { proc: Some(proc), ..Self::new(endpoint) }
    }

    /// Creates a client for a process that connects to us, on the port that is `endpoint`'s socket.
    pub(super) fn reverse(endpoint: Endpoint, proc: Arc<Proc>, connection: ReverseConnection) -> Self {
        Self { connection: Some(connection), ..Self::for_process(endpoint, proc) }
    }

    /// Shares learned command support with other clients of the process.
    pub(super) fn with_support(self, support: SharedSupport) -> Self {
        Self { support, ..self }
    }

    /// Restricts the requests that may be sent.
    pub(super) fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Returns the command support of the runtime, as far as its replies have shown.
    pub fn support(&self) -> CommandSupport {
        *self.support.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the process at the other end.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the command in progress, if any.
    pub fn busy(&self) -> Option<Busy> {
        self.command_lock.busy()
    }

    /// Requests the process info; `None` from a 3.x runtime, which lacks the command.
    ///
    /// # Errors
    /// [`ExchangeError`], with the cause.
    pub async fn process_info(&self) -> Result<Option<ProcessInfo>, ExchangeError> {
        match self.first_supported(&ProcessInfo::attempts(), REPLY_TIMEOUT).await {
            Ok((attempt, Reply::Info(info), _)) => match self.ns_pid() {
                Some(actual) if actual != info.pid => {
                    Err(self.error(attempt.command.code(), PeerError::Pid { reported: info.pid, actual }.into()))
                }
                _ => Ok(Some(*info)),
            },
            Ok((attempt, ..)) => Err(self.error(attempt.command.code(), unexpected_reply())),
            Err(error) if error.hresult() == Some(Hresult::UNKNOWN_COMMAND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the environment as reported by the runtime, or, of one that is too old to report it, the initial one as reported by the operating
    /// system.
    ///
    /// # Errors
    /// [`ExchangeError`], with the cause.
    pub async fn environment_or_initial(&self) -> Result<(Vec<Variable>, EnvironmentSource), ExchangeError> {
        match self.environment().await {
            Err(error) if error.hresult() == Some(Hresult::UNKNOWN_COMMAND) => {
                self.initial_environment().map(|variables| (variables, EnvironmentSource::Startup)).ok_or(error)
            }
            reported => reported.map(|variables| (variables, EnvironmentSource::Runtime)),
        }
    }

    /// Requests the environment block, as the target sends it.
    ///
    /// # Errors
    /// [`ExchangeError`], with the cause.
    pub async fn environment(&self) -> Result<Vec<Variable>, ExchangeError> {
        let code = CommandCode::ProcessEnvironment;
        let read = async {
            let (reply, mut stream) = self.exchange(&Command::ProcessEnvironment, None).await?;
            let Reply::Environment { bytes } = reply else { return Err(unexpected_reply()) };
            let (bytes, mut block) = (environment_bytes(bytes)?, Vec::new());
            let received = (&mut stream).take(bytes as u64).read_to_end(&mut block).await;
            received.map_err(|error| Cause::of_stream(error, HEADER_BYTES))?;
            Ok(decode_environment(&block, bytes)?)
        };
        let _turn = self.turn(code, REPLY_TIMEOUT).await?;
        self.with_timeout(code, REPLY_TIMEOUT, read).await
    }

    /// Makes the target write a core dump. The target is paused while its memory is written; `limit` is how long the caller waits.
    ///
    /// # Errors
    /// [`ExchangeError`]; its `details` are the messages of the target's dump program.
    pub async fn dump(&self, request: &DumpRequest, limit: Duration) -> Result<(), ExchangeError> {
        let dumped = self.first_supported(&request.attempts(), limit).await.map(drop);
        if let Some(proc) = self.own_proc().filter(|_| dumped.as_ref().err().is_none_or(|error| error.hresult().is_some())) {
            dump_writer::kill_forks(proc, self.endpoint.key.pid);
        }
        dumped
    }

    /// Returns the process that is currently writing a dump of the target, if visible from here.
    pub fn dump_writer(&self) -> Option<u32> {
        dump_writer::find(self.own_proc()?, self.endpoint.key.pid)
    }

    /// Sends a command whose reply carries no data: perf maps, variables, resume, startup hooks, profilers.
    ///
    /// # Errors
    /// [`ExchangeError`]. A command that could crash the target in its present state is not sent: [`Cause::Suspended`], [`Cause::StateUnknown`],
    /// [`Cause::BadHook`].
    pub async fn run(&self, command: &Command) -> Result<(), ExchangeError> {
        let limit = match command {
            Command::AttachProfiler { timeout_ms, .. } => REPLY_TIMEOUT + Duration::from_millis(u64::from(*timeout_ms)),
            Command::StartupProfiler { .. } | Command::ApplyStartupHook { .. } => LOAD_TIMEOUT,
            _ => REPLY_TIMEOUT,
        };
        self.send_without_fallback(command.clone(), limit).await
    }

    /// Starts a trace session. Its stream must be read continuously from then on.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn start_session(&self, config: &SessionConfig) -> Result<Session, ExchangeError> {
        let limit = if config.triggers_gc() { INDUCED_GC_TIMEOUT } else { REPLY_TIMEOUT };
        if self.legacy {
            let code = CommandCode::CollectTracing;
            let request = legacy::collect(config).map_err(|cause| self.error(code, cause))?;
            return self.in_legacy(code, limit, request).await;
        }
        let sent = Instant::now();
        match self.first_supported(&config.attempts(), limit).await? {
            (attempt, Reply::Session(id), stream) => {
                self.meters.started(id, config, sent, Instant::now());
                Ok(Session { id, downgrades: attempt.downgrades.clone(), stream: stream.into_stream() })
            }
            (attempt, ..) => Err(self.error(attempt.command.code(), unexpected_reply())),
        }
    }

    /// Starts a session whose events the runtime writes to the kernel's user_events (.NET 10). The file descriptor directly follows the request:
    /// until it arrives the runtime serves no other client. The stream carries no events: it ends when the target exits, and the session ends with
    /// it.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn start_user_events(&self, session: UserEvents, data: &UserEventsData) -> Result<Session, ExchangeError> {
        let command = Command::CollectTracing5 { session: Destination::UserEvents(session) };
        let code = command.code();
        let _turn = self.turn(code, REPLY_TIMEOUT).await?;
        let start = async {
            match self.exchange(&command, Some(data)).await {
                Ok((Reply::Session(id), stream)) => Ok(Session { id, downgrades: Vec::new(), stream: stream.into_stream() }),
                Ok(_) => Err(unexpected_reply()),
                Err(Cause::Reply(ReplyError::Failure(failure))) if failure.hresult == Hresult::FAIL => Err(Cause::Tracepoints(failure)),
                Err(cause) => Err(cause),
            }
        };
        self.with_timeout(code, LOAD_TIMEOUT, start).await
    }

    /// Stops a trace session, over a separate connection. The session's stream must be read until it ends: the runtime writes the rundown to it
    /// before it replies here. A session whose stream has ended must not be stopped: its id may have been reused by another session. The stop is
    /// not sent before the session is [stoppable](Self::until_stoppable).
    ///
    /// # Errors
    /// [`ExchangeError`]; [`Cause::Busy`] when another command, such as a dump, did not finish within [`STOP_TIMEOUT`].
    pub async fn stop_session(&self, session: SessionId) -> Result<(), ExchangeError> {
        if self.legacy {
            return self.in_legacy(CommandCode::StopTracing, STOP_TIMEOUT, LegacyRequest::Stop(session)).await.map(drop);
        }
        self.until_stoppable(session).await;
        self.meters.release(session);
        self.send_without_fallback(Command::StopTracing { session }, STOP_TIMEOUT).await
    }

    /// Waits until a session can be stopped without harm to the target. With meters, that may take until their first collection is over, see
    /// [`event_kind_seen`](Self::event_kind_seen): usually up to the interval of the meters, and half a minute longer if the target does not
    /// respond.
    pub async fn until_stoppable(&self, session: SessionId) {
        self.meters.until_stoppable(session).await;
    }

    /// Notes that the stream of a session contains events of this kind: some show when the session can be stopped.
    pub fn event_kind_seen(&self, session: SessionId, provider: &str, event: &str) {
        self.meters.seen(session, provider, event, Instant::now());
    }

    /// Notes that the runtime has refused the meters of a session, because it collects them for another session with other settings.
    pub fn meters_refused(&self, session: SessionId) {
        self.meters.release(session);
    }

    async fn in_legacy(&self, code: CommandCode, limit: Duration, request: LegacyRequest) -> Result<Session, ExchangeError> {
        let turn = Arc::new(self.turn(code, limit).await?);
        let client = self.clone();
        let exchange = async move {
            let mut stream = client.connection(code).await?;
            let id = legacy::exchange(&mut stream, &client.endpoint, &request).await?;
            Ok((id, stream))
        };
        let exchange = async {
            let (id, stream) = if code.starts_session() { self.complete(turn, exchange).await? } else { exchange.await? };
            Ok(Session { id, downgrades: Vec::new(), stream: stream.into_stream() })
        };
        self.with_timeout(code, limit, exchange).await
    }

    async fn send_without_fallback(&self, command: Command, limit: Duration) -> Result<(), ExchangeError> {
        self.first_supported(&[Attempt { command, downgrades: Vec::new() }], limit).await.map(drop)
    }

    fn error(&self, command: CommandCode, cause: Cause) -> ExchangeError {
        ExchangeError { command, endpoint: self.endpoint.clone(), cause }
    }
}

#[cfg(test)]
mod tests;
