//! Connections for tests: both ends, or one that blocks and is not ours.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::sleep;

use super::stream::{BUSY_PAUSE, Listener, PIPE_BUSY, Stream, address_in};

/// An end that blocks.
pub(crate) use std::fs::File as Peer;

/// Connects to a pipe of ours, which has room for the next connection only once the last was accepted.
pub(crate) async fn connect(path: &Path) -> io::Result<Peer> {
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => sleep(BUSY_PAUSE).await,
            opened => return opened,
        }
    }
}

/// Both ends of a connection.
pub(crate) async fn pair() -> (Stream, Peer) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("pair-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = address_in(Path::new("tests"), &name);
    let listener = Listener::bind(&path).unwrap();
    let peer = connect(&path).await.unwrap();
    (listener.accept().await.unwrap(), peer)
}
