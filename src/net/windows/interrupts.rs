//! Console events that end a command.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown,
};

/// Ctrl-C, Ctrl-Break, and closing of the console or the session.
#[derive(Debug)]
pub struct Interrupts(CtrlC, CtrlBreak, CtrlClose, CtrlLogoff, CtrlShutdown);

impl Interrupts {
    /// Registers the handlers.
    ///
    /// # Errors
    /// System errors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(ctrl_c()?, ctrl_break()?, ctrl_close()?, ctrl_logoff()?, ctrl_shutdown()?))
    }

    /// Waits for the next event.
    pub async fn next(&mut self) {
        let Self(c, break_key, close, logoff, shutdown) = self;
        tokio::select! {
            _ = c.recv() => {}
            _ = break_key.recv() => {}
            _ = close.recv() => {}
            _ = logoff.recv() => {}
            _ = shutdown.recv() => {}
        }
    }
}
