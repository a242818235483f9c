//! The keyboard, the mouse, and what the system wants of the program.

use std::io;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::input_parser::InputParser;
use crate::app::Msg;

/// Typing ahead further than this waits in the terminal.
const AHEAD: usize = 256;

/// Starts a thread that reads keys, mouse and paste until the terminal ends, which closes the channel. Nothing else ends it: nothing can interrupt its
/// wait.
pub(super) fn listen() -> io::Result<mpsc::Receiver<Msg>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || while_open(&sender))?;
    Ok(receiver)
}

fn while_open(sender: &mpsc::Sender<Msg>) -> Option<()> {
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
            sender.blocking_send(msg).ok()?;
        }
    }
}

/// Waits for bytes and reads what is there; nothing where none come in time.
fn read(chunk: &mut [u8], timeout: Option<Timespec>) -> rustix::io::Result<Option<usize>> {
    let ready = poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], timeout.as_ref())?;
    if ready == 0 { Ok(None) } else { rustix::io::read(stdin(), chunk).map(Some) }
}

/// Signals that the dashboard heeds.
pub(super) struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    resumed: Signal,
    resized: Signal,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// To end.
    End,
    /// To take the terminal again: the program was stopped and goes on.
    Resume,
    /// To look how large the window is.
    Measure,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            resumed: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    /// Waits until the program is asked to end.
    pub(super) async fn end(&mut self) {
        while self.next().await != Asked::End {}
    }

    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::End,
            _ = self.hangup.recv() => Asked::End,
            _ = self.interrupt.recv() => Asked::End,
            _ = self.resumed.recv() => Asked::Resume,
            _ = self.resized.recv() => Asked::Measure,
        }
    }
}
