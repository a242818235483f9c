//! What a person does at the terminal, and what the system wants of the program.
//!
//! That the window has another size is heard as a signal, and not from the thread that waits for keys: it begins to listen some time after the first
//! picture, and what happens before that would be lost.

use std::io;

use crossterm::event::{Event, read};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::Msg;

/// Typing ahead further than this waits in the terminal.
const AHEAD: usize = 256;

/// Starts a thread that waits for keys, mouse and paste. It ends with the program: nothing can interrupt its wait.
pub(super) fn listen() -> io::Result<mpsc::Receiver<Msg>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let wait = move || {
        while let Ok(event) = read() {
            let msg = match event {
                Event::Key(key) => Msg::Key(key),
                Event::Mouse(mouse) => Msg::Mouse(mouse),
                Event::Paste(text) => Msg::Paste(text),
                Event::Resize(..) | Event::FocusGained | Event::FocusLost => continue,
            };
            if sender.blocking_send(msg).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(wait)?;
    Ok(receiver)
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
