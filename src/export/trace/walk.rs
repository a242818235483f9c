//! Converts events into samples, slices and counters for an export.

use std::io;

use foldhash::HashMap;

use crate::analysis::{CounterKind, CounterReader, LEVELS, Rounds, Symbols};
use crate::clr::EventKind;
use crate::clr::payload::{
    Adjustment, AdjustmentReason, AllocationSampled, AllocationTick, AssemblyLoad, ContextSwitch, ExceptionThrown, Fields, HeapStats,
    Payload, SampleType, Workers,
};
use crate::model::Counted;
use crate::nettrace::{ByMetadata, Event, Loss, Metadata, SequencePoint, Sink, Thread, ThreadId, TraceHeader, Value};
use crate::wire::Utf16;

use super::allocation_rates::AllocationRates;
use super::open_slices::{OpenSlices, flow_of};
use super::output::{Output, Written};
use super::own_events::OwnEvents;
use super::writer::{Allocation, ArgumentValue, Counter, LivePackets, Sample, Track, TrackEvent};
use super::{Finished, Pass};

/// Maximum length of a text, in characters.
const MAX_TEXT: usize = 1000;
/// Maximum length of a log message in the name of its event, in characters.
const MAX_MESSAGE: usize = 200;
/// Maximum number of threads whose sampler round, or end of event loss, is remembered.
const MAX_THREADS: usize = 65_536;

/// Walks through a recording.
pub(super) struct Walk<'w> {
    output: Output<'w>,
    header: TraceHeader,
    kinds: ByMetadata<EventKind>,
    own_events: Option<OwnEvents>,
    open_slices: OpenSlices,
    counters: CounterReader,
    rounds: Rounds,
    /// The sampler round in which each thread was last seen.
    last_rounds: HashMap<ThreadId, u32>,
    allocation_rates: AllocationRates,
    sequence_point: i64,
    /// End of the latest known gap of each capture thread: the next gap starts after it.
    lost_until: HashMap<ThreadId, i64>,
    /// Time of the newest event, in ticks: most events need no other time.
    newest_ticks: i64,
    /// Whether tasks are linked across threads.
    with_tasks: bool,
    /// Whether samples of the runtime are left out.
    without_samples: bool,
    texts: [String; 2],
}

impl<'w> Walk<'w> {
    pub(super) fn new(output: Output<'w>, with_tasks: bool, without_samples: bool, own_events: Option<OwnEvents>) -> Self {
        Self {
            output,
            header: TraceHeader::default(),
            kinds: ByMetadata::default(),
            own_events,
            open_slices: OpenSlices::default(),
            counters: CounterReader::default(),
            rounds: Rounds::default(),
            last_rounds: HashMap::default(),
            allocation_rates: AllocationRates::default(),
            sequence_point: 0,
            lost_until: HashMap::default(),
            newest_ticks: 0,
            with_tasks,
            without_samples,
            texts: Default::default(),
        }
    }

    /// Ends everything still open.
    pub(super) fn end(&mut self) -> io::Result<Written> {
        let newest = self.newest();
        std::mem::take(&mut self.allocation_rates).finish(newest, &mut self.output);
        std::mem::take(&mut self.open_slices).finish(newest, &mut self.output);
        self.output.finish(newest)
    }

    /// Takes the packets written so far.
    pub(super) fn take(&mut self) -> LivePackets {
        self.output.take()
    }

    /// Describes everything again. `lost` is the time since which packets are missing, and their number.
    pub(super) fn restart(&mut self, lost: Option<(i64, u64)>) {
        self.output.restart(lost.is_some());
        if let Some((since, packets)) = lost {
            let name = format!("{:#} lost: the tracing service did not accept them in time", Counted(packets, "packet"));
            self.note_loss(&name, since, &[("packets", ArgumentValue::Count(packets))]);
        }
    }

    /// Adds a slice that shows missing data between `since` and now.
    pub(super) fn note_loss(&mut self, name: &str, since: i64, arguments: &[(&'static str, ArgumentValue<'_>)]) {
        let slice = TrackEvent::slice(ThreadId::default(), "lost", name, since.min(self.newest()), self.newest(), arguments);
        self.output.event(TrackEvent { track: Track::LostPackets, ..slice });
    }

    /// Returns the time of the newest event.
    pub(super) fn newest(&self) -> i64 {
        self.at(self.newest_ticks)
    }

