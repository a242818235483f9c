//! Reads the input records of the console.

use crossterm::event::read;
use tokio::sync::mpsc;

use super::input::{Input, message};

/// Reads until the console is closed or the receiver is dropped.
pub(super) fn read_while_open(sender: &mpsc::Sender<Input>) -> Option<()> {
    loop {
        if let Some(msg) = message(read().ok()?) {
            sender.blocking_send(Input::Msg(msg)).ok()?;
        }
    }
}
