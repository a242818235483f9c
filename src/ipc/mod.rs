//! The Diagnostic IPC Protocol, sans-io, in both directions: framing, commands, replies, HRESULTs with explanations, advertise messages.
//!
//! Operates on bytes only: no sockets, no clock, no files. A client encodes a [`Command`] to be sent in one write, and decodes a [`Reply`] or
//! a [`Failure`]; a server does the opposite. A list of [`Attempt`]s has the commands that can carry a request, with the settings that each
//! cannot express. Supported commands are learned from a runtime's replies ([`CommandSupport`]).
//!
//! Some requests crash the target process. The types of this module cannot represent them: constructors reject values that would crash a
//! runtime, so no check is needed before sending. Text from a runtime is returned unsanitized; sanitize it before printing it to a terminal.
//!
//! Sources: the protocol specification and, where they differ from it, the observed behavior of runtimes 3.1 to 10.

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
pub use attempt::{Attempt, Downgrade};
pub use capabilities::Capabilities;
pub use command::{Command, CommandCode};
pub use dump::{DumpFlags, DumpKind, DumpLog, DumpRequest};
pub use environment::{
    EnvironmentError, MAX_ENVIRONMENT, MAX_VARIABLES, Variable, decode_environment, encode_environment, environment_bytes,
};
pub use filter::EventFilter;
pub use frame::{FrameError, HEADER_BYTES, MAX_MESSAGE, Message, MessageTooLong};
pub use hresult::Hresult;
pub use id::{Cookie, Guid, SessionId};
pub use invalid::InvalidRequest;
pub use legacy::{LEGACY_REPLY_BYTES, LegacyRequest};
pub use process_info::ProcessInfo;
pub use provider::{Level, Provider, Providers};
pub use reply::{Failure, Reply, ReplyError};
pub use request::{ClientData, EnvironmentName, EnvironmentValue, PerfMapKind, TargetPath};
pub use session_config::{GC_HEAP_COLLECT_KEYWORD, Rundown, SessionConfig};
pub use stream::{BufferMb, BufferMode, Destination, FilteredProvider, StreamingSession};
pub use support::{CommandSupport, Support};
pub use user_events::{TracepointProvider, TracepointSet, Tracepoints, UserEvents};
pub use version::RuntimeVersion;
