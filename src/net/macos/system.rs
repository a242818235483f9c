//! What macOS itself has of processes and their users, beyond what the list of processes shows.

use std::io;
use std::time::Duration;

use foldhash::HashMap;
use rustix::process::geteuid;

use super::user;

/// How many threads each process has: no safe interface gives that.
pub(super) fn thread_counts() -> HashMap<u32, u32> {
    HashMap::default()
}

/// Whether a library is loaded into a process: no safe interface gives that.
pub(super) fn has_module(_: u32, _: &str) -> bool {
    false
}

/// Whether a process has more rights than others of its user: there is no such thing.
pub(super) fn is_elevated(_: u32) -> Option<bool> {
    None
}

/// The most memory that a process ever had resident: no safe interface gives that.
pub(super) fn peak_memory(_: u32) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Time of all processors together that was not idle since boot: no safe interface gives that.
pub(super) fn machine_busy() -> io::Result<Duration> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The effective user of a process, by number.
pub(super) fn account_of(process: &sysinfo::Process) -> Option<String> {
    process.effective_user_id().map(|uid| uid.to_string())
}

/// The name of a user: names are in a directory service, and only our own and that of root are known without it.
pub(super) fn account_name(uid: &str) -> Option<String> {
    match uid {
        "0" => Some(user::SUPERUSER.to_owned()),
        uid => account().ok().filter(|ours| ours == uid).map(|_| user::name()),
    }
}

/// The user that this program runs as, by number.
pub(super) fn account() -> io::Result<String> {
    Ok(geteuid().as_raw().to_string())
}
