//! Notices that a recording is about to fill the disk: the end of the recording needs some space, and so do the other programs on the machine.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use crate::net::files::free_space;
use crate::session::blocking::start_blocking;

/// Interval between two checks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Space to leave free, in bytes. If less than four times as much is free from the start: a quarter of that, unless that is of no use to anyone.
const RESERVE: u64 = 256 << 20;
const MIN_RESERVE: u64 = 1 << 20;

/// Waits until so little space is free for a file that it must not grow further; returns that space, in bytes. Waits forever if the system does not
/// tell.
pub(super) async fn low(file: &Path) -> u64 {
    let file = file.to_owned();
    watch(move || free_space(&file)).await
}

async fn watch(free_space: impl Fn() -> io::Result<u64> + Clone + Send + 'static) -> u64 {
    let mut reserve = None;
    loop {
        // A network file system may take its time.
        if let Ok(Ok(free)) = start_blocking(free_space.clone()).await {
            let reserve = *reserve.get_or_insert(RESERVE.min(free / 4));
            if free < reserve && reserve >= MIN_RESERVE {
                return free;
            }
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn recording_leaves_some_space() {
        const MB: u64 = 1 << 20;
        for (free, left) in [
            (&[Some(90_000), Some(300), None, Some(256), Some(255), Some(0)][..], 255),
            // Little was free from the start, but enough for a short recording.
            (&[Some(100), Some(60), Some(25), Some(24)], 24),
            (&[None, Some(4), Some(5), Some(1), Some(0)], 0),
        ] {
            let free = Arc::new(Mutex::new(free.iter().rev().copied().collect::<Vec<_>>()));
            let query = move || free.lock().unwrap().pop().unwrap().map(|free: u64| free * MB).ok_or(io::ErrorKind::Other.into());
            assert_eq!(watch(query).await, left * MB);
        }
        let tiny = Arc::new(Mutex::new(3 * MB));
        let tiny = watch(move || Ok(std::mem::take(&mut *tiny.lock().unwrap())));
        assert!(tokio::time::timeout(Duration::from_secs(60), tiny).await.is_err());
    }
}
