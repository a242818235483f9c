//! Signals, and the requests to the dashboard that they represent.
//!
//! A change of the window size arrives as a signal, not from the thread that reads keys.

use std::io;
use std::sync::Arc;

use rustix::process::{self, getpgrp, getsid};
use signal_hook::low_level::{emulate_default_handler, raise};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::signal_request::SignalRequest;
use super::tasks::spawn;
use super::terminal::Device;
use crate::net::interrupts::SAME_REQUEST;

/// Signals that the dashboard handles.
pub(super) struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
    resumed: Signal,
    resized: Signal,
    has_hung_up: bool,
    /// When the program began to wait for its recordings.
    ending_since: Option<Instant>,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(kind(process::Signal::TSTP))?,
            resumed: signal(kind(process::Signal::CONT))?,
            resized: signal(SignalKind::window_change())?,
            has_hung_up: false,
            ending_since: None,
        })
    }

    /// Waits for another request while the program ends. Those at the beginning arrived together with the first one.
    pub(super) async fn end_again(&mut self) {
        let since = *self.ending_since.get_or_insert_with(Instant::now);
        loop {
            self.end().await;
            if since.elapsed() >= SAME_REQUEST {
                return;
            }
        }
    }

    /// Waits for a request to end the program; for use when it does not own the terminal.
    pub(super) async fn end(&mut self) {
        loop {
            match self.next().await {
                SignalRequest::End => return,
                SignalRequest::Suspend => suspend(|| {}),
                SignalRequest::Resume | SignalRequest::Resize => {}
            }
        }
    }

    pub(super) async fn next(&mut self) -> SignalRequest {
        loop {
            return tokio::select! {
                _ = self.terminate.recv() => SignalRequest::End,
                // A terminal that is closed causes several: of the shell and of the kernel.
                _ = self.hangup.recv() => if std::mem::replace(&mut self.has_hung_up, true) { continue } else { SignalRequest::End },
                _ = self.interrupt.recv() => SignalRequest::End,
                _ = self.stop.recv() => SignalRequest::Suspend,
                _ = self.resumed.recv() => SignalRequest::Resume,
                _ = self.resized.recv() => SignalRequest::Resize,
            };
        }
    }
}

/// Stops this process until it is continued, after calling `prepare`. Does nothing if no shell could continue it: then the kernel ignores SIGTSTP
/// as well.
pub(super) fn suspend(prepare: impl FnOnce()) {
    // A shell gives each job its own process group. The session leader's group has no parent in the session.
    if getsid(None).is_ok_and(|session| session != getpgrp()) {
        prepare();
        // Raised for this thread, not for the process: otherwise another thread would handle it, and this one continue for a moment. Cannot fail.
        let _ = raise(process::Signal::STOP.as_raw());
    }
}

/// Restores the terminal on signals that end the program with a core dump. Runs as a task, so that it works even if the event loop hangs.
pub(super) fn restore_before_core_dump(device: Arc<Device>) -> io::Result<()> {
    for number in [process::Signal::QUIT, process::Signal::ABORT].map(process::Signal::as_raw) {
        let (mut asked, device) = (signal(SignalKind::from_raw(number))?, Arc::clone(&device));
        spawn(async move {
            if asked.recv().await.is_some() {
                device.restore();
                // Only fails for signals that do not exist.
                let _ = emulate_default_handler(number);
            }
        });
    }
    Ok(())
}

fn kind(signal: process::Signal) -> SignalKind {
    SignalKind::from_raw(signal.as_raw())
}
