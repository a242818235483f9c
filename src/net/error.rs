//! Why an exchange with a runtime failed, in words.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::endpoint::Endpoint;
use super::peer::PeerError;
use super::user::{ELEVATE, SUPERUSER};
use crate::ipc::{CommandCode, EnvironmentError, Failure, FrameError, Hresult, ReplyError, TooLong};
use crate::model::{SafeText, Trouble};

/// An exchange that failed: what was tried, on which process, and what came.
#[derive(Debug, Error)]
#[error("{} to process {}: {}", .command.name(), .endpoint.key.pid, self.reason())]
pub struct ExchangeError {
    /// The command that was sent, or was to be.
    pub command: CommandCode,
    /// Whom it was for.
    pub endpoint: Endpoint,
    /// What came. Its words are part of this error's.
    pub cause: Cause,
}

/// What came instead of the answer, as a sentence.
#[derive(Debug, Error)]
pub enum Cause {
    /// There is no socket, or no process behind it.
    #[error("no process listens on this socket: the process has ended")]
    Gone,
    /// The process ended while its answer was waited for.
    #[error("the process ended before it answered")]
    Ended,
    /// The socket is another user's.
    #[error("only the owner of its socket and {SUPERUSER} may attach: run dn-top as that user, or {ELEVATE}")]
    Denied,
    /// Not sent: the socket, or the process at its other end, is not that of the process.
    #[error("not sent, because {0}")]
    Peer(PeerError),
    /// Another command of ours was under way all the time.
    #[error("not sent, because {} has been under way for {} s: try again when it is over", .with.name(), .elapsed.as_secs())]
    Busy {
        /// Which.
        with: CommandCode,
        /// For how long.
        elapsed: Duration,
    },
    /// No complete answer in time.
    #[error(
        "no answer within {} s: its diagnostic server serves one client at a time and is busy, or the process is stopped; try again later",
        .0.as_secs_f32()
    )]
    Timeout(Duration),
    /// The connection was closed before the first byte of an answer.
    #[error("closed without an answer: the process may be ending, or what listens is not a .NET runtime")]
    Closed,
    /// The connection was closed in the middle of the answer.
    #[error("the answer was cut off after {0} bytes: the process may have ended")]
    CutOff(usize),
    /// The connection broke for a reason that the system gives.
    #[error("the connection failed: {0}")]
    Io(io::Error),
    /// What came is not the protocol.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The runtime refuses, or answers something without sense.
    #[error("{0}")]
    Reply(#[from] ReplyError),
    /// The runtime could not start a session whose events go to tracepoints, `E_FAIL`.
    #[error(
        "{0}: the kernel may have a tracepoint of this name with other fields, which `cat /sys/kernel/tracing/dynamic_events` shows as root, or 64 \
         sessions, of all tools together, may be open already"
    )]
    Tracepoints(Failure),
    /// The environment block that should follow.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
    /// The request does not fit a message.
    #[error("{0}")]
    TooLong(#[from] TooLong),
    /// Not sent: the process waits at startup for its resume.
    #[error("not sent, because the process is suspended at startup and might not survive it: resume it first")]
    Suspended,
    /// Not sent: it changes the target, and only looking is allowed.
    #[error("not sent, because it changes the process, which --readonly does not allow")]
    ReadOnly,
    /// A resume was accepted, and the runtime is still suspended.
    #[error(
        "taken, and the process is still suspended: it waits for a resume on another diagnostic port, too (DOTNET_DiagnosticPorts in its \
         environment); resume it with the program that serves that port"
    )]
    StillSuspended,
    /// Not sent: the protocol of the previews has no words for it.
    #[error("not sent, because the protocol of the previews of .NET Core 3.0 has no {0}")]
    NotInLegacy(&'static str),
    /// A preview refuses, which it does without a reason.
    #[error("the runtime opened no session, and this protocol does not report why")]
    LegacyNo,
    /// The answer is one of the protocol that all releases speak.
    #[error("this runtime is not a preview of .NET Core 3.0: omit --legacy")]
    NotLegacy,
    /// Not sent: the process would not survive it while it is suspended, and its threads, which show that, are not seen.
    #[error(
        "not sent, because it cannot be seen from here whether the process is still starting up, and it would not survive that: run dn-top \
         where `dn-top ps` lists the process"
    )]
    StateUnknown,
    /// Not sent: the code that unsets a variable is given no value, and reads it (seen on 8.0.33).
    #[error("not sent, because a NativeAOT program does not survive the unsetting of a variable: set it to an empty value instead")]
    UnsetInNativeAot,
    /// Not sent: the startup hook would not load.
    #[error("not sent, because {} {}: a startup hook that does not load ends the process", .path, .why)]
    BadHook {
        /// The hook's assembly.
        path: SafeText,
        /// What is wrong with it.
        why: SafeText,
    },
    /// Not sent: the profiler's library is no file.
    #[error("not sent, because {} {why}", .path)]
    BadProfiler {
        /// The library.
        path: SafeText,
        /// What is wrong with it.
        why: String,
    },
}

