//! Checks of the machine that determine which processes are visible and what can be done with them.

use super::discovery::Sources;
use super::stream::PIPES;
use super::user;
use crate::model::Check;

/// Checks the pipes and the user.
pub fn machine_checks(_: &Sources) -> Vec<Check> {
    let listed = std::fs::read_dir(PIPES).is_ok_and(|mut pipes| pipes.next().is_some());
    let pipes = if listed {
        Check::good("pipes", format!("{PIPES} is listed"))
    } else {
        Check::good("pipes", format!("{PIPES} cannot be listed (Wine): the pipe of each process is tried once"))
    };
    let name = user::name();
    vec![
        pipes,
        match user::elevate() {
            Some(_) => Check::bad(
                "user",
                format!("{name}: processes of other users, and elevated ones, cannot be attached to"),
                "start dn-top in a terminal that was started as administrator",
            ),
            None => Check::good("user", format!("{name}: processes of all users can be attached to")),
        },
        Check::optional("CPU samples", "available on Linux only; `dn-top report` and traces use the runtime's own sampler".to_owned()),
        Check::optional("user_events", "available on Linux only".to_owned()),
    ]
}
