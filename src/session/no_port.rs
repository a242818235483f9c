//! A program whose runtime connects to no diagnostic port, as those of .NET Core 3 do not: it does not wait to be recorded, and is found by its socket.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::launch::Launched;
use crate::net::Directory;
use crate::net::discovery::Sources;

/// Between two looks for the socket: a runtime makes it some 40 ms after its start, and runs on at once.
const LOOK: Duration = Duration::from_millis(5);
/// After so many looks, which take longer than any start, there is less hurry.
const QUICK: u32 = 4000;
const SLOW_LOOK: Duration = Duration::from_millis(200);

/// Waits for the runtime of a process that was just started. `None` where it is one that connects to ports, or no socket can be found.
pub(super) async fn find(sources: Sources, pid: u32, begun: Instant) -> Option<Launched> {
    let socket = sources.usual_socket(pid)?;
    let mut directory = Directory::new(sources).ok()?;
    for look in 0_u32.. {
        if socket.exists()
            && let Ok(process) = directory.locate(&pid.to_string()).await
            && let Some(client) = directory.clients().of(&process)
            // It is there a moment before it is listened at.
            && let Ok(info) = client.process_info().await
        {
            // One that reports its version is new enough for ports.
            let launched = Launched { client, key: process.key, assembly: Some(process.name), missed: Some(begun.elapsed()) };
            return info.is_none().then_some(launched);
        }
        sleep(if look < QUICK { LOOK } else { SLOW_LOOK }).await;
    }
    None
}
