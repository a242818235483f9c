//! Events in the order of time.
//!
//! A runtime writes the events of one thread and then those of the next, ten times a second: across threads a stream is out of order by about as
//! much. The stream itself tells how far it can be put in order. A sequence point has everything older before it and everything newer behind it. An
//! event that is marked as sorted has nothing older behind it. Where a stream has neither for long, the older half of what is held back is handed over
//! once there are [`HELD`] bytes of it, so that memory is bounded; what is older and comes later is then out of order.

use super::event::{Context, Event, Header};
use super::{Loss, Sink, ThreadId};

/// Most bytes that are held back. Runtimes write a sequence point for every 10 MB of events, and mark an event ten times a second.
const HELD: usize = 4 << 20;
/// Fewer events than this are put in order whenever some of them can be handed over; more only once as many have come.
const BATCH: usize = 1024;
/// Memory that is kept for what comes next, bytes.
const KEPT: usize = 2 << 20;

/// Events and losses that are held back until none that is older can come.
#[derive(Debug)]
pub(super) struct Pending {
    held: Held,
    /// Whether the entries are in order.
    in_order: bool,
    /// How many came since the last were handed over.
    added: usize,
    oldest: i64,
    newest: i64,
    /// No event to come is older, as the stream says.
    safe: i64,
    /// The order of the entries; and memory for those that stay. Both are kept for their memory.
    order: Vec<(i64, u32)>,
    spare: Held,
}

/// What is held back, in as little memory as it takes: there can be much of it.
#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    payloads: Vec<u8>,
    /// Activity and related activity, of events that have them.
    activities: Vec<[[u8; 16]; 2]>,
    losses: Vec<Loss>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    timestamp: i64,
    thread: ThreadId,
    capture_thread: ThreadId,
    /// Index of its metadata record, [`LOSS`] for a loss.
    record: u32,
    /// Where its payload lies; of a loss, its index.
    start: u32,
    length: u32,
    sequence: u32,
    processor: u32,
    stack: u32,
    labels: u32,
    /// One more than the index of its activities, 0 where it has none.
    activities: u32,
    sorted: bool,
}

/// Stands for a record: the entry is a loss. There are never so many records.
const LOSS: u32 = u32::MAX;

/// Takes events, and what they refer to.
pub(super) struct Receiver<'a, S> {
    pub(super) context: &'a Context,
    pub(super) sink: &'a mut S,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            held: Held::default(),
            in_order: true,
            added: 0,
            oldest: i64::MAX,
            newest: i64::MIN,
            safe: i64::MIN,
            order: Vec::new(),
            spare: Held::default(),
        }
    }
}

impl Held {
    fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + self.payloads.len() + size_of_val(&*self.activities) + size_of_val(&*self.losses)
    }

    fn capacity(&self) -> usize {
        let [entry, activities, loss] = [size_of::<Entry>(), size_of::<[[u8; 16]; 2]>(), size_of::<Loss>()];
        let other = self.activities.capacity() * activities + self.losses.capacity() * loss;
        self.entries.capacity() * entry + self.payloads.capacity() + other
    }

    fn event(&mut self, event: &Event<'_>) {
        let Header { sequence, processor, stack, labels, sorted, activity, related_activity, .. } = *event.header;
        let activities = if [activity, related_activity] == [[0; 16]; 2] {
            0
        } else {
            self.activities.push([activity, related_activity]);
            self.activities.len() as u32
        };
        let (start, length) = (self.payloads.len() as u32, event.payload.len() as u32);
        self.payloads.extend_from_slice(event.payload);
        let (timestamp, record) = (event.timestamp(), event.metadata.index);
        let Event { thread, capture_thread, .. } = *event;
        self.entries.push(Entry {
            timestamp,
            thread,
            capture_thread,
            record,
            start,
            length,
            sequence,
            processor,
            stack,
            labels,
            activities,
            sorted,
        });
    }

    fn loss(&mut self, loss: Loss) {
        let Loss { timestamp, capture_thread, .. } = loss;
        let start = self.losses.len() as u32;
        self.losses.push(loss);
        self.entries.push(Entry {
            timestamp,
            thread: capture_thread,
            capture_thread,
            record: LOSS,
            start,
            length: 0,
            sequence: 0,
            processor: 0,
            stack: 0,
            labels: 0,
            activities: 0,
            sorted: false,
        });
    }

    fn payload(&self, entry: &Entry) -> &[u8] {
        &self.payloads[entry.start as usize..][..entry.length as usize]
    }

    fn activities(&self, entry: &Entry) -> [[u8; 16]; 2] {
        entry.activities.checked_sub(1).map_or([[0; 16]; 2], |index| self.activities[index as usize])
    }

    /// Takes an entry of another.
    fn take(&mut self, mut entry: Entry, other: &Self) {
        if entry.record == LOSS {
            let loss = other.losses[entry.start as usize];
            entry.start = self.losses.len() as u32;
            self.losses.push(loss);
        } else {
            let (payload, activities) = (other.payload(&entry), other.activities(&entry));
            entry.start = self.payloads.len() as u32;
            self.payloads.extend_from_slice(payload);
            if entry.activities > 0 {
                self.activities.push(activities);
                entry.activities = self.activities.len() as u32;
            }
        }
        self.entries.push(entry);
    }

    fn hand_over(&self, entry: &Entry, to: &mut Receiver<'_, impl Sink>) {
        if entry.record == LOSS {
            to.sink.ordered_loss(&self.losses[entry.start as usize]);
            return;
        }
        let Entry { timestamp, thread, capture_thread, record, length, sequence, processor, stack, labels, sorted, .. } = *entry;
        let [activity, related_activity] = self.activities(entry);
        let header = &Header {
            sequence,
            processor,
            stack,
            labels,
            sorted,
            activity,
            related_activity,
            timestamp: timestamp as u64,
            payload_size: length,
            ..Header::default()
        };
        let (metadata, payload) = (to.context.metadata.record(record), self.payload(entry));
        to.sink.ordered_event(&Event { metadata, payload, thread, capture_thread, header, context: to.context });
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.payloads.clear();
        self.activities.clear();
        self.losses.clear();
    }
}

