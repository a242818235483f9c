//! A timer that ticks.

use std::io;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Ticks at even intervals.
#[derive(Debug)]
pub(super) struct Ticks(Mutex<Interval>);

impl Ticks {
    /// The first tick comes after one interval, which is not 0.
    ///
    /// # Errors
    /// Where it is 0.
    pub(super) fn new(interval: Duration) -> io::Result<Self> {
        if interval.is_zero() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self(Mutex::new(ticks)))
    }

    /// Waits for the next tick. Those that were missed count as one.
    pub(super) async fn tick(&self) -> io::Result<()> {
        self.0.lock().await.tick().await;
        Ok(())
    }
}
