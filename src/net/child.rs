//! Child processes, each in a process group of its own together with its descendants.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::own_program::own_program;

/// Makes a program run in its own process group, so that it does not receive the terminal's signals.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Returns a command that runs this program again, even if its file has been replaced since: shielded from the terminal's signals, and with an
/// empty environment.
pub fn this_program() -> Command {
    let mut command = Command::new(own_program());
    in_own_group(command.arg0("dn-top").env_clear().current_dir("/"));
    command
}

/// Asks a child and its descendants to terminate.
pub fn terminate(child: &mut Child) {
    signal(child, Signal::TERM);
}

/// Kills a child and its descendants.
pub fn kill(child: &mut Child) {
    signal(child, Signal::KILL);
}

fn signal(child: &Child, signal: Signal) {
    // Without an id the child has been reaped, and the number may belong to another group.
    let group = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    if let Some(group) = group {
        // The child may just have exited.
        let _ = kill_process_group(group, signal);
    }
}

/// Returns the exit code of a child: 128 plus the signal number if it was killed by a signal, as a shell reports it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns a copy of our standard error, for a child to write to.
///
/// # Errors
/// If there are too many open files.
pub fn our_stderr() -> io::Result<Stdio> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_of_a_killed_child_is_that_of_a_shell() {
        let codes = [0, 3 << 8, 9, 0x80 | 0xb].map(|status| exit_code(ExitStatus::from_raw(status)));
        assert_eq!(codes, [0, 3, 137, 139]);
    }
}
