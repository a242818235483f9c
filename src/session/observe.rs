//! Looking at a stream while it comes: at most twice a second, and never for more than a small part of the time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::cpu::{Collector, MethodNames};
use crate::analysis::{EventCount, Live};
use crate::model::{EventRate, RecordingAnalysis};
use crate::sorting::CompactSort;

/// The shortest time between two looks.
pub(super) const PACE: Duration = Duration::from_millis(500);
/// The pause after a look is this many times what the look took: chunks wait for it.
const REST: u32 = 25;
/// What rates of events are reported over.
const SPAN: Duration = Duration::from_secs(10);

/// Decides when to look, and remembers what it takes to tell rates.
#[derive(Default)]
pub(super) struct Observer {
    /// When the stream began, by our clock.
    begun: Option<Instant>,
    /// When the next look is due.
    due: Option<Instant>,
    /// Earlier counts, oldest first, sorted as they came from [`Live`].
    earlier: VecDeque<(Instant, Vec<EventCount>)>,
}

impl Observer {
    /// Makes it time to look: what is known has changed.
    pub(super) fn hurry(&mut self) {
        self.due = None;
    }

    /// What there is to see, if it is time to look. When the stream is over it is, and when its first events have come.
    pub(super) fn look(&mut self, live: &mut Live, cpu: Option<&Collector>, names: MethodNames, over: bool) -> Option<RecordingAnalysis> {
        live.trace()?;
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        if !over && self.due.is_some_and(|due| now < due) {
            return None;
        }
        // The clock goes on while no events come. After the end it stands there, as it does in the file.
        let elapsed = i64::try_from(now.duration_since(begun).as_nanos()).unwrap_or(i64::MAX);
        let at = if over { live.end() } else { live.newest().max(elapsed) };
        let analysis = RecordingAnalysis {
            snapshot: live.snapshot(at),
            events: self.events(live, now),
            recent: live.recent(),
            cpu: cpu.map(|cpu| cpu.cpu_time(live.symbols(), names)),
            profile: live.profile(),
        };
        // Samples without names are the reason to look for names: they are not left waiting.
        self.due = (analysis.snapshot.totals.events > 0).then(|| Instant::now() + PACE.max(now.elapsed() * REST));
        Some(analysis)
    }

    /// The most frequent events with their rates.
    fn events(&mut self, live: &Live, now: Instant) -> Vec<EventRate> {
        let mut counts = live.throughput().counts();
        if counts.len() > RecordingAnalysis::EVENTS {
            // Those that stay keep their order.
            let mut most: Vec<u64> = counts.iter().map(|event| event.count).collect();
            most.compact_sort_by_key(|count| std::cmp::Reverse(*count));
            counts.retain(|event| event.count >= most[RecordingAnalysis::EVENTS - 1]);
            counts.truncate(RecordingAnalysis::EVENTS);
        }
        while self.earlier.get(1).is_some_and(|(then, _)| now.duration_since(*then) >= SPAN) {
            self.earlier.pop_front();
        }
        let (then, before) = self.earlier.front().map_or((self.begun, &[][..]), |(then, counts)| (Some(*then), counts.as_slice()));
        let seconds = then.map_or(0.0, |then| now.duration_since(then).as_secs_f64()).max(PACE.as_secs_f64());
        let order = |event: &EventCount, other: &EventCount| {
            (&event.provider, event.event_id, &event.name).cmp(&(&other.provider, other.event_id, &other.name))
        };
        let known = |event: &EventCount| before.binary_search_by(|other| order(other, event)).map_or(0, |at| before[at].count);
        let rate = |event: &EventCount| event.count.saturating_sub(known(event)) as f64 / seconds;
        let mut rates: Vec<_> = counts.iter().map(|event| EventRate { event: event.clone(), rate: rate(event) }).collect();
        rates.compact_sort_by_key(|rate| std::cmp::Reverse(rate.event.count));
        self.earlier.push_back((now, counts));
        rates
    }
}
