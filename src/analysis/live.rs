//! All analyses of a stream, updated as it arrives.

use std::ops::RangeInclusive;

use crate::clr::EventKind;
use crate::nettrace::{ByMetadata, Event, Loss, Metadata, SequencePoint, Sink, TraceHeader, forward_sink};

use super::activities::Activities;
use super::assemblies::Assemblies;
use super::clock::Clock;
use super::contention::Contention;
use super::counters::{CounterSession, Counters};
use super::event_context::EventContext;
use super::exceptions::Exceptions;
use super::gc::Gc;
use super::heap::{Heap, HeapSnapshot};
use super::jit::Jit;
use super::logs::{LogFilter, Logs};
use super::methods::{Methods, Profile, ThreadCpu};
use super::occurrences::{NewOccurrences, OccurrenceKind};
use super::rates::Rates;
use super::recent::{Recent, RecentSnapshot};
use super::thread_pool::ThreadPool;
use super::{ContainedEvents, LiveEventFilter, Snapshot, Symbols, Throughput};

/// All analyses combined: fed with a stream, provides snapshots.
///
/// The kind of an event is determined when its metadata arrives, so that events not handled by any analysis are cheap.
#[derive(Debug, Default)]
pub struct Live {
    throughput: Throughput,
    clock: Clock,
    kinds: ByMetadata<Kind>,
    /// Time of the newest event, in nanoseconds since the start of the session.
    newest: i64,
    /// Time of the newest event before the rundown.
    newest_recorded: i64,
    /// Time at which a session of the process was stopped: this one, if there is no later such event.
    session_stopped: Option<i64>,
    /// Whether the rundown has begun.
    is_stopped: bool,
    /// Events outside this range are only used to interpret those inside.
    window: Option<RangeInclusive<i64>>,
    unreadable: u64,
    contained: ContainedEvents,
    rates: Rates,
    symbols: Symbols,
    gc: Gc,
    exceptions: Exceptions,
    contention: Contention,
    thread_pool: ThreadPool,
    jit: Jit,
    assemblies: Assemblies,
    logs: Logs,
    activities: Activities,
    counters: Counters,
    heap: Heap,
    methods: Methods,
    /// `None` unless individual events are shown.
    recent: Option<Recent>,
}

/// Classification of the events of a metadata record.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    kind: EventKind,
    /// Emitted after the session is stopped.
    is_rundown: bool,
    /// Analyzed in time order.
    is_ordered: bool,
}

impl Live {
    /// Restricts the analysis to a part of a stream, in nanoseconds since the start of its session: events outside it are only used to locate
    /// methods.
    pub fn within(window: RangeInclusive<i64>) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// Creates an instance that only collects symbols.
    pub fn symbols_only() -> Self {
        let nothing = RangeInclusive::new(1, 0);
        Self::within(nothing)
    }

    /// Sets which counters in the stream are the session's own. By default all are used.
    pub fn set_counter_session(&mut self, session: CounterSession) {
        self.counters = Counters::of(session);
    }

    /// Returns totals of the stream's events and losses.
    pub fn throughput(&self) -> &Throughput {
        &self.throughput
    }

    /// Returns the time of the newest event, in nanoseconds since the start of the session.
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// Returns the end of the recording so far, in nanoseconds since the start of the session: the stop if the stream shows it, otherwise the
    /// newest event.
    pub fn end(&self) -> i64 {
        // Threads keep writing events until they notice the stop.
        self.session_stopped.map_or(self.newest_recorded, |stopped| stopped.max(self.newest_recorded))
    }

