//! Diagnostic sockets of runtimes and their names.

use std::fmt;
use std::path::PathBuf;

use crate::model::{Process, ProcessKey};

/// The file name of a runtime's default diagnostic port: `dotnet-diagnostic-{pid}-{key}-socket`.
///
/// Source: `documentation/design-docs/ipc-protocol.md`, "Transport", and the runtime's own naming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketName {
    /// Process id inside the runtime's own pid namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub key: u64,
}

impl SocketName {
    /// Parses a file name; `None` for anything that a runtime would not have written.
    pub fn parse(file_name: &[u8]) -> Option<Self> {
        let middle = file_name.strip_prefix(b"dotnet-diagnostic-")?.strip_suffix(b"-socket")?;
        let (pid, key) = std::str::from_utf8(middle).ok()?.split_once('-')?;
        // Only one spelling of each number is accepted, or two files could claim to be the same socket.
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        (digits(pid) && digits(key)).then_some(Self { pid: pid.parse().ok()?, key: key.parse().ok()? })
    }
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dotnet-diagnostic-{}-{}-socket", self.pid, self.key)
    }
}

/// A runtime's diagnostic socket and the process it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The process that owns the socket.
    pub key: ProcessKey,
    /// Path under which we reach the socket.
    pub socket: PathBuf,
}

impl Endpoint {
    /// Returns a process's endpoint; `None` if it has no socket.
    pub fn of(process: &Process) -> Option<Self> {
        Some(Self { key: process.key, socket: process.socket.clone()? })
    }

    /// Returns the pid of the process in its own pid namespace, if the socket's name contains it.
    pub(super) fn named_pid(&self) -> Option<u32> {
        SocketName::parse(self.socket.file_name()?.as_encoded_bytes()).map(|name| name.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_other_files_are_rejected() {
        let name = SocketName { pid: 4242, key: 256_818 };
        assert_eq!(name.to_string(), "dotnet-diagnostic-4242-256818-socket");
        assert_eq!(SocketName::parse(name.to_string().as_bytes()), Some(name));
        for other in [
            "",
            "dotnet-diagnostic-",
            "dotnet-diagnostic-4242-socket",
            "dotnet-diagnostic-4242--socket",
            "dotnet-diagnostic--1-2-socket",
            "dotnet-diagnostic-+1-2-socket",
            "dotnet-diagnostic-01-2-socket",
            "dotnet-diagnostic-1-02-socket",
            "dotnet-diagnostic-1-2-3-socket",
            "dotnet-diagnostic-dsrouter-1-2-socket",
            "dotnet-diagnostic-99999999999-2-socket",
            "dotnet-diagnostic-1-2-socket.bak",
            "clr-debug-pipe-1-2-in",
        ] {
            assert_eq!(SocketName::parse(other.as_bytes()), None, "{other}");
        }
        assert_eq!(SocketName::parse(b"dotnet-diagnostic-1\xff-2-socket"), None);
    }
}
