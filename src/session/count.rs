//! Counting of the events in a stream, on a thread of its own that never delays the thread writing the stream.
//!
//! Counting is faster than any runtime; analyses may be slower. While too many bytes are queued, and some time after the stream's end, events
//! are only counted, not analyzed.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::backlog::{Backlog, Source};
use super::cpu::{MethodNames, NAMING_INTERVAL};
use super::live_snapshots::LiveSnapshots;
use super::progress::Progress;
use super::segments::Segments;
use super::trace_session::TraceSession;
use crate::analysis::{EventTrigger, Live, LiveEventFilter, RuntimeWaits, Throughput};
use crate::clr::Trigger;
use crate::model::{FlightBufferUsage, SafeText};
use crate::nettrace::{ByMetadata, Event, FlightRecorder, Loss, Metadata, RetentionLimits, Sink, TraceHeader, forward_sink};

/// With more than this many bytes queued that are also in the file, events are only counted.
const MAX_ANALYSIS_BACKLOG: u64 = 32 << 20;
/// The same limit for bytes that are only in memory: half of the amount queued when the reader has to block.
const MAX_ANALYSIS_BACKLOG_IN_MEMORY: u64 = 1 << 20;
/// Time allowed for analyses after the end of the stream.
const ANALYSIS_TIMEOUT: Duration = Duration::from_secs(5);

/// Processing of a stream besides counting.
#[derive(Debug, Clone, Default)]
pub(super) struct Counting {
    pub(super) analyzed: bool,
    pub(super) stop_on: Option<Trigger>,
    /// Keeps the newest part of the stream, in files next to this one.
    pub(super) keep: Option<(RetentionLimits, PathBuf)>,
}

/// Stop trigger, flight recorder and wait detection that run beside the count.
#[derive(Debug)]
pub(super) struct SecondarySinks {
    trigger: EventTrigger,
    pub(super) recent: Option<FlightRecorder>,
    /// Waits derived from the events, for the kernel's CPU samples.
    waits: Option<RuntimeWaits>,
    /// Methods, for the same, unless events are analyzed.
    methods: Option<Live>,
    /// When the samples are named next.
    next_naming: Instant,
    /// Whether the event belongs to the rundown, which is sent when a session is stopped and must be kept in full.
    rundown: ByMetadata<bool>,
    progress: Arc<Progress>,
}

impl Sink for SecondarySinks {
    fn trace(&mut self, header: &TraceHeader) {
        self.trigger.trace(header);
        if let Some(waits) = &mut self.waits {
            waits.trace(header);
        }
        if let Some(methods) = &mut self.methods {
            methods.trace(header);
        }
        if let Some(recent) = &mut self.recent {
            recent.trace(header);
        }
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.trigger.metadata(metadata);
        if let Some(waits) = &mut self.waits {
            waits.metadata(metadata);
        }
        if let Some(methods) = &mut self.methods {
            methods.metadata(metadata);
        }
        self.rundown.push(metadata.provider.ends_with("Rundown"));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.trigger.event(event);
        if let Some(waits) = &mut self.waits {
            waits.event(event);
        }
        if let Some(methods) = &mut self.methods {
            methods.event(event);
        }
        if let Some(recent) = &mut self.recent {
            if self.rundown.of(event.metadata) && self.progress.stopping.load(Ordering::Relaxed) {
                recent.freeze();
            }
            recent.event(event);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if let Some(waits) = &mut self.waits {
            waits.loss(loss);
        }
        if let Some(methods) = &mut self.methods {
            methods.loss(loss);
        }
        if let Some(recent) = &mut self.recent {
            recent.loss(loss);
        }
    }
}

impl SecondarySinks {
    /// Publishes results that are due.
    fn publish(&mut self) {
        let progress = &self.progress;
        if let (Some(cpu), Some(waits)) = (progress.cpu.get(), &mut self.waits) {
            cpu.add_runtime_waits(waits);
        }
        if let (Some(cpu), Some(methods)) = (progress.cpu.get(), &mut self.methods) {
            if let Some(symbols) = progress.names.take() {
                methods.add_symbols(&symbols);
            }
            cpu.set_osr_code(methods.symbols());
            if Instant::now() >= self.next_naming {
                self.next_naming = Instant::now() + NAMING_INTERVAL;
                if cpu.has_grown() {
                    cpu.name(methods.symbols(), MethodNames::Pending);
                }
            }
        }
        if self.trigger.is_triggered() {
            progress.stop_event.notify_one();
        }
        if let Some(recent) = &self.recent {
            let (bytes, span) = recent.kept();
            let trouble = recent.first_error().map(SafeText::new);
            progress.kept.send_replace(Some(FlightBufferUsage { bytes, span, trouble }));
        }
    }
}

/// Analyses, suspended while they are too slow.
struct Analyzed {
    live: Live,
    progress: Arc<Progress>,
    backlog: Arc<Backlog>,
    /// Number of queued bytes above which analyses are suspended.
    most: u64,
}

impl Analyzed {
    /// Whether analyses are currently suspended.
    fn is_behind(&self) -> bool {
        let is_late = |since: Duration| since > ANALYSIS_TIMEOUT || self.progress.abandoned.load(Ordering::Relaxed);
        self.backlog.bytes() > self.most || self.backlog.since_end().is_some_and(is_late)
    }
}

impl Sink for Analyzed {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if !self.is_behind() {
            self.live.event(event);
            return;
        }
        self.live.count_only(event);
        if !self.live.analyses_later(event) {
            self.progress.unanalyzed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        if self.is_behind() {
            self.progress.unanalyzed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.live.ordered_event(event);
        }
    }

