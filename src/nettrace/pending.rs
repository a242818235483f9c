//! Events in the order of time.
//!
//! A runtime writes the events of one thread and then those of the next, ten times a second: across threads a stream is out of order by about as
//! much. How far it can be put in order follows from the stream itself. A sequence point has everything older before it and everything newer behind it. An
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
    /// Timestamp and place of every entry that has not been handed over.
    order: Vec<(i64, u32)>,
    /// Whether they are in the order of time.
    in_order: bool,
    /// How many came since the last were handed over.
    added: usize,
    oldest: i64,
    newest: i64,
    /// No event to come is older, by the stream's own marks.
    safe: i64,
    /// Kept for its memory.
    spare: Held,
}

/// Entries as they came, those that were handed over since the last were moved among them.
#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    payloads: Vec<u8>,
    losses: Vec<Loss>,
    /// What all of them take.
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// Of a loss, only its timestamp.
    header: Header,
    thread: ThreadId,
    capture_thread: ThreadId,
    /// Index of its metadata record, [`LOSS`] for a loss.
    record: u32,
    /// Where its payload is; of a loss, its index.
    start: u32,
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
            order: Vec::new(),
            in_order: true,
            added: 0,
            oldest: i64::MAX,
            newest: i64::MIN,
            safe: i64::MIN,
            spare: Held::default(),
        }
    }
}

/// Makes room for so many more, growing by a quarter rather than by doubling: up to half of what is bounded would be memory without use.
fn make_room_in<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4).max(BATCH));
    }
}

impl Entry {
    /// Memory that it takes, about.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.header.payload_size as usize
    }
}

impl Held {
    fn capacity(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.payloads.capacity() + self.losses.capacity() * size_of::<Loss>()
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let Event { metadata, payload, thread, capture_thread, header, .. } = *event;
        let header = Header { payload_size: payload.len() as u32, ..header.clone() };
        self.push(Entry { header, thread, capture_thread, record: metadata.index, start: 0 }, payload);
    }

    #[inline]
    fn push(&mut self, entry: Entry, payload: &[u8]) {
        let start = self.payloads.len() as u32;
        make_room_in(&mut self.entries, 1);
        make_room_in(&mut self.payloads, payload.len());
        self.payloads.extend_from_slice(payload);
        self.entries.push(Entry { start, ..entry });
        self.bytes += size_of::<Entry>() + payload.len();
    }

    fn loss(&mut self, loss: Loss) {
        let header = Header { timestamp: loss.timestamp as u64, ..Header::default() };
        self.entries.push(Entry { header, record: LOSS, start: self.losses.len() as u32, ..Entry::default() });
        self.losses.push(loss);
        self.bytes += size_of::<Entry>() + size_of::<Loss>();
    }

    fn payload(&self, entry: &Entry) -> &[u8] {
        &self.payloads[entry.start as usize..][..entry.header.payload_size as usize]
    }

    /// Takes an entry of another.
    fn take(&mut self, entry: &Entry, other: &Self) {
        match entry.record {
            LOSS => self.loss(other.losses[entry.start as usize]),
            _ => self.push(entry.clone(), other.payload(entry)),
        }
    }

    #[inline]
    fn hand_over(&self, entry: &Entry, to: &mut Receiver<'_, impl Sink>) {
        if entry.record == LOSS {
            to.sink.ordered_loss(&self.losses[entry.start as usize]);
            return;
        }
        let Entry { header, thread, capture_thread, record, .. } = entry;
        let (metadata, payload) = (to.context.metadata.record(*record), self.payload(entry));
        let (thread, capture_thread) = (*thread, *capture_thread);
        to.sink.ordered_event(&Event { metadata, payload, thread, capture_thread, header, context: to.context });
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.payloads.clear();
        self.losses.clear();
        self.bytes = 0;
    }
}

impl Pending {
    /// Holds an event back.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        self.held.event(event);
        self.note(event.timestamp());
    }

    /// Holds a loss back: it is reported before what comes behind it.
    pub(super) fn loss(&mut self, loss: Loss) {
        self.held.loss(loss);
        self.note(loss.timestamp);
    }

    #[inline]
    fn note(&mut self, timestamp: i64) {
        self.order.push((timestamp, self.held.entries.len() as u32 - 1));
        self.in_order &= timestamp >= self.newest;
        self.newest = self.newest.max(timestamp);
        self.oldest = self.oldest.min(timestamp);
        self.added += 1;
    }

    /// Sets the time that no event to come is older than.
    #[inline]
    pub(super) fn is_safe(&mut self, timestamp: i64) {
        self.safe = self.safe.max(timestamp);
    }

    /// Whether more is held back than there is room for.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.held.bytes > HELD
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
        let count = self.order.len();
        let is_due = count <= BATCH || 2 * self.added >= count;
        if self.added > 0 && self.oldest <= self.safe && is_due {
            self.hand_over(self.safe, 0, to);
        }
    }

    /// Makes room: hands over the older half at least. Whether that was more than was safe.
    pub(super) fn make_room(&mut self, to: &mut Receiver<'_, impl Sink>) -> bool {
        self.hand_over(self.safe, self.order.len() / 2, to)
    }

    /// Hands everything over.
    pub(super) fn flush(&mut self, to: &mut Receiver<'_, impl Sink>) {
        self.hand_over(i64::MAX, 0, to);
    }

    /// Hands over what is not newer than `until`, and so many of the oldest at least; whether those were more.
    fn hand_over(&mut self, until: i64, least: usize, to: &mut Receiver<'_, impl Sink>) -> bool {
        if self.order.is_empty() {
            return false;
        }
        if !self.in_order {
            // Equals stay as they came.
            self.order.sort_by_key(|(timestamp, _)| *timestamp);
        }
        let held = &self.held;
        let at = |place: u32| &held.entries[place as usize];
        let safe = self.order.partition_point(|(timestamp, _)| *timestamp <= until);
        let count = safe.max(least);
        self.order.drain(..count).for_each(|(_, place)| held.hand_over(at(place), to));
        let left: usize = self.order.iter().map(|(_, place)| at(*place).bytes()).sum();
        // What stays is only moved once it is the smaller part, or there has to be room.
        if 2 * left <= held.bytes || least > 0 {
            self.order.iter().for_each(|(_, place)| self.spare.take(at(*place), held));
            self.order.iter_mut().zip(0..).for_each(|((_, place), moved_to)| *place = moved_to);
            std::mem::swap(&mut self.held, &mut self.spare);
            self.spare.clear();
            if self.spare.capacity() > KEPT {
                self.spare = Held::default();
            }
        }
        self.oldest = self.order.first().map_or(i64::MAX, |(timestamp, _)| *timestamp);
        self.newest = self.order.last().map_or(i64::MIN, |(timestamp, _)| *timestamp);
        (self.in_order, self.added) = (true, 0);
        count > safe
    }
}
