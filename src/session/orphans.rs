//! Programs that are suspended on a port of ours when we end, whatever ends us: a second process of ours resumes them.
//!
//! A runtime that is suspended on a port tries to connect to it for ever. The second process is started before the program, and reads a pipe whose other
//! end only we hold: the kernel closes that with us, after a SIGKILL as well. Then it serves the port, resumes whatever connects, and ends when no process
//! is left that was started with the port.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::launch::{PORT, resume_others};
use crate::net::child;
use crate::net::discovery::Sources;
use crate::net::port::{Port, PortError};
use crate::net::stream::address_in;

/// The command of dn-top that is [`resume_orphans`].
pub const RESUME_ORPHANS: &str = "resume-orphans";
/// Between two looks at the environments of all processes. That of a process is empty between fork and exec, for far less than this.
const LOOK: Duration = Duration::from_millis(500);
/// After so many looks nothing is in a hurry any more.
const QUICK: u32 = 60;
const SLOW_LOOK: Duration = Duration::from_secs(5);
/// A process that is killed closes its files one after the other: the port may still be open when the pipe is not, for no longer than this.
const CLOSING: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(10);

/// Starts the second process for the port in a folder that it removes at its end. It takes over when what is given back is dropped.
pub(super) fn start(folder: &Path) -> io::Result<ChildStdin> {
    // With none of our streams held open.
    let mut process =
        child::this_program().arg(RESUME_ORPHANS).arg(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    process.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// Waits for the end of standard input, then resumes what is suspended on the port in a folder, or comes to be, until nothing can connect to it.
///
/// # Errors
/// Why the port cannot be served.
pub async fn resume_orphans(folder: &Path) -> Result<(), PortError> {
    let closed = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin().lock(), &mut io::sink()));
    // A pipe that cannot be read is one that has no other end.
    drop(closed.await);
    let served = serve(&address_in(folder, PORT)).await;
    // It is not empty if another program put something there.
    let _ = std::fs::remove_dir(folder);
    served
}

async fn take_over(path: &Path, sources: &Sources) -> Result<Port, PortError> {
    let since = Instant::now();
    loop {
        match Port::serve(path, sources) {
            Err(PortError::Live(_)) if since.elapsed() < CLOSING => sleep(RETRY).await,
            served => return served,
        }
    }
}

async fn serve(path: &Path) -> Result<(), PortError> {
    let sources = Sources::machine();
    let port = take_over(path, &sources).await?;
    let (none, _) = oneshot::channel();
    let mut resuming = pin!(resume_others(port, None, std::future::pending(), none, Default::default()));
    for look in 0_u32.. {
        tokio::select! {
            () = &mut resuming => break,
            () = sleep(if look < QUICK { LOOK } else { SLOW_LOOK }) => {}
        }
        if !sources.any_started_with_port(path) {
            break;
        }
    }
    Ok(())
}
