//! Addresses of the tracing service's sockets.
//!
//! Source: `src/tracing/ipc/default_socket.cc` in google/perfetto.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::Cause;
use crate::model::SafeText;
use crate::net::files::path_of;

/// One of the two sockets of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// For producers, which write trace data.
    Producer,
    /// For consumers, which start recordings and read them.
    Consumer,
}

impl Port {
    /// Name of the environment variable that overrides the address.
    pub fn variable(self) -> &'static str {
        self.names()[0]
    }

    /// Returns the variable, the address of a service started by the system, and that of one started by a user.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Producer => ["PERFETTO_PRODUCER_SOCK_NAME", "/run/perfetto/traced-producer.sock", "/tmp/perfetto-producer"],
            Self::Consumer => ["PERFETTO_CONSUMER_SOCK_NAME", "/run/perfetto/traced-consumer.sock", "/tmp/perfetto-consumer"],
        }
    }
}

/// The address of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A path in the file system.
    Path(PathBuf),
    /// A name in the abstract namespace, without the `@` that is written before it.
    Abstract(Vec<u8>),
}

impl Address {
    /// Determines the address of the service by the environment and the directories of this machine.
    ///
    /// # Errors
    /// [`Cause::Name`] if the environment variable does not name a socket of this machine.
    pub fn of(port: Port) -> Result<Self, Cause> {
        Self::choose(port, std::env::var_os(port.variable()), Path::new("/run/perfetto").is_dir())
    }

    fn choose(port: Port, named: Option<OsString>, has_folder: bool) -> Result<Self, Cause> {
        let [variable, system, user] = port.names();
        match named.filter(|name| !name.is_empty()) {
            Some(name) => Self::named(&name).ok_or_else(|| Cause::Name { variable, value: SafeText::from_path(name.as_ref()) }),
            None => Ok(Self::Path(if has_folder { system } else { user }.into())),
        }
    }

    /// Parses the value of the variable. A service accepts several names, separated by commas, and listens on each; the first is used. A name may
    /// also be a host and a port.
    fn named(name: &OsStr) -> Option<Self> {
        let first = name.as_encoded_bytes().split(|byte| *byte == b',').next()?;
        let is_remote = if first.contains(&b'/') { first.windows(3).any(|part| part == b"://") } else { first.contains(&b':') };
        match first.strip_prefix(b"@") {
            Some(name) => (!name.is_empty()).then(|| Self::Abstract(name.to_vec())),
            None => (!first.is_empty() && !is_remote).then(|| Self::Path(path_of(first))),
        }
    }
}

/// Both sockets of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sockets {
    /// Socket of producers.
    pub producer: Address,
    /// Socket of consumers.
    pub consumer: Address,
}

impl Sockets {
    /// Determines both addresses by the environment and the directories of this machine.
    ///
    /// # Errors
    /// [`Cause::Name`]
    pub fn of_machine() -> Result<Self, Cause> {
        Ok(Self { producer: Address::of(Port::Producer)?, consumer: Address::of(Port::Consumer)? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => SafeText::from_path(path).fmt(f),
            Self::Abstract(name) => write!(f, "@{}", SafeText::from_bytes(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P2
    #[test]
    fn socket_address_comes_from_environment_or_default_path() {
        let choose = |name: &str, has_folder| {
            Address::choose(Port::Producer, Some(name.into()), has_folder)
                .map(|address| address.to_string())
                .map_err(|cause| cause.to_string())
        };
        for (name, has_folder, address) in [
            ("", true, "/run/perfetto/traced-producer.sock"),
            ("", false, "/tmp/perfetto-producer"),
            ("/a/b", true, "/a/b"),
            ("/a/b,/c", true, "/a/b"),
            ("@name", true, "@name"),
            ("file", true, "file"),
            ("/a:1/b", true, "/a:1/b"),
        ] {
            assert_eq!(choose(name, has_folder).as_deref(), Ok(address), "{name}");
        }
        for name in ["host:1234", "vsock://2:10", "@", "127.0.0.1:20"] {
            let error = choose(name, true).unwrap_err();
            assert!(error.contains("PERFETTO_PRODUCER_SOCK_NAME") && error.contains(name), "{error}");
        }
        let consumer = Address::choose(Port::Consumer, None, true).unwrap();
        assert_eq!(consumer.to_string(), "/run/perfetto/traced-consumer.sock");
    }
}
