//! What a recording's threads tell each other while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::{Notify, watch};

use super::cpu::Collector;
use crate::analysis::{Symbols, ThreadCpu};
use crate::model::{Kept, RecordingAnalysis, Scheduling};

/// Totals that the driver may look at while the pump works.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) bytes: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// What is in the stream, where it is analysed. The newest wins.
    pub(super) analysis: watch::Sender<Option<Arc<RecordingAnalysis>>>,
    /// Names of methods that were found elsewhere.
    pub(super) names: Slot<Symbols>,
    /// CPU times of the threads, and when they were so, nanoseconds on the clock CLOCK_MONOTONIC.
    pub(super) thread_times: Slot<(i64, ThreadCpu)>,
    /// Samples of the kernel, where they are taken, too.
    pub(super) cpu: OnceLock<Arc<Collector>>,
    /// The filter of single events that are kept to be shown.
    pub(super) event_filter: Slot<String>,
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
    pub(super) fn new(event_filter: Slot<String>) -> Self {
        Self { event_filter, ..Self::default() }
    }

    pub(super) fn totals(&self) -> Totals {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals { bytes: load(&self.bytes), events: load(&self.events), dropped: load(&self.dropped) }
    }
}

/// The newest value for a thread that polls for it. Clones share it.
#[derive(Debug)]
pub struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T> Slot<T> {
    /// Replaces what was not taken yet.
    pub fn put(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// What was put since this was last called.
    pub(super) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
