//! Samples of a stream that is read for nothing else: no other analyses, and names only of methods that occur in samples.

use std::ops::RangeInclusive;

use crate::clr::EventKind;
use crate::nettrace::{Event, Loss, Metadata, Problem, SequencePoint, Sink, Thread, TraceHeader};

use super::clock::Clock;
use super::contention::Contention;
use super::event_context::{Analysis, EventContext};
use super::methods::{Methods, Profile};
use super::recorded_cpu::{RecordedCpu, RecordedCpuTime};
use super::symbols::Symbols;
use super::throughput::Throughput;

/// Counts samples by method.
#[derive(Debug)]
pub struct SampledMethods {
    throughput: Throughput,
    clock: Clock,
    /// By metadata index.
    kinds: Vec<EventKind>,
    pointer_size: u8,
    symbols: Symbols,
    contention: Contention,
    methods: Methods,
    cpu: RecordedCpu,
    period_ns: u32,
    /// Kernel samples outside this range are ignored.
    window: RangeInclusive<i64>,
    /// Whether irrelevant names may be skipped: not all names were known from the start.
    selects: bool,
    /// Whether samples arrived after names had been skipped, which may have been theirs.
    late: bool,
}

impl Default for SampledMethods {
    fn default() -> Self {
        Self {
            throughput: Throughput::default(),
            clock: Clock::unknown(),
            kinds: vec![EventKind::Other],
            pointer_size: 8,
            symbols: Symbols::default(),
            contention: Contention::default(),
            methods: Methods::default(),
            cpu: RecordedCpu::default(),
            period_ns: 0,
            window: i64::MIN..=i64::MAX,
            selects: true,
            late: false,
        }
    }
}

impl SampledMethods {
    /// Creates an instance with all names known from the start: samples are distinguished by method from the beginning, which takes less
    /// memory.
    pub fn with_symbols(symbols: Symbols) -> Self {
        Self { symbols, selects: false, ..Self::default() }
    }

    /// Creates an instance for the kernel samples in a part of a stream, in nanoseconds since the start of its session.
    pub fn within(window: RangeInclusive<i64>) -> Self {
        Self { window, ..Self::default() }
    }

    /// Returns whether another pass with all names known from the start would be more complete: stacks were folded for lack of room, or
    /// samples that arrived after the first rundown names may be in methods that were skipped.
    pub fn is_incomplete(&self) -> bool {
        self.selects && (self.late || self.methods.is_folded())
    }

    /// Returns totals of the stream's events and losses.
    pub fn throughput(&self) -> &Throughput {
        &self.throughput
    }

    /// Returns the known methods.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Returns all samples, with the known names.
    pub fn profile(&self) -> Profile {
        self.methods.profile(&self.symbols)
    }

    /// Returns the kernel samples, if the file has any, of a single process.
    pub fn cpu(&self) -> Option<RecordedCpuTime> {
        self.cpu.time()
    }

    fn kind(&self, metadata: &Metadata) -> EventKind {
        self.kinds.get(metadata.index as usize).copied().unwrap_or_default()
    }

    /// Passes an event to its analysis. `None` if the payload is malformed.
    fn analyze(&mut self, event: &Event<'_>) -> Option<()> {
        let (kind, at) = (self.kind(event.metadata), self.clock.nanoseconds(event.timestamp()));
        let context = &EventContext { kind, event, at, thread: event.thread(), pointer_size: self.pointer_size };
        match kind {
            EventKind::ThreadSample => {
                self.late |= event.stack().is_some_and(|stack| self.symbols.may_have_skipped(stack));
                self.methods.feed(context, &self.symbols, self.contention.is_waiting(context.thread))
            }
            EventKind::ContentionStart | EventKind::ContentionStop => self.contention.feed(context),
            EventKind::MethodRundownVerbose => {
                // Names come last: by now it is known which are needed.
                if self.selects && !self.symbols.selects() && self.methods.count() > 0 {
                    self.symbols.select(self.methods.addresses());
                }
                self.symbols.feed(context)
            }
            EventKind::MethodLoadVerbose | EventKind::ModuleLoad | EventKind::ModuleRundown => self.symbols.feed(context),
            _ => Some(()),
        }
    }
}

impl Sink for SampledMethods {
    fn trace(&mut self, header: &TraceHeader) {
        Sink::trace(&mut self.throughput, header);
        self.clock = Clock::new(header);
        self.pointer_size = header.pointer_size;
        self.period_ns = header.sampling_interval_ns;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.throughput.metadata(metadata);
        self.kinds.push(EventKind::of(metadata));
    }

    /// Rundown events are numerous and independent of time.
    fn needs_order(&self, metadata: &Metadata) -> bool {
        matches!(
            self.kind(metadata),
            EventKind::ThreadSample
                | EventKind::ContentionStart
                | EventKind::ContentionStop
                | EventKind::MethodLoadVerbose
                | EventKind::ModuleLoad
        )
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.throughput.event(event);
        match self.kind(event.metadata) {
            EventKind::MethodRundownVerbose | EventKind::ModuleRundown => {
                self.analyze(event);
            }
            kind @ (EventKind::CpuSample
            | EventKind::ContextSwitch
            | EventKind::ProcessName
            | EventKind::ProcessMapping
            | EventKind::ProcessSymbol
            | EventKind::ThreadTime
            | EventKind::SampleLosses) => {
                let at = self.clock.nanoseconds(event.timestamp());
                if !matches!(kind, EventKind::CpuSample | EventKind::ContextSwitch) || self.window.contains(&at) {
                    // A malformed payload is ignored.
                    let _ = self.cpu.feed(kind, event, at, self.period_ns);
                }
            }
            _ => {}
        }
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        self.analyze(event);
    }

    fn stacks(&mut self, count: u32) {
        self.throughput.stacks(count);
    }

    fn thread(&mut self, thread: &Thread) {
        self.throughput.thread(thread);
    }

    fn loss(&mut self, loss: &Loss) {
        self.throughput.loss(loss);
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.contention.lost(loss.capture_thread);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.throughput.sequence_point(point);
        self.methods.forget_stacks();
    }

    fn problem(&mut self, problem: &Problem) {
        self.throughput.problem(problem);
    }
}
