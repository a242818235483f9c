//! From the socket to the file. The read loop waits only for the disk: a slow reader makes the runtime drop events. Decoding and counting
//! happen on a separate thread, which catches up from the file if it is too slow.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::count::{Counted, Counter, Counting};
use super::output::is_disk_full;
use super::progress::Progress;
use super::trace_session::{EventStream, TraceSession};
use crate::net::stream::BlockingStream;
use crate::nettrace::FlightRecorder;

/// Result of a stream that has ended.
#[derive(Debug)]
pub(super) struct Pumped {
    /// Whether the stream ended properly and is completely written. `false` also if that is unknown because the bytes could not be decoded.
    pub(super) complete: bool,
    /// The first error, as a message.
    pub(super) trouble: FirstError,
    /// Whether there was any error besides an early end of the stream.
    pub(super) broken: bool,
}

impl Pumped {
    /// Result if the pump's thread panicked: all bytes read so far are in the file.
    pub(super) fn lost() -> Self {
        let trouble = FirstError(Some("recording failed inside dn-top; please report it".to_owned()));
        Self { complete: false, trouble, broken: true }
    }
}

/// Reads until the stream ends and writes every byte. After a write error it continues to read and discards the data, because a runtime that
/// is being stopped must be drained.
pub(super) struct Pump {
    pub(super) session: Arc<TraceSession>,
    pub(super) file: File,
    pub(super) max_bytes: Option<u64>,
    pub(super) counting: Counting,
    pub(super) progress: Arc<Progress>,
}

impl Pump {
    /// Blocks until the end of the stream.
    pub(super) fn run(mut self, stream: EventStream<BlockingStream>) -> Pumped {
        let all = self.counting.keep.is_none();
        let file = if all { self.file.try_clone().ok() } else { None };
        let counter = Counter::start(self.progress.clone(), self.counting.clone(), file, Some(self.session.clone()));
        let mut trouble = FirstError::default();
        let mut written = true;
        let mut announced = false;
        read_all(stream, &counter, &mut trouble, |bytes, trouble| {
            let mut kept = 0;
            if !all {
                kept = bytes.len();
            } else if written && let Err(error) = write(&mut self.file, bytes, &mut kept) {
                written = false;
                trouble.note(|| write_error_message(&error));
            }
            self.progress.bytes.fetch_add(kept as u64, Ordering::Relaxed);
            let full = self.max_bytes.is_some_and(|most| self.progress.totals().bytes >= most);
            if !announced && (full || !written) {
                announced = true;
                self.progress.stop_needed.notify_one();
            }
            kept
        });
        let Counted { mut complete, trouble: uncounted, recent } = counter.finish();
        trouble.add(uncounted);
        if let Some(recent) = recent {
            let (whole, saved) = self.save(recent, complete, &mut trouble);
            complete = whole;
            written = saved;
        }
        // Some file systems report a full disk only here.
        if let Err(error) = self.file.sync_all() {
            written = false;
            trouble.note(|| format!("the file could not be flushed to disk: {error}"));
        }
        Pumped { complete: complete && written, broken: trouble.0.is_some(), trouble }
    }

    /// Writes what a flight recorder kept, and counts it again so that the final numbers are those of the file. Returns whether the file ends
    /// properly, and whether all of it was written. The rest stays in the segment files.
    fn save(&mut self, recent: FlightRecorder, whole: bool, trouble: &mut FirstError) -> (bool, bool) {
        let (mut total, mut saved) = (0, true);
        let mut pieces = recent.pieces(whole);
        while saved && let Some(piece) = pieces.next() {
            let mut kept = 0;
            let mut result = write(&mut self.file, &piece, &mut kept);
            if result.as_ref().is_err_and(is_disk_full) {
                // Deleting the file of this segment makes room for it.
                pieces.release();
                result = write(&mut self.file, &piece, &mut kept);
            }
            total += kept as u64;
            if let Err(error) = result {
                saved = false;
                let beside = "the rest is in the segment files next to it (.partial and a number)";
                trouble.note(|| format!("{}; {beside}", write_error_message(&error)));
            }
        }
        trouble.add(pieces.first_error().map(|words| format!("less was kept than requested: {words}")));
        // Also after an abandoned recording, whose latest analysis is kept: counting takes less time than writing did.
        let is_abandoned = self.progress.abandoned.swap(false, Ordering::Relaxed);
        let counting = Counting { analyzed: self.counting.analyzed && !is_abandoned, ..Counting::default() };
        let complete = match self.file.try_clone() {
            Ok(file) => {
                let counted = Counter::of_file(self.progress.clone(), counting, file, total).finish();
                trouble.add(counted.trouble);
                counted.complete
            }
            Err(error) => {
                trouble.note(|| format!("cannot read the file back, so its end could not be verified: {error}"));
                false
            }
        };
        self.progress.bytes.store(total, Ordering::Relaxed);
        (complete, saved)
    }
}

/// Reads a stream to its end, which also ends its session. `take` receives each chunk and returns the number of bytes kept: only those are counted.
pub(super) fn read_all(
    mut stream: EventStream<BlockingStream>,
    counter: &Counter,
    trouble: &mut FirstError,
    mut take: impl FnMut(&[u8], &mut FirstError) -> usize,
) {
    loop {
        let mut buffer = counter.buffer();
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let kept = take(&buffer[..count], trouble);
                counter.count(buffer, kept);
            }
            Err(error) => {
                trouble.note(|| format!("reading the event stream failed: {error}"));
                break;
            }
        }
    }
}

/// Writes everything, and updates `kept` with the bytes written: a full disk may still take the first part.
fn write(file: &mut File, bytes: &[u8], kept: &mut usize) -> io::Result<()> {
    while *kept < bytes.len() {
        match file.write(&bytes[*kept..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *kept += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The first error: later ones are consequences of it.
#[derive(Debug, Default)]
pub(super) struct FirstError(pub(super) Option<String>);

impl FirstError {
    pub(super) fn note(&mut self, message: impl FnOnce() -> String) {
        self.0.get_or_insert_with(message);
    }

    pub(super) fn add(&mut self, message: Option<String>) {
        self.0 = self.0.take().or(message);
    }
}

pub(super) fn write_error_message(error: &io::Error) -> String {
    if is_disk_full(error) {
        format!("the disk is full ({error}); everything up to that point is kept. Free space, or choose another file with -o")
    } else {
        format!("writing the file failed: {error}")
    }
}
