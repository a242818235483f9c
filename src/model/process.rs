//! A .NET process and what is known of it.

use std::path::PathBuf;

use super::SafeText;
use crate::ipc::{Capabilities, CommandSupport, Cookie, RuntimeVersion};

/// Which process: a pid alone is used again, a pid and its start time are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// Process id as we see it.
    pub pid: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/PID/stat`, and the key in the name of a diagnostic socket.
    pub started: u64,
}

/// A process with a .NET runtime in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Which process.
    pub key: ProcessKey,
    /// Process id of its parent, where the system shows one.
    pub parent: Option<u32>,
    /// Process id inside its innermost pid namespace: equal to `key.pid` unless it is in a container.
    pub ns_pid: u32,
    /// Entry assembly as the runtime reports it, else the best that /proc offers.
    pub name: SafeText,
    /// Runtime version as the runtime reports it; where it is too old for that (3.x) or cannot be reached, that of its library's path. `None` where neither is known.
    pub runtime: Option<RuntimeVersion>,
    /// Whether its program was compiled to native code, runtime included: it has no JIT, no profiler interface and no heap walk.
    pub native_aot: bool,
    /// Which commands it has, as far as its answers have shown.
    pub support: CommandSupport,
    /// Operating system as the runtime reports it, such as `Linux`.
    pub os: Option<SafeText>,
    /// Architecture as the runtime reports it, such as `x64`.
    pub arch: Option<SafeText>,
    /// Portable runtime identifier as the runtime reports it, such as `linux-x64`.
    pub rid: Option<SafeText>,
    /// Command line as the runtime reports it, else from /proc, as [`shown_command_line`](super::shown_command_line) makes it.
    pub command_line: SafeText,
    /// The runtime instance's random id; `None` where the runtime is too old to report it.
    pub cookie: Option<Cookie>,
    /// Effective user id.
    pub uid: u32,
    /// Name of that user, where there is one.
    pub user: Option<SafeText>,
    /// Container id (first 12 characters) where the process is in one.
    pub container: Option<SafeText>,
    /// Path under which we reach its diagnostic socket.
    pub socket: Option<PathBuf>,
    /// Its temporary folder, where the system shows it; else that is the folder of its socket.
    pub temporary_folder: Option<PathBuf>,
    /// Whether it is connected to the diagnostic port that we serve.
    pub on_port: bool,
    /// Start time, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// What it uses of the machine.
    pub usage: Usage,
    /// Running, or waiting at startup for a resume.
    pub run_state: RunState,
    /// Whether its runtime can be talked to.
    pub contact: Contact,
}

impl Process {
    /// A process of which nothing is known yet.
    pub fn new(key: ProcessKey) -> Self {
        Self {
            key,
            parent: None,
            ns_pid: key.pid,
            name: SafeText::default(),
            runtime: None,
            native_aot: false,
            support: CommandSupport::default(),
            os: None,
            arch: None,
            rid: None,
            command_line: SafeText::default(),
            cookie: None,
            uid: 0,
            user: None,
            container: None,
            socket: None,
            temporary_folder: None,
            on_port: false,
            started_unix_ms: 0,
            usage: Usage::default(),
            run_state: RunState::default(),
            contact: Contact::default(),
        }
    }

    /// The command line with the program, and the assembly that it runs, without their folders. On Windows the program is in quotes.
    pub fn short_command_line(&self) -> String {
        fn file(path: &str) -> &str {
            &path[path.rfind(['/', '\\']).map_or(0, |at| at + 1)..]
        }
        let line = self.command_line.as_str();
        let quoted = line.strip_prefix('"').and_then(|line| line.split_once('"'));
        let (program, rest) = quoted.unwrap_or_else(|| line.split_at(line.find(' ').unwrap_or(line.len())));
        let mut words = rest.split(' ');
        let mut short = String::with_capacity(line.len());
        short.extend([file(program), words.next().unwrap_or_default()]);
        let mut has_assembly = false;
        for word in words {
            let is_assembly = !has_assembly && word.ends_with(".dll");
            has_assembly |= is_assembly;
            short.extend([" ", if is_assembly { file(word) } else { word }]);
        }
        short
    }

    /// What its runtime can be asked.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.runtime.as_ref(), self.native_aot, self.support)
    }

    /// Whether this is no process but a socket that one left behind when it was killed.
    pub fn is_stale_socket(&self) -> bool {
        matches!(self.contact, Contact::Trouble { kind: Trouble::Stale, .. })
    }
}

/// What a process uses of the machine, from /proc.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Per cent of one core since the last look; `None` until there are two looks.
    pub cpu_percent: Option<f32>,
    /// Resident set, bytes. 0 where it is not known.
    pub rss_bytes: u64,
    /// Writable memory of its own, resident or not, bytes. 0 where it is not known.
    pub data_bytes: u64,
    /// Operating system threads. 0 where it is not known.
    pub threads: u32,
}

impl Usage {
    /// About what a heap dump holds, bytes: all writable memory of its own, and besides it code that was compiled at run time, which is in shared
    /// memory, and parts of modules. These are up to a tenth of it.
    pub fn heap_dump_bytes(self) -> u64 {
        self.rss_bytes.max(self.data_bytes.saturating_add(self.data_bytes / 10))
    }
}

/// Whether managed code may run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunState {
    /// The runtime runs.
    #[default]
    Running,
    /// The runtime waits at startup for a `ResumeRuntime` command.
    Suspended,
    /// Either: it was started to wait, and nothing shows whether it was resumed (Windows, macOS).
    Unknown,
}

/// Whether a runtime can be talked to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Contact {
    /// Not asked yet.
    #[default]
    Unknown,
    /// It answers.
    Ok,
    /// It cannot be talked to, or not well.
    Trouble {
        /// What kind of trouble.
        kind: Trouble,
        /// A sentence for a person: what is the matter and what would help.
        reason: SafeText,
    },
}

/// Why a runtime cannot be talked to. The names are those of the command line contract's `contact` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// It answers late, or a long command is under way.
    Slow,
    /// It belongs to another user, or its files cannot be reached.
    Denied,
    /// The socket is there, its process is not.
    Stale,
    /// The socket is not the process's own, or that cannot be checked: it is never connected to, or nothing was sent to it.
    Unverified,
    /// A runtime is in the process but it serves no socket.
    Disabled,
    /// The socket refused the connection, or closed it without an answer.
    Refused,
    /// No answer within the deadline.
    Timeout,
    /// What answers does not speak the protocol, or the path is too long for a socket.
    Unsupported,
}

impl Trouble {
    /// The word of the command line contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Denied => "denied",
            Self::Stale => "stale",
            Self::Unverified => "unverified",
            Self::Disabled => "disabled",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Unsupported => "unsupported",
        }
    }
}

impl Contact {
    /// Whether a command may be sent. A slow runtime may be asked; it answers late.
    pub fn is_attachable(&self) -> bool {
        matches!(self, Self::Ok | Self::Unknown | Self::Trouble { kind: Trouble::Slow, .. })
    }

    /// The sentence for a person, where there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Trouble { reason, .. } => Some(reason),
            Self::Unknown | Self::Ok => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_command_line_has_no_folders_of_the_program() {
        let short = |text: &str| {
            let mut process = Process::new(ProcessKey { pid: 1, started: 1 });
            process.command_line = text.into();
            process.short_command_line()
        };
        assert_eq!(short("/usr/bin/dotnet exec /srv/shop.dll /etc/shop.json /x/y.dll"), "dotnet exec shop.dll /etc/shop.json /x/y.dll");
        assert_eq!(short(r"C:\srv\Shop.exe --urls http://*:8080"), "Shop.exe --urls http://*:8080");
        assert_eq!(short(r#""C:\Program Files\dotnet\dotnet.exe" C:\srv\Shop.dll --x"#), "dotnet.exe Shop.dll --x");
        assert_eq!((short(r#""Z:\a.exe""#), short(r#""Z:\a.exe"#)), ("a.exe".to_owned(), "a.exe".to_owned()));
        assert_eq!(short("/srv/a.dll"), "a.dll");
        assert_eq!(short(""), "");
    }
}
