//! A simulated runtime: executes commands and returns answers.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::handle::{Handle, is_user_events_data};
use super::requested::Requested;
use super::spec::{Fault, Spec};
use super::stream::{Source, Stream};
use crate::assembly::{Assembly, StartupHook};
use crate::ipc::{
    Command, CommandCode, Destination, DumpKind, Failure, Hresult, PerfMapKind, Reply, SessionId, TargetPath, Variable, encode_environment,
};
use crate::net::files;
use crate::net::stream::Stream as Connection;

/// Maximum number of sessions in one runtime, of all tools together.
const MAX_SESSIONS: usize = 64;

/// Real ids are the addresses of session objects; freed ones are reused.
const FIRST_SESSION: u64 = 0x7f7f_b000_1160;
const SESSION_BYTES: u64 = 0x200;

/// The channel over which a command was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandChannel {
    /// The runtime's own socket.
    Socket,
    /// A diagnostic port of another process.
    Port,
}

pub(super) struct Runtime {
    pub(super) spec: Spec,
    /// Folder for perf maps.
    folder: PathBuf,
    environment: Vec<Variable>,
    /// Channels over which it still waits for a resume.
    awaited: Vec<CommandChannel>,
    /// Whether it waits for any resume; streams watch this.
    suspended: watch::Sender<bool>,
    sessions: BTreeMap<u64, Session>,
    streams: JoinSet<()>,
    /// Whether a startup hook that does not load was applied.
    bad_hook: bool,
}

/// A session that may still be streaming.
struct Session {
    stop: oneshot::Sender<()>,
    /// Completes when the rundown was read, or the reader is gone.
    drained: oneshot::Receiver<()>,
}

/// Result of a command.
pub(super) enum Answer {
    /// A reply, followed by raw bytes.
    Success(CommandCode, Reply, Vec<u8>),
    Failure(Failure),
    /// A reply, followed by a stream on the same connection.
    Stream(Box<Starting>),
}

/// A session that was accepted but has not begun.
pub(super) struct Starting {
    code: CommandCode,
    pub(super) id: u64,
    stream: Stream,
}

impl Answer {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (reply, more) = match self {
            Self::Success(code, reply, more) => (reply.encode(*code), more.as_slice()),
            Self::Stream(starting) => (Reply::Session(SessionId(starting.id)).encode(starting.code), &[][..]),
            Self::Failure(failure) => (failure.encode(), &[][..]),
        };
        // Real runtimes do the same with an answer that does not fit.
        let mut bytes = reply.or_else(|_| Failure::from(Hresult::FAIL).encode()).unwrap_or_default();
        bytes.extend_from_slice(more);
        bytes
    }
}

impl Runtime {
    pub(super) fn new(spec: Spec, folder: PathBuf) -> Self {
        let mut awaited = Vec::new();
        awaited.extend(spec.suspended.then_some(CommandChannel::Socket));
        awaited.extend(spec.port.as_ref().and_then(|port| port.suspend.then_some(CommandChannel::Port)));
        let (suspended, mut environment) = (watch::Sender::new(!awaited.is_empty()), spec.variables());
        // Without this variable, a real runtime writes to /tmp.
        let reported = folder.to_string_lossy().into_owned();
        environment.push(Variable { name: "DOTNET_PerfMapJitDumpPath".to_owned(), value: reported });
        Self { spec, folder, environment, awaited, suspended, sessions: BTreeMap::new(), streams: JoinSet::new(), bad_hook: false }
    }

    pub(super) fn is_suspended(&self) -> bool {
        *self.suspended.borrow()
    }

    /// Whether a command has crashed it, through the exception of a startup hook that does not load, which is thrown when the program runs. 8
    /// catches it if the program is running already.
    pub(super) fn has_crashed(&self) -> bool {
        self.bad_hook && !self.is_suspended()
    }

    /// Returns a receiver for whether it is suspended at startup.
    pub(super) fn suspension(&self) -> watch::Receiver<bool> {
        self.suspended.subscribe()
    }

