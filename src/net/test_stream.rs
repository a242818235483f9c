//! Connections for tests: both ends, or only the blocking peer. On Windows, connecting takes a while.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::stream::Stream;

pub(crate) use std::os::unix::net::UnixStream as Peer;

/// Connects to a socket of ours.
pub(crate) async fn connect(path: &Path) -> io::Result<Peer> {
    std::future::ready(Peer::connect(path)).await
}

/// Creates both ends of a connection. A write that is not read fails after a minute.
pub(crate) async fn pair() -> (Stream, Peer) {
    let (ours, peer) = std::future::ready(Peer::pair()).await.unwrap();
    ours.set_nonblocking(true).unwrap();
    peer.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    (Stream::from_std(ours).unwrap(), peer)
}
