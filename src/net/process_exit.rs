//! Waiting for the exit of a process.

use std::io;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for the exit of the process that currently has this pid; `is_it` confirms that it is the intended one.
///
/// # Errors
/// If there is no such process, or the kernel does not support pidfds (before Linux 5.3).
pub(super) async fn wait(pid: u32, is_it: impl FnOnce() -> bool) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    #[allow(deprecated, reason = "its successor is unsafe for handles that do not own themselves; this one does")]
    let process = AsyncFd::with_interest(pidfd_open(pid, PidfdFlags::empty())?, Interest::READABLE)?;
    // From here on the pid cannot be reused unnoticed.
    if !is_it() {
        return Err(io::ErrorKind::NotFound.into());
    }
    process.readable().await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::process::Command;
    use tokio::time::timeout;

    #[tokio::test]
    async fn wait_completes_only_when_the_process_exits() {
        let mut child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn().unwrap();
        let mut waiting = std::pin::pin!(wait(child.id().unwrap(), || true));
        assert!(timeout(Duration::from_millis(50), &mut waiting).await.is_err());
        child.start_kill().unwrap();
        timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
        assert!(wait(std::process::id(), || false).await.is_err(), "another process has the pid by now");
    }
}
