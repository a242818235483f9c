//! Talking to one runtime: commands and their answers.
//!
//! Each command has a connection of its own. The message is made before the connection, and sent at once in one write: a runtime serves one client at
//! a time and would wait for the bytes, and a 3.x runtime takes no message in pieces. We always close first; dropping a call closes too.

mod process;
mod turn;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::access::Access;
use super::answer::{read_answer, senseless};
use super::dump_writer;
use super::endpoint::Endpoint;
use super::error::{Cause, ExchangeError};
use super::gate::{Busy, Gate};
use super::hook;
use super::legacy;
use super::meters::MeterSessions;
use super::peer::{self, PeerError, VerifiedStream};
use super::proc::Proc;
use super::reverse_connection::ReverseConnection;
use super::stream::Stream;
use super::user_events::UserEventsData;
use crate::ipc::{
    Attempt, Command, CommandCode, CommandSupport, Destination, DumpRequest, EnvironmentBlock, Failure, HEADER_BYTES, Hresult,
    LegacyRequest, Loss, ProcessInfo, Reply, ReplyError, SessionConfig, SessionId, Support, UserEvents, Variable,
};

/// How long an answer may take that costs the runtime nothing.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long the answer to a stop may take: the runtime sends its rundown first, and the stream's reader sets the pace.
pub const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How long a profiler may take to load, a hook to run, and tracepoints to be registered.
const LOAD_LIMIT: Duration = Duration::from_secs(60);
/// How long the start of a session may take that makes the runtime collect: it answers once it has reported the whole heap.
const COLLECT_LIMIT: Duration = Duration::from_secs(600);
/// How long an answer may still take once the process has ended: it may have been sent before.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// What the answers of a runtime have shown, shared by all clients of it.
pub(super) type SharedSupport = Arc<Mutex<CommandSupport>>;

/// Sends commands to one runtime, one at a time. Clones share the turn.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    gate: Arc<Gate>,
    /// What the answers have shown so far.
    support: SharedSupport,
    /// Where to look at the process before a command that could harm it.
    proc: Option<Arc<Proc>>,
    /// Where connections come from, if it is the runtime that connects.
    connection: Option<ReverseConnection>,
    /// When its sessions with meters may be stopped.
    meters: Arc<MeterSessions>,
    /// Which requests may be sent.
    access: Access,
    /// Whether it uses the protocol of the previews, and nothing else.
    legacy: bool,
}

/// A trace session that was started.
#[derive(Debug)]
pub struct Session {
    /// Its id, for [`Client::stop_session`]; of no use once the stream has ended.
    pub id: SessionId,
    /// What was requested and the runtime cannot do.
    pub losses: Vec<Loss>,
    /// The stream, from its first byte. Dropping it without a stop leaves the session to the runtime, which notices at its next event.
    pub stream: Stream,
}

