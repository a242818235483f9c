//! The user that this program runs as.

use std::path::PathBuf;

use rustix::process::geteuid;

/// The user that may attach to the processes of all others.
pub const SUPERUSER: &str = "root";
/// How to run as that user.
pub const ELEVATE: &str = "with sudo";

/// Returns whether this user may attach to the processes of all others.
fn is_superuser() -> bool {
    geteuid().is_root()
}

/// Returns how to reach the processes of other users; `None` if they can be reached already.
pub fn elevate() -> Option<&'static str> {
    (!is_superuser()).then_some(ELEVATE)
}

/// Returns whether this program may be able to inspect a process of this user.
pub(super) fn may_inspect(uid: u32) -> bool {
    is_superuser() || geteuid().as_raw() == uid
}

/// Returns the folder for settings of programs: `$XDG_CONFIG_HOME`, or `~/.config`.
pub fn config_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))
}

/// Returns the name of the user, or a substitute.
pub fn name() -> String {
    if is_superuser() {
        // Not the user who called sudo.
        return SUPERUSER.to_owned();
    }
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| geteuid().as_raw().to_string())
}
