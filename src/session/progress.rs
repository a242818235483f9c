//! What a recording's threads tell each other while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::lens::Lens;
use crate::analysis::Symbols;
use crate::model::{Findings, Kept, Scheduling};

/// Totals that the driver may look at while the pump works.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) bytes: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// What is in the stream, where it is analysed. The newest wins.
    pub(super) findings: watch::Sender<Option<Arc<Findings>>>,
    /// Names of methods that were found elsewhere.
    pub(super) names: Letterbox,
    /// Which single events somebody wants to see.
    pub(super) lens: Lens,
    /// What is kept of the stream, where not all is.
    pub(super) kept: watch::Sender<Option<Kept>>,
    /// How it is with the kernel's half, where it is recorded.
    pub(super) scheduling: watch::Sender<Option<Scheduling>>,
    /// Set when the session is being stopped: the rundown that comes from now on is kept.
    pub(super) stopping: AtomicBool,
    /// Events that were only counted, because analysis fell behind.
    pub(super) unanalysed: AtomicU64,
    /// Set when the recording is abandoned: what is not counted yet stays uncounted.
    pub(super) abandoned: AtomicBool,
    /// Woken when the event has come that is waited for.
    pub(super) came: Notify,
    /// Woken once, when the size limit is reached or the file takes no more: the session should be stopped.
    pub(super) enough: Notify,
}

/// Totals at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) dropped: u64,
}

impl Progress {
    pub(super) fn new(lens: Lens) -> Self {
        Self { lens, ..Self::default() }
    }

    pub(super) fn totals(&self) -> Totals {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals { bytes: load(&self.bytes), events: load(&self.events), dropped: load(&self.dropped) }
    }
}

/// Where names that came wait for whoever counts.
#[derive(Debug, Default)]
pub(super) struct Letterbox(Mutex<Option<Symbols>>);

impl Letterbox {
    pub(super) fn put(&self, symbols: Symbols) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(symbols);
    }

    /// What came since this was last asked.
    pub(super) fn take(&self) -> Option<Symbols> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
