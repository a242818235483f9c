//! A process in the JSON of the command line contract.

use super::print::{self, Value, json};
use crate::ipc::{Capabilities, RuntimeVersion};
use crate::model::{Contact, CpuLimit, Process, ResourceUse, RunState};

/// Returns an element of `ps --json`. Facts that the runtime is too old to report are null, as are those of a process that is not visible.
pub(super) fn process_document(process: &Process) -> Value {
    json!({
        "pid": process.key.pid,
        "ns_pid": process.ns_pid,
        "name": process.name,
        "runtime_version": process.runtime.as_ref().map(RuntimeVersion::as_str),
        "native_aot": process.native_aot,
        "os": process.os,
        "arch": process.arch,
        "rid": process.rid,
        "command_line": process.command_line,
        "cookie": process.cookie.map(|cookie| cookie.to_string()),
        "uid": process.uid,
        "user": process.user,
        "container": process.container,
        "socket": process.socket.as_ref().map(|socket| socket.to_string_lossy()),
        "start_time_unix_ms": (process.started_unix_ms > 0).then_some(process.started_unix_ms),
        // Tenths, as in the table: the kernel counts CPU time in ticks of 10 ms.
        "cpu_percent": process.usage.cpu_percent.map(|percent| (percent * 10.0).round() / 10.0),
        "rss_bytes": Some(process.usage.rss_bytes).filter(|bytes| *bytes > 0),
        "threads": Some(process.usage.threads).filter(|threads| *threads > 0),
        "state": state(process),
        "contact": contact(process),
        "reason": process.contact.reason(),
    })
}

/// Returns `info --json`: one process and, if known, the capabilities of its runtime.
pub(super) fn info_document(process: &Process, limit: Option<CpuLimit>, resources: &ResourceUse) -> Value {
    let capabilities = process.known_capabilities();
    let open_files = resources.open_files.as_ref().map(|files| files.count);
    let more = json!({
        // The lowest CPU limit of its control groups; null if there is none or it is unknown.
        "cpu_limit_cores": limit.map(|limit| limit.cores),
        // The memory limit of its control groups that is closest, and the memory used by that control group, without page cache that can be dropped;
        // null if there is none or it is unknown.
        "memory_limit_bytes": resources.memory.map(|memory| memory.limit),
        "memory_used_bytes": resources.memory.map(|memory| memory.used),
        // Null if unknown, as for processes of other users.
        "open_files": open_files.map(|files| files.used),
        "open_files_limit": open_files.map(|files| files.limit),
        // The second are those confirmed by answers of the runtime; the others are inferred from its version.
        "capabilities": capabilities,
        "capabilities_known": capabilities.as_ref().map(Capabilities::known).unwrap_or_default(),
    });
    print::joined([process_document(process), more])
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
