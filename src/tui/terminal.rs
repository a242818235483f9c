//! The terminal as a guarded thing: taken over once, given back on every way out, written to once a frame.

use std::cell::RefCell;
use std::io::{self, Stdout, Write};
use std::rc::Rc;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Frame;
use ratatui::backend::{Backend, CrosstermBackend};

/// Bytes for the terminal that are held back until a frame is whole.
///
/// The drawing library flushes in the middle of a frame (after moving the cursor, after hiding it); a terminal then shows half a
/// picture. So `flush` does nothing here and [`Terminal`] sends everything at once.
#[derive(Clone, Default)]
struct Held(Rc<RefCell<Vec<u8>>>);

impl Held {
    fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal, taken over. Dropping it gives it back.
pub(super) struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Held>>,
    held: Held,
    out: Stdout,
    mouse: bool,
    /// How many bytes the backend writes for a frame without a difference: it resets the style all the same.
    nothing: usize,
}

impl Terminal {
    /// Takes the terminal over: raw mode, alternate screen, bracketed paste and, if wished, the mouse.
    pub(super) fn enter(mouse: bool) -> io::Result<Self> {
        let held = Held::default();
        let mut backend = CrosstermBackend::new(held.clone());
        backend.draw(std::iter::empty())?;
        let nothing = held.len();
        held.0.borrow_mut().clear();
        let inner = ratatui::Terminal::new(backend)?;
        let mut terminal = Self { inner, held, out: io::stdout(), mouse, nothing };
        terminal.take_over()?;
        Ok(terminal)
    }

    fn take_over(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        execute!(self.out, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        if self.mouse {
            execute!(self.out, EnableMouseCapture)?;
        }
        Ok(())
    }

    /// Takes the terminal over again after the program was stopped and continued; everything is drawn anew.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.take_over()?;
        self.clear()
    }

    /// Forgets what is on the screen, so that the next frame draws everything.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // The library's own `clear` asks the terminal where the cursor is, and the answer would go to the thread that waits for keys.
        let size = self.inner.size()?;
        self.inner.resize(size.into())
    }

    /// Draws one frame: one write, inside a synchronized update, and none if the picture did not change.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.held, BeginSynchronizedUpdate)?;
        let before = self.held.len();
        self.inner.autoresize()?;
        view(&mut self.inner.get_frame());
        self.inner.flush()?;
        self.inner.swap_buffers();
        if self.held.len() - before <= self.nothing {
            self.held.0.borrow_mut().clear();
            return Ok(());
        }
        queue!(self.held, EndSynchronizedUpdate)?;
        self.send()
    }

    /// Writes a command between two frames.
    pub(super) fn command(&mut self, command: impl crossterm::Command) -> io::Result<()> {
        queue!(self.held, command)?;
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        let mut bytes = self.held.0.borrow_mut();
        // Stdout is line-buffered: a lock and one write_all of everything, then flush, is one system call for a frame without newlines.
        let mut out = self.out.lock();
        out.write_all(&bytes)?;
        bytes.clear();
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. Safe to call more than once, from a panic hook as well.
pub(super) fn restore() {
    // Every step is tried: a terminal that refuses one of them should still get the others.
    let mut out = io::stdout();
    let _ = execute!(out, DisableMouseCapture);
    let _ = execute!(out, DisableBracketedPaste, Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