    forward_sink!(self => [self.live]: trace metadata needs_order stacks thread loss ordered_loss sequence_point problem);
}

/// Result of counting a stream that has ended.
#[derive(Debug)]
pub(super) struct Counted {
    /// Whether the stream was complete at its end.
    pub(super) complete: bool,
    /// Why completeness is unknown, as a message.
    pub(super) trouble: Option<String>,
    pub(super) recent: Option<FlightRecorder>,
}

/// Queues chunks for counting and reuses their memory.
pub(super) struct Counter {
    backlog: Arc<Backlog>,
    /// Whether the written bytes can be read back from a file.
    has_file: bool,
    thread: Option<JoinHandle<Counted>>,
}

impl Counter {
    /// Starts counting and the other processing requested in `counting`. `file` is the file to which every byte is written before it is
    /// counted. The session, if it has not ended yet, is cut if its stream cannot be decoded.
    pub(super) fn start(progress: Arc<Progress>, counting: Counting, file: Option<File>, session: Option<Arc<TraceSession>>) -> Self {
        let backlog = Arc::new(Backlog::default());
        let (has_file, is_flight) = (file.is_some(), counting.keep.is_some());
        let most = match (has_file, &session) {
            (_, None) => u64::MAX,
            (true, _) => MAX_ANALYSIS_BACKLOG,
            (false, _) => MAX_ANALYSIS_BACKLOG_IN_MEMORY,
        };
        let trigger = EventTrigger::new(counting.stop_on);
        let recent = counting.keep.map(|(keep, file)| FlightRecorder::new(keep, Box::new(Segments::new(&file))));
        let side = SecondarySinks {
            trigger,
            recent,
            waits: progress.cpu.get().map(|_| RuntimeWaits::default()),
            methods: progress.cpu.get().filter(|_| !counting.analyzed).map(|_| Live::symbols_only()),
            next_naming: Instant::now() + NAMING_INTERVAL,
            rundown: ByMetadata::default(),
            progress: progress.clone(),
        };
        let source = Source::new(backlog.clone(), file, session, progress.clone());
        let waiting = backlog.clone();
        let count = move || {
            let count = |tally: &Throughput| {
                let totals = tally.snapshot();
                progress.events.store(totals.events, Ordering::Relaxed);
                progress.dropped.store(totals.dropped, Ordering::Relaxed);
            };
            if !counting.analyzed {
                return source.drain((Throughput::default(), side), |(tally, side), over| {
                    count(tally);
                    side.publish();
                    if progress.takes_providers(over) {
                        progress.providers.put(tally.providers());
                    }
                });
            }
            let mut snapshots = LiveSnapshots::default();
            let mut names = MethodNames::Pending;
            // What a flight recorder keeps is analyzed once more, with the same names and filter.
            let mut used = (None, None);
            let analyzed = Analyzed { live: Live::default().with_recent_events(), progress: progress.clone(), backlog: waiting, most };
            source.drain((analyzed, side), |(Analyzed { live, .. }, side), over| {
                count(live.throughput());
                side.publish();
                if let Some(symbols) = progress.names.take() {
                    live.add_symbols(&symbols);
                    // Methods compiled later arrive in the stream.
                    names = MethodNames::Complete;
                    snapshots.make_due();
                    used.0 = is_flight.then_some(symbols);
                }
                if let Some((at, times)) = progress.thread_times.take() {
                    live.add_cpu_times(at, times);
                }
                if let Some(filter) = progress.event_filter.take() {
                    live.set_event_filter(LiveEventFilter::new(&filter));
                    used.1 = is_flight.then_some(filter);
                }
                if progress.takes_providers(over) {
                    progress.providers.put(live.throughput().providers());
                }
                if over {
                    live.apply_cpu_times();
                    let (symbols, filter) = std::mem::take(&mut used);
                    symbols.into_iter().for_each(|symbols| progress.names.put_back(symbols));
                    filter.into_iter().for_each(|filter| progress.event_filter.put_back(filter));
                }
                let names = if over { MethodNames::Complete } else { names };
                if let Some(analysis) = snapshots.take_if_due(live, progress.cpu.get().map(|cpu| &**cpu), names, over) {
                    progress.analysis.send_replace(Some(Arc::new(analysis)));
                }
            })
        };
        // If the thread cannot be spawned, its end of the backlog is dropped: nothing is counted, everything is written.
        let thread = std::thread::Builder::new().name("count".to_owned()).spawn(count).ok();
        Self { backlog, has_file, thread }
    }

    /// Counts this many bytes of a file that was written after its stream ended.
    pub(super) fn of_file(progress: Arc<Progress>, counting: Counting, file: File, bytes: u64) -> Self {
        progress.unanalyzed.store(0, Ordering::Relaxed);
        let counter = Self::start(progress, counting, Some(file), None);
        counter.backlog.add_file(bytes);
        counter
    }

    /// Returns a buffer for the next chunk.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.backlog.buffer()
    }

    /// Queues the first `length` bytes of a chunk for counting. Blocks for room only if the bytes are in no file.
    pub(super) fn count(&self, chunk: Vec<u8>, length: usize) {
        if self.has_file {
            self.backlog.add_written(chunk, length);
        } else {
            self.backlog.add(chunk, length);
        }
    }

    /// Waits until everything is counted and returns the result.
    pub(super) fn finish(self) -> Counted {
        self.backlog.end();
        match self.thread.map(JoinHandle::join) {
            Some(Ok(counted)) => counted,
            Some(Err(_)) | None => {
                let words = "counting failed inside dn-top, please report it; all bytes are kept";
                Counted { complete: false, trouble: Some(words.to_owned()), recent: None }
            }
        }
    }
}
