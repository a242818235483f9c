//! Programs that we start.

use std::io;
use std::os::windows::io::AsHandle;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

use super::own_program::own_program;

/// `CREATE_NEW_PROCESS_GROUP` (`CreateProcess`).
const NEW_PROCESS_GROUP: u32 = 0x200;
/// `CREATE_NO_WINDOW` (`CreateProcess`).
const NO_WINDOW: u32 = 0x0800_0000;

/// Has a program run in a process group of its own: the Ctrl-C of the console does not reach it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.creation_flags(NEW_PROCESS_GROUP)
}

/// This program once more, away from the console.
pub fn this_program() -> Command {
    let mut command = Command::new(own_program());
    command.creation_flags(NEW_PROCESS_GROUP | NO_WINDOW);
    command
}

/// Ends a program and what it started. Windows has no signal for that.
pub fn terminate(child: &mut Child) {
    kill(child);
}

/// Ends a program and what it started.
pub fn kill(child: &mut Child) {
    // Without an id it was waited for, and the number may be another's.
    let Some(pid) = child.id() else { return };
    let folder = std::env::var_os("SystemRoot").map_or_else(|| PathBuf::from(r"C:\Windows"), PathBuf::from);
    let tree = std::process::Command::new(folder.join(r"System32\taskkill.exe"))
        .args(["/T", "/F", "/PID", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !tree.is_ok_and(|status| status.success()) {
        // It may just have ended.
        let _ = child.start_kill();
    }
}

/// Its exit code, as far as one byte holds it: 1 for others, such as those of an exception.
pub fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Our standard error, for a program to write to.
///
/// # Errors
/// Those of the system.
pub fn our_stderr() -> io::Result<Stdio> {
    io::stderr().as_handle().try_clone_to_owned().map(Stdio::from)
}
