//! Samples of a stream that is read for nothing else: no other analyses, and names only of methods that occur in samples.

use std::ops::RangeInclusive;

use crate::clr::EventKind;
use crate::nettrace::{ByMetadata, Event, Loss, Metadata, SequencePoint, Sink, TraceHeader, forward_sink};

use super::clock::Clock;
use super::contention::Contention;
use super::recorded_cpu::RecordedCpu;
use super::{Methods, Profile, RecordedCpuTime, Symbols, Throughput};

/// Counts samples by method.
#[derive(Debug, Default)]
pub struct SampledMethods {
    throughput: Throughput,
    clock: Clock,
    kinds: ByMetadata<EventKind>,
    symbols: Symbols,
    contention: Contention,
    methods: Methods,
    cpu: RecordedCpu,
    period_ns: u32,
    /// Samples outside this range are ignored.
    window: Option<RangeInclusive<i64>>,
    /// Whether all names were known from the start. If not, irrelevant ones may be skipped.
    knows_names: bool,
    /// Whether samples arrived after names had been skipped, which may have been theirs.
    late: bool,
}

impl SampledMethods {
    /// Returns an empty instance for the same part of the stream with all names known from the start: samples are distinguished by method from the
    /// beginning, which takes less memory.
    #[must_use]
    pub fn with_symbols(self, symbols: Symbols) -> Self {
        Self { window: self.window, symbols, knows_names: true, ..Self::default() }
    }

    /// Creates an instance for the samples in a part of a stream, in nanoseconds since the start of its session.
    pub fn within(window: RangeInclusive<i64>) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    fn is_within(&self, at: i64) -> bool {
        self.window.as_ref().is_none_or(|window| window.contains(&at))
    }

    /// Returns whether another pass with all names known from the start would be more complete: stacks were folded for lack of room, or
    /// samples that arrived after the first rundown names may be in methods that were skipped.
    pub fn is_incomplete(&self) -> bool {
        !self.knows_names && (self.late || self.methods.is_folded())
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

    /// Passes an event to its analysis. `None` if the payload is malformed.
    fn analyze(&mut self, event: &Event<'_>) -> Option<()> {
        let context = &self.clock.context(self.kinds.of(event.metadata), event);
        match context.kind {
            EventKind::ThreadSample if !self.is_within(context.at) => Some(()),
            EventKind::ThreadSample => {
                self.late |= event.stack().is_some_and(|stack| self.symbols.may_have_skipped(stack));
                self.methods.feed(context, &self.symbols, self.contention.is_waiting(context.thread))
            }
            EventKind::ContentionStart | EventKind::ContentionStop => self.contention.feed(context),
            EventKind::MethodRundownVerbose => {
                // Names come last: by now it is known which are needed.
                if !self.knows_names && !self.symbols.selects() && self.methods.count() > 0 {
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
    forward_sink!(self => [self.throughput]: stacks thread loss problem);

    fn trace(&mut self, header: &TraceHeader) {
        Sink::trace(&mut self.throughput, header);
        self.clock = Clock::new(header);
        self.period_ns = header.sampling_interval_ns;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.throughput.metadata(metadata);
        self.kinds.push(EventKind::of(metadata));
    }

    /// Rundown events are numerous and independent of time.
    fn needs_order(&self, metadata: &Metadata) -> bool {
        matches!(
            self.kinds.of(metadata),
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
        match self.kinds.of(event.metadata) {
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
                if !matches!(kind, EventKind::CpuSample | EventKind::ContextSwitch) || self.is_within(at) {
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

    fn ordered_loss(&mut self, loss: &Loss) {
        self.contention.lost(loss.capture_thread);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.throughput.sequence_point(point);
        self.methods.forget_stacks();
    }
}
