//! The names of methods in a finished recording, for the kernel samples taken beside it.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::analysis::Live;
use crate::session::progress::Progress;
use crate::session::recorded::RecordedFile;

/// How long names may be read from an abandoned recording. A small one is read completely.
pub(super) const IF_ABANDONED: Duration = Duration::from_secs(1);

/// Reads the methods in a recording of any size. If it is abandoned, reading ends after `limit`. Returns whether all were read.
pub(super) fn read_names(recording: &Path, progress: &Progress, limit: Duration) -> (Live, bool) {
    let (mut live, began) = (Live::symbols_only(), Instant::now());
    let mut is_wanted = |_| !progress.abandoned.load(Ordering::Relaxed) || began.elapsed() < limit;
    // Without the recording, the methods stay unnamed.
    let read = RecordedFile::open_discovered(recording).and_then(|mut recorded| recorded.read_or_cancel(&mut live, &mut is_wanted));
    (live, !matches!(read, Ok(None)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::TraceHeader;
    use crate::session::tests::empty_trace;

    /// Reading a large recording takes longer than anyone waits.
    #[test]
    fn reading_the_names_of_an_abandoned_recording_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let (file, progress) = (folder.path().join("a.nettrace"), Progress::default());
        std::fs::write(&file, empty_trace(TraceHeader::default())).unwrap();
        assert!(read_names(&file, &progress, Duration::ZERO).1);
        progress.abandoned.store(true, Ordering::Relaxed);
        assert!(read_names(&file, &progress, Duration::MAX).1);
        assert!(!read_names(&file, &progress, Duration::ZERO).1);
    }
}
