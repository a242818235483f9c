//! Programs whose runtime connects to no diagnostic port, as in .NET Core 3: they are not suspended at startup, and are found by their socket.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::launch::Launched;
use crate::net::Directory;
use crate::net::discovery::Sources;

/// Interval between checks for the socket: a runtime creates it about 40 ms after its start and continues at once.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Number of checks, longer than any startup, after which the interval is increased.
const QUICK_CHECKS: u32 = 4000;
const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for the runtime of a process that was just started. `None` if it connects to ports, or no socket can be found.
pub(super) async fn find(sources: Sources, pid: u32, begun: Instant) -> Option<Launched> {
    let socket = sources.usual_socket(pid)?;
    let mut directory = Directory::new(sources).ok()?;
    for check in 0_u32.. {
        if socket.exists()
            && let Ok(process) = directory.locate(&pid.to_string()).await
            && let Some(client) = directory.clients().of(&process)
            // The socket exists a moment before the runtime listens on it.
            && let Ok(info) = client.process_info().await
        {
            // A runtime that reports its version supports ports.
            let launched = Launched { client, key: process.key, assembly: Some(process.name), missed: Some(begun.elapsed()) };
            return info.is_none().then_some(launched);
        }
        sleep(if check < QUICK_CHECKS { CHECK_INTERVAL } else { SLOW_CHECK_INTERVAL }).await;
    }
    None
}
