//! Facts about processes and users that the process list does not provide.

use std::io;
use std::time::Duration;

use foldhash::HashMap;
use rustix::process::geteuid;

use super::user;

/// Number of threads of each process: not available through any safe interface.
pub(super) fn thread_counts() -> HashMap<u32, u32> {
    HashMap::default()
}

/// Whether a library is loaded into a process: not available through any safe interface.
pub(super) fn has_module(_: u32, _: &str) -> bool {
    false
}

/// Whether a process is elevated: a concept that macOS does not have.
pub(super) fn is_elevated(_: u32) -> Option<bool> {
    None
}

/// Peak resident memory of a process: not available through any safe interface.
pub(super) fn peak_memory(_: u32) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the resident memory of a process, in bytes: private memory is not available through any safe interface, and the virtual size, of which a
/// runtime reserves hundreds of gigabytes, is no measure of it.
pub(super) fn private_memory(process: &sysinfo::Process) -> u64 {
    process.memory()
}

/// Non-idle time of all processors together since boot: not available through any safe interface.
pub(super) fn machine_busy() -> io::Result<Duration> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the effective user of a process, as a number.
pub(super) fn account_of(process: &sysinfo::Process) -> Option<String> {
    process.effective_user_id().map(|uid| uid.to_string())
}

/// Returns the name of a user: names are in a directory service, and only those of our own user and root are known without it.
pub(super) fn account_name(uid: &str) -> Option<String> {
    match uid {
        "0" => Some(user::SUPERUSER.to_owned()),
        uid => account().ok().filter(|ours| ours == uid).map(|_| user::name()),
    }
}

/// Returns the user that dn-top runs as, as a number.
pub(super) fn account() -> io::Result<String> {
    Ok(geteuid().as_raw().to_string())
}