impl ExchangeError {
    /// What kind of trouble this is with the process; `None` where the runtime works and only refused, or nothing was sent.
    pub fn trouble(&self) -> Option<Trouble> {
        Some(match &self.cause {
            Cause::Gone | Cause::Ended => Trouble::Stale,
            Cause::Denied => Trouble::Denied,
            Cause::Busy { .. } => Trouble::Slow,
            Cause::Timeout(_) => Trouble::Timeout,
            Cause::Closed | Cause::Io(_) => Trouble::Refused,
            Cause::Peer(_) => Trouble::Unverified,
            Cause::CutOff(_) | Cause::Frame(_) | Cause::Environment(_) => Trouble::Unsupported,
            Cause::Reply(ReplyError::NotAReply { .. } | ReplyError::Malformed { .. }) => Trouble::Unsupported,
            Cause::Reply(ReplyError::Failure(_))
            | Cause::Tracepoints(_)
            | Cause::TooLong(_)
            | Cause::Suspended
            | Cause::StillSuspended
            | Cause::StateUnknown
            | Cause::ReadOnly
            | Cause::UnsetInNativeAot
            | Cause::BadHook { .. }
            | Cause::BadProfiler { .. }
            | Cause::NotInLegacy(_)
            | Cause::LegacyNo
            | Cause::NotLegacy => return None,
        })
    }

    /// What came, as a sentence, for where the process and the request are known.
    pub fn reason(&self) -> String {
        format!("{}{}", self.cause, self.remark())
    }

    /// What the cause alone does not contain: which socket, where that is what a person would look at, and what a runtime may have failed at that
    /// answers `E_FAIL`, its code for all that has no other.
    fn remark(&self) -> String {
        match &self.cause {
            Cause::Gone | Cause::Denied | Cause::Peer(_) | Cause::Closed | Cause::CutOff(_) | Cause::Io(_) | Cause::Frame(_) => {
                format!(" (socket {})", SafeText::from_path(&self.endpoint.socket))
            }
            Cause::Reply(ReplyError::Failure(failure)) => match failure.hresult {
                Hresult::UNKNOWN_COMMAND => format!(": {} {}", self.command.purpose(), self.command.needs()),
                Hresult::FAIL => self.what_failed().to_owned(),
                _ => String::new(),
            },
            _ => String::new(),
        }
    }

    fn what_failed(&self) -> &'static str {
        use CommandCode as Code;
        match self.command {
            // The third generation gives a reason in words.
            Code::GenerateCoreDump | Code::GenerateCoreDump2 => {
                ": its dump program may be missing, or may not be able to write to that path"
            }
            code if code.starts_session() => ": 64 sessions, of all tools together, may be open already",
            _ => "",
        }
    }

    /// The code, where the runtime refused.
    pub fn hresult(&self) -> Option<Hresult> {
        match &self.cause {
            Cause::Reply(ReplyError::Failure(failure)) | Cause::Tracepoints(failure) => Some(failure.hresult),
            _ => None,
        }
    }

    /// The runtime's own words, where it had any, line by line.
    pub fn details(&self) -> Vec<SafeText> {
        match &self.cause {
            Cause::Reply(ReplyError::Failure(failure)) => failure.message.iter().flat_map(|text| text.lines()).map(SafeText::new).collect(),
            _ => Vec::new(),
        }
    }
}

impl Cause {
    /// What connecting came to.
    pub(super) fn of_connect(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::Gone,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::of_stream(error, 0),
        }
    }

    /// What reading or writing came to, after `got` bytes of the answer.
    pub(super) fn of_stream(error: io::Error, got: usize) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof if got == 0 => Self::Closed,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Self::CutOff(got),
            _ => Self::Io(error),
        }
    }
}
