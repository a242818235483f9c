//! The keyboard and the mouse.

use std::io;

use crossterm::event::{Event, KeyEventKind, read};
use tokio::sync::mpsc;

use super::background::IsLight;
use crate::app::Msg;

/// What comes from the terminal.
pub(super) enum Input {
    /// A key, the mouse, or another size of the window.
    Msg(Msg),
    /// What its background is. A console is not asked.
    #[expect(dead_code, reason = "only a terminal that is asked answers")]
    Background(IsLight),
}

/// Typing ahead further than this waits in the terminal.
const AHEAD: usize = 256;

/// Starts a thread that reads keys and mouse until the console ends, which closes the channel.
pub(super) fn listen() -> io::Result<mpsc::Receiver<Input>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || while_open(&sender))?;
    Ok(receiver)
}

fn while_open(sender: &mpsc::Sender<Input>) -> Option<()> {
    loop {
        let msg = match read().ok()? {
            // A console reports that a key is let go as well.
            Event::Key(key) if key.kind != KeyEventKind::Release => Msg::Key(key),
            Event::Mouse(mouse) => Msg::Mouse(mouse),
            Event::Paste(text) => Msg::Paste(text),
            Event::Resize(columns, rows) => Msg::Resize(columns, rows),
            Event::Key(_) | Event::FocusGained | Event::FocusLost => continue,
        };
        sender.blocking_send(Input::Msg(msg)).ok()?;
    }
}
