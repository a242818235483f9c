//! A .NET process.

use std::path::PathBuf;
use std::time::Duration;

use super::SafeText;
use crate::ipc::{Capabilities, CommandSupport, Cookie, DumpKind, RuntimeVersion};

/// Identifies a process: pids are reused, but not together with the start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ProcessKey {
    /// Process id in dn-top's pid namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/PID/stat`, and the key in the name of a diagnostic socket.
    pub started: u64,
}

/// A process that hosts a .NET runtime.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// Pid and start time.
    pub key: ProcessKey,
    /// Process id of its parent, if the system reports one.
    pub parent: Option<u32>,
    /// Process id inside its innermost pid namespace: equal to `key.pid` unless it is in a container.
    pub ns_pid: u32,
    /// Entry assembly as reported by the runtime, otherwise the best name in /proc.
    pub name: SafeText,
    /// Version as reported by the runtime; if it is too old for that (3.x) or cannot be reached, the version in the path of its library. `None` if
    /// neither is known.
    pub runtime: Option<RuntimeVersion>,
    /// Whether its program is compiled with NativeAOT: it has no JIT, no profiler interface and no heap walk.
    pub native_aot: bool,
    /// The supported commands, as far as answers have shown.
    pub support: CommandSupport,
    /// Operating system as reported by the runtime, such as `Linux`.
    pub os: Option<SafeText>,
    /// Architecture as reported by the runtime, such as `x64`.
    pub arch: Option<SafeText>,
    /// Portable runtime identifier as reported by the runtime, such as `linux-x64`.
    pub rid: Option<SafeText>,
    /// Command line as reported by the runtime, otherwise from /proc, after [`shown_command_line`](super::shown_command_line).
    pub command_line: SafeText,
    /// Random id of the runtime instance (runtime cookie); `None` if the runtime is too old to report it.
    pub cookie: Option<Cookie>,
    /// Effective user id.
    pub uid: u32,
    /// Name of that user, if there is one.
    pub user: Option<SafeText>,
    /// Container id (first 12 characters), if the process is in a container.
    pub container: Option<SafeText>,
    /// Path of its diagnostic socket as reachable from dn-top.
    pub socket: Option<PathBuf>,
    /// Its temporary folder, if the system reports it; otherwise it is the folder of the socket.
    pub temporary_folder: Option<PathBuf>,
    /// Whether it is connected to the diagnostic port served by dn-top.
    pub on_port: bool,
    /// Start time, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Its CPU and memory usage.
    pub usage: Usage,
    /// Running, or suspended at startup.
    pub run_state: RunState,
    /// Whether its runtime can be reached.
    pub contact: Contact,
}

impl Process {
    /// Creates a process without further facts.
    pub fn new(key: ProcessKey) -> Self {
        Self { key, ns_pid: key.pid, ..Self::default() }
    }

    /// Returns the command line without the folders of the program and of the assembly that it runs. On Windows the program is quoted.
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

    /// Returns the capabilities of its runtime.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.runtime.as_ref(), self.native_aot, self.support)
    }

    /// Returns the capabilities of its runtime, if anything is known about it. A runtime that answers without a version is an old one.
    pub fn known_capabilities(&self) -> Option<Capabilities> {
        (self.runtime.is_some() || self.contact == Contact::Ok).then(|| self.capabilities())
    }

    /// Whether this is not a process, but the socket left behind by a killed one.
    pub fn is_stale_socket(&self) -> bool {
        matches!(self.contact, Contact::Trouble { kind: Trouble::Stale, .. })
    }
}

/// Resource usage of a process, from /proc.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Percent of one core since the previous scan; `None` until the second scan.
    pub cpu_percent: Option<f64>,
    /// Resident set size, bytes. 0 if unknown.
    pub rss_bytes: u64,
    /// Private writable memory, resident or not, bytes. 0 if unknown.
    pub data_bytes: u64,
    /// Operating system threads. 0 if unknown.
    pub threads: u32,
    /// What has stopped all its threads. Only known on Linux.
    pub stopper: Option<Stopper>,
}

/// What has stopped all threads of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopper {
    /// A signal, such as SIGSTOP.
    Signal,
    /// A debugger, or a program that writes a core dump, with its PID; `None` if it is not visible.
    Debugger(Option<u32>),
}

impl Stopper {
    /// Returns what it is, for the middle of a sentence.
    pub fn describe(self) -> String {
        match self {
            Self::Signal => "a signal".to_owned(),
            Self::Debugger(None) => "a debugger".to_owned(),
            Self::Debugger(Some(pid)) => format!("a debugger (PID {pid})"),
        }
    }
}

