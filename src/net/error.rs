//! Errors of an exchange with a runtime, with their messages.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::endpoint::Endpoint;
use super::peer::PeerError;
use super::user::{ELEVATE, SUPERUSER};
use crate::ipc::{CommandCode, EnvironmentError, Failure, FrameError, Hresult, MessageTooLong, ReplyError};
use crate::model::{Counted, SafeText, Trouble};

/// A failed exchange: the command, the process, and the cause.
#[derive(Debug, Error)]
#[error("{} to process {}: {}", .command.name(), .endpoint.key.pid, self.reason())]
pub struct ExchangeError {
    /// The command that was sent, or would have been.
    pub command: CommandCode,
    /// The target of the command.
    pub endpoint: Endpoint,
    /// The cause. Its message is part of this error's.
    pub cause: Cause,
}

/// Cause of a failed exchange, displayed as a sentence.
#[derive(Debug, Error)]
pub enum Cause {
    /// There is no socket, or no process listens on it.
    #[error("no process listens on this socket: the process has ended")]
    Gone,
    /// The process exited before it replied.
    #[error("the process ended before it answered")]
    Ended,
    /// The socket belongs to another user.
    #[error("only the owner of its socket and {SUPERUSER} may attach: run dn-top as that user, or {ELEVATE}")]
    Denied,
    /// Not sent: the socket, or the process at its other end, does not belong to the target.
    #[error("not sent, because {0}")]
    Peer(#[from] PeerError),
    /// Not sent: another command of ours was in progress for the whole wait.
    #[error("not sent, because {} has been in progress for {} s: try again when it is over", .with.name(), .elapsed.as_secs())]
    Busy {
        /// The command in progress.
        with: CommandCode,
        /// Time since that command began.
        elapsed: Duration,
    },
    /// No complete reply within the time limit.
    #[error(
        "no answer within {} s: its diagnostic server serves one client at a time and is busy, or the process is stopped or gets no CPU time; try again later",
        .0.as_secs_f32()
    )]
    Timeout(Duration),
    /// The same, and the process has this number of open files, the highest that it may have.
    #[error(
        "no answer within {} s: the process has {:#}, as many as it may have, so its runtime cannot accept connections",
        .0.as_secs_f32(), Counted(*.1, "open file")
    )]
    TooManyFiles(Duration, u64),
    /// The connection was closed before the first byte of a reply.
    #[error("the connection was closed without an answer: the process may be exiting, or the listener is not a .NET runtime")]
    Closed,
    /// The connection was closed in the middle of the reply.
    #[error("the answer was cut off after {:#}: the process may have ended", Counted(*.0 as u64, "byte"))]
    CutOff(usize),
    /// The connection failed with an error of the operating system.
    #[error("the connection failed: {0}")]
    Io(io::Error),
    /// The received bytes are not the diagnostic protocol.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The runtime replied with an error, or with a reply that makes no sense.
    #[error("{0}")]
    Reply(#[from] ReplyError),
    /// The runtime could not start a session whose events go to tracepoints (`E_FAIL`).
    #[error(
        "{0}: the kernel may have a tracepoint of this name with other fields, which `cat /sys/kernel/tracing/dynamic_events` shows as root, or 64 \
         sessions, of all tools together, may be open already"
    )]
    Tracepoints(Failure),
    /// The environment block after the reply is invalid.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
    /// The request does not fit into a message.
    #[error("{0}")]
    MessageTooLong(#[from] MessageTooLong),
    /// Not sent: the process is suspended at startup.
    #[error("not sent, because the process is suspended at startup, where this fails or crashes it: resume it first")]
    Suspended,
    /// Not sent: it changes the target, and only read access is allowed.
    #[error("not sent, because it changes the process, which --readonly does not allow")]
    ReadOnly,
    /// The resume was accepted, but the runtime is still suspended.
    #[error(
        "accepted, but the process is still suspended: it also waits for a resume on another diagnostic port (DOTNET_DiagnosticPorts in its \
         environment); resume it with the program that serves that port or, if none does, with `dn-top resume PATH,listen` and its path"
    )]
    StillSuspended,
    /// Not sent: the protocol of the .NET Core 3.0 previews cannot express it.
    #[error("not sent, because the protocol of the .NET Core 3.0 previews has no {0}")]
    UnsupportedByLegacy(&'static str),
    /// A preview refused the session; its protocol has no error codes.
    #[error("the runtime did not open a session, and its protocol does not report why")]
    LegacyRefused,
    /// The reply is in the protocol of the releases.
    #[error("this runtime is not a preview of .NET Core 3.0: omit --legacy")]
    NotLegacy,
    /// Not sent: it would crash a process that is suspended, and the threads that would show its state are not visible.
    #[error(
        "not sent, because it would crash a process that is still starting up, which cannot be ruled out from here: run dn-top \
         where `dn-top ps` lists the process"
    )]
    StateUnknown,
    /// Not sent: NativeAOT's code for unsetting a variable reads a value that it was not given (seen on 8.0.33).
    /// Also if it is unknown whether the program is compiled by NativeAOT.
    #[error(
        "not sent, because unsetting a variable crashes a NativeAOT program, which this is or may be: set it to an empty value instead"
    )]
    UnsetInNativeAot,
    /// Not sent: the startup hook would not load.
    #[error("not sent, because {} {}: a startup hook that fails to load crashes the process", .path, .why)]
    BadHook {
        /// The hook's assembly.
        path: SafeText,
        /// The reason, as the end of a sentence.
        why: SafeText,
    },
    /// Not sent: the profiler's library is not a file.
    #[error("not sent, because {} {why}", .path)]
    BadProfiler {
        /// The profiler's library.
        path: SafeText,
        /// The reason, as the end of a sentence.
        why: String,
    },
}

