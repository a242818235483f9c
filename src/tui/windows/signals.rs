//! Requests of the console to the dashboard. That the window has another size comes with the keys.

use std::io;
use std::sync::Arc;

use super::asked::Asked;
use super::terminal::Device;
use crate::net::interrupts::Interrupts;

/// Ctrl-C, Ctrl-Break, and the end of the console or the session.
pub(super) struct Signals(Interrupts);

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Interrupts::new().map(Self)
    }

    /// Waits until the program is asked to end; for when it does not hold the terminal.
    pub(super) async fn end(&mut self) {
        self.0.next().await;
    }

    pub(super) async fn next(&mut self) -> Asked {
        self.0.next().await;
        Asked::End
    }
}

/// A console has no jobs to stop.
pub(super) fn suspend(_: impl FnOnce()) {}

/// Windows ends a program without asking it.
pub(super) fn restore_before_core_dump(_: Arc<Device>) -> io::Result<()> {
    Ok(())
}
