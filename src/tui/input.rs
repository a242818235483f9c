//! Keyboard and mouse input.

use std::io;

use crossterm::event::{Event, KeyEventKind};
use tokio::sync::mpsc;

use super::background::IsLight;
use super::keyboard::read_while_open;
use crate::app::Msg;

pub(super) enum Input {
    /// A key, a mouse event, pasted text, or a new window size.
    Msg(Msg),
    /// The answer to the background query.
    Background(IsLight),
}

/// Capacity of the channel. Further input stays in the terminal.
const INPUT_CAPACITY: usize = 256;

/// Starts a thread that reads keys, mouse and paste until the terminal is closed, which closes the channel. Nothing else ends the thread, because
/// its wait cannot be interrupted.
pub(super) fn listen() -> io::Result<mpsc::Receiver<Input>> {
    let (sender, receiver) = mpsc::channel(INPUT_CAPACITY);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || read_while_open(&sender))?;
    Ok(receiver)
}

/// Converts a terminal event to a message; `None` if it is irrelevant.
pub(super) fn message(event: Event) -> Option<Msg> {
    match event {
        // A console also reports the release of keys.
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Msg::Key(key)),
        Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(columns, rows) => Some(Msg::Resize(columns, rows)),
        Event::Key(_) | Event::FocusGained | Event::FocusLost => None,
    }
}