impl Client {
    /// A client for a process that is simulated: what listens must be of our own user, and no more is known of it.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            gate: Arc::default(),
            support: Arc::default(),
            proc: None,
            connection: None,
            meters: Arc::default(),
            access: Access::Full,
            legacy: false,
        }
    }

    /// The same process as a preview of .NET Core 3.0, 4 or 5. It can start and stop trace sessions. No other runtime understands it, and one that does not
    /// serves no other client until this gives up: never try it on an unknown one.
    #[must_use]
    pub fn legacy(self) -> Self {
        Self { legacy: true, ..self }
    }

    /// A client for a process that `proc` shows, or for one of another pid namespace. It looks at the process before each connection, and before a
    /// command that could harm it.
    pub(super) fn watched(endpoint: Endpoint, proc: Arc<Proc>) -> Self {
        Self { proc: Some(proc), ..Self::new(endpoint) }
    }

    /// A client for a process that connects to us, to the port that is `endpoint`'s socket.
    pub(super) fn called(endpoint: Endpoint, proc: Arc<Proc>, connection: ReverseConnection) -> Self {
        Self { connection: Some(connection), ..Self::watched(endpoint, proc) }
    }

    /// The same client, which learns together with others of the process.
    pub(super) fn learning(self, support: SharedSupport) -> Self {
        Self { support, ..self }
    }

    /// The same client, which sends only what it may.
    pub(super) fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Which commands the runtime has, as far as its answers have shown.
    pub fn support(&self) -> CommandSupport {
        *self.support.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process at the other end.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The command that is under way.
    pub fn busy(&self) -> Option<Busy> {
        self.gate.busy()
    }

    /// The facts of the process; `None` from a 3.x runtime, which lacks the command.
    ///
    /// # Errors
    /// [`ExchangeError`]: what came instead.
    pub async fn process_info(&self) -> Result<Option<ProcessInfo>, ExchangeError> {
        match self.first_known(&ProcessInfo::attempts(), ANSWER_LIMIT).await {
            Ok((attempt, Reply::Info(info), _)) => match self.inner_pid() {
                Some(is) if is != info.pid => Err(self.error(attempt.command.code(), PeerError::Pid { said: info.pid, is }.into())),
                _ => Ok(Some(*info)),
            },
            Ok((attempt, ..)) => Err(self.error(attempt.command.code(), senseless())),
            Err(error) if error.hresult() == Some(Hresult::UNKNOWN_COMMAND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The environment block, as the target sent it.
    ///
    /// # Errors
    /// [`ExchangeError`]: what came instead.
    pub async fn environment(&self) -> Result<Vec<Variable>, ExchangeError> {
        let code = CommandCode::ProcessEnvironment;
        let read = async {
            let (reply, mut stream) = self.exchange(&Command::ProcessEnvironment, None).await?;
            let Reply::Environment { bytes } = reply else { return Err(senseless()) };
            let mut block = EnvironmentBlock::new(bytes)?;
            let mut buffer = [0; 16 << 10];
            while block.missing() > 0 {
                let room = block.missing().min(buffer.len());
                match stream.read(&mut buffer[..room]).await {
                    Ok(0) => break,
                    Ok(count) => drop(block.feed(&buffer[..count])),
                    Err(error) => return Err(Cause::of_stream(error, HEADER_BYTES)),
                }
            }
            Ok(block.finish()?)
        };
        let _turn = self.turn(code, ANSWER_LIMIT).await?;
        self.within(code, ANSWER_LIMIT, read).await
    }

    /// Has the target write a core dump. It is paused for as long as its memory takes to write; `limit` is what the caller will wait.
    ///
    /// # Errors
    /// [`ExchangeError`]; its `details` are the words of the target's dump program.
    pub async fn dump(&self, request: &DumpRequest, limit: Duration) -> Result<(), ExchangeError> {
        let dumped = self.first_known(&request.attempts(), limit).await.map(drop);
        if let Some(proc) = self.own_proc().filter(|_| dumped.as_ref().err().is_none_or(|error| error.hresult().is_some())) {
            dump_writer::end_copies(proc, self.endpoint.key.pid);
        }
        dumped
    }

    /// The process that writes a dump of the target at present, where it can be seen from here.
    pub fn dump_writer(&self) -> Option<u32> {
        dump_writer::find(self.own_proc()?, self.endpoint.key.pid)
    }

    /// Sends a command that is answered with a plain "done": perf maps, variables, resume, hooks, profilers.
    ///
    /// # Errors
    /// [`ExchangeError`]. What could end the target in its present state is not sent: [`Cause::Suspended`], [`Cause::StateUnknown`],
    /// [`Cause::BadHook`].
    pub async fn run(&self, command: &Command) -> Result<(), ExchangeError> {
        let limit = match command {
            Command::AttachProfiler { timeout_ms, .. } => ANSWER_LIMIT + Duration::from_millis(u64::from(*timeout_ms)),
            Command::StartupProfiler { .. } | Command::ApplyStartupHook { .. } => LOAD_LIMIT,
            _ => ANSWER_LIMIT,
        };
        self.only(command.clone(), limit).await
    }

    /// Starts a trace session. Its stream is to be read without a pause from now on.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn start_session(&self, config: &SessionConfig) -> Result<Session, ExchangeError> {
        let limit = if config.collects() { COLLECT_LIMIT } else { ANSWER_LIMIT };
        if self.legacy {
            let code = CommandCode::CollectTracing;
            let request = legacy::collect(config).map_err(|cause| self.error(code, cause))?;
            return self.in_legacy(code, limit, &request).await;
        }
        let sent = Instant::now();
        match self.first_known(&config.attempts(), limit).await? {
            (attempt, Reply::Session(id), stream) => {
                self.meters.started(id, config, sent, Instant::now());
                Ok(Session { id, losses: attempt.losses.clone(), stream: stream.into_stream() })
            }
            (attempt, ..) => Err(self.error(attempt.command.code(), senseless())),
        }
    }

    /// Starts a session whose events the runtime writes into the kernel's user_events (.NET 10). The file goes right behind the request: until it
    /// comes the runtime answers no client. Nothing is to be read of the stream but its end, which is the target's; the session ends with it.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn start_user_events(&self, session: UserEvents, data: &UserEventsData) -> Result<Session, ExchangeError> {
        let command = Command::CollectTracing5 { session: Destination::UserEvents(session) };
        let code = command.code();
        let _turn = self.turn(code, ANSWER_LIMIT).await?;
        let start = async {
            match self.exchange(&command, Some(data)).await {
                Ok((Reply::Session(id), stream)) => Ok(Session { id, losses: Vec::new(), stream: stream.into_stream() }),
                Ok(_) => Err(senseless()),
                Err(Cause::Reply(ReplyError::Failure(failure))) if failure.hresult == Hresult::FAIL => Err(Cause::Tracepoints(failure)),
                Err(cause) => Err(cause),
            }
        };
        self.within(code, LOAD_LIMIT, start).await
    }

    /// Stops a trace session, on a connection of its own. Its stream must continue to be read until it ends: the runtime writes its rundown into it before
    /// it answers here. A session whose stream has ended must not be stopped: its id may be another session's by then. The stop of a session with meters
    /// may wait for up to three seconds, until their first collection is over.
    ///
    /// # Errors
    /// [`ExchangeError`]; [`Cause::Busy`] when another command, such as a dump, did not end within [`STOP_LIMIT`].
    pub async fn stop_session(&self, session: SessionId) -> Result<(), ExchangeError> {
        if self.legacy {
            return self.in_legacy(CommandCode::StopTracing, STOP_LIMIT, &LegacyRequest::Stop(session)).await.map(drop);
        }
        sleep_until(self.meters.stop_time(session, Instant::now())).await;
        self.only(Command::StopTracing { session }, STOP_LIMIT).await
    }

    async fn in_legacy(&self, code: CommandCode, limit: Duration, request: &LegacyRequest) -> Result<Session, ExchangeError> {
        let _turn = self.turn(code, limit).await?;
        let exchange = async {
            let mut stream = self.connection(code).await?;
            let id = legacy::exchange(&mut stream, &self.endpoint, request).await?;
            Ok(Session { id, losses: Vec::new(), stream: stream.into_stream() })
        };
        self.within(code, limit, exchange).await
    }

    /// Sends a command that no other can stand for.
    async fn only(&self, command: Command, limit: Duration) -> Result<(), ExchangeError> {
        self.first_known(&[Attempt { command, losses: Vec::new() }], limit).await.map(drop)
    }

    /// Makes attempts in turn until one is not answered with "unknown command". Hands out the connection too.
    async fn first_known<'a>(
        &self,
        attempts: &'a [Attempt],
        limit: Duration,
    ) -> Result<(&'a Attempt, Reply, VerifiedStream), ExchangeError> {
        let first = attempts.first().map_or(CommandCode::ProcessInfo, |attempt| attempt.command.code());
        let _turn = self.turn(first, limit).await?;
        let mut last = self.error(first, senseless());
        for attempt in attempts {
            let command = &attempt.command;
            match self.within(command.code(), limit, self.exchange(command, None)).await {
                Ok((reply, stream)) => return Ok((attempt, reply, stream)),
                Err(error) if error.hresult() == Some(Hresult::UNKNOWN_COMMAND) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// One connection, one message, a file behind it where one is needed, one reply. What follows the reply is left in the connection. A command
    /// that the runtime has declined for good is not sent again: its answer would be the same.
    async fn exchange(&self, command: &Command, data: Option<&UserEventsData>) -> Result<(Reply, VerifiedStream), Cause> {
        if self.legacy {
            return Err(Cause::NotInLegacy("such command"));
        }
        self.forbid_harm(command)?;
        let code = command.code();
        if let Some(hresult) = self.support().get(code).and_then(Support::refusal) {
            return Err(ReplyError::from(Failure::from(hresult)).into());
        }
        let message = command.encode()?;
        let mut stream = self.connection(code).await?;
        // A server that closes at once may have sent its reason first.
        let mut sent = stream.write_all(&message).await;
        if let (Ok(()), Some(data)) = (&sent, data) {
            sent = data.hand_over(&stream).await;
        }
        let sent = sent.map_err(|error| Cause::of_stream(error, 0));
        let answer = match (read_answer(&mut stream, code).await, sent) {
            (Err(Cause::Closed), Err(cause)) => return Err(cause),
            (answer, _) => answer?,
        };
        self.support.lock().unwrap_or_else(PoisonError::into_inner).learn(code, &answer);
        Ok((answer?, stream))
    }

    /// A connection for one command, whose other end is the process that this client is for. There is no other way to one.
    async fn connection(&self, code: CommandCode) -> Result<VerifiedStream, Cause> {
        self.access.check(code)?;
        match &self.connection {
            Some(connection) => connection.next().await.ok_or(Cause::Gone),
            None => peer::connect(&self.endpoint, self.proc.as_deref()).await,
        }
    }

    /// Refuses what would end a target in the state that this one is in, or block its diagnostic server, and what that cannot be known of.
    fn forbid_harm(&self, command: &Command) -> Result<(), Cause> {
        let (code, pid, proc) = (command.code(), self.endpoint.key.pid, self.own_proc());
        if !code.may_be_sent_while_suspended() {
            let threads = proc.and_then(|proc| proc.threads(pid).ok()).unwrap_or_default();
            if threads.waits() {
                return Err(Cause::Suspended);
            }
            // A runtime without ProcessInfo is older than 5.0, and answers that it has no perf map.
            if code.is_fatal_while_suspended()
                && !threads.started
                && !matches!(self.support().get(CommandCode::ProcessInfo), Some(Support::Unknown))
            {
                return Err(Cause::StateUnknown);
            }
        }
        let unseen = || Err("cannot be inspected: the process is not visible from here".to_owned());
        match command {
            Command::ApplyStartupHook { path } => proc
                .map_or_else(unseen, |proc| hook::check(proc, pid, path.as_str()))
                .map_err(|why| Cause::BadHook { path: path.as_str().into(), why: why.into() }),
            Command::AttachProfiler { path, .. } | Command::StartupProfiler { path, .. } => {
                let must_exist = code == CommandCode::StartupProfiler;
                proc.map_or(Ok(()), |proc| hook::check_library(proc, pid, path.as_str(), must_exist))
                    .map_err(|why| Cause::BadProfiler { path: path.as_str().into(), why })
            }
            Command::SetEnvironmentVariable { value: None, .. } if proc.is_some_and(|proc| proc.is_native_aot(pid)) => {
                Err(Cause::UnsetInNativeAot)
            }
            _ => Ok(()),
        }
    }

    fn error(&self, command: CommandCode, cause: Cause) -> ExchangeError {
        ExchangeError { command, endpoint: self.endpoint.clone(), cause }
    }
}

#[cfg(test)]
mod tests;