/// Size of a dump without a heap, in bytes: 2 MB with .NET Core 3.1, 7 MB with .NET 10, and more with many threads.
const SMALL_DUMP_BYTES: u64 = 10_000_000;

impl Usage {
    /// Estimates the size of a dump, bytes. With a heap: all private writable memory, even if it was never touched, plus JIT-compiled code, which
    /// is in shared memory, and parts of modules. The latter two are up to a tenth of the former.
    pub fn dump_bytes(self, kind: DumpKind) -> u64 {
        match kind {
            DumpKind::Mini | DumpKind::Triage => SMALL_DUMP_BYTES,
            DumpKind::Heap | DumpKind::Full => self.rss_bytes.max(self.data_bytes.saturating_add(self.data_bytes / 10)),
        }
    }
}

/// Whether managed code may run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunState {
    /// The runtime is running.
    #[default]
    Running,
    /// The runtime is suspended at startup, until a `ResumeRuntime` command.
    Suspended,
    /// Either: it was started suspended, and nothing shows whether it was resumed (Windows, macOS).
    Unknown,
}

/// Whether a runtime can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Contact {
    /// Not queried yet.
    #[default]
    Unknown,
    /// The runtime answers.
    Ok,
    /// The runtime cannot be reached, or answers late.
    Trouble {
        /// Kind of problem.
        kind: Trouble,
        /// A sentence for the user: the problem, and a remedy.
        reason: SafeText,
    },
}

/// Before .NET 9, a counter session that starts while the program first uses its thread pool can deadlock it (dotnet/runtime 93175, 105682; fixed
/// by 105548). Programs do so at startup, so none is started unasked before this uptime.
const SAFE_UPTIME: Duration = Duration::from_secs(10);

/// Returns how long to wait before a counter session is safe in a process with this uptime; zero if its runtime does not have that bug.
pub fn counters_delay(runtime: Option<&RuntimeVersion>, uptime: Duration) -> Duration {
    let is_safe = runtime.is_some_and(|version| version.major() >= 9);
    if is_safe { Duration::ZERO } else { SAFE_UPTIME.saturating_sub(uptime) }
}

listed! {
/// Why a runtime cannot be reached. The names are those of the command line contract's `contact` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The runtime answers late, or a long command is in progress.
    Slow => "slow",
    /// The process belongs to another user, or its files are not accessible.
    Denied => "denied",
    /// The socket exists, its process does not.
    Stale => "stale",
    /// The socket does not belong to the process, or that cannot be checked: it is not connected to, or nothing was sent to it.
    Unverified => "unverified",
    /// The process has a runtime, but it serves no socket.
    Disabled => "disabled",
    /// The socket refused the connection, or closed it without an answer.
    Refused => "refused",
    /// No answer before the timeout.
    Timeout => "timeout",
    /// The peer does not implement the protocol, or the path is too long for a socket.
    Unsupported => "unsupported",
}
/// Returns the word in the command line contract.
pub fn word(self) -> &'static str;
}

impl Contact {
    /// Whether commands may be sent. Also true for a slow runtime, which answers late.
    pub fn is_attachable(&self) -> bool {
        matches!(self, Self::Ok | Self::Unknown | Self::Trouble { kind: Trouble::Slow, .. })
    }

    /// Returns the sentence for the user, if there is a problem.
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
    fn counters_wait_for_a_safe_uptime_before_dotnet_9() {
        let delay = |version: Option<&str>, seconds| {
            counters_delay(version.map(RuntimeVersion::new).as_ref(), Duration::from_secs(seconds)).as_secs()
        };
        assert_eq!([delay(None, 3), delay(Some("8.0.33"), 3), delay(Some("8.0.33"), 30), delay(Some("9.0.0"), 3)], [7, 7, 0, 0]);
    }

    #[test]
    fn estimated_size_of_a_dump_with_a_heap_exceeds_its_memory() {
        let size = |rss_bytes, data_bytes| Usage { rss_bytes, data_bytes, ..Usage::default() }.dump_bytes(DumpKind::Heap);
        assert_eq!((size(50, 100), size(500, 100), size(0, u64::MAX)), (110, 500, u64::MAX));
        assert_eq!(Usage::default().dump_bytes(DumpKind::Mini), SMALL_DUMP_BYTES);
    }

    #[test]
    fn short_command_line_omits_the_program_folders() {
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
