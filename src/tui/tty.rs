//! The terminal as a separate, non-blocking open file.

use std::io::{self, Write, stderr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::stdio::stdout;
use rustix::termios::{QueueSelector, isatty, tcflush};

/// Draws frames with escape sequences.
pub(super) type FrameBackend<W> = CrosstermBackend<W>;

/// Whether the terminal interprets escape sequences: always.
pub fn interprets_sequences() -> bool {
    true
}

/// A terminal for output.
pub(super) struct Tty(OwnedFd);

impl Tty {
    /// Opens the terminal on standard output.
    pub(super) fn of_stdout() -> io::Result<Self> {
        // Another user's terminal (su) that does not control this session cannot be reopened: writing to it may block.
        Self::reopen(1).map_or_else(|| stdout().try_clone_to_owned().map(Self), Ok)
    }

    /// Opens the terminal of a standard stream again, in non-blocking mode: that is a property of the open file, and the one of the stream is
    /// shared with the shell.
    fn reopen(stream: u8) -> Option<Self> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{stream}");
        [path.as_str(), "/dev/tty"].into_iter().find_map(|path| open(path, flags, Mode::empty()).ok()).map(Self)
    }

    /// Whether escape sequences have an effect.
    pub(super) fn interprets_sequences(&self) -> bool {
        true
    }

    /// Creates a backend that draws frames to a writer.
    pub(super) fn backend<W: Write>(&self, writer: W) -> FrameBackend<W> {
        CrosstermBackend::new(writer)
    }

    /// Writes as much as the terminal accepts now; `WouldBlock` if that is nothing.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match write(&self.0, bytes) {
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    /// Writes everything, or gives up after the timeout or on an error. Returns whether everything was written.
    pub(super) fn write_within(&self, mut bytes: &[u8], time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let _ = poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], left.try_into().ok().as_ref());
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Discards output that the terminal has not read.
    pub(super) fn discard(&self) {
        let _ = tcflush(&self.0, QueueSelector::OFlush);
    }

    /// Does nothing: terminals are controlled by escape sequences.
    pub(super) fn set_up(&self, _mouse: bool) -> io::Result<()> {
        Ok(())
    }

    /// Does nothing, see `set_up`.
    pub(super) fn restore(&self) {}
}

/// Writes to standard error, unless it is blocked for the given time. A closed terminal must not interrupt the finishing of recordings, as
/// `eprintln!` would, and a blocked one must not delay it.
pub fn write_stderr(text: &str, timeout: Duration) {
    let bytes = text.as_bytes();
    if isatty(stderr())
        && let Some(terminal) = Tty::reopen(2)
    {
        terminal.write_within(bytes, timeout);
        return;
    }
    // A pipe that is ready accepts at least a page. If the wait was interrupted, there is probably room.
    if poll(&mut [PollFd::new(&stderr(), PollFlags::OUT)], timeout.try_into().ok().as_ref()) != Ok(0) {
        let _ = stderr().write_all(bytes);
    }
}
