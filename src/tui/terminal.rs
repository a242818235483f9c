//! A guard for the terminal: set up once, restored on every exit path, written to once per frame, never waited for.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate, SetTitle, disable_raw_mode, enable_raw_mode};
use ratatui::backend::Backend;
use ratatui::{Frame, Viewport};

use super::background;
use super::tty::{FrameBackend, Tty};

/// Alternate screen, which some terminals do not clear, bracketed paste, no cursor.
const SET_UP: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?2004h\x1b[?25l";
/// Buttons, the wheel, and motion with a button held, in SGR coordinates. No other motion, which would be ignored.
const SET_UP_MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h";
/// Undoes all of that, at any point within a frame: ends a string and a synchronized update, resets the style.
const RESTORE: &[u8] = b"\x1b\\\x1b[?2026l\x1b[m\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// Time that a terminal may take to read pending output when it is restored. After that, the pending output is discarded.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Saves and restores the title of the window (XTWINOPS 22 and 23).
const SAVE_TITLE: &[u8] = b"\x1b[22;2t";
const RESTORE_TITLE: &[u8] = b"\x1b[23;2t";

#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    pub mouse: bool,
    pub title: bool,
}

/// The terminal on standard output.
pub(super) struct Device {
    tty: Tty,
    is_set_up: AtomicBool,
    /// Whether the title must be restored.
    titled: AtomicBool,
}

impl Device {
    /// Opens the terminal on standard output.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { tty: Tty::of_stdout()?, is_set_up: AtomicBool::new(false), titled: AtomicBool::new(false) })
    }

    /// Restores the terminal if it was set up. May be called repeatedly, from any thread, also from a panic hook.
    ///
    /// Takes at most [`RESTORE_TIMEOUT`]: a blocked terminal processes the sequence once it reads again.
    pub(super) fn restore(&self) {
        if !self.is_set_up.swap(false, Ordering::SeqCst) {
            return;
        }
        let title = if self.titled.swap(false, Ordering::SeqCst) { RESTORE_TITLE } else { b"" };
        let sequence = [RESTORE, title].concat();
        if !self.tty.write_within(&sequence, RESTORE_TIMEOUT) {
            // Make room for the sequence.
            self.tty.discard();
            let _ = self.tty.write(&sequence);
        }
        self.tty.restore();
        let _ = disable_raw_mode();
    }
}

/// Buffers the bytes for the terminal until a frame is complete.
///
/// The drawing library flushes in the middle of a frame (after moving the cursor, after hiding it), so a terminal would show incomplete frames. So
/// `flush` does nothing here, and [`Terminal`] sends everything at once.
#[derive(Clone, Default)]
struct FrameBuffer(Arc<Mutex<Vec<u8>>>);

impl FrameBuffer {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for FrameBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal, set up for the dashboard. Restored when dropped.
pub(super) struct Terminal {
    inner: ratatui::Terminal<FrameBackend<FrameBuffer>>,
    buffer: FrameBuffer,
    /// The part of the last frame that the terminal has not accepted yet.
    unwritten: Vec<u8>,
    device: Arc<Device>,
    options: TerminalOptions,
    title: String,
    /// Position of the cursor; `None` if it is hidden.
    cursor: Option<(u16, u16)>,
    /// Number of bytes that the backend writes for an unchanged frame: it still resets the style.
    nothing: usize,
}

impl Terminal {
    /// Sets up the terminal: raw mode, alternate screen, bracketed paste and, optionally, the mouse.
    ///
    /// With `asks_background` the background color is queried; the answer arrives with the keys.
    pub(super) fn enter(device: Arc<Device>, options: TerminalOptions, asks_background: bool) -> io::Result<Self> {
        let mut terminal = Self::new(device, options, Viewport::Fullscreen)?;
        terminal.set_up()?;
        if asks_background {
            terminal.buffer.write_all(background::QUERY)?;
            terminal.send()?;
        }
        Ok(terminal)
    }

    fn new(device: Arc<Device>, options: TerminalOptions, viewport: Viewport) -> io::Result<Self> {
        let buffer = FrameBuffer::default();
        let mut backend = device.tty.backend(buffer.clone());
        backend.draw(std::iter::empty())?;
        let nothing = buffer.bytes().len();
        buffer.bytes().clear();
        let inner = ratatui::Terminal::with_options(backend, ratatui::TerminalOptions { viewport })?;
        Ok(Self { inner, buffer, unwritten: Vec::new(), device, options, title: String::new(), cursor: None, nothing })
    }

    fn set_up(&mut self) -> io::Result<()> {
        // A shell may have used the terminal in the meantime.
        let _ = disable_raw_mode();
        enable_raw_mode()?;
        self.device.is_set_up.store(true, Ordering::SeqCst);
        self.device.tty.set_up(self.options.mouse)?;
        self.unwritten.clear();
        self.compose_set_up()?;
        self.send()
    }

    /// Puts the sequences that set up the terminal into the buffer.
    fn compose_set_up(&mut self) -> io::Result<()> {
        self.title.clear();
        self.cursor = None;
        self.buffer.bytes().clear();
        self.buffer.write_all(SET_UP)?;
        self.buffer.write_all(if self.options.mouse { SET_UP_MOUSE } else { b"" })?;
        // Saved once until it is restored: a second time, it would be the title of the dashboard.
        let saves_title = self.options.title && !self.device.titled.swap(true, Ordering::SeqCst);
        self.buffer.write_all(if saves_title { SAVE_TITLE } else { b"" })
    }

    /// Restores the terminal until [`Self::resume`].
    pub(super) fn restore(&self) {
        self.device.restore();
    }

