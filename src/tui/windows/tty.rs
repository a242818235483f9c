//! The console that the dashboard is drawn on.

use std::io::{self, Write, stderr, stdout};
use std::time::Duration;

use crossterm::Command;
use crossterm::ansi_support::supports_ansi;
use crossterm::cursor::position;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};

/// A console to write to. Writing waits for it.
pub(super) struct Tty;

impl Tty {
    /// The console on standard output, which is set to interpret escape sequences.
    pub(super) fn of_stdout() -> io::Result<Self> {
        if !supports_ansi() {
            return Err(io::Error::other("this console knows no escape sequences: Windows 10 or newer is needed"));
        }
        if !interprets()? {
            return Err(io::Error::other(
                "this console accepts the setting for escape sequences and counts them as text, as Wine's does: use the commands of `dn-top --help`",
            ));
        }
        Ok(Self)
    }

    /// Writes all.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut console = stdout().lock();
        console.write_all(bytes)?;
        console.flush()?;
        Ok(bytes.len())
    }

    /// Writes all, however long it takes.
    pub(super) fn write_within(&self, bytes: &[u8], _: Duration) -> bool {
        self.write(bytes).is_ok()
    }

    /// Nothing waits here.
    pub(super) fn discard(&self) {}

    /// Whether clicks are to come or not: a setting of the console, which sends them as records and not as escape sequences.
    pub(super) fn capture_mouse(&self, on: bool) {
        // A console without a mouse has none.
        let _ = if on { EnableMouseCapture.execute_winapi() } else { DisableMouseCapture.execute_winapi() };
    }
}

/// Whether an escape sequence leaves the cursor of the console where it is.
fn interprets() -> io::Result<bool> {
    let place = || position().map_err(|error| io::Error::other(format!("cannot read the cursor position of this console: {error}")));
    let before = place()?;
    stdout().write_all(b"\x1b[m")?;
    stdout().flush()?;
    Ok(place()? == before)
}

/// Writes to standard error.
pub(super) fn write_stderr(bytes: &[u8], _: Duration) {
    let _ = stderr().write_all(bytes);
}
