//! Where threads spend their time, of a stream that is read for nothing else: no other analysis, and names only of methods that samples are in.

use std::ops::RangeInclusive;

use crate::clr::EventKind;
use crate::nettrace::{Event, Loss, Metadata, Problem, SequencePoint, Sink, Thread, TraceHeader};

use super::clock::Clock;
use super::contention::Contention;
use super::known::{Analysis, Known};
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
    /// Samples of the kernel outside of it are left out.
    window: RangeInclusive<i64>,
    /// Whether names may be left out: they were not all known from the start.
    selects: bool,
    /// Samples came after names were left out, perhaps theirs.
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
    /// With names that are known from the start: samples are distinguished by method from the first one on, which takes less room.
    pub fn with_symbols(symbols: Symbols) -> Self {
        Self { symbols, selects: false, ..Self::default() }
    }

    /// For the samples of the kernel in a part of a stream, in nanoseconds since the start of its session.
    pub fn within(window: RangeInclusive<i64>) -> Self {
        Self { window, ..Self::default() }
    }

    /// Whether another look with all names known from the start would show more: stacks were put together for want of room, or samples that
    /// came after the first names of a rundown are in methods that were in none before.
    pub fn is_incomplete(&self) -> bool {
        self.selects && (self.late || self.methods.is_folded())
    }

    /// What the stream holds and what of it was lost.
    pub fn throughput(&self) -> &Throughput {
        &self.throughput
    }

    /// The methods that are known.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// All samples, with the names that are known.
    pub fn profile(&self) -> Profile {
        self.methods.profile(&self.symbols)
    }

    /// Samples by the kernel, where the file has such of one process.
    pub fn cpu(&self) -> Option<RecordedCpuTime> {
        self.cpu.time()
    }

    fn kind(&self, metadata: &Metadata) -> EventKind {
        self.kinds.get(metadata.index as usize).copied().unwrap_or_default()
    }

    /// Hands an event to the analysis that it is for; one whose payload is malformed is in none.
    fn analyse(&mut self, event: &Event<'_>) -> Option<()> {
        let (kind, at) = (self.kind(event.metadata), self.clock.nanoseconds(event.timestamp()));
        let known = &Known { kind, event, at, thread: event.thread(), pointer_size: self.pointer_size };
        match kind {
            EventKind::ThreadSample => {
                self.late |= event.stack().is_some_and(|stack| self.symbols.left_out(stack));
                self.methods.feed(known, &self.symbols, self.contention.is_waiting(known.thread))
            }
            EventKind::ContentionStart | EventKind::ContentionStop => self.contention.feed(known),
            EventKind::MethodRundownVerbose => {
                // Names come last: by now it is known which are wanted.
                if self.selects && !self.symbols.selects() && self.methods.count() > 0 {
                    self.symbols.select(self.methods.addresses());
                }
                self.symbols.feed(known)
            }
            EventKind::MethodLoadVerbose | EventKind::ModuleLoad | EventKind::ModuleRundown => self.symbols.feed(known),
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

    /// What a rundown describes does not depend on time, and there is much of it.
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
                self.analyse(event);
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
                    // What is malformed is in no profile.
                    let _ = self.cpu.feed(kind, event, at, self.period_ns);
                }
            }
            _ => {}
        }
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        self.analyse(event);
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
