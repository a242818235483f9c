//! Reading of recorded files, each on a thread of the blocking pool; for each file, a new request replaces the previous one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::tasks::start_blocking;
use crate::app::{Msg, Ticket};
use crate::model::{ProcessKey, Span};
use crate::session::read_trace;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The reads in progress.
#[derive(Debug, Default)]
pub(super) struct Files {
    active: BTreeMap<ProcessKey, Arc<AtomicBool>>,
}

impl Files {
    /// Reads a file, or a part of it, and cancels an earlier request for it.
    pub(super) fn read(&mut self, key: ProcessKey, path: PathBuf, span: Option<Span>, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        self.active.retain(|_, active| Arc::strong_count(active) > 1);
        let active = Arc::new(AtomicBool::new(true));
        if let Some(before) = self.active.insert(key, Arc::clone(&active)) {
            before.store(false, Ordering::Relaxed);
        }
        start_blocking(move || {
            let mut reported = Instant::now();
            let on_progress = |bytes| {
                if reported.elapsed() >= PROGRESS_INTERVAL {
                    reported = Instant::now();
                    // If the loop is busy, the next report suffices.
                    let _ = inbox.try_send(Msg::FileProgress { ticket, bytes });
                }
                active.load(Ordering::Relaxed) && !inbox.is_closed()
            };
            let result = match read_trace(&path, span, on_progress) {
                Ok(None) => return,
                Ok(Some(contents)) => Ok(contents),
                Err(trouble) => Err(trouble.into()),
            };
            // The receiver is gone once the dashboard has quit.
            let _ = inbox.blocking_send(Msg::FileRead { ticket, result });
        });
    }
}
