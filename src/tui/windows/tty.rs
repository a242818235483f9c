//! The console on which the dashboard is drawn.

mod console;

use std::io::{self, Write, stderr, stdout};
use std::time::Duration;

use crossterm::Command;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};

use console::Console;

/// Whether the console interprets escape sequences. If that cannot be tested, it is assumed.
pub fn interprets_sequences() -> bool {
    console::interprets_sequences().unwrap_or(true)
}

/// A console for output. Writing blocks. A console that does not interpret escape sequences is drawn by API calls.
pub(super) struct Tty(Option<Console>);

impl Tty {
    /// Opens the console on standard output.
    pub(super) fn of_stdout() -> io::Result<Self> {
        // Enables the interpretation of sequences as a side effect.
        let is_set = crossterm::ansi_support::supports_ansi();
        let console = if is_set && interprets_sequences() { None } else { Some(Console::open()?) };
        Ok(Self(console))
    }

    /// Whether escape sequences have an effect.
    pub(super) fn interprets_sequences(&self) -> bool {
        self.0.is_none()
    }

    /// Creates a backend that draws frames: as escape sequences to a writer, if they are interpreted.
    pub(super) fn backend<W: Write>(&self, writer: W) -> FrameBackend<W> {
        FrameBackend { sequences: CrosstermBackend::new(writer), console: self.0.clone() }
    }

    /// Writes everything.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.interprets_sequences() {
            let mut console = stdout().lock();
            console.write_all(bytes)?;
            console.flush()?;
        }
        Ok(bytes.len())
    }

    /// Writes everything, however long it takes.
    pub(super) fn write_within(&self, bytes: &[u8], _: Duration) -> bool {
        self.write(bytes).is_ok()
    }

    /// Does nothing: there is no pending output.
    pub(super) fn discard(&self) {}

    /// Sets up the console. Mouse clicks arrive as records instead of escape sequences.
    pub(super) fn set_up(&self, mouse: bool) -> io::Result<()> {
        if mouse {
            // Fails on a console without a mouse.
            let _ = EnableMouseCapture.execute_winapi();
        }
        self.0.as_ref().map_or(Ok(()), Console::show)
    }

    pub(super) fn restore(&self) {
        let _ = DisableMouseCapture.execute_winapi();
        let _ = self.0.as_ref().map_or(Ok(()), Console::restore);
    }
}

/// Draws frames with escape sequences or API calls.
pub(super) struct FrameBackend<W: Write> {
    sequences: CrosstermBackend<W>,
    console: Option<Console>,
}

impl<W: Write> Backend for FrameBackend<W> {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, cells: I) -> io::Result<()> {
        match &self.console {
            Some(console) => console.draw(cells),
            None => self.sequences.draw(cells),
        }
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        match &self.console {
            Some(console) => console.clear(),
            None => self.sequences.clear_region(region),
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    // The cursor stays hidden.
    fn hide_cursor(&mut self) -> io::Result<()> {
        self.sequences.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.sequences.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.sequences.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.sequences.set_cursor_position(position)
    }

    fn size(&self) -> io::Result<Size> {
        self.sequences.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.sequences.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.sequences)
    }
}

/// Writes to standard error.
pub fn write_stderr(text: &str, _: Duration) {
    let _ = stderr().write_all(text.as_bytes());
}