    /// Executes a command of this version. Blocks the server for as long as a real one does.
    pub(super) async fn answer(&mut self, command: Command, channel: CommandChannel) -> Answer {
        let code = command.code();
        let done = Answer::Success(code, Reply::Done, Vec::new());
        match command {
            Command::ProcessInfo | Command::ProcessInfo2 | Command::ProcessInfo3 => {
                Answer::Success(code, Reply::Info(Box::new(self.spec.info(self.is_suspended()))), Vec::new())
            }
            Command::ProcessEnvironment => {
                let block = encode_environment(&self.environment);
                Answer::Success(code, Reply::Environment { bytes: block.len() as u32 }, block)
            }
            Command::SetEnvironmentVariable { name, value } => {
                let before = self.environment.len();
                self.environment.retain(|variable| variable.name != name.as_str());
                match value {
                    Some(value) => {
                        self.environment.push(Variable { name: name.as_str().to_owned(), value: value.as_str().to_owned() });
                        done
                    }
                    None if self.environment.len() == before => Answer::Failure(Hresult::VARIABLE_NOT_FOUND.into()),
                    None => done,
                }
            }
            Command::ResumeRuntime => {
                self.awaited.retain(|awaited| *awaited != channel);
                self.suspended.send_replace(!self.awaited.is_empty());
                done
            }
            Command::GenerateCoreDump { path, kind, .. }
            | Command::GenerateCoreDump2 { path, kind, .. }
            | Command::GenerateCoreDump3 { path, kind, .. } => match self.dump(&path, kind).await {
                Ok(()) => done,
                Err(message) => {
                    let message = (code == CommandCode::GenerateCoreDump3).then_some(message);
                    Answer::Failure(Failure { hresult: Hresult::FAIL, message })
                }
            },
            Command::EnablePerfMap { kind } => {
                self.perf_map(kind);
                done
            }
            // Seen on 8.0.33: the request is refused if the program is running. 9.0.7 and 10.0.14 crash.
            Command::ApplyStartupHook { path } if !is_startup_hook(&path) && self.spec.major() < 9 && !self.is_suspended() => {
                Answer::Failure(Hresult::INVALID_ARGUMENT.into())
            }
            Command::ApplyStartupHook { path } => {
                self.bad_hook |= !is_startup_hook(&path);
                done
            }
            Command::DisablePerfMap | Command::StartupProfiler { .. } => done,
            Command::AttachProfiler { .. } if self.is_suspended() => Answer::Failure(Hresult::NOT_YET_AVAILABLE.into()),
            Command::AttachProfiler { path, .. } if Path::new(path.as_str()).exists() => done,
            Command::AttachProfiler { .. } => Answer::Failure(Hresult::MODULE_NOT_FOUND.into()),
            Command::StopTracing { session } => {
                self.stop(session.0).await;
                Answer::Success(code, Reply::Session(session), Vec::new())
            }
            Command::CollectTracing { providers, .. } => self.start(code, Requested::all(providers, true)),
            Command::CollectTracing2 { providers, rundown, .. } | Command::CollectTracing3 { providers, rundown, .. } => {
                self.start(code, Requested::all(providers, rundown))
            }
            Command::CollectTracing4 { providers, rundown_keyword, .. } => {
                self.start(code, Requested::all(providers, rundown_keyword != 0))
            }
            Command::CollectTracing5 { session: Destination::Stream(stream) }
            | Command::CollectTracing6 { session: Destination::Stream((stream, _)) } => self.start(code, Requested::filtered(stream)),
            // The required handle is received with the request.
            Command::CollectTracing5 { .. } | Command::CollectTracing6 { .. } => self.trace_to_user_events(code, None),
        }
    }

    /// Starts a session whose events go to user_events, if the handle is the right file. No events are written: simulated ones are not worth it.
    pub(super) fn trace_to_user_events(&mut self, code: CommandCode, handle: Option<Handle>) -> Answer {
        match handle {
            None => Answer::Failure(Hresult::BAD_ENCODING.into()),
            // Nothing is sent over the connection.
            Some(handle) if is_user_events_data(&handle) => self.open(code, Source::Canned(Arc::default())),
            Some(_) => Answer::Failure(Hresult::FAIL.into()),
        }
    }

    fn start(&mut self, code: CommandCode, requested: Requested) -> Answer {
        self.open(code, Source::new(&self.spec, requested))
    }

    /// Opens a session if the limit is not reached.
    fn open(&mut self, code: CommandCode, source: Source) -> Answer {
        self.sessions.retain(|_, session| matches!(session.drained.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        if self.sessions.len() >= MAX_SESSIONS {
            return Answer::Failure(Hresult::FAIL.into());
        }
        let free = (0..).map(|slot| FIRST_SESSION + slot * SESSION_BYTES).find(|id| !self.sessions.contains_key(id));
        let id = free.unwrap_or(FIRST_SESSION);
        let (stop, stopped) = oneshot::channel();
        let (drain, drained) = oneshot::channel();
        self.sessions.insert(id, Session { stop, drained });
        let stream = Stream::new(&self.spec, source, self.suspended.subscribe(), stopped, drain);
        Answer::Stream(Box::new(Starting { code, id, stream }))
    }

    /// Starts streaming an accepted session.
    pub(super) fn stream(&mut self, connection: Connection, starting: Starting) {
        while self.streams.try_join_next().is_some() {}
        self.streams.spawn(starting.stream.run(connection));
    }

    /// Returns when the reader has read the rundown: until then this server answers no client.
    async fn stop(&mut self, id: u64) {
        if self.spec.fault == Some(Fault::NeverStop) {
            std::future::pending().await
        }
        if let Some(Session { stop, drained }) = self.sessions.remove(&id) {
            // The stream may have ended by itself.
            let _ = stop.send(());
            let _ = drained.await;
        }
    }

    async fn dump(&self, path: &TargetPath, kind: DumpKind) -> Result<(), String> {
        sleep(Duration::from_millis(300)).await;
        // createdump expands more placeholders than these.
        let name = path.as_str().replace("%%", "\0").replace("%p", &self.spec.pid.to_string()).replace('\0', "%");
        let file = files::create(Path::new(&name));
        let text = format!("This is not a core dump, but a placeholder for the {} dump of a simulated process.\n", kind.name());
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| format!("[createdump] Could not create output file '{}': {error}\n", path.as_str()))
    }

    fn perf_map(&self, kind: PerfMapKind) {
        let pid = self.spec.pid;
        let names = [format!("perf-{pid}.map"), format!("perfinfo-{pid}.map"), format!("jit-{pid}.dump")];
        let files = match kind {
            PerfMapKind::All => &names[..],
            PerfMapKind::PerfMap => &names[..2],
            PerfMapKind::JitDump => &names[2..],
        };
        for name in files {
            // A runtime that cannot write its perf map still reports success.
            let _ = std::fs::write(self.folder.join(name), "7f0000001000 40 void [Simulated] Program::Main()\n");
        }
    }
}

fn is_startup_hook(path: &TargetPath) -> bool {
    let assembly = std::fs::File::open(path.as_str()).map(|mut file| Assembly::read(&mut file));
    matches!(assembly, Ok(Ok(Assembly { startup_hook: StartupHook::Yes, .. })))
}
