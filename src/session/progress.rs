//! State shared by the threads of a running recording.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::{Notify, watch};

use super::cpu::Collector;
use crate::analysis::{Symbols, ThreadCpu};
use crate::model::{FlightBufferUsage, RecordingAnalysis, Scheduling};

/// Totals and results that are read during the recording.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) bytes: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// Latest analysis, if the stream is analyzed.
    pub(super) analysis: watch::Sender<Option<Arc<RecordingAnalysis>>>,
    /// Providers of all events, at the end of the stream and when requested.
    pub(super) providers: Slot<BTreeSet<String>>,
    /// Set to request the providers of the events so far.
    pub(super) providers_requested: AtomicBool,
    /// Method names from another session.
    pub(super) names: Slot<Symbols>,
    /// CPU times of the threads, and when they were read, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) thread_times: Slot<(i64, ThreadCpu)>,
    /// Collector of kernel samples, if there are any.
    pub(super) cpu: OnceLock<Arc<Collector>>,
    /// Filter for the individual events kept for display.
    pub(super) event_filter: Slot<String>,
    /// The part of the stream that is kept, if not all is.
    pub(super) kept: watch::Sender<Option<FlightBufferUsage>>,
    /// State of the kernel's scheduling events, if they are recorded.
    pub(super) scheduling: watch::Sender<Option<Scheduling>>,
    /// Set when the session is being stopped: the rundown that follows is kept.
    pub(super) stopping: AtomicBool,
    /// Number of events that were only counted, because analysis fell behind.
    pub(super) unanalyzed: AtomicU64,
    /// Set when the recording is abandoned: bytes not counted yet stay uncounted.
    pub(super) abandoned: AtomicBool,
    /// Notified when the stop event has arrived.
    pub(super) stop_event: Notify,
    /// Notified once, when the size limit is reached or the file cannot be written: the session should be stopped.
    pub(super) stop_needed: Notify,
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

    /// Returns whether the providers of the events so far are to be stored.
    pub(super) fn takes_providers(&self, is_over: bool) -> bool {
        is_over || self.providers_requested.swap(false, Ordering::Relaxed)
    }

    pub(super) fn totals(&self) -> Totals {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals { bytes: load(&self.bytes), events: load(&self.events), dropped: load(&self.dropped) }
    }
}

/// The latest value for a thread that polls for it. Clones share it.
#[derive(Debug)]
pub struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T> Slot<T> {
    /// Stores a value, replacing one that was not taken yet.
    pub fn put(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// Stores a value that was taken, unless there is a newer one.
    pub(super) fn put_back(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(value);
    }

    /// Takes the value stored since the last call.
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
