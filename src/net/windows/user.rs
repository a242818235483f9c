//! The user that dn-top runs as.

use std::path::PathBuf;

use super::system::is_elevated;

/// Users that may attach to the processes of all users.
pub const SUPERUSER: &str = "administrators";
/// How to run as one.
pub const ELEVATE: &str = "in a terminal that was started as administrator";

/// Returns how to gain access to the processes of other users; `None` if there is access already.
pub fn elevate() -> Option<&'static str> {
    (is_elevated(std::process::id()) != Some(true)).then_some(ELEVATE)
}

/// Whether we may be able to inspect a process of this user. Always `true`: users have no numbers here.
pub(super) fn may_inspect(_uid: u32) -> bool {
    true
}

/// Directory of application settings: `%APPDATA%`.
pub fn config_folder() -> Option<PathBuf> {
    std::env::var_os("APPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Name of the user, or a placeholder.
pub fn name() -> String {
    std::env::var("USERNAME").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "user".to_owned())
}
