//! Checks of the machine that determine which processes are visible and what can be done with them.

use std::fs;

use super::discovery::Sources;
use super::user;
use crate::model::{Check, SafeText};

/// Checks the directories of sockets and the user.
pub fn machine_checks(sources: &Sources) -> Vec<Check> {
    let mut checks: Vec<_> = sources
        .usual_directories()
        .map(|folder| {
            let shown = SafeText::from_path(folder);
            match fs::read_dir(folder) {
                Ok(_) => Check::good("sockets", format!("{shown} is searched, and the TMPDIR of each process")),
                Err(error) => {
                    Check::bad("sockets", format!("{shown} cannot be listed: {error}"), "check TMPDIR and the folder's permissions")
                }
            }
        })
        .collect();
    checks.push(match user::elevate() {
        Some(_) => Check::bad(
            "user",
            format!("{}: processes of other users are listed if visible, and cannot be attached to", user::name()),
            "run `sudo dn-top`",
        ),
        None => Check::good("user", "root: processes of all users can be attached to".to_owned()),
    });
    checks.push(Check::optional(
        "CPU samples",
        "available on Linux only; `dn-top report` and traces use the runtime's own sampler".to_owned(),
    ));
    checks.push(Check::optional("user_events", "available on Linux only".to_owned()));
    checks
}
