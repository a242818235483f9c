//! The user that this program runs as.

use std::io;
use std::path::PathBuf;

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind, get_current_pid};

/// Users that may attach to the processes of all others.
pub const SUPERUSER: &str = "administrators";
/// How to become one.
pub const ELEVATE: &str = "in a terminal that was started as administrator";

/// Whether this user may attach to the processes of all others. It is not known here: Windows answers each attempt.
pub fn is_superuser() -> bool {
    false
}

/// Where settings of programs are: `%APPDATA%`.
pub fn config_folder() -> Option<PathBuf> {
    std::env::var_os("APPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The name of the user, or what stands for it.
pub fn name() -> String {
    std::env::var("USERNAME").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "user".to_owned())
}

/// The security identifier of the user, such as `S-1-5-21-1-2-3-1001`.
pub(super) fn sid() -> io::Result<String> {
    let pid = get_current_pid().map_err(io::Error::other)?;
    let mut system = System::new();
    let user = ProcessRefreshKind::nothing().with_user(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, user);
    let sid = system.process(pid).and_then(|process| process.user_id()).map(|sid| sid.to_string());
    sid.ok_or_else(|| io::Error::other("the user that this program runs as cannot be determined"))
}
