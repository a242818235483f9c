//! Resumes programs that are suspended on our port when this process ends for any reason, from a second process of this program.
//!
//! A runtime suspended on a port keeps trying to connect to it forever. The second process is started before the program, and reads a pipe
//! whose write end only this process holds: the kernel closes it when this process ends, even after a SIGKILL. It then serves the port,
//! resumes whatever connects, and exits when no process is left that was started with the port.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::blocking::start_blocking;
use super::launch::{PORT, Recorded, resume_others};
use crate::net::child;
use crate::net::discovery::Sources;
use crate::net::port::{Port, PortError};
use crate::net::stream::address_in;

/// The dn-top command that runs [`resume_orphans`].
pub const RESUME_ORPHANS: &str = "resume-orphans";
/// Interval between checks of the environments of all processes. A process's environment is empty between fork and exec, for far less than this.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Number of checks after which the interval is increased.
const QUICK_CHECKS: u32 = 60;
const SLOW_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// A killed process closes its files one after the other: the port may stay open after the pipe was closed, for at most this long.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Starts the second process for the port in a folder, which it removes when it exits. It takes over when the returned handle is dropped.
pub(super) fn start(folder: &Path) -> io::Result<ChildStdin> {
    // It must not hold any of our streams open.
    let mut process =
        child::this_program().arg(RESUME_ORPHANS).arg(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    process.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// Waits for the end of standard input, then resumes runtimes that are suspended on the port in a folder, until none can connect to it any more.
///
/// # Errors
/// Why the port cannot be served.
pub async fn resume_orphans(folder: &Path) -> Result<(), PortError> {
    let closed = start_blocking(|| io::copy(&mut io::stdin().lock(), &mut io::sink()));
    // A pipe that cannot be read counts as closed.
    drop(closed.await);
    let served = serve(&address_in(folder, PORT)).await;
    // Not empty if another program created files in it.
    let _ = std::fs::remove_dir(folder);
    served
}

async fn take_over(path: &Path, sources: &Sources) -> Result<Port, PortError> {
    let since = Instant::now();
    loop {
        match Port::serve(path, sources) {
            Err(PortError::InUse(_)) if since.elapsed() < CLOSE_TIMEOUT => sleep(RETRY_INTERVAL).await,
            served => return served,
        }
    }
}

async fn serve(path: &Path) -> Result<(), PortError> {
    let sources = Sources::machine();
    let port = take_over(path, &sources).await?;
    let (none, _) = oneshot::channel();
    let mut resuming = pin!(resume_others(Arc::new(port), Recorded::None, std::future::pending(), none, Default::default()));
    for check in 0_u32.. {
        tokio::select! {
            () = &mut resuming => break,
            () = sleep(if check < QUICK_CHECKS { CHECK_INTERVAL } else { SLOW_CHECK_INTERVAL }) => {}
        }
        if !sources.any_started_with_port(path) {
            break;
        }
    }
    Ok(())
}
