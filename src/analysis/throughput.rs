//! How much of what a stream holds, and how much of it was lost.

use std::collections::BTreeMap;

use foldhash::HashSet;

use crate::clr::events;
use crate::nettrace::{Event, Loss, LossKind, Metadata, SequencePoint, Sink, TraceHeader, Trouble};

/// Most threads that are told apart.
const THREAD_LIMIT: usize = 1 << 18;

/// Threads that are known without a look into a table, as long as their ids differ in the low bits.
const NEAR: usize = 64;

/// Counts what is in a stream.
#[derive(Debug)]
pub struct Throughput {
    trace: Option<TraceHeader>,
    totals: Totals,
    /// By metadata index; the first counts the events of unknown kinds.
    kinds: Vec<Kind>,
    threads: HashSet<u64>,
    /// Some of `threads`, by the low bits of their ids: most events are of one of these.
    near: [Option<u64>; NEAR],
    first_timestamp: i64,
    last_timestamp: i64,
    trouble: Option<Trouble>,
}

#[derive(Debug, Default)]
struct Kind {
    provider: String,
    event_id: u32,
    name: String,
    count: u64,
    bytes: u64,
}

/// The sums over a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Events that the runtime dropped: numbers that are missing between two events of a thread, or before a sequence point.
    pub dropped: u64,
    /// Events that are missing before the first of their thread. Other readers do not count these, and they are not in `dropped`.
    pub dropped_at_start: u64,
    /// Stacks that the stream defines.
    pub stacks: u64,
    /// Threads that events belong to. No more than 2^18 are told apart.
    pub threads: u64,
    /// Sequence points.
    pub sequence_points: u64,
    /// Parts of the stream that could not be read or were not kept.
    pub troubles: u64,
    /// Time between the oldest and the newest event, nanoseconds.
    pub duration_ns: u64,
}

/// How often an event came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// Name of the provider; not sanitised. Empty for events whose kind the stream does not define.
    pub provider: String,
    /// Number of the event within its provider.
    pub event_id: u32,
    /// Name of the event, for the runtime's own events from [`events::name`]; not sanitised.
    pub name: String,
    /// Events.
    pub count: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl Default for Throughput {
    fn default() -> Self {
        Self {
            trace: None,
            totals: Totals::default(),
            kinds: vec![Kind::default()],
            threads: HashSet::default(),
            near: [None; NEAR],
            first_timestamp: i64::MAX,
            last_timestamp: i64::MIN,
            trouble: None,
        }
    }
}

impl Throughput {
    /// What the whole stream has in common, once it has come.
    pub fn trace(&self) -> Option<&TraceHeader> {
        self.trace.as_ref()
    }

    /// The first thing that could not be read, or was not kept.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Timestamps of the oldest and the newest event, on the stream's own clock.
    pub fn span(&self) -> Option<(i64, i64)> {
        (self.first_timestamp <= self.last_timestamp).then_some((self.first_timestamp, self.last_timestamp))
    }

    /// The sums so far.
    pub fn snapshot(&self) -> Totals {
        let duration = self.span().zip(self.trace).map(|((first, last), trace)| trace.nanoseconds_between(first, last));
        Totals {
            events: self.kinds.iter().map(|kind| kind.count).sum(),
            payload_bytes: self.kinds.iter().map(|kind| kind.bytes).sum(),
            threads: self.threads.len() as u64,
            duration_ns: duration.unwrap_or(0).unsigned_abs(),
            ..self.totals
        }
    }

    /// What came, by provider, number and name, in this order. Versions of an event count as one.
    pub fn counts(&self) -> Vec<EventCount> {
        let mut sums = BTreeMap::new();
        for Kind { provider, event_id, name, count, bytes } in self.kinds.iter().filter(|kind| kind.count > 0) {
            let sum: &mut (u64, u64) = sums.entry((provider, *event_id, name)).or_default();
            sum.0 += count;
            sum.1 += bytes;
        }
        let named = |((provider, event_id, name), (count, bytes)): ((&String, u32, &String), _)| EventCount {
            provider: provider.clone(),
            event_id,
            name: if name.is_empty() { events::name(provider, event_id).unwrap_or_default().to_owned() } else { name.clone() },
            count,
            bytes,
        };
        sums.into_iter().map(named).collect()
    }
}

impl Sink for Throughput {
    fn trace(&mut self, header: &TraceHeader) {
        self.trace = Some(*header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        let Metadata { provider, event_id, name, .. } = metadata;
        self.kinds.push(Kind { provider: provider.clone(), event_id: *event_id, name: name.clone(), count: 0, bytes: 0 });
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if let Some(kind) = self.kinds.get_mut(event.metadata.index as usize) {
            kind.count += 1;
            kind.bytes += event.payload.len() as u64;
        }
        let timestamp = event.timestamp();
        self.first_timestamp = self.first_timestamp.min(timestamp);
        self.last_timestamp = self.last_timestamp.max(timestamp);
        let thread = event.thread();
        let near = &mut self.near[thread as usize % NEAR];
        if *near != Some(thread) {
            *near = Some(thread);
            if self.threads.len() < THREAD_LIMIT {
                self.threads.insert(thread);
            }
        }
    }

    fn stacks(&mut self, count: u32) {
        self.totals.stacks += u64::from(count);
    }

    fn loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap | LossKind::Tail => self.totals.dropped += u64::from(loss.count),
            LossKind::Start => self.totals.dropped_at_start += u64::from(loss.count),
        }
    }

    fn sequence_point(&mut self, _point: &SequencePoint) {
        self.totals.sequence_points += 1;
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.totals.troubles += 1;
        self.trouble.get_or_insert(*trouble);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, Limits, NewEvent, UtcTime};

    #[test]
    fn sums_are_those_of_what_was_written() {
        let mut encoder =
            Encoder::new(TraceHeader { sync_utc: Some(UtcTime::from_unix_ms(0)), ticks_per_second: 1_000, ..TraceHeader::default() });
        let runtime = Metadata { provider: "Microsoft-Windows-DotNETRuntime".into(), event_id: 143, ..Metadata::default() };
        let demo = Metadata { provider: "Demo".into(), event_id: 7, name: "Tick".into(), ..Metadata::default() };
        // Two versions of one event, an event of another provider, and one whose id is not defined.
        let kinds = [
            encoder.metadata(&Metadata { version: 1, ..runtime.clone() }),
            encoder.metadata(&Metadata { version: 2, ..runtime }),
            encoder.metadata(&demo),
            99,
        ];
        encoder.lose(1, 4);
        for (metadata, timestamp) in kinds.into_iter().zip([30, 20, 10, 40]) {
            let stack = encoder.stack(&[timestamp as u64]);
            encoder.event(&NewEvent { metadata, timestamp, thread: 1, capture_thread: 1, stack, payload: &[0; 5], ..NewEvent::default() });
            encoder.lose(1, 2);
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
            troubles: 0,
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

    #[test]
    fn nothing_is_nothing() {
        let throughput = Throughput::default();
        assert_eq!((throughput.snapshot(), throughput.span(), throughput.counts()), (Totals::default(), None, Vec::new()));
    }
}
