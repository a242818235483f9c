//! Signals that request the end of a command.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// Signals that arrive within this time are one request: `timeout` of the GNU core utilities signals its command and then its process group, which
/// contains the command. A person needs longer to press Ctrl-C twice.
pub const SAME_REQUEST: Duration = Duration::from_millis(50);

/// SIGINT, SIGTERM and SIGHUP.
#[derive(Debug)]
pub struct Interrupts {
    signals: [Signal; 3],
    has_hung_up: bool,
    /// Until when further signals belong to the request in progress.
    request_until: Option<Instant>,
}

impl Interrupts {
    /// # Errors
    /// Those of the system.
    pub fn new() -> io::Result<Self> {
        let signals = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
        Ok(Self { signals, has_hung_up: false, request_until: None })
    }

    /// Waits for the next request. No request is lost if the wait is canceled.
    pub async fn next(&mut self) {
        let Self { signals: [interrupt, terminate, hangup], has_hung_up, request_until } = self;
        loop {
            let until = *request_until;
            tokio::select! {
                // After a delay, the signals of a request must be taken before its end.
                biased;
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                // A terminal that is closed causes several: of the shell and of the kernel.
                _ = hangup.recv() => if std::mem::replace(has_hung_up, true) {
                    continue;
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    *request_until = None;
                    return;
                }
            }
            request_until.get_or_insert_with(|| Instant::now() + SAME_REQUEST);
        }
    }
}
