//! The keyboard and the mouse.

use std::io;

use crossterm::event::{Event, KeyEventKind};
use tokio::sync::mpsc;

use super::background::IsLight;
use super::keyboard::read_while_open;
use crate::app::Msg;

/// What comes from the terminal.
pub(super) enum Input {
    /// A key, the mouse, pasted text, or another size of the window.
    Msg(Msg),
    /// What its background is, where it was asked.
    Background(IsLight),
}

/// Typing ahead further than this waits in the terminal.
const AHEAD: usize = 256;

/// Starts a thread that reads keys, mouse and paste until the terminal ends, which closes the channel. Nothing else ends it: nothing can interrupt its
/// wait.
pub(super) fn listen() -> io::Result<mpsc::Receiver<Input>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || read_while_open(&sender))?;
    Ok(receiver)
}

/// What a key, the mouse or pasted text is to the dashboard; nothing where it does not matter.
pub(super) fn message(event: Event) -> Option<Msg> {
    match event {
        // A console reports that a key is let go as well.
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Msg::Key(key)),
        Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(columns, rows) => Some(Msg::Resize(columns, rows)),
        Event::Key(_) | Event::FocusGained | Event::FocusLost => None,
    }
}