impl Pending {
    /// Holds an event back.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        self.held.event(event);
        self.note(event.timestamp());
    }

    /// Holds a loss back: it is told before what comes behind it.
    pub(super) fn loss(&mut self, loss: Loss) {
        self.held.loss(loss);
        self.note(loss.timestamp);
    }

    fn note(&mut self, timestamp: i64) {
        self.in_order &= timestamp >= self.newest;
        self.newest = self.newest.max(timestamp);
        self.oldest = self.oldest.min(timestamp);
        self.added += 1;
    }

    /// Says that no event to come is older than this.
    #[inline]
    pub(super) fn is_safe(&mut self, timestamp: i64) {
        self.safe = self.safe.max(timestamp);
    }

    /// Whether more is held back than there is room for.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.held.bytes() > HELD
    }

    /// Hands over what is safe, once many have come.
    pub(super) fn settle_many(&mut self, to: &mut Receiver<'_, impl Sink>) {
        if self.added > BATCH {
            self.settle(to);
        }
    }

    /// Hands over what is safe, where that is worth putting the rest in order.
    pub(super) fn settle(&mut self, to: &mut Receiver<'_, impl Sink>) {
        // Each time costs what is held back: there must be as many new.
        let count = self.held.entries.len();
        let is_due = count <= BATCH || 2 * self.added >= count;
        if self.added > 0 && self.oldest <= self.safe && is_due {
            self.hand_over(self.safe, 0, to);
        }
    }

    /// Makes room: hands over the older half at least. Whether that was more than was safe.
    pub(super) fn make_room(&mut self, to: &mut Receiver<'_, impl Sink>) -> bool {
        self.hand_over(self.safe, self.held.entries.len() / 2, to)
    }

    /// Hands everything over.
    pub(super) fn flush(&mut self, to: &mut Receiver<'_, impl Sink>) {
        self.hand_over(i64::MAX, 0, to);
    }

    /// Hands over what is not newer than `until`, and so many of the oldest at least; whether those were more.
    fn hand_over(&mut self, until: i64, least: usize, to: &mut Receiver<'_, impl Sink>) -> bool {
        let all = self.held.entries.len();
        if all == 0 {
            return false;
        }
        self.order.clear();
        if !self.in_order {
            self.order.extend(self.held.entries.iter().zip(0..).map(|(entry, place)| (entry.timestamp, place)));
            // Equals stay as they came.
            self.order.sort_by_key(|(timestamp, _)| *timestamp);
        }
        let (held, order) = (&self.held, &self.order);
        let at = |place: usize| &held.entries[order.get(place).map_or(place, |(_, place)| *place as usize)];
        let safe = if self.newest <= until { all } else { partition(all, |place| at(place).timestamp <= until) };
        let count = safe.max(least);
        for place in 0..count {
            held.hand_over(at(place), to);
        }
        let mut left = std::mem::take(&mut self.spare);
        for place in count..all {
            left.take(*at(place), held);
        }
        self.held.clear();
        std::mem::swap(&mut self.held, &mut left);
        if left.capacity() <= KEPT {
            self.spare = left;
        }
        self.oldest = self.held.entries.first().map_or(i64::MAX, |entry| entry.timestamp);
        self.newest = self.held.entries.last().map_or(i64::MIN, |entry| entry.timestamp);
        (self.in_order, self.added) = (true, 0);
        count > safe
    }
}

/// The first of so many places for which this does not hold; it holds for none behind that.
fn partition(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
