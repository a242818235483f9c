//! Counts the events of a stream by kind, and losses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

use foldhash::{HashMap, HashSet};

use super::clock::Clock;
use super::event_count::EventCount;
use crate::clr::events;
use crate::nettrace::{Counts, Event, Loss, LossKind, Metadata, Problem, ProblemKind, SequencePoint, Sink, Thread, ThreadId, TraceHeader};
use crate::sorting::CompactSort;
use crate::wire::Utf16;

/// Maximum number of distinct threads.
const THREAD_LIMIT: usize = 1 << 18;

/// Maximum number of thread names, of up to 256 bytes each.
const NAMED_THREADS: usize = 1 << 14;

/// Maximum number of distinct event names found in payloads, and the maximum size of such a name in bytes.
const NAMES: usize = 64;
const NAME: usize = 256;

/// Size of the direct-mapped cache of known threads, indexed by the low bits of their IDs.
const THREAD_CACHE_SIZE: usize = 64;

/// Counts the contents of a stream.
#[derive(Debug)]
pub struct Throughput {
    clock: Clock,
    /// The part that is counted, in nanoseconds since the start of the session; `None` for the whole stream.
    window: Option<RangeInclusive<i64>>,
    totals: Totals,
    /// By metadata index; the first counts events without metadata.
    kinds: Vec<Kind>,
    /// Count and bytes of events whose names are in their payloads, by metadata index and name; also included in `kinds`.
    dynamic: Vec<(u32, Box<[u8]>, u64, u64)>,
    threads: HashSet<ThreadId>,
    thread_names: HashMap<ThreadId, String>,
    /// Cache of `threads` by the low bits of their IDs, which covers most events.
    thread_cache: [Option<ThreadId>; THREAD_CACHE_SIZE],
    first_timestamp: i64,
    last_timestamp: i64,
    /// Count and first position.
    problems: BTreeMap<ProblemKind, (u64, u64)>,
}

#[derive(Debug, Default)]
struct Kind {
    provider: String,
    event_id: u32,
    name: String,
    count: u64,
    bytes: u64,
    is_dynamic: bool,
}

/// Totals of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of events.
    pub events: u64,
    /// Payload bytes.
    pub payload_bytes: u64,
    /// Number of events dropped by the runtime: gaps in the sequence numbers of a thread, or before a sequence point.
    pub dropped: u64,
    /// Number of events missing before the first event of their thread. Other readers do not count these; not included in `dropped`.
    pub dropped_at_start: u64,
    /// Number of stacks defined in the stream.
    pub stacks: u64,
    /// Number of threads with events. At most 2^18 are distinguished.
    pub threads: u64,
    /// Number of sequence points.
    pub sequence_points: u64,
    /// Number of problems with parts of the stream.
    pub problems: u64,
    /// Time between the oldest and the newest event, in nanoseconds.
    pub duration_ns: u64,
}

/// Number of problems of one kind with parts of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemCount {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Number of occurrences.
    pub count: u64,
    /// First occurrence, as an offset from the start of the stream.
    pub first: u64,
}

impl fmt::Display for ProblemCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, count, first } = self;
        match count {
            1 => write!(f, "{kind}, at byte {first}"),
            _ => write!(f, "{kind}: {count} times, first at byte {first}"),
        }
    }
}

impl Default for Throughput {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            window: None,
            totals: Totals::default(),
            kinds: vec![Kind::default()],
            dynamic: Vec::new(),
            threads: HashSet::default(),
            thread_names: HashMap::default(),
            thread_cache: [None; THREAD_CACHE_SIZE],
            first_timestamp: i64::MAX,
            last_timestamp: i64::MIN,
            problems: BTreeMap::new(),
        }
    }
}

impl Throughput {
    /// Counts events, losses and sequence points only between two times in nanoseconds since the start of the session. Stacks, names of threads
    /// and problems, which have no time, are those of the whole stream.
    pub fn within(window: RangeInclusive<i64>) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// Returns the trace header, once it has arrived.
    pub fn trace(&self) -> Option<&TraceHeader> {
        self.clock.header()
    }

    #[inline]
    fn is_within(&self, timestamp: i64) -> bool {
        self.window.as_ref().is_none_or(|window| window.contains(&self.clock.nanoseconds(timestamp)))
    }

