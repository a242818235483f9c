//! A periodic timer.

use std::io;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Ticks at even intervals.
#[derive(Debug)]
pub(super) struct Ticks(Mutex<Interval>);

impl Ticks {
    /// Starts the timer. The first tick is after one interval.
    ///
    /// # Errors
    /// The interval is 0.
    pub(super) fn new(interval: Duration) -> io::Result<Self> {
        if interval.is_zero() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self(Mutex::new(ticks)))
    }

    /// Waits for the next tick. Missed ticks count as one.
    pub(super) async fn tick(&self) -> io::Result<()> {
        self.0.lock().await.tick().await;
        Ok(())
    }
}
