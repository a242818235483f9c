//! Reading of recorded files, each on a thread of the blocking pool; for each file, a new request replaces the previous one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::app::{Msg, Ticket};
use crate::model::{ProcessKey, Span};
use crate::session::read_trace;

/// Interval of progress reports.
const TELL: Duration = Duration::from_millis(100);

/// The reads in progress.
#[derive(Debug, Default)]
pub(super) struct Files {
    wanted: BTreeMap<ProcessKey, Arc<AtomicBool>>,
}

impl Files {
    /// Reads a file, or a part of it, and cancels an earlier request for it.
    pub(super) fn read(&mut self, key: ProcessKey, path: PathBuf, span: Option<Span>, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        self.wanted.retain(|_, wanted| Arc::strong_count(wanted) > 1);
        let wanted = Arc::new(AtomicBool::new(true));
        if let Some(before) = self.wanted.insert(key, Arc::clone(&wanted)) {
            before.store(false, Ordering::Relaxed);
        }
        tokio::task::spawn_blocking(move || {
            let mut reported = Instant::now();
            let go_on = |bytes| {
                if reported.elapsed() >= TELL {
                    reported = Instant::now();
                    // If the loop is busy, the next report suffices.
                    let _ = inbox.try_send(Msg::FileProgress { ticket, bytes });
                }
                wanted.load(Ordering::Relaxed) && !inbox.is_closed()
            };
            let result = match read_trace(&path, span, go_on) {
                Ok(None) => return,
                Ok(Some(contents)) => Ok(contents),
                Err(trouble) => Err(trouble.into()),
            };
            // The receiver is gone once the dashboard has quit.
            let _ = inbox.blocking_send(Msg::FileRead { ticket, result });
        });
    }
}
