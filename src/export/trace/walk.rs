//! Events in, what they mean for an export out.

use std::collections::HashSet as StdSet;
use std::io;
use std::ops::RangeInclusive;

use foldhash::{HashMap, HashSet};

use crate::analysis::{CounterReader, LEVELS, Rounds};
use crate::clr::EventKind;
use crate::clr::payload::{
    Adjustment, AdjustmentReason, AllocationSampled, AllocationTick, AssemblyLoad, ExceptionThrown, Fields, HeapStats, Payload, SampleType,
    ThreadSample, Workers,
};
use crate::nettrace::{Event, Loss, Metadata, SequencePoint, Sink, Thread, ThreadId, TraceHeader, Value};
use crate::wire::Utf16;

use super::began::Began;
use super::stacks::{NodeId, Stacks};
use super::writer::{Counter, Fact, Instant, Sample, Slice, Track, Writer};

/// Characters of a text that are kept.
const TEXT: usize = 1000;
/// Characters of a log message that are its name.
const MESSAGE: usize = 200;
/// How often the allocation rate has a value, nanoseconds.
const ALLOCATION_STEP: i64 = 100_000_000;
/// Most threads whose round of the sampler is remembered.
const SAMPLED: usize = 65_536;

/// What of a recording is exported.
#[derive(Debug, Clone)]
pub struct Part {
    /// Nanoseconds since the start of the session.
    pub window: RangeInclusive<i64>,
    /// Threads by their id in the operating system; empty for all.
    pub threads: StdSet<u64>,
}

impl Default for Part {
    fn default() -> Self {
        Self { window: i64::MIN..=i64::MAX, threads: StdSet::new() }
    }
}

impl Part {
    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread.thread)
    }
}

/// Where what is found goes: to the format, as far as it is in the part that was asked for.
pub(super) struct Output<'w> {
    writer: Box<dyn Writer + 'w>,
    pub(super) stacks: Stacks,
    part: Part,
    /// The threads that the format knows.
    told: HashSet<ThreadId>,
    names: HashMap<ThreadId, String>,
    /// Why nothing more can be written.
    error: Option<io::Error>,
}

impl Output<'_> {
    fn put(&mut self, write: impl FnOnce(&mut dyn Writer, &Stacks) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut *self.writer, &self.stacks).err();
        }
    }

    /// Has the format know a thread, and says whether it is wanted.
    fn thread(&mut self, thread: ThreadId) -> bool {
        let wanted = self.part.has(thread);
        if wanted && self.told.insert(thread) {
            let name = self.names.remove(&thread).unwrap_or_default();
            self.put(|writer, _| writer.thread(thread, &name));
        }
        wanted
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        if self.part.window.contains(&sample.at) && self.thread(sample.thread) {
            self.put(|writer, stacks| writer.sample(sample, stacks));
        }
    }

    pub(super) fn slice(&mut self, mut slice: Slice<'_>) {
        if let Track::Thread(thread) = slice.track
            && !self.thread(thread)
        {
            return;
        }
        slice.start = slice.start.max(*self.part.window.start());
        slice.end = slice.end.min(*self.part.window.end());
        if slice.start <= slice.end {
            self.put(|writer, stacks| writer.slice(&slice, stacks));
        }
    }

    pub(super) fn instant(&mut self, instant: &Instant<'_>) {
        if self.part.window.contains(&instant.at) && self.thread(instant.thread) {
            self.put(|writer, stacks| writer.instant(instant, stacks));
        }
    }

    pub(super) fn counter(&mut self, counter: &Counter<'_>, at: i64, value: f64) {
        // What is no number has no place on a graph.
        if self.part.window.contains(&at) && value.is_finite() {
            self.put(|writer, _| writer.counter(counter, at, value));
        }
    }
}

/// Walks through a recording.
pub(super) struct Walk<'w> {
    output: Output<'w>,
    header: TraceHeader,
    /// By metadata index.
    kinds: Vec<EventKind>,
    began: Began,
    counters: CounterReader,
    rounds: Rounds,
    /// The round of the sampler that each thread was last seen in.
    seen: HashMap<ThreadId, u32>,
    /// Bytes allocated in the step that ends at this moment.
    allocated: (u64, i64),
    sequence_point: i64,
    newest: i64,
    texts: [String; 2],
}