impl ExchangeError {
    /// Classifies the error; `None` if the runtime works and only refused the command, or nothing was sent.
    pub fn trouble(&self) -> Option<Trouble> {
        Some(match &self.cause {
            Cause::Gone | Cause::Ended => Trouble::Stale,
            Cause::Denied => Trouble::Denied,
            Cause::Busy { .. } => Trouble::Slow,
            Cause::Timeout(_) | Cause::TooManyFiles(..) => Trouble::Timeout,
            Cause::Closed | Cause::Io(_) => Trouble::Refused,
            Cause::Peer(_) => Trouble::Unverified,
            Cause::CutOff(_) | Cause::Frame(_) | Cause::Environment(_) => Trouble::Unsupported,
            Cause::Reply(ReplyError::NotAReply { .. } | ReplyError::Malformed { .. }) => Trouble::Unsupported,
            Cause::Reply(ReplyError::Failure(_))
            | Cause::Tracepoints(_)
            | Cause::MessageTooLong(_)
            | Cause::Suspended
            | Cause::StillSuspended
            | Cause::StateUnknown
            | Cause::ReadOnly
            | Cause::UnsetInNativeAot
            | Cause::BadHook { .. }
            | Cause::BadProfiler { .. }
            | Cause::UnsupportedByLegacy(_)
            | Cause::LegacyRefused
            | Cause::NotLegacy => return None,
        })
    }

    /// Returns the cause as a sentence, for use where the process and the command are shown already.
    pub fn reason(&self) -> String {
        format!("{}{}", self.cause, self.remark())
    }

    /// Additions to the cause: the socket, where a person would look at it, and possible reasons for `E_FAIL`, the runtime's code for every error
    /// that has no other.
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
            // GenerateCoreDump3 reports a reason as text.
            Code::GenerateCoreDump | Code::GenerateCoreDump2 => {
                ": its dump program may be missing, or may not be able to write to that path"
            }
            code if code.starts_session() => ": 64 sessions, of all tools together, may be open already",
            _ => "",
        }
    }

    /// Returns the error code, if the runtime refused the command.
    pub fn hresult(&self) -> Option<Hresult> {
        match &self.cause {
            Cause::Reply(ReplyError::Failure(failure)) | Cause::Tracepoints(failure) => Some(failure.hresult),
            _ => None,
        }
    }

    /// Returns the runtime's own error message, if any, line by line.
    pub fn details(&self) -> Vec<SafeText> {
        match &self.cause {
            Cause::Reply(ReplyError::Failure(failure)) => failure.message.iter().flat_map(|text| text.lines()).map(SafeText::new).collect(),
            _ => Vec::new(),
        }
    }
}

impl Cause {
    pub(super) fn of_connect(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::Gone,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::of_stream(error, 0),
        }
    }

    /// Classifies an error of reading or writing, after `got` bytes of the reply.
    pub(super) fn of_stream(error: io::Error, got: usize) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof if got == 0 => Self::Closed,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Self::CutOff(got),
            _ => Self::Io(error),
        }
    }
}
