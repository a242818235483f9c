//! Requests of the console to the dashboard. A change of the window size arrives with the keys.

use std::io;
use std::sync::Arc;

use super::signal_request::SignalRequest;
use super::terminal::Device;
use crate::net::interrupts::Interrupts;

/// Ctrl-C, Ctrl-Break, and the end of the console or the session.
pub(super) struct Signals(Interrupts);

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Interrupts::new().map(Self)
    }

    /// Waits for another request while the program ends.
    pub(super) async fn end_again(&mut self) {
        self.end().await;
    }

    /// Waits for a request to end the program; for use when it does not own the terminal.
    pub(super) async fn end(&mut self) {
        self.0.next().await;
    }

    pub(super) async fn next(&mut self) -> SignalRequest {
        self.0.next().await;
        SignalRequest::End
    }
}

/// Does nothing: consoles have no job control.
pub(super) fn suspend(_: impl FnOnce()) {}

/// Does nothing: Windows ends a program without a signal.
pub(super) fn restore_before_core_dump(_: Arc<Device>) -> io::Result<()> {
    Ok(())
}