impl<'w> Walk<'w> {
    pub(super) fn new(writer: Box<dyn Writer + 'w>, stacks: Stacks, part: Part) -> Self {
        let output = Output { writer, stacks, part, told: HashSet::default(), names: HashMap::default(), error: None };
        Self {
            output,
            header: TraceHeader::default(),
            kinds: vec![EventKind::Other],
            began: Began::default(),
            counters: CounterReader::default(),
            rounds: Rounds::default(),
            seen: HashMap::default(),
            allocated: (0, i64::MIN),
            sequence_point: 0,
            newest: 0,
            texts: Default::default(),
        }
    }

    /// Ends what is still open.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.began.finish(self.newest, &mut self.output);
        let end = self.newest.min(*self.output.part.window.end());
        self.output.put(|writer, stacks| writer.finish(end, stacks));
        self.output.error.map_or(Ok(()), Err)
    }

    fn at(&self, timestamp: i64) -> i64 {
        self.header.nanoseconds_between(self.header.sync_ticks, timestamp)
    }

    fn kind(&self, metadata: &Metadata) -> EventKind {
        self.kinds.get(metadata.index as usize).copied().unwrap_or_default()
    }

    fn sample(&mut self, event: &Event<'_>, at: i64) {
        let Some(ThreadSample { kind }) = self.read(event) else { return };
        let thread = event.thread();
        if self.seen.len() >= SAMPLED {
            self.seen.clear();
        }
        let seen = self.seen.entry(thread).or_insert(Rounds::NEVER);
        let (round, weight) = self.rounds.sample(*seen, at);
        *seen = round;
        let duration = i64::try_from(weight).unwrap_or(i64::MAX);
        let node = self.output.stacks.add(event.stack_id(), event.stack());
        self.output.sample(&Sample { thread, at, duration, node, is_native: kind != SampleType::Managed });
        if self.output.stacks.is_full() {
            self.began.forget_stacks();
            self.output.put(|writer, stacks| writer.stacks_cleared(stacks));
            self.output.stacks.clear();
        }
    }

    fn read<'a, P: Payload<'a>>(&self, event: &Event<'a>) -> Option<P> {
        P::read(Fields::of(event, self.header.pointer_size))
    }

    fn node(&mut self, event: &Event<'_>) -> NodeId {
        self.output.stacks.add(event.stack_id(), event.stack())
    }

    fn instant(&mut self, event: &Event<'_>, at: i64, category: &'static str, name: &str, facts: &[(&'static str, Fact<'_>)]) {
        let node = self.node(event);
        self.output.instant(&Instant { thread: event.thread(), category, name, at, node, facts });
    }

    fn allocated(&mut self, at: i64, bytes: u64) {
        let (sum, end) = &mut self.allocated;
        if at >= *end {
            if *sum > 0 {
                let (rate, moment) = (*sum as f64 * 1e9 / ALLOCATION_STEP as f64, *end - ALLOCATION_STEP);
                self.output.counter(&Counter::AllocationRate, moment, rate);
                if at >= end.saturating_add(ALLOCATION_STEP) {
                    self.output.counter(&Counter::AllocationRate, *end, 0.0);
                }
            }
            (*sum, *end) = (0, at.saturating_add(ALLOCATION_STEP));
        }
        *sum = sum.saturating_add(bytes);
    }

    fn log_message(&mut self, event: &Event<'_>, at: i64) {
        let (mut level, mut id) = (0, 0);
        let [mut text, mut logger] = std::mem::take(&mut self.texts);
        for (field, value) in event.values() {
            match (field.name.as_str(), value) {
                ("Level", Value::Int(value)) => level = value,
                ("EventId", Value::Int(value)) => id = value,
                ("LoggerName", Value::Text(value)) => set(&mut logger, value, TEXT),
                ("FormattedMessage", Value::Text(value)) => set(&mut text, value, MESSAGE),
                _ => {}
            }
        }
        let level = LEVELS[usize::try_from(level).unwrap_or(0).min(LEVELS.len() - 1)];
        let facts = [("level", Fact::Text(level)), ("category", Fact::Text(&logger)), ("event id", Fact::Number(id as f64))];
        self.instant(event, at, "log", &text, &facts);
        self.texts = [text, logger];
    }

    /// `None` where the payload makes no sense.
    fn known(&mut self, kind: EventKind, event: &Event<'_>, at: i64) -> Option<()> {
        use EventKind as Kind;
        match kind {
            Kind::HeapStats => {
                let heap: HeapStats = self.read(event)?;
                self.began.promoted(event.thread(), heap.generations.iter().map(|generation| generation.promoted).sum());
                let pinned = heap.pinned_heap.map(|heap| heap.size);
                let sizes = heap.generations.iter().map(|generation| generation.size).chain(pinned);
                for (index, size) in sizes.enumerate() {
                    self.output.counter(&Counter::Heap(index), at, size as f64);
                }
            }
            Kind::AllocationTick => {
                let tick: AllocationTick<'_> = self.read(event)?;
                self.allocated(at, tick.amount);
            }
            Kind::AllocationSampled => {
                let _: AllocationSampled<'_> = self.read(event)?;
                // One in about 100 KB (see the clr room).
                self.allocated(at, 102_400);
            }
            Kind::ExceptionThrown => {
                let thrown: ExceptionThrown<'_> = self.read(event)?;
                let [mut name, mut message] = std::mem::take(&mut self.texts);
                set(&mut name, thrown.type_name, TEXT);
                set(&mut message, thrown.message, TEXT);
                let facts = [
                    ("message", Fact::Text(&message)),
                    ("HRESULT", Fact::Count(thrown.hresult.into())),
                    ("rethrown", Fact::Flag(thrown.is_rethrown())),
                ];
                self.instant(event, at, "exception", &name, &facts);
                self.texts = [name, message];
            }
            Kind::Workers => {
                let workers: Workers = self.read(event)?;
                self.output.counter(&Counter::Workers, at, workers.active.into());
            }
            Kind::Adjustment => {
                let Adjustment { workers, reason, .. } = self.read(event)?;
                self.output.counter(&Counter::Workers, at, workers.into());
                if reason == AdjustmentReason::STARVATION {
                    self.instant(event, at, "threadpool", "Thread pool starvation", &[("workers", Fact::Count(workers.into()))]);
                }
            }
            Kind::AssemblyLoad => {
                let load: AssemblyLoad<'_> = self.read(event)?;
                let [mut name, mut words] = std::mem::take(&mut self.texts);
                set(&mut name, load.full_name, TEXT);
                words.clear();
                words.extend(["Load ", name.split(',').next().unwrap_or_default()]);
                self.instant(event, at, "loader", &words, &[("assembly", Fact::Text(&name))]);
                self.texts = [name, words];
            }
            Kind::LogMessage => self.log_message(event, at),
            Kind::EventCounter | Kind::Metrics => {
                let value = self.counters.read(kind, event, at, self.header.pointer_size)?;
                let name = &mut self.texts[0];
                name.clear();
                name.push_str(value.name);
                if !value.tags.is_empty() {
                    name.extend([" {", value.tags, "}"]);
                }
                let counter = Counter::Published { group: value.group, name, unit: value.unit };
                self.output.counter(&counter, at, value.value);
            }
            _ => {
                let node = if matches!(kind, Kind::ContentionStart) { self.node(event) } else { 0 };
                self.began.feed(kind, event, at, self.header.pointer_size, node, &mut self.output)?;
            }
        }
        Some(())
    }
}

