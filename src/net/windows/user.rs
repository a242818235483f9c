//! The user that this program runs as.

use std::path::PathBuf;

use super::system::is_elevated;

/// Users that may attach to the processes of all others.
pub const SUPERUSER: &str = "administrators";
/// How to become one.
pub const ELEVATE: &str = "in a terminal that was started as administrator";

/// How to reach the processes of other users; `None` where they are within reach.
pub fn elevate() -> Option<&'static str> {
    (is_elevated(std::process::id()) != Some(true)).then_some(ELEVATE)
}

/// Whether a process of this user may be one that this program can look into: here users have no numbers.
pub(super) fn may_look_into(_uid: u32) -> bool {
    true
}

/// Where settings of programs are: `%APPDATA%`.
pub fn config_folder() -> Option<PathBuf> {
    std::env::var_os("APPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The name of the user, or what stands for it.
pub fn name() -> String {
    std::env::var("USERNAME").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "user".to_owned())
}
