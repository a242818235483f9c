//! Lists the processes at every tick.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

use super::ticks::Ticks;
use crate::app::{Msg, StaleSockets};
use crate::net::Directory;

/// Timeout for answers of new processes. Most answer within a millisecond; the others are in the next list.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(40);

/// Lists the processes at every tick until the receiver is dropped. `wake` requests an additional list.
pub(super) async fn watch(mut directory: Directory, ticks: Ticks, wake: Arc<Notify>, inbox: mpsc::Sender<Msg>) {
    let (mut failed, mut stale) = (false, StaleSockets::default());
    // The first list is shown at once, with the facts from /proc; the second follows immediately, with the answers of the processes.
    let mut timeout = Duration::ZERO;
    let mut port_changes = None;
    loop {
        let msg = match directory.refresh(timeout).await {
            Ok(mut rows) => {
                failed = false;
                let sockets: Vec<_> = rows.extract_if(.., |row| row.is_stale_socket()).filter_map(|row| row.socket).collect();
                let folders = sockets.iter().filter_map(|socket| socket.parent()).map(Path::to_owned).collect();
                let found = StaleSockets { count: sockets.len() + directory.more_stale_sockets(), folders };
                if stale != found {
                    stale = found.clone();
                    if inbox.send(Msg::StaleSockets(found)).await.is_err() {
                        return;
                    }
                }
                Some(Msg::Processes(rows))
            }
            // Reported once, not every second.
            Err(_) if failed => None,
            Err(error) => {
                failed = true;
                Some(Msg::Failed(format!("the processes cannot be listed: {error}").into()))
            }
        };
        if let Some(msg) = msg
            && inbox.send(msg).await.is_err()
        {
            return;
        }
        if std::mem::replace(&mut timeout, ANSWER_TIMEOUT).is_zero() {
            sleep(ANSWER_TIMEOUT).await;
            continue;
        }
        // A port may be served later.
        if port_changes.is_none() {
            port_changes = directory.changes();
        }
        tokio::select! {
            ticked = ticks.tick() => if ticked.is_err() { return },
            () = wake.notified() => {}
            () = changed(&mut port_changes) => {}
        }
    }
}

/// Waits until a runtime connects to the served port or disconnects.
async fn changed(port_changes: &mut Option<watch::Receiver<()>>) {
    if let Some(port) = port_changes {
        if port.changed().await.is_ok() {
            return;
        }
        // The port was closed; another one may be served.
        *port_changes = None;
    }
    std::future::pending().await
}