    /// Sets the names of methods that arrived after the stacks.
    pub(super) fn set_symbols(&mut self, symbols: Symbols) {
        self.output.stacks.set_symbols(symbols);
    }

    fn at(&self, timestamp: i64) -> i64 {
        self.header.nanoseconds_between(self.header.sync_ticks, timestamp)
    }

    /// Returns the kind of the events that a metadata record describes.
    pub(super) fn kind(&self, metadata: &Metadata) -> EventKind {
        self.kinds.of(metadata)
    }

    fn sample(&mut self, event: &Event<'_>, at: i64) {
        let Some(kind) = self.read::<SampleType>(event) else { return };
        let thread = event.thread();
        if self.last_rounds.len() >= MAX_THREADS {
            self.last_rounds.clear();
        }
        let seen = self.last_rounds.entry(thread).or_insert(Rounds::NEVER);
        let (round, weight) = self.rounds.sample(*seen, at);
        *seen = round;
        let duration = i64::try_from(weight).unwrap_or(i64::MAX);
        let node = self.output.stacks.add(event);
        self.output.sample(&Sample { thread, at, duration, node, is_native: kind != SampleType::Managed });
    }

    /// Adds a sample that the kernel took on a CPU.
    fn cpu_sample(&mut self, event: &Event<'_>, at: i64) {
        let node = self.output.stacks.add(event);
        let duration = self.header.sampling_interval_ns.into();
        self.output.sample(&Sample { thread: event.thread(), at, duration, node, is_native: false });
    }

    fn context_switch(&mut self, event: &Event<'_>, at: i64) {
        let Some(ContextSwitch { duration_ns }) = self.read(event) else { return };
        let end = at.saturating_add_unsigned(duration_ns);
        self.add(event, TrackEvent::slice(event.thread(), "sched", "Off CPU", at, end, &[]));
    }

    /// Resets the stacks if there are too many.
    fn make_room(&mut self) {
        if self.output.clear_stacks() {
            self.open_slices.forget_stacks();
        }
    }

    fn read<'a, P: Payload<'a>>(&self, event: &Event<'a>) -> Option<P> {
        P::read(Fields::of(event, self.header.pointer_size))
    }

    /// Adds what an event of the recording becomes, with its stack.
    fn add(&mut self, event: &Event<'_>, added: TrackEvent<'_>) {
        let node = self.output.stacks.add(event);
        self.output.event(TrackEvent { node, ..added });
    }

    fn allocated(&mut self, event: &Event<'_>, at: i64, bytes: u64, is_sampled: bool) {
        let thread = event.thread();
        if !self.allocation_rates.add(thread.process, at, bytes, is_sampled, &mut self.output) {
            return;
        }
        let node = self.output.stacks.add(event);
        self.output.allocation(thread, &Allocation { process: thread.process, at, bytes, node });
    }

    /// Adds an event of a task. A flow connects the point where it is scheduled or awaited with the one where it starts.
    fn task(&mut self, event: &Event<'_>, at: i64) {
        let id = event.values().into_iter().find_map(|(field, value)| match value {
            // The last one is the name in .NET Core 3.x.
            Value::Int(id) if ["TaskID", "ContinueWithTaskId", "ContinuwWithTaskId"].contains(&field.name.as_str()) => {
                u64::try_from(id).ok()
            }
            _ => None,
        });
        let Some(id) = id else { return };
        let name = match event.metadata.event_id {
            7 => "Task scheduled",
            10 => "Task awaited",
            12 => "Continuation scheduled",
            8 => "Task started",
            _ => "Continuation started",
        };
        // Task ids are unique within a process.
        let process = event.thread().process_or(self.header.process_id);
        let flow = flow_of(u128::from(u64::from(process) << 32 ^ id).to_le_bytes());
        let arguments = [("task", ArgumentValue::Count(id))];
        self.add(event, TrackEvent { flows: [flow, 0], ..TrackEvent::instant(event, at, "task", name, &arguments) });
    }

