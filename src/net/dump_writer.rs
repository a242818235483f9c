//! The child process that writes a dump of a runtime.
//!
//! This is createdump or, in a single-file program, which includes createdump, a fork of the runtime itself. The diagnostic server waits for the
//! child to exit. In 8.0.30 the fork does not exit: it keeps running as another diagnostic server on the same socket, in a single-threaded process
//! that does nothing else, and answers in place of the real server, which waits forever.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::file;
use super::proc::Proc;

/// The name of the thread that forks, and so of the only thread of the copy.
const SERVER_THREAD: &str = ".NET EventPipe";

pub(super) fn find(proc: &Proc, pid: u32) -> Option<u32> {
    let is_createdump = |child| proc.stat(child).is_ok_and(|stat| stat.comm == "createdump");
    proc.children(pid).ok()?.into_iter().find(|child| is_createdump(*child) || is_fork(proc, *child, pid))
}

/// Kills the copies of a process that has just replied to a dump request.
pub(super) fn kill_forks(proc: &Proc, pid: u32) {
    for child in proc.children(pid).unwrap_or_default() {
        let handle = i32::try_from(child).ok().and_then(Pid::from_raw).and_then(|child| pidfd_open(child, PidfdFlags::empty()).ok());
        // From here on the pid cannot be reused unnoticed. The copy may have exited by itself.
        if let Some(handle) = handle.filter(|_| is_fork(proc, child, pid)) {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

/// Returns whether a process is a fork of its parent's server thread that has not executed another program.
fn is_fork(proc: &Proc, child: u32, parent: u32) -> bool {
    let program = |pid| file::program_id(proc, pid);
    let same_program = matches!((program(child), program(parent)), (Ok(a), Ok(b)) if a == b);
    let stat = proc.stat(child);
    same_program && stat.is_ok_and(|stat| stat.ppid.cast_unsigned() == parent && stat.num_threads == 1 && stat.comm == SERVER_THREAD)
}
