//! The keyboard and the mouse.

use std::io;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use tokio::sync::mpsc;

use super::background::IsLight;
use super::input_parser::InputParser;
use crate::app::Msg;

/// What comes from the terminal.
pub(super) enum Input {
    /// A key, the mouse, or pasted text.
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
    std::thread::Builder::new().name("input".to_owned()).spawn(move || while_open(&sender))?;
    Ok(receiver)
}

fn while_open(sender: &mpsc::Sender<Input>) -> Option<()> {
    let (mut parser, mut chunk) = (InputParser::default(), [0; 4096]);
    loop {
        let (timeout, mut events) = (parser.timeout(), Vec::new());
        let count = match read(&mut chunk, timeout.and_then(|timeout| timeout.try_into().ok())) {
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) | Ok(Some(0)) => return None,
            Ok(count) => count,
        };
        match count {
            Some(count) => parser.feed(&chunk[..count], |event| events.push(event)),
            None => parser.time_out(|event| events.push(event)),
        }
        for event in events {
            let msg = match event {
                Event::Key(key) => Msg::Key(key),
                Event::Mouse(mouse) => Msg::Mouse(mouse),
                Event::Paste(text) => Msg::Paste(text),
                Event::Resize(..) | Event::FocusGained | Event::FocusLost => continue,
            };
            sender.blocking_send(Input::Msg(msg)).ok()?;
        }
        if let Some(background) = parser.take_background() {
            sender.blocking_send(Input::Background(background)).ok()?;
        }
    }
}

/// Waits for bytes and reads what is there; nothing where none come in time.
fn read(chunk: &mut [u8], timeout: Option<Timespec>) -> rustix::io::Result<Option<usize>> {
    let ready = poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], timeout.as_ref())?;
    if ready == 0 { Ok(None) } else { rustix::io::read(stdin(), chunk).map(Some) }
}
