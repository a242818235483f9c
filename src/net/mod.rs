//! Endpoints, client, discovery and diagnostic ports on tokio: everything that touches a socket or /proc.
//!
//! [`discovery`] finds processes, and explains why one cannot be attached to; [`port`] lets runtimes connect to us. Results are plain values of
//! [`crate::model`] with sanitized text; nothing here depends on screens or command lines. This module only reads, and sends only commands of
//! [`crate::ipc`], over connections that `peer` has verified. It never holds a connection to a runtime without a message to send, because an idle
//! connection blocks a runtime's only server thread.
//!
//! Platform-specific code is in modules of the same name with the same items: here those of Linux or of all Unix systems, in `windows` those of
//! Windows, in `macos` those of macOS, and in `portable` those of both Windows and macOS, which have no `/proc`.

mod access;
mod answer;
#[cfg_attr(windows, path = "windows/child.rs")]
pub mod child;
pub mod client;
mod clients;
#[cfg_attr(windows, path = "windows/clock.rs")]
pub mod clock;
mod command_lock;
mod cpu_usage;
mod directory;
#[cfg_attr(not(target_os = "linux"), path = "portable/discovery.rs")]
pub mod discovery;
#[cfg_attr(not(target_os = "linux"), path = "portable/dump_writer.rs")]
mod dump_writer;
#[cfg(target_os = "linux")]
mod elf;
pub mod endpoint;
mod error;
#[cfg(test)]
#[cfg_attr(not(target_os = "linux"), path = "portable/fake_proc.rs")]
mod fake_proc;
#[cfg(target_os = "linux")]
mod file;
#[cfg_attr(windows, path = "windows/files.rs")]
pub mod files;
#[cfg_attr(not(target_os = "linux"), path = "portable/hook.rs")]
mod hook;
mod inquiry;
#[cfg_attr(windows, path = "windows/interrupts.rs")]
pub mod interrupts;
mod legacy;
#[cfg_attr(windows, path = "windows/limits.rs")]
pub mod limits;
#[cfg(unix)]
#[cfg_attr(target_os = "macos", path = "macos/listening.rs")]
mod listening;
pub mod log;
#[cfg_attr(windows, path = "windows/machine.rs")]
#[cfg_attr(target_os = "macos", path = "macos/machine.rs")]
mod machine;
mod meters;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(unix)]
#[cfg_attr(target_os = "macos", path = "macos/new_file.rs")]
mod new_file;
#[cfg_attr(not(target_os = "linux"), path = "portable/own_program.rs")]
mod own_program;
#[cfg_attr(windows, path = "windows/peer.rs")]
#[cfg_attr(target_os = "macos", path = "macos/peer.rs")]
mod peer;
pub mod perf;
pub mod perfetto;
pub mod port;
#[cfg_attr(not(target_os = "linux"), path = "portable/proc.rs")]
mod proc;
#[cfg_attr(not(target_os = "linux"), path = "portable/process_exit.rs")]
mod process_exit;
mod recorded;
#[cfg(target_os = "linux")]
mod resolve;
mod reverse_connection;
#[cfg(not(target_os = "linux"))]
#[cfg_attr(windows, path = "windows/served.rs")]
#[cfg_attr(target_os = "macos", path = "macos/served.rs")]
mod served;
#[cfg(unix)]
#[cfg_attr(target_os = "macos", path = "macos/settings_file.rs")]
mod settings_file;
#[cfg_attr(not(target_os = "linux"), path = "portable/stale_sockets.rs")]
mod stale_sockets;
#[cfg_attr(windows, path = "windows/stream.rs")]
pub mod stream;
#[cfg(not(target_os = "linux"))]
#[cfg_attr(windows, path = "windows/system.rs")]
#[cfg_attr(target_os = "macos", path = "macos/system.rs")]
mod system;
mod target;
#[cfg_attr(not(target_os = "linux"), path = "portable/target_file.rs")]
pub mod target_file;
#[cfg(test)]
#[cfg_attr(windows, path = "windows/test_stream.rs")]
pub(crate) mod test_stream;
#[cfg_attr(windows, path = "windows/tracing.rs")]
#[cfg_attr(target_os = "macos", path = "macos/tracing.rs")]
mod tracing;
#[cfg_attr(windows, path = "windows/user.rs")]
pub mod user;
#[cfg_attr(not(target_os = "linux"), path = "portable/user_events.rs")]
pub mod user_events;

pub use access::Access;
pub use clients::Clients;
pub use command_lock::Busy;
pub use directory::Directory;
pub use error::{Cause, ExchangeError};
pub use machine::machine_checks;
pub use peer::PeerError;
pub use recorded::{RecordedError, RecordedProcess};
pub use stale_sockets::{RemovedSockets, remove_stale_sockets};
pub use target::TargetError;
pub use tracing::untraceable;
