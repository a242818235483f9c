//! Programs that we start, and the process group that each has with what it starts itself.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::own_program::own_program;

/// Has a program run in a process group of its own: signals of the terminal do not reach it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// This program once more, even if its file was replaced since: away from the signals of the terminal, and with no environment.
pub fn this_program() -> Command {
    let mut command = Command::new(own_program());
    in_own_group(command.arg0("dn-top").env_clear().current_dir("/"));
    command
}

/// Asks a program and what it started to end.
pub fn terminate(child: &mut Child) {
    signal(child, Signal::TERM);
}

/// Ends a program and what it started.
pub fn kill(child: &mut Child) {
    signal(child, Signal::KILL);
}

fn signal(child: &Child, signal: Signal) {
    // Without an id it was waited for, and the number may be another group's.
    let group = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    if let Some(group) = group {
        // It may just have ended.
        let _ = kill_process_group(group, signal);
    }
}

/// Its exit code: 128 and the signal's number where a signal ended it, as a shell reports it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Our standard error, for a program to write to.
///
/// # Errors
/// There are too many open files.
pub fn our_stderr() -> io::Result<Stdio> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from)
}