    /// Returns a snapshot at a time in nanoseconds since the start of the session: the current time of a live session, which may be later than
    /// its newest event, or [`end`](Self::end).
    pub fn snapshot(&self, now: i64) -> Snapshot {
        let now = if self.is_stopped { now.min(self.end()) } else { now };
        Snapshot {
            now,
            recorded_ns: u64::try_from(now.saturating_sub(self.window.as_ref().map_or(0, |window| *window.start().max(&0)))).unwrap_or(0),
            totals: self.throughput.snapshot(),
            problems: self.throughput.problems(),
            contained: self.contained,
            thread_names: self.throughput.thread_names(),
            unreadable: self.unreadable,
            rates: self.rates.snapshot(now),
            gc: self.gc.snapshot(&self.symbols, now),
            exceptions: self.exceptions.snapshot(&self.symbols, now),
            contention: self.contention.snapshot(&self.symbols, now),
            thread_pool: self.thread_pool.snapshot(now),
            jit: self.jit.snapshot(now),
            assemblies: self.assemblies.snapshot(),
            logs: self.logs.snapshot(now),
            activities: self.activities.snapshot(now),
            counters: self.counters.snapshot(),
        }
    }

    /// Also keeps the latest individual events. To be called before the stream begins.
    #[must_use]
    pub fn with_recent_events(mut self) -> Self {
        self.recent = Some(Recent::new());
        self
    }

    /// Sets which individual events are kept.
    pub fn set_event_filter(&mut self, filter: LiveEventFilter) {
        if let Some(recent) = &mut self.recent {
            recent.set_filter(filter);
        }
    }

    /// Returns the latest individual events, if they are kept.
    pub fn recent(&mut self) -> RecentSnapshot {
        self.recent.as_mut().map(|recent| recent.snapshot(&self.symbols)).unwrap_or_default()
    }

    /// Sets which log messages are kept.
    pub fn set_log_filter(&mut self, filter: LogFilter) {
        self.logs.set_filter(filter);
    }

    /// Also keeps the latest samples of allocations. To be called before the stream begins.
    #[must_use]
    pub fn with_allocations(mut self) -> Self {
        self.gc.list_allocations();
        self
    }

    /// Also keeps the latest waits for locks of at least this duration in nanoseconds. To be called before the stream begins.
    #[must_use]
    pub fn with_lock_waits(mut self, min_ns: u64) -> Self {
        self.contention.list_waits(min_ns);
        self
    }

    /// Returns what has occurred after the first `seen` occurrences of this kind, and advances `seen`. `with_stacks`: with the methods of their
    /// stacks, if their events have stacks. `is_over`: no more events will arrive.
    pub fn occurrences(&self, kind: OccurrenceKind, with_stacks: bool, seen: &mut u64, is_over: bool) -> NewOccurrences {
        let (from, symbols) = (*seen, with_stacks.then_some(&self.symbols));
        match kind {
            OccurrenceKind::Collections => NewOccurrences::take(seen, self.gc.after(from, is_over)),
            OccurrenceKind::Exceptions => NewOccurrences::take(seen, self.exceptions.after(from, symbols)),
            OccurrenceKind::Allocations => NewOccurrences::take(seen, self.gc.allocations_after(from, symbols)),
            OccurrenceKind::LockWaits => NewOccurrences::take(seen, self.contention.after(from, symbols)),
            OccurrenceKind::Activities => NewOccurrences::take(seen, self.activities.after(from)),
            OccurrenceKind::Messages => NewOccurrences::take(seen, self.logs.after(from)),
            OccurrenceKind::Events => NewOccurrences::take(seen, self.recent.iter().flat_map(|recent| recent.after(from, symbols))),
        }
    }

    /// Returns all samples, for views by method, as a call tree, as a flame graph or by thread.
    pub fn profile(&self) -> Profile {
        self.methods.profile(&self.symbols)
    }

    /// Returns the heap contents, if the session requested a heap walk and one has begun.
    pub fn heap(&self) -> Option<HeapSnapshot> {
        self.heap.snapshot(&self.symbols)
    }

    /// Returns the number of objects and bytes reported by the heap walk so far.
    pub fn heap_progress(&self) -> Option<(u64, u64)> {
        self.heap.progress()
    }

