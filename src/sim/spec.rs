//! Specification of a simulated runtime.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ipc::{Cookie, ProcessInfo, RuntimeVersion, Variable};

/// One simulated runtime: the facts it reports, its program, and its faults.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Process id in its own namespace, as it reports it.
    pub pid: u32,
    /// Name of the entry assembly.
    pub name: String,
    /// Runtime version, which determines the supported commands and the tolerated requests.
    pub version: String,
    pub command: Vec<String>,
    /// Environment variables, `NAME=value`.
    pub environment: Vec<String>,
    /// Whether it is suspended at startup until a resume on its own socket.
    pub suspended: bool,
    pub port: Option<ConnectPort>,
    pub script: Script,
    pub fault: Option<Fault>,
}

/// A diagnostic port of another process, as in `DOTNET_DiagnosticPorts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectPort {
    /// Path of the port, which may not be served yet.
    pub path: PathBuf,
    /// Whether the runtime is suspended at startup until a resume over this port.
    pub suspend: bool,
}

/// Contents of a session's stream.
#[derive(Debug, Clone)]
pub enum Script {
    /// The events of a simulated program, filtered by the session's providers.
    Program(Rates),
    /// These bytes as fast as they are read, then nothing until the stop, then the end.
    Canned(Arc<[u8]>),
}

/// Event rates of a simulated program, per second.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    pub gc: f64,
    pub exception: f64,
    pub contention: f64,
    pub jit: f64,
    /// Thread samples, while the sample profiler is enabled.
    pub sample: f64,
    /// Events of the program's own provider.
    pub custom: f64,
    /// Amplitude of the rates' variation, 0 to 1.
    #[serde(default)]
    pub waves: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Accepts connections but answers nothing.
    Silent,
    /// Closes every connection at once.
    HangUp,
    /// Answers every request with these bytes and closes.
    Garbage(Vec<u8>),
    /// Sends only this many bytes of every reply.
    CutReply(usize),
    /// Answers after this delay.
    Late(Duration),
    /// Reports strings with escape sequences.
    HostileText,
    /// Crashes after this many bytes of a stream.
    CutStream(u64),
    NeverStop,
    /// Confirms that a session was stopped, but keeps sending.
    IgnoreStop,
}

impl Spec {
    /// A healthy runtime of this version with a small, quiet program.
    pub fn new(name: &str, version: &str, pid: u32) -> Self {
        let rates = Rates { gc: 2.0, exception: 5.0, contention: 5.0, jit: 5.0, sample: 200.0, custom: 50.0, waves: 0.0 };
        Self {
            pid,
            name: name.to_owned(),
            version: version.to_owned(),
            command: vec!["/usr/bin/dotnet".to_owned(), format!("/srv/{name}.dll")],
            environment: vec!["PATH=/usr/bin".to_owned()],
            suspended: false,
            port: None,
            script: Script::Program(rates),
            fault: None,
        }
    }

    pub(super) fn major(&self) -> u32 {
        RuntimeVersion::new(&self.version).major()
    }

    /// Whether it uses the different protocol of the first previews of .NET Core 3.0.
    pub(super) fn is_legacy(&self) -> bool {
        ["3.0.0-preview4", "3.0.0-preview5"].iter().any(|version| self.version.starts_with(version))
    }

    /// Returns the process info. While suspended, a runtime reports its executable but not its arguments.
    pub(super) fn info(&self, suspended: bool) -> ProcessInfo {
        let hostile = if self.fault == Some(Fault::HostileText) { "\u{1b}]0;owned\u{7}\u{1b}[31m\r\n\u{202e}" } else { "" };
        let command = if suspended { &self.command[..1] } else { &self.command[..] };
        ProcessInfo {
            pid: u64::from(self.pid),
            cookie: self.cookie(),
            command_line: format!("{}{hostile}", command.join(" ")),
            os: "Linux".to_owned(),
            arch: "x64".to_owned(),
            entry_assembly: Some(format!("{}{hostile}", self.name)),
            clr_version: Some(RuntimeVersion::new(&self.version)),
            rid: Some("linux-x64".to_owned()),
        }
    }

    /// Random in a real runtime; derived from the pid here, so that runs are reproducible.
    pub(super) fn cookie(&self) -> Cookie {
        Cookie(std::array::from_fn(|i| self.pid.to_le_bytes()[i % 4].wrapping_mul(i as u8 + 13) ^ 0x5a))
    }

    pub(super) fn variables(&self) -> Vec<Variable> {
        let split = |entry: &String| {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            Variable { name: name.to_owned(), value: value.to_owned() }
        };
        self.environment.iter().map(split).collect()
    }
}
