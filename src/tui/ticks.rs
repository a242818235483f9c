//! A periodic timer that wakes its thread once per tick.
//!
//! A sleep of tokio wakes its thread two or three times: its timer wheel re-inserts a timer that is a second away with finer resolution on the way.
//! An idle dashboard does nothing else.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::{Errno, read};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Ticks at even intervals.
#[derive(Debug)]
pub(super) struct Ticks(AsyncFd<OwnedFd>);

impl Ticks {
    /// Starts the timer. The first tick is after one interval, which must not be 0.
    ///
    /// # Errors
    /// The kernel cannot create a timer: too many files are open.
    pub(super) fn new(interval: Duration) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let interval = Timespec::try_from(interval).map_err(|_| io::ErrorKind::InvalidInput)?;
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: interval, it_value: interval })?;
        #[allow(deprecated, reason = "its successor is unsafe for handles that do not own themselves; this one does")]
        AsyncFd::with_interest(timer, Interest::READABLE).map(Self)
    }

    /// Waits for the next tick. Missed ticks count as one.
    pub(super) async fn tick(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            match read(self.0.get_ref(), &mut [0; 8]) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                read => return read.map(drop).map_err(io::Error::from),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn missed_ticks_are_delivered_once() {
        let begun = Instant::now();
        let ticks = Ticks::new(Duration::from_millis(20)).unwrap();
        for count in 1..4 {
            ticks.tick().await.unwrap();
            assert!(begun.elapsed() >= Duration::from_millis(20) * count);
        }
        while begun.elapsed() < Duration::from_millis(150) {
            std::thread::yield_now();
        }
        let (missed, next) = (Instant::now(), ticks.tick().await);
        next.unwrap();
        ticks.tick().await.unwrap();
        ticks.tick().await.unwrap();
        assert!(missed.elapsed() >= Duration::from_millis(20), "one that was missed, and two that were not");
    }
}