/// Replaces a text by the start of another, in the same memory.
pub(super) fn set(text: &mut String, from: Utf16<'_>, most: usize) {
    text.clear();
    text.extend(from.chars().take(most));
}

impl Sink for Walk<'_> {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = *header;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(EventKind::of(metadata));
    }

    fn wants_order(&self, metadata: &Metadata) -> bool {
        !matches!(self.kind(metadata), EventKind::Other | EventKind::ThreadSample)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let at = self.at(event.timestamp());
        self.newest = self.newest.max(at);
        if self.kind(event.metadata) == EventKind::ThreadSample {
            self.sample(event, at);
        }
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        let (kind, at) = (self.kind(event.metadata), self.at(event.timestamp()));
        // One whose payload makes no sense has nothing to show.
        let _ = self.known(kind, event, at);
    }

    fn thread(&mut self, thread: &Thread) {
        if !thread.name.is_empty() && self.output.names.len() < SAMPLED {
            self.output.names.insert(thread.id, thread.name.clone());
        }
    }

    fn loss(&mut self, loss: &Loss) {
        let at = self.at(loss.timestamp);
        let name = format!("{} events lost", loss.count);
        self.output.slice(Slice {
            track: Track::LostEvents,
            category: "lost",
            name: &name,
            start: self.sequence_point.min(at),
            end: at,
            node: 0,
            facts: &[("events", Fact::Count(loss.count.into())), ("thread", Fact::Count(loss.capture_thread.thread))],
        });
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.began.lost(loss.capture_thread);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.sequence_point = self.at(point.timestamp);
        self.output.stacks.forget_numbers();
    }
}