    fn log_message(&mut self, event: &Event<'_>, at: i64) {
        let (mut level, mut id, mut category, mut message) = (0, 0, Utf16::default(), Utf16::default());
        // If there is a message, it is the last text. .NET Core 3.x writes a null event name as no bytes instead of an empty text: then each text
        // after it is read as the field before it.
        let has_message = event.metadata.fields.iter().any(|field| field.name == "FormattedMessage");
        for (field, value) in event.values() {
            match (field.name.as_str(), value) {
                ("Level", Value::Int(value)) => level = value,
                ("EventId", Value::Int(value)) => id = value,
                ("LoggerName", Value::Text(value)) => category = value,
                ("EventName" | "ExceptionJson" | "ArgumentsJson" | "FormattedMessage", Value::Text(value)) if has_message => {
                    message = value
                }
                _ => {}
            }
        }
        let [mut text, mut logger] = std::mem::take(&mut self.texts);
        message.copy_prefix(&mut text, MAX_MESSAGE);
        category.copy_prefix(&mut logger, MAX_TEXT);
        let level = LEVELS[usize::try_from(level).unwrap_or(0).min(LEVELS.len() - 1)];
        let arguments = [
            ("level", ArgumentValue::Text(level)),
            ("category", ArgumentValue::Text(&logger)),
            ("event id", ArgumentValue::Number(id as f64)),
        ];
        self.add(event, TrackEvent::instant(event, at, "log", &text, &arguments));
        self.texts = [text, logger];
    }

    /// Returns `None` if the payload is malformed.
    fn convert(&mut self, kind: EventKind, event: &Event<'_>, at: i64) -> Option<()> {
        use EventKind as Kind;
        match kind {
            Kind::HeapStats => {
                let heap: HeapStats = self.read(event)?;
                self.open_slices.promoted(
                    event.thread(),
                    heap.generations.iter().fold(0, |sum: u64, generation| sum.saturating_add(generation.promoted)),
                );
                let pinned = heap.pinned_heap.map(|heap| heap.size);
                let sizes = heap.generations.iter().map(|generation| generation.size).chain(pinned);
                for (index, size) in sizes.enumerate() {
                    self.output.counter(event.thread().process, &Counter::Heap(index), at, size as f64);
                }
            }
            Kind::AllocationTick => {
                let tick: AllocationTick<'_> = self.read(event)?;
                self.allocated(event, at, tick.amount, false);
            }
            Kind::AllocationSampled => {
                let sampled: AllocationSampled<'_> = self.read(event)?;
                self.allocated(event, at, sampled.weight(), true);
            }
            Kind::ExceptionThrown => {
                let thrown: ExceptionThrown<'_> = self.read(event)?;
                let [mut name, mut message] = std::mem::take(&mut self.texts);
                thrown.type_name.copy_prefix(&mut name, MAX_TEXT);
                thrown.message.copy_prefix(&mut message, MAX_TEXT);
                let arguments = [
                    ("message", ArgumentValue::Text(&message)),
                    ("HRESULT", ArgumentValue::Count(thrown.hresult.into())),
                    ("rethrown", ArgumentValue::Flag(thrown.is_rethrown())),
                ];
                self.add(event, TrackEvent::instant(event, at, "exception", &name, &arguments));
                self.texts = [name, message];
            }
            Kind::Workers => {
                let workers: Workers = self.read(event)?;
                self.output.counter(event.thread().process, &Counter::Workers, at, workers.active.into());
                let name = match event.metadata.event_id {
                    50 => "Worker started",
                    51 => "Worker stopped",
                    _ => return Some(()),
                };
                let arguments = [("workers", ArgumentValue::Count(workers.active.into()))];
                self.add(event, TrackEvent::instant(event, at, "threadpool", name, &arguments));
            }
            Kind::Adjustment => {
                let Adjustment { workers, reason, .. } = self.read(event)?;
                self.output.counter(event.thread().process, &Counter::Workers, at, workers.into());
                if reason == AdjustmentReason::STARVATION {
                    let arguments = [("workers", ArgumentValue::Count(workers.into()))];
                    let starvation = TrackEvent::instant(event, at, "threadpool", "Thread pool starvation", &arguments);
                    self.add(event, TrackEvent { track: Track::ThreadPool, flows: [0; 2], ..starvation });
                }
            }
            Kind::AssemblyLoad => {
                let load: AssemblyLoad<'_> = self.read(event)?;
                let [mut name, mut words] = std::mem::take(&mut self.texts);
                load.full_name.copy_prefix(&mut name, MAX_TEXT);
                words.clear();
                words.extend(["Load ", name.split(',').next().unwrap_or_default()]);
                self.add(event, TrackEvent::instant(event, at, "loader", &words, &[("assembly", ArgumentValue::Text(&name))]));
                self.texts = [name, words];
            }
            Kind::LogMessage => self.log_message(event, at),
            Kind::EventCounter | Kind::Metrics => {
                let value = self.counters.read(kind, event, at, self.header.pointer_size)?;
                let [name, unit] = &mut self.texts;
                name.clear();
                name.push_str(value.name);
                if !value.tags.is_empty() {
                    name.extend([" {", value.tags, "}"]);
                }
                unit.clear();
                unit.push_str(value.unit);
                if value.kind == CounterKind::Counter {
                    unit.push_str(if value.unit.is_empty() { "1/s" } else { "/s" });
                }
                let counter = Counter::Published { group: value.group, name, unit };
                self.output.counter(event.thread().process, &counter, at, value.value);
            }
            Kind::TaskScheduled | Kind::TaskStarted => self.task(event, at),
            _ => {
                let node = if matches!(kind, Kind::ContentionStart) { self.output.stacks.add(event) } else { 0 };
                self.open_slices.feed(kind, event, at, self.header.pointer_size, node, &mut self.output)?;
            }
        }
        Some(())
    }
}

