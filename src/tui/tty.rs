//! The terminal as an open file of our own, which does not block.

use std::io::{self, Write, stderr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::stdio::stdout;
use rustix::termios::{QueueSelector, isatty, tcflush};

/// Draws frames, as escape sequences.
pub(super) type FrameBackend<W> = CrosstermBackend<W>;

/// Whether the terminal interprets escape sequences: each does.
pub fn interprets_sequences() -> bool {
    true
}

/// A terminal to write to.
pub(super) struct Tty(OwnedFd);

impl Tty {
    /// The terminal on standard output.
    pub(super) fn of_stdout() -> io::Result<Self> {
        // Another user's terminal (su) that does not control this session cannot be opened again: writing to it may block.
        Self::reopen(1).map_or_else(|| stdout().try_clone_to_owned().map(Self), Ok)
    }

    /// Opens the terminal of a standard stream once more, so that it does not block: that is a property of an open file, and that of the stream is shared
    /// with the shell.
    fn reopen(stream: u8) -> Option<Self> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{stream}");
        [path.as_str(), "/dev/tty"].into_iter().find_map(|path| open(path, flags, Mode::empty()).ok()).map(Self)
    }

    /// Whether what is written has an effect.
    pub(super) fn interprets_sequences(&self) -> bool {
        true
    }

    /// Draws frames into a writer.
    pub(super) fn backend<W: Write>(&self, writer: W) -> FrameBackend<W> {
        CrosstermBackend::new(writer)
    }

    /// Writes as much as the terminal takes now; `WouldBlock` where that is nothing.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match write(&self.0, bytes) {
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    /// Writes all, or gives up after that time or at an error.
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

    /// Discards what the terminal has not read.
    pub(super) fn discard(&self) {
        let _ = tcflush(&self.0, QueueSelector::OFlush);
    }

    /// Nothing: a terminal is controlled by the bytes that are written to it.
    pub(super) fn take(&self, _mouse: bool) -> io::Result<()> {
        Ok(())
    }

    /// Nothing, as well.
    pub(super) fn give_back(&self) {}
}

/// Writes to standard error, unless it takes nothing for that long.
pub(super) fn write_stderr(bytes: &[u8], timeout: Duration) {
    if isatty(stderr())
        && let Some(terminal) = Tty::reopen(2)
    {
        terminal.write_within(bytes, timeout);
        return;
    }
    // A pipe that is ready takes a page. At an interruption there is probably room.
    if poll(&mut [PollFd::new(&stderr(), PollFlags::OUT)], timeout.try_into().ok().as_ref()) != Ok(0) {
        let _ = stderr().write_all(bytes);
    }
}
