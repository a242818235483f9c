//! The Diagnostic IPC Protocol, sans-io, both directions: frames, every command, every reply, HRESULTs in plain words, advertise messages.
//!
//! Functions over bytes: no socket, no clock, no file. A client turns a [`Command`] into the bytes of one write and bytes into a [`Reply`] or a
//! [`Failure`]; a server does the opposite. Which commands can carry a request, and what each cannot express, is a list of [`Attempt`]s; what a runtime
//! has is learned from its answers ([`CommandSupport`]).
//!
//! Some requests crash the process that they are sent to. The types here have no value for such a request: every constructor refuses what a
//! runtime would not survive, so that no check is needed before sending. Text from a runtime is given as it came; the code that shows it
//! makes it safe for a terminal.
//!
//! Sources: the protocol specification and, where runtimes differ from it, what runtimes 3.1 to 10 were seen to do.

mod advertise;
mod attempt;
mod capabilities;
mod command;
mod dump;
mod environment;
mod field;
mod filter;
mod frame;
mod hresult;
mod id;
mod invalid;
mod legacy;
mod process_info;
mod provider;
mod reply;
mod request;
mod session_config;
mod stream;
mod support;
mod user_events;
mod version;

pub use advertise::{ADVERTISE_BYTES, Advertise, NotAdvertise};
pub use attempt::{Attempt, Loss};
pub use capabilities::Capabilities;
pub use command::{Command, CommandCode};
pub use dump::{DumpFlags, DumpKind, DumpLog, DumpRequest};
pub use environment::{EnvironmentBlock, EnvironmentError, MAX_ENVIRONMENT, MAX_VARIABLES, Variable};
pub use filter::EventFilter;
pub use frame::{FrameError, HEADER_BYTES, MAX_MESSAGE, Message, TooLong};
pub use hresult::Hresult;
pub use id::{Cookie, Guid, SessionId};
pub use invalid::Invalid;
pub use legacy::{LEGACY_REPLY_BYTES, LegacyRequest};
pub use process_info::ProcessInfo;
pub use provider::{Level, Provider, Providers};
pub use reply::{Failure, Reply, ReplyError};
pub use request::{ClientData, EnvironmentName, EnvironmentValue, PerfMapKind, TargetPath};
pub use session_config::{HEAP_COLLECT, Rundown, SessionConfig};
pub use stream::{BufferMb, BufferMode, Destination, FilteredProvider, FilteredStream};
pub use support::{CommandSupport, Support};
pub use user_events::{TracepointProvider, TracepointSet, Tracepoints, UserEvents};
pub use version::RuntimeVersion;