    /// Adds the CPU times of threads at a timestamp of the stream's clock; they determine how much of the preceding samples is CPU time.
    pub fn add_cpu_times(&mut self, timestamp: i64, times: ThreadCpu) {
        // Without a clock the stream has no samples yet.
        if self.clock.header().is_some() {
            self.methods.add_cpu_times(self.clock.nanoseconds(timestamp), times);
        }
    }

    /// Finishes weighting: no more samples older than the CPU times will arrive.
    pub fn apply_cpu_times(&mut self) {
        self.methods.apply_cpu_times();
    }

    /// Returns the known methods.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Merges the methods reported by another stream of the same process, such as a short session that only collects symbols.
    pub fn add_symbols(&mut self, symbols: &Symbols) {
        self.symbols.merge(symbols);
    }

    /// Returns the known methods, for another pass over the same stream or process.
    pub fn into_symbols(self) -> Symbols {
        self.symbols
    }

    /// Passes an event to its analysis; outside the window only to the symbols, which are needed to interpret other events.
    fn analyze(&mut self, kind: EventKind, event: &Event<'_>) {
        let context = &self.clock.context(kind, event);
        let read = if self.is_within(context.at) { self.route(context) } else { self.symbols.feed(context) };
        if read.is_none() {
            self.unreadable += 1;
        }
    }

    /// Returns whether an event is analyzed only when it is delivered in time order.
    pub fn analyses_later(&self, event: &Event<'_>) -> bool {
        self.kinds.of(event.metadata).is_ordered
    }

    #[inline]
    fn is_within(&self, at: i64) -> bool {
        self.window.as_ref().is_none_or(|window| window.contains(&at))
    }

    /// Counts an event without analyzing it.
    pub fn count_only(&mut self, event: &Event<'_>) {
        self.count(event, self.clock.nanoseconds(event.timestamp()), self.kinds.of(event.metadata));
    }

    /// Counts an event and returns whether it is within the window.
    #[inline]
    fn count(&mut self, event: &Event<'_>, at: i64, kind: Kind) -> bool {
        if kind.is_rundown {
            // When a session is stopped, the runtime writes this event to all of them, and then the rundown to that one.
            if kind.kind == EventKind::ProcessInfo && !self.is_stopped {
                self.session_stopped = Some(at);
            } else if kind.kind != EventKind::ProcessInfo {
                self.is_stopped = true;
                self.session_stopped.get_or_insert(at);
            }
        } else {
            self.newest_recorded = self.newest_recorded.max(at);
        }
        let is_within = self.is_within(at);
        if is_within {
            self.throughput.event(event);
            // The rundown is not part of the recorded activity, which would look small beside it.
            if !kind.is_rundown {
                self.rates.event(at);
            }
            self.newest = self.newest.max(at);
        }
        is_within
    }