    /// Returns the problems with parts of the stream, in order of first occurrence.
    pub fn problems(&self) -> Vec<ProblemCount> {
        let count = |(kind, (count, first)): (&ProblemKind, &(u64, u64))| ProblemCount { kind: *kind, count: *count, first: *first };
        let mut problems: Vec<_> = self.problems.iter().map(count).collect();
        problems.compact_sort_by_key(|problem| (problem.first, problem.kind));
        problems
    }

    /// Returns whether content of the stream may be missing from the counts: a part of it could not be read, or was not kept.
    pub fn loses_content(&self) -> bool {
        self.problems.keys().any(|kind| kind.loses_content())
    }

    /// Returns the names of threads, if the stream has them (V6), in ascending order of the threads; not sanitized.
    pub fn thread_names(&self) -> Vec<(ThreadId, String)> {
        let mut names: Vec<_> = self.thread_names.iter().map(|(thread, name)| (*thread, name.clone())).collect();
        names.sort_unstable();
        names
    }

    /// Returns the timestamps of the oldest and the newest event, on the stream's own clock.
    pub fn span(&self) -> Option<(i64, i64)> {
        (self.first_timestamp <= self.last_timestamp).then_some((self.first_timestamp, self.last_timestamp))
    }

    /// Returns the totals so far.
    pub fn snapshot(&self) -> Totals {
        let duration = self.span().zip(self.trace()).map(|((first, last), trace)| trace.nanoseconds_between(first, last));
        Totals {
            events: self.kinds.iter().map(|kind| kind.count).sum(),
            payload_bytes: self.kinds.iter().map(|kind| kind.bytes).sum(),
            threads: self.threads.len() as u64,
            problems: self.problems.values().map(|(count, _)| count).sum(),
            duration_ns: duration.unwrap_or(0).unsigned_abs(),
            ..self.totals
        }
    }

    /// Returns the providers of the events.
    pub fn providers(&self) -> BTreeSet<String> {
        self.kinds.iter().filter(|kind| kind.count > 0).map(|kind| kind.provider.clone()).collect()
    }

    /// Returns the event counts, sorted by provider, event ID and name. Versions of an event are combined.
    pub fn counts(&self) -> Vec<EventCount> {
        let mut sums = BTreeMap::new();
        let mut add = |provider: &String, event_id: u32, name: String, (count, bytes): (u64, u64)| {
            let sum: &mut (u64, u64) = sums.entry((provider.clone(), event_id, name)).or_default();
            sum.0 += count;
            sum.1 += bytes;
        };
        for (index, kind) in (0_u32..).zip(&self.kinds) {
            let Kind { provider, event_id, name, .. } = kind;
            let mut rest = (kind.count, kind.bytes);
            for (_, name, count, bytes) in self.dynamic.iter().filter(|(of, ..)| *of == index) {
                rest = (rest.0 - count, rest.1 - bytes);
                add(provider, *event_id, events::dynamic_title(Utf16::new(name)), (*count, *bytes));
            }
            let name = if name.is_empty() { events::name(provider, *event_id).unwrap_or_default() } else { name };
            if rest.0 > 0 {
                add(provider, *event_id, name.to_owned(), rest);
            }
        }
        let named = |((provider, event_id, name), (count, bytes))| EventCount { provider, event_id, name, count, bytes };
        sums.into_iter().map(named).collect()
    }

    /// Counts an event by the name in its payload.
    #[cold]
    fn named(&mut self, event: &Event<'_>) {
        let Some(name) = events::dynamic_name(event.payload) else { return };
        let name = name.as_bytes();
        let name = &name[..name.len().min(NAME)];
        let index = event.metadata.index;
        let bytes = event.payload.len() as u64;
        if let Some((.., count, sum)) = self.dynamic.iter_mut().find(|(of, known, ..)| *of == index && **known == *name) {
            *count += 1;
            *sum += bytes;
        } else if self.dynamic.len() < NAMES {
            self.dynamic.push((index, name.into(), 1, bytes));
        }
    }
}

