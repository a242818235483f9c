//! Connections for tests: both ends, or the blocking end only.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::sleep;

use super::stream::{BUSY_RETRY_INTERVAL, Listener, PIPE_BUSY, Stream, address_in};

/// A blocking end of a connection.
pub(crate) use std::fs::File as Peer;

/// Connects to our pipe, which accepts a further connection only after the previous one was accepted.
pub(crate) async fn connect(path: &Path) -> io::Result<Peer> {
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => sleep(BUSY_RETRY_INTERVAL).await,
            opened => return opened,
        }
    }
}

/// Returns both ends of a connection.
pub(crate) async fn pair() -> (Stream, Peer) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("pair-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = address_in(Path::new("tests"), &name);
    let listener = Listener::bind(&path).unwrap();
    let peer = connect(&path).await.unwrap();
    (listener.accept().await.unwrap(), peer)
}