    /// Sets up the terminal again after the program was stopped and continued; everything is redrawn.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.set_up()?;
        self.clear()
    }

    /// Invalidates the screen, so that the next frame draws everything.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // The library's own `clear` queries the cursor position from the terminal, and the answer would go to the thread that reads keys.
        let size = self.inner.size()?;
        self.inner.resize(size.into())
    }

    /// Whether the terminal has not accepted the whole last frame: none can be drawn until [`Self::write_rest`] has written it.
    pub(super) fn has_unwritten_output(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Draws one frame with one write, inside a synchronized update, and with none if nothing changed. `view` returns the position of the cursor,
    /// which is hidden otherwise. Returns the number of bytes written; `None` if the console is drawn by API calls.
    ///
    /// Must not be called while [`Self::has_unwritten_output`].
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>) -> Option<(u16, u16)>) -> io::Result<Option<usize>> {
        self.compose(view)?;
        if !self.interprets_sequences() {
            self.buffer.bytes().clear();
            return Ok(None);
        }
        let bytes = self.buffer.bytes().len();
        self.send().map(|()| Some(bytes))
    }

    /// Puts the changes since the last frame into the buffer.
    fn compose(&mut self, view: impl FnOnce(&mut Frame<'_>) -> Option<(u16, u16)>) -> io::Result<()> {
        queue!(self.buffer, BeginSynchronizedUpdate)?;
        let before = self.buffer.bytes().len();
        self.inner.autoresize()?;
        let cursor = view(&mut self.inner.get_frame());
        self.inner.flush()?;
        self.inner.swap_buffers();
        // Drawing by API calls writes nothing to the buffer.
        let is_unchanged = self.interprets_sequences() && self.buffer.bytes().len() - before <= self.nothing;
        if is_unchanged && cursor == self.cursor {
            self.buffer.bytes().clear();
            return Ok(());
        }
        match cursor {
            // Drawing has moved it.
            Some((x, y)) => queue!(self.buffer, MoveTo(x, y), Show)?,
            None if self.cursor.is_some() => queue!(self.buffer, Hide)?,
            None => {}
        }
        self.cursor = cursor;
        queue!(self.buffer, EndSynchronizedUpdate)
    }

    /// Whether escape sequences have an effect.
    pub(super) fn interprets_sequences(&self) -> bool {
        self.device.tty.interprets_sequences()
    }

    /// Writes a command between two frames. Returns whether it was written: not if the terminal is behind, or does not interpret sequences.
    pub(super) fn command(&mut self, command: impl crossterm::Command) -> io::Result<bool> {
        if self.has_unwritten_output() || !self.interprets_sequences() {
            return Ok(false);
        }
        queue!(self.buffer, command)?;
        self.send().map(|()| true)
    }

    /// Sets the title of the window if it differs. If the terminal is behind, it is set with a later frame.
    pub(super) fn set_title(&mut self, title: &str) -> io::Result<()> {
        if self.options.title && self.title != title && self.command(SetTitle(title))? {
            title.clone_into(&mut self.title);
        }
        Ok(())
    }

    pub(super) fn ring_bell(&mut self) -> io::Result<()> {
        self.buffer.write_all(b"\x07")?;
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        self.unwritten.append(&mut self.buffer.bytes());
        self.write_rest()
    }

    /// Writes as much of the last frame as the terminal accepts now.
    pub(super) fn write_rest(&mut self) -> io::Result<()> {
        while self.has_unwritten_output() {
            match self.device.tty.write(&self.unwritten) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.device.restore();
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    fn terminal() -> Terminal {
        let options = TerminalOptions { mouse: false, title: true };
        Terminal::new(Arc::new(Device::open().unwrap()), options, Viewport::Fixed(Rect::new(0, 0, 9, 2))).unwrap()
    }

    fn take(terminal: &Terminal) -> String {
        String::from_utf8(std::mem::take(&mut *terminal.buffer.bytes())).unwrap()
    }

    #[test]
    fn cursor_is_shown_where_the_view_puts_it() {
        let mut terminal = terminal();
        let mut frame = |text: &'static str, cursor| {
            let view = |frame: &mut Frame<'_>| {
                frame.buffer_mut().set_string(0, 0, text, ratatui::style::Style::new());
                cursor
            };
            terminal.compose(view).unwrap();
            take(&terminal)
        };
        let shown_at = |column: u16| format!("\x1b[1;{column}H\x1b[?25h\x1b[?2026l");
        assert!(!frame("/", None).contains("\x1b[?25"), "set up hides it");
        // Also if it is the only change.
        assert!(frame("/", Some((1, 0))).ends_with(&shown_at(2)));
        assert_eq!(frame("/", Some((1, 0))), "");
        assert!(frame("/a", Some((2, 0))).ends_with(&shown_at(3)));
        assert!(frame("/a", Some((1, 0))).ends_with(&shown_at(2)));
        assert!(frame("/a", None).ends_with("\x1b[?25l\x1b[?2026l"));
        assert_eq!(frame("/a", None), "");
    }

    #[test]
    fn title_is_saved_once_until_it_is_restored() {
        let mut terminal = terminal();
        // A shell that continues the program makes it set up the terminal twice: after the stop, and on SIGCONT.
        for (restored, saves) in [(false, true), (false, false), (true, true), (false, false)] {
            if restored {
                terminal.device.titled.store(false, Ordering::SeqCst);
            }
            terminal.compose_set_up().unwrap();
            assert_eq!(take(&terminal).as_bytes().ends_with(SAVE_TITLE), saves);
        }
    }
}
