//! A process in the JSON of the command line contract.

use serde::Serialize;

use crate::ipc::{Capabilities, RuntimeVersion};
use crate::model::{Contact, CpuLimit, Process, ResourceUse, RunState};

/// One element of `ps --json`. Facts that the runtime is too old to report are null, as are those of a process that is not visible.
#[derive(Debug, Serialize)]
pub(super) struct ProcessDocument<'a> {
    pid: u32,
    ns_pid: u32,
    name: &'a str,
    runtime_version: Option<&'a str>,
    native_aot: bool,
    os: Option<&'a str>,
    arch: Option<&'a str>,
    rid: Option<&'a str>,
    command_line: &'a str,
    cookie: Option<String>,
    uid: u32,
    user: Option<&'a str>,
    container: Option<&'a str>,
    socket: Option<String>,
    start_time_unix_ms: Option<u64>,
    cpu_percent: Option<f64>,
    rss_bytes: Option<u64>,
    threads: Option<u32>,
    state: &'static str,
    contact: &'static str,
    reason: Option<&'a str>,
}

/// `info --json`: one process and, if known, the capabilities of its runtime.
#[derive(Debug, Serialize)]
pub(super) struct InfoDocument<'a> {
    #[serde(flatten)]
    process: ProcessDocument<'a>,
    /// The lowest CPU limit of its control groups; null if there is none or it is unknown.
    cpu_limit_cores: Option<f64>,
    /// The memory limit of its control groups that is closest; null if there is none or it is unknown.
    memory_limit_bytes: Option<u64>,
    /// Memory used by that control group, without page cache that can be dropped.
    memory_used_bytes: Option<u64>,
    /// Number of open file descriptors; null if unknown, as for processes of other users.
    open_files: Option<u64>,
    open_files_limit: Option<u64>,
    capabilities: Option<Capabilities>,
    /// The capabilities confirmed by answers of the runtime; the others are inferred from its version.
    capabilities_known: Vec<&'static str>,
}

impl<'a> ProcessDocument<'a> {
    pub(super) fn new(process: &'a Process) -> Self {
        Self {
            pid: process.key.pid,
            ns_pid: process.ns_pid,
            name: &process.name,
            runtime_version: process.runtime.as_ref().map(RuntimeVersion::as_str),
            native_aot: process.native_aot,
            os: process.os.as_deref(),
            arch: process.arch.as_deref(),
            rid: process.rid.as_deref(),
            command_line: &process.command_line,
            cookie: process.cookie.map(|cookie| cookie.to_string()),
            uid: process.uid,
            user: process.user.as_deref(),
            container: process.container.as_deref(),
            socket: process.socket.as_ref().map(|socket| socket.to_string_lossy().into_owned()),
            start_time_unix_ms: (process.started_unix_ms > 0).then_some(process.started_unix_ms),
            cpu_percent: process.usage.cpu_percent,
            rss_bytes: Some(process.usage.rss_bytes).filter(|bytes| *bytes > 0),
            threads: Some(process.usage.threads).filter(|threads| *threads > 0),
            state: state(process),
            contact: contact(process),
            reason: process.contact.reason(),
        }
    }
}

impl<'a> InfoDocument<'a> {
    pub(super) fn new(process: &'a Process, limit: Option<CpuLimit>, resources: ResourceUse) -> Self {
        let capabilities = process.known_capabilities();
        let capabilities_known = capabilities.as_ref().map(Capabilities::known).unwrap_or_default();
        let open_files = resources.open_files.map(|files| files.count);
        Self {
            process: ProcessDocument::new(process),
            cpu_limit_cores: limit.map(|limit| limit.cores),
            memory_limit_bytes: resources.memory.map(|memory| memory.limit),
            memory_used_bytes: resources.memory.map(|memory| memory.used),
            open_files: open_files.map(|files| files.used),
            open_files_limit: open_files.map(|files| files.limit),
            capabilities,
            capabilities_known,
        }
    }
}

/// Whether the process is visible in /proc: a socket can outlive its process, or belong to an invisible one.
pub(super) fn is_visible(process: &Process) -> bool {
    process.started_unix_ms > 0 && !process.is_stale_socket()
}

/// Returns the value of the `state` field.
pub(super) fn state(process: &Process) -> &'static str {
    match process.run_state {
        _ if process.is_stale_socket() => "ended",
        _ if process.usage.stopper.is_some() => "stopped",
        RunState::Running => "running",
        RunState::Suspended => "suspended",
        RunState::Unknown => "unknown",
    }
}

/// Returns the value of the `contact` field. A process that was not queried in time has no known error.
pub(super) fn contact(process: &Process) -> &'static str {
    match &process.contact {
        Contact::Unknown | Contact::Ok => "ok",
        Contact::Trouble { kind, .. } => kind.word(),
    }
}