impl Pass for Walk<'_> {
    fn finish(mut self: Box<Self>) -> io::Result<Finished> {
        self.end().map(Finished::Part)
    }
}

impl Sink for Walk<'_> {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = *header;
        self.newest_ticks = header.sync_ticks;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(EventKind::of(metadata));
        self.own_events.iter_mut().for_each(|own| own.metadata(metadata));
    }

    fn needs_order(&self, metadata: &Metadata) -> bool {
        match self.kind(metadata) {
            EventKind::TaskScheduled | EventKind::TaskStarted => self.with_tasks,
            EventKind::SuspendEnd => true,
            // They do not pair with other events, and readers sort them.
            EventKind::ExceptionThrown | EventKind::LogMessage => false,
            // Rundown events describe existing state; they are not part of the recording.
            kind => kind.is_analyzed() && kind != EventKind::ThreadSample && !EventKind::is_written_at_stop(metadata),
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.newest_ticks = self.newest_ticks.max(event.timestamp());
        match self.kind(event.metadata) {
            EventKind::ThreadSample if !self.without_samples => self.sample(event, self.at(event.timestamp())),
            EventKind::CpuSample => self.cpu_sample(event, self.at(event.timestamp())),
            EventKind::ContextSwitch => self.context_switch(event, self.at(event.timestamp())),
            kind @ (EventKind::ExceptionThrown | EventKind::LogMessage) => {
                // A malformed payload is ignored.
                let _ = self.convert(kind, event, self.at(event.timestamp()));
            }
            EventKind::Other => {
                let (at, pointer_size) = (self.at(event.timestamp()), self.header.pointer_size);
                self.own_events.iter_mut().for_each(|own| own.add(event, at, pointer_size, &mut self.output));
            }
            _ => return,
        }
        self.make_room();
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        let (kind, at) = (self.kind(event.metadata), self.at(event.timestamp()));
        // A malformed payload is ignored.
        let _ = self.convert(kind, event, at);
        self.make_room();
    }

    fn thread(&mut self, thread: &Thread) {
        self.output.set_thread_name(thread);
    }

    fn loss(&mut self, loss: &Loss) {
        let (thread, end) = (loss.capture_thread, self.at(loss.timestamp));
        let name = format!("{:#} lost", Counted(loss.count.into(), "event"));
        let arguments = [("events", ArgumentValue::Count(loss.count.into())), ("thread", ArgumentValue::Count(thread.thread))];
        if self.lost_until.len() >= MAX_THREADS {
            self.lost_until.clear();
        }
        let lost_until = self.lost_until.entry(thread).or_insert(self.sequence_point);
        let since = self.sequence_point.max(*lost_until).min(end);
        *lost_until = end.max(*lost_until);
        let slice = TrackEvent::slice(thread, "lost", &name, since, end, &arguments);
        self.output.event(TrackEvent { track: Track::LostEvents, ..slice });
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.open_slices.lost(loss.capture_thread);
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.sequence_point = self.at(point.timestamp);
        self.output.stacks.clear_stack_ids();
    }
}
