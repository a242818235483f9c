//! The console that the dashboard is drawn on.

mod console;

use std::io::{self, Write, stderr, stdout};
use std::time::Duration;

use crossterm::Command;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};

use console::Console;

/// Whether the console interprets escape sequences. One that cannot be tried is taken for one that does.
pub fn interprets_sequences() -> bool {
    console::interprets_sequences().unwrap_or(true)
}

/// A console to write to. Writing waits for it. One that does not interpret escape sequences is drawn by calls.
pub(super) struct Tty(Option<Console>);

impl Tty {
    /// The console on standard output.
    pub(super) fn of_stdout() -> io::Result<Self> {
        // It makes the console interpret sequences from here on.
        let is_set = crossterm::ansi_support::supports_ansi();
        let console = if is_set && interprets_sequences() { None } else { Some(Console::open()?) };
        Ok(Self(console))
    }

    /// Whether what is written has an effect.
    pub(super) fn interprets_sequences(&self) -> bool {
        self.0.is_none()
    }

    /// Draws frames, as escape sequences into a writer where they are interpreted.
    pub(super) fn backend<W: Write>(&self, writer: W) -> FrameBackend<W> {
        FrameBackend { sequences: CrosstermBackend::new(writer), console: self.0.clone() }
    }

    /// Writes all.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.interprets_sequences() {
            let mut console = stdout().lock();
            console.write_all(bytes)?;
            console.flush()?;
        }
        Ok(bytes.len())
    }

    /// Writes all, however long it takes.
    pub(super) fn write_within(&self, bytes: &[u8], _: Duration) -> bool {
        self.write(bytes).is_ok()
    }

    /// Nothing waits here.
    pub(super) fn discard(&self) {}

    /// Begins to use the console. Clicks come as records and not as escape sequences.
    pub(super) fn take(&self, mouse: bool) -> io::Result<()> {
        if mouse {
            // A console without a mouse has none.
            let _ = EnableMouseCapture.execute_winapi();
        }
        self.0.as_ref().map_or(Ok(()), Console::show)
    }

    /// Ends that.
    pub(super) fn give_back(&self) {
        let _ = DisableMouseCapture.execute_winapi();
        let _ = self.0.as_ref().map_or(Ok(()), Console::give_back);
    }
}

/// Draws frames, by escape sequences or by calls.
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

    // The cursor is hidden.
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
pub(super) fn write_stderr(bytes: &[u8], _: Duration) {
    let _ = stderr().write_all(bytes);
}