impl Sink for Throughput {
    fn trace(&mut self, header: &TraceHeader) {
        self.clock = Clock::new(header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        let Metadata { provider, event_id, name, .. } = metadata;
        let is_dynamic = name.is_empty() && events::is_dynamic(provider, *event_id);
        self.kinds.push(Kind { provider: provider.clone(), event_id: *event_id, name: name.clone(), count: 0, bytes: 0, is_dynamic });
    }

    fn takes_counts(&self) -> bool {
        self.window.is_none()
    }

    fn counted(&mut self, counts: &Counts<'_>) -> bool {
        // Events with names in their payloads have to be counted individually.
        if counts.kinds.iter().any(|kind| self.kinds.get(kind.metadata as usize).is_none_or(|kind| kind.is_dynamic)) {
            return false;
        }
        for counted in counts.kinds {
            let kind = &mut self.kinds[counted.metadata as usize];
            kind.count += counted.events;
            kind.bytes += counted.bytes;
        }
        self.first_timestamp = self.first_timestamp.min(counts.oldest);
        self.last_timestamp = self.last_timestamp.max(counts.newest);
        let room = THREAD_LIMIT.saturating_sub(self.threads.len());
        self.threads.extend(counts.threads.iter().take(room));
        true
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let timestamp = event.timestamp();
        if !self.is_within(timestamp) {
            return;
        }
        if let Some(kind) = self.kinds.get_mut(event.metadata.index as usize) {
            kind.count += 1;
            kind.bytes += event.payload.len() as u64;
            if kind.is_dynamic {
                self.named(event);
            }
        }
        self.first_timestamp = self.first_timestamp.min(timestamp);
        self.last_timestamp = self.last_timestamp.max(timestamp);
        let thread = event.thread();
        let thread_cache = &mut self.thread_cache[thread.thread as usize % THREAD_CACHE_SIZE];
        if *thread_cache != Some(thread) {
            *thread_cache = Some(thread);
            if self.threads.len() < THREAD_LIMIT {
                self.threads.insert(thread);
            }
        }
    }

    fn stacks(&mut self, count: u32) {
        self.totals.stacks += u64::from(count);
    }

    fn thread(&mut self, thread: &Thread) {
        if !thread.name.is_empty() && (self.thread_names.len() < NAMED_THREADS || self.thread_names.contains_key(&thread.id)) {
            self.thread_names.insert(thread.id, thread.name.clone());
        }
    }

    fn loss(&mut self, loss: &Loss) {
        match loss.kind {
            _ if !self.is_within(loss.timestamp) => {}
            LossKind::Gap | LossKind::Tail => self.totals.dropped += u64::from(loss.count),
            LossKind::Start => self.totals.dropped_at_start += u64::from(loss.count),
        }
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.totals.sequence_points += u64::from(self.is_within(point.timestamp));
    }

    fn problem(&mut self, problem: &Problem) {
        let (count, _) = self.problems.entry(problem.kind).or_insert((0, problem.at));
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, KindCount, Limits, NewEvent, UtcTime};
    use crate::wire::Put;

    #[test]
    fn totals_and_counts_match_written_events() {
        let mut encoder =
            Encoder::new(TraceHeader { sync_utc: Some(UtcTime::from_unix_ms(0)), ticks_per_second: 1_000, ..TraceHeader::default() });
        let runtime = Metadata { provider: "Microsoft-Windows-DotNETRuntime".into(), event_id: 143, ..Metadata::default() };
        let demo = Metadata { provider: "Demo".into(), event_id: 7, name: "Tick".into(), ..Metadata::default() };
        // Two versions of one event, an event of another provider, and one with an undefined metadata ID.
        let kinds = [
            encoder.metadata(&Metadata { version: 1, ..runtime.clone() }),
            encoder.metadata(&Metadata { version: 2, ..runtime }),
            encoder.metadata(&demo),
            99,
        ];
        encoder.add_loss(1, 4);
        for (metadata, timestamp) in kinds.into_iter().zip([30, 20, 10, 40]) {
            let stack = encoder.stack(&[timestamp as u64]);
            encoder.event(&NewEvent { metadata, timestamp, thread: 1, capture_thread: 1, stack, payload: &[0; 5], ..NewEvent::default() });
            encoder.add_loss(1, 2);
        }
        encoder.sequence_point(50);
        let mut throughput = Throughput::default();
        Decoder::new(Limits::default()).feed(&encoder.take(), &mut throughput).unwrap();

        let expected = Totals {
            events: 4,
            payload_bytes: 20,
            dropped: 8,
            dropped_at_start: 4,
            stacks: 4,
            threads: 1,
            sequence_points: 1,
            problems: 1,
            duration_ns: 30_000_000,
        };
        assert_eq!((throughput.snapshot(), throughput.span()), (expected, Some((10, 40))));
        let count = |provider: &str, event_id, name: &str, count| EventCount {
            provider: provider.into(),
            event_id,
            name: name.into(),
            count,
            bytes: 5 * count,
        };
        let expected =
            [count("", 0, "", 1), count("Demo", 7, "Tick", 1), count("Microsoft-Windows-DotNETRuntime", 143, "MethodLoadVerbose", 2)];
        assert_eq!(throughput.counts(), expected);
    }

    /// Three of 64 names are checked, and the names beyond the limit are counted together.
    #[test]
    fn dynamic_events_are_named_by_their_payload() {
        let mut encoder = Encoder::new(TraceHeader::default());
        let provider = "Microsoft-Windows-DotNETRuntime";
        let metadata = encoder.metadata(&Metadata { provider: provider.into(), event_id: 39, ..Metadata::default() });
        let mut add = |name: &str| {
            let mut payload = Vec::new();
            payload.put_utf16z(name);
            payload.put_u32(0);
            encoder.event(&NewEvent { metadata, thread: 1, capture_thread: 1, payload: &payload, ..NewEvent::default() });
        };
        ["CommittedUsage", "HeapCountTuning", "CommittedUsage", ""].into_iter().for_each(&mut add);
        (0..70).for_each(|number| add(&format!("More{number}")));
        encoder.end();
        let mut throughput = Throughput::default();
        Decoder::new(Limits::default()).feed(&encoder.take(), &mut throughput).unwrap();
        let counts = throughput.counts();
        let of = |name: &str| counts.iter().find(|count| count.name == name).map(|count| (count.count, count.bytes, count.event_id));
        assert_eq!(of("GC/CommittedUsage"), Some((2, 2 * 34, 39)));
        assert_eq!((of("GC/HeapCountTuning"), of("GC/More0")), (Some((1, 36, 39)), Some((1, 16, 39))));
        assert_eq!(
            of("GCDynamicEvent").map(|(count, ..)| count),
            Some(1 + 8),
            "those without a name, and those for whose there is no room"
        );
        assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), throughput.snapshot().events);
        // Their names are not in the counts of a block.
        let at = throughput.kinds.iter().position(|kind| kind.is_dynamic).unwrap();
        let kinds = [KindCount { metadata: at as u32, events: 1, bytes: 16 }];
        assert!(!throughput.counted(&Counts { kinds: &kinds, threads: &[], oldest: 0, newest: 0 }));
    }

    #[test]
    fn numbers_of_threads_and_names_are_limited() {
        let mut encoder = Encoder::new(TraceHeader::default());
        let metadata = encoder.metadata(&Metadata::default());
        for thread in 0..THREAD_LIMIT as u64 + 10 {
            encoder.event(&NewEvent { metadata, thread, capture_thread: 1, ..NewEvent::default() });
        }
        encoder.end();
        let mut throughput = Throughput::default();
        Decoder::new(Limits::default()).feed(&encoder.take(), &mut throughput).unwrap();
        assert_eq!(throughput.snapshot().threads, THREAD_LIMIT as u64);
        for thread in (0..NAMED_THREADS as u64 + 10).chain([0]) {
            throughput.thread(&Thread { id: ThreadId::of(thread), name: format!("{thread} of {}", throughput.thread_names.len()) });
        }
        assert_eq!(throughput.thread_names.len(), NAMED_THREADS);
        assert_eq!(throughput.thread_names[&ThreadId::of(0)], format!("0 of {NAMED_THREADS}"), "its latest name");
    }

    #[test]
    fn empty_stream_has_no_totals() {
        let throughput = Throughput::default();
        assert_eq!((throughput.snapshot(), throughput.span(), throughput.counts()), (Totals::default(), None, Vec::new()));
    }
}