    /// Passes an event to its analysis. `None` if its payload is malformed.
    fn route(&mut self, context: &EventContext<'_>) -> Option<()> {
        use EventKind as Kind;
        match context.kind {
            Kind::GcStart
            | Kind::GcEnd
            | Kind::RestartEnd
            | Kind::SuspendBegin
            | Kind::HeapStats
            | Kind::FinalizersBegin
            | Kind::FinalizersEnd
            | Kind::PerHeapHistory
            | Kind::AllocationTick
            | Kind::AllocationSampled => self.gc.feed(context, &self.symbols),
            Kind::BulkType | Kind::BulkNode | Kind::BulkEdge => self.heap.feed(context),
            Kind::ExceptionThrown => self.exceptions.feed(context, &self.symbols),
            Kind::ContentionStart | Kind::ContentionStop => self.contention.feed(context),
            Kind::Workers
            | Kind::AdjustmentSample
            | Kind::Adjustment
            | Kind::MinMaxThreads
            | Kind::WorkEnqueue
            | Kind::WorkDequeue
            | Kind::ThreadCreated => self.thread_pool.feed(context),
            Kind::MethodLoadVerbose | Kind::MethodUnload => {
                self.symbols.feed(context)?;
                self.jit.feed(context)
            }
            Kind::MethodLoad | Kind::JittingStarted | Kind::BackgroundJitStart | Kind::BackgroundJitStop => self.jit.feed(context),
            Kind::MethodRundownVerbose | Kind::ModuleLoad | Kind::ModuleRundown => self.symbols.feed(context),
            Kind::AssemblyLoad | Kind::AssemblyUnload | Kind::AssemblyRundown | Kind::AssemblyLoadStop => self.assemblies.feed(context),
            Kind::ThreadSample => self.methods.feed(context, &self.symbols, self.contention.is_waiting(context.thread)),
            Kind::EventCounter | Kind::Metrics => self.counters.feed(context),
            Kind::LogMessage => self.logs.feed(context),
            Kind::ActivityStart | Kind::ActivityStop | Kind::ActivityFailure | Kind::ActivityDetail => self.activities.feed(context),
            Kind::Other
            | Kind::BulkRootEdge
            | Kind::BulkRootStaticVariable
            | Kind::BulkWeakTableEdge
            | Kind::ContextSwitch
            | Kind::CpuSample
            | Kind::ProcessInfo
            | Kind::ProcessMapping
            | Kind::ProcessName
            | Kind::ProcessSymbol
            | Kind::RuntimeInformation
            | Kind::SampleLosses
            | Kind::SuspendEnd
            | Kind::TaskScheduled
            | Kind::TaskStarted
            | Kind::ThreadTime => {
                debug_assert!(!context.kind.is_analyzed(), "{:?} has no analysis", context.kind);
                Some(())
            }
        }
    }
}

impl Sink for Live {
    forward_sink!(self => [self.throughput]: stacks thread problem);

    fn trace(&mut self, header: &TraceHeader) {
        Sink::trace(&mut self.throughput, header);
        self.clock = Clock::new(header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.throughput.metadata(metadata);
        let (kind, is_rundown) = (EventKind::of(metadata), EventKind::is_written_at_stop(metadata));
        // Rundown events are numerous and independent of time, and so are symbols.
        let is_ordered = kind.is_analyzed()
            && !matches!(kind, EventKind::BulkType | EventKind::BulkNode | EventKind::BulkEdge)
            && !is_rundown
            && self.window.as_ref().is_none_or(|window| !window.is_empty());
        self.contained.add(kind);
        self.kinds.push(Kind { kind, is_rundown, is_ordered });
        if let Some(recent) = &mut self.recent {
            recent.metadata(metadata);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let at = self.clock.nanoseconds(event.timestamp());
        let of = self.kinds.of(event.metadata);
        let Kind { kind, is_ordered, .. } = of;
        let is_within = self.count(event, at, of);
        if let Some(recent) = self.recent.as_mut().filter(|_| is_within) {
            recent.event(at, event, self.clock.pointer_size());
        }
        if is_within && matches!(kind, EventKind::GcStart | EventKind::GcEnd) {
            // A single thread walks the heap, so its events are already in order: the heap analysis need not wait for those of other threads.
            // Malformed payloads are counted when they are analyzed.
            let _ = self.heap.feed(&self.clock.context(kind, event));
        }
        if kind.is_analyzed() && !is_ordered {
            self.analyze(kind, event);
        }
    }

    /// Analyses that pair events of several threads need them in time order.
    fn needs_order(&self, metadata: &Metadata) -> bool {
        self.kinds.of(metadata).is_ordered
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        let Kind { kind, is_ordered, .. } = self.kinds.of(event.metadata);
        if is_ordered {
            self.analyze(kind, event);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        let at = self.clock.nanoseconds(loss.timestamp);
        if self.is_within(at) {
            self.throughput.loss(loss);
            self.rates.lost(at, loss);
        }
        self.heap.events_lost(loss.count);
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        let thread = loss.capture_thread;
        self.gc.lost(thread);
        self.contention.lost(thread);
        self.jit.lost(thread);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.throughput.sequence_point(point);
        self.methods.forget_stacks();
        self.gc.forget_stacks();
        self.exceptions.forget_stacks();
    }
}
