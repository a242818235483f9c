//! Snapshots of a live stream: at most twice a second, and using only a small share of the time.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::cpu::{Collector, MethodNames};
use crate::analysis::{EventCount, Live};
use crate::model::{EventRate, RecordingAnalysis};
use crate::sorting::CompactSort;

/// Minimum interval between snapshots.
pub(super) const MIN_SNAPSHOT_INTERVAL: Duration = Duration::from_millis(500);
/// The pause after a snapshot is this many times its duration, because chunks wait during it.
const PAUSE_FACTOR: u32 = 25;
/// Period over which event rates are computed.
const SPAN: Duration = Duration::from_secs(10);

/// Schedules snapshots, and keeps the earlier counts needed for rates.
#[derive(Default)]
pub(super) struct LiveSnapshots {
    /// When the stream began, by our clock.
    begun: Option<Instant>,
    /// When the next snapshot is due.
    due: Option<Instant>,
    /// Earlier counts, oldest first, each sorted by kind.
    earlier: VecDeque<(Instant, Vec<EventCount>)>,
}

impl LiveSnapshots {
    /// Makes a snapshot due, because new data is available.
    pub(super) fn make_due(&mut self) {
        self.due = None;
    }

    /// Takes a snapshot if one is due, which is also the case at the end of the stream and when its first events have arrived.
    pub(super) fn take_if_due(
        &mut self,
        live: &mut Live,
        cpu: Option<&Collector>,
        names: MethodNames,
        over: bool,
    ) -> Option<RecordingAnalysis> {
        live.throughput().trace()?;
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        if !over && self.due.is_some_and(|due| now < due) {
            return None;
        }
        // The clock advances while no events arrive. At the end it stops there, as it does in the file.
        let elapsed = i64::try_from(now.duration_since(begun).as_nanos()).unwrap_or(i64::MAX);
        let at = if over { live.end() } else { live.newest().max(elapsed) };
        let analysis = RecordingAnalysis {
            snapshot: live.snapshot(at),
            events: self.events(live, now),
            recent: live.recent(),
            cpu: cpu.map(|cpu| cpu.cpu_time(live.symbols(), names)),
            profile: live.profile(),
        };
        // Until the first events arrive, stay due: samples without names trigger the name search without delay.
        self.due = (analysis.snapshot.totals.events > 0).then(|| Instant::now() + MIN_SNAPSHOT_INTERVAL.max(now.elapsed() * PAUSE_FACTOR));
        Some(analysis)
    }

    /// The most frequent events with their rates.
    fn events(&mut self, live: &Live, now: Instant) -> Vec<EventRate> {
        let mut counts = most_frequent(live);
        while self.earlier.get(1).is_some_and(|(then, _)| now.duration_since(*then) >= SPAN) {
            self.earlier.pop_front();
        }
        let (then, before) = self.earlier.front().map_or((self.begun, &[][..]), |(then, counts)| (Some(*then), counts.as_slice()));
        let seconds = then.map_or(0.0, |then| now.duration_since(then).as_secs_f64()).max(MIN_SNAPSHOT_INTERVAL.as_secs_f64());
        let order = |event: &EventCount, other: &EventCount| {
            (&event.provider, event.event_id, &event.name).cmp(&(&other.provider, other.event_id, &other.name))
        };
        let known = |event: &EventCount| before.binary_search_by(|other| order(other, event)).map_or(0, |at| before[at].count);
        let rate = |event: &EventCount| event.count.saturating_sub(known(event)) as f64 / seconds;
        let rates = counts.iter().map(|event| EventRate { event: event.clone(), rate: rate(event) }).collect();
        counts.compact_sort_by(order);
        self.earlier.push_back((now, counts));
        rates
    }
}

/// Returns the most frequent events, in this order.
pub(super) fn most_frequent(live: &Live) -> Vec<EventCount> {
    let mut counts = live.throughput().counts();
    counts.compact_sort_by_key(|event| Reverse(event.count));
    counts.truncate(RecordingAnalysis::EVENTS);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, Limits, Metadata, NewEvent, TraceHeader};

    #[test]
    fn most_frequent_event_is_shown_among_many_rare_ones() {
        let mut encoder = Encoder::new(TraceHeader::default());
        let last = RecordingAnalysis::EVENTS as u32 + 100;
        for event_id in 1..=last {
            let metadata = encoder.metadata(&Metadata { provider: "P".to_owned(), event_id, ..Metadata::default() });
            let count = if event_id == last { 5 } else { 1 };
            (0..count).for_each(|_| encoder.event(&NewEvent { metadata, ..NewEvent::default() }));
        }
        encoder.end();
        let (mut live, mut decoder) = (Live::default(), Decoder::new(Limits::default()));
        decoder.feed(&encoder.take(), &mut live).unwrap();
        assert!(decoder.finish(&mut live).is_complete());
        let events = LiveSnapshots::default().events(&live, Instant::now());
        assert_eq!((events.len(), events[0].event.event_id, events[0].event.count), (RecordingAnalysis::EVENTS, last, 5));
    }
}
