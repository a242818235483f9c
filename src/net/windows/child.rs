//! Child processes.

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

/// Runs a program in its own process group, so that Ctrl-C in the console does not reach it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.creation_flags(NEW_PROCESS_GROUP)
}

/// Returns a command that runs this program again, detached from the console.
pub fn this_program() -> Command {
    let mut command = Command::new(own_program());
    command.creation_flags(NEW_PROCESS_GROUP | NO_WINDOW);
    command
}

/// Ends a program and its children. Windows has no signal for that.
pub fn terminate(child: &mut Child) {
    kill(child);
}

/// Kills a program and its children.
pub fn kill(child: &mut Child) {
    // Without an ID it has been waited for, and its pid may have been reused.
    let Some(pid) = child.id() else { return };
    let folder = std::env::var_os("SystemRoot").map_or_else(|| PathBuf::from(r"C:\Windows"), PathBuf::from);
    let tree = std::process::Command::new(folder.join(r"System32\taskkill.exe"))
        .args(["/T", "/F", "/PID", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !tree.is_ok_and(|status| status.success()) {
        // It may just have exited.
        let _ = child.start_kill();
    }
}

/// Returns the exit code if it fits in one byte, otherwise 1, as for the code of an exception.
pub fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns our standard error, to be inherited by a program.
///
/// # Errors
/// System errors.
pub fn our_stderr() -> io::Result<Stdio> {
    io::stderr().as_handle().try_clone_to_owned().map(Stdio::from)
}
