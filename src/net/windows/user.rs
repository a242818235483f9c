//! The user that this program runs as.

use std::io;
use std::path::PathBuf;

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind, get_current_pid};
use winsafe::{ConvertStringSidToSid, LookupAccountSid};

use super::proc::is_elevated;

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

/// The name of an account, without its domain. Blocks, for seconds where a domain does not answer.
pub(super) fn account_name(sid: &str) -> Option<String> {
    let sid = ConvertStringSidToSid(sid).ok()?;
    LookupAccountSid(None, &sid).ok().map(|(name, _, _)| name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_names() {
        assert_eq!(account_name("S-1-5-18").as_deref(), Some("SYSTEM"));
        let ours = sid().unwrap();
        assert!(ours.starts_with("S-1-5-") && account_name(&ours) == Some(name()), "{ours}");
        assert_eq!((account_name("S-1-5-21-1-2-3-4"), account_name("x")), (None, None));
    }
}
