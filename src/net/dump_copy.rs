//! The copy of itself that a single-file program of .NET 8 leaves behind when it has written a dump.
//!
//! Such a program has createdump inside: its diagnostic server forks, the child writes the dump, and the server waits for the child's end. In 8.0.30 the
//! child does not end. It goes on as another diagnostic server on the same socket, in a process of one thread in which nothing else runs, and answers in
//! the place of the real one, which waits for good.

use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::proc::Proc;

/// The name of the thread that forks, which the only thread of the copy has too.
const SERVER_THREAD: &str = ".NET EventPipe";

/// Ends the copies of a process that has just answered a request for a dump.
pub(super) fn end(proc: &Proc, pid: u32) {
    for child in proc.children(pid).unwrap_or_default() {
        let handle = i32::try_from(child).ok().and_then(Pid::from_raw).and_then(|child| pidfd_open(child, PidfdFlags::empty()).ok());
        // Only now the pid cannot pass to another process unnoticed. The copy may have ended by itself.
        if let Some(handle) = handle.filter(|_| is_copy(proc, child, pid)) {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

/// Whether a process is a fork of the server thread of its parent that runs no other program.
fn is_copy(proc: &Proc, child: u32, parent: u32) -> bool {
    let program = |pid: u32| std::fs::metadata(proc.path_of(pid, "exe")).map(|file| (file.dev(), file.ino()));
    let same_program = matches!((program(child), program(parent)), (Ok(a), Ok(b)) if a == b);
    let stat = proc.stat(child);
    same_program && stat.is_ok_and(|stat| stat.ppid.cast_unsigned() == parent && stat.num_threads == 1 && stat.comm == SERVER_THREAD)
}
