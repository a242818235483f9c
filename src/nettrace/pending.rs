//! Sorting of events by time.
//!
//! A runtime writes the events of one thread and then those of the next, ten times a second; the events of different threads are therefore out
//! of order by about 100 ms. The stream itself limits the disorder: all older events precede a sequence point and all newer ones follow it,
//! and no older event follows one that is marked as sorted. If a stream has neither for a long time, the oldest of the held-back events are
//! delivered once they exceed [`MAX_HELD_BYTES`] bytes, to bound memory usage; older events that arrive later are then out of order.

use super::event::{Context, Event, Header};
use super::{Loss, Sink, ThreadId};

/// Maximum number of bytes held back. Runtimes write a sequence point for every 10 MB of events, and a sorted event ten times a second.
const MAX_HELD_BYTES: usize = 4 << 20;
/// Up to this number, events are sorted whenever any of them can be delivered; beyond it, only once as many new ones have arrived.
const BATCH: usize = 1024;
/// Maximum size of the buffers kept for reuse, in bytes.
const MAX_SPARE_BYTES: usize = 2 << 20;

/// Events and losses that are held back until no older one can arrive.
#[derive(Debug)]
pub(super) struct Pending {
    held: Held,
    /// Timestamp and index of all entries not yet delivered.
    order: Vec<(i64, u32)>,
    /// Whether `order` is sorted by time.
    in_order: bool,
    /// Number of entries added since the last delivery.
    added: usize,
    oldest: i64,
    newest: i64,
    /// No later event is older than this, according to the stream.
    safe: i64,
    /// Kept for its memory.
    spare: Held,
}

/// Entries in order of arrival; may include entries that have already been delivered.
#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    payloads: Vec<u8>,
    losses: Vec<Loss>,
    /// Size of all entries.
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// For a loss, only the timestamp is set.
    header: Header,
    thread: ThreadId,
    capture_thread: ThreadId,
    /// Metadata index, or [`LOSS`].
    record: u32,
    /// Offset of the payload; for a loss, its index.
    start: u32,
}

/// Record value that marks a loss. Metadata indexes are always smaller.
const LOSS: u32 = u32::MAX;

/// Destination of the events, with the tables that they refer to.
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

/// Reserves space for `more` elements, growing by a quarter instead of doubling: otherwise up to half of the bounded memory would be unused.
fn make_room_in<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4).max(BATCH));
    }
}

impl Entry {
    /// Returns the approximate memory usage.
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

    /// Copies an entry from `other`.
    fn take(&mut self, entry: &Entry, other: &Self) {
        match entry.record {
            LOSS => self.loss(other.losses[entry.start as usize]),
            _ => self.push(entry.clone(), other.payload(entry)),
        }
    }

    #[inline]
    fn deliver(&self, entry: &Entry, to: &mut Receiver<'_, impl Sink>) {
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
    /// Holds back an event.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        self.held.event(event);
        self.note(event.timestamp());
    }

    /// Holds back a loss, to be reported before the entries after it.
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

    /// Declares that no later event is older than `timestamp`.
    #[inline]
    pub(super) fn set_safe(&mut self, timestamp: i64) {
        self.safe = self.safe.max(timestamp);
    }

    /// Returns whether more is held back than the limit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.held.bytes > MAX_HELD_BYTES
    }

    /// Delivers the safe entries if many have been added.
    pub(super) fn deliver_safe_batch(&mut self, to: &mut Receiver<'_, impl Sink>) {
        if self.added > BATCH {
            self.deliver_safe(to);
        }
    }

    /// Delivers the safe entries, unless sorting the rest is not yet worthwhile.
    pub(super) fn deliver_safe(&mut self, to: &mut Receiver<'_, impl Sink>) {
        // Each call costs time proportional to the number of held-back entries, so there must be as many new ones.
        let count = self.order.len();
        let is_due = count <= BATCH || 2 * self.added >= count;
        if self.added > 0 && self.oldest <= self.safe && is_due {
            self.deliver(self.safe, usize::MAX, to);
        }
    }

    /// Makes room by delivering the oldest entries until half of the limit is left, so that the cost is proportional to the number of bytes
    /// that arrive. Returns whether that includes entries that were not safe.
    pub(super) fn make_room(&mut self, to: &mut Receiver<'_, impl Sink>) -> bool {
        self.deliver(self.safe, MAX_HELD_BYTES / 2, to)
    }

    /// Delivers all entries.
    pub(super) fn flush(&mut self, to: &mut Receiver<'_, impl Sink>) {
        self.deliver(i64::MAX, usize::MAX, to);
    }

    /// Delivers the entries not newer than `until`, and more until at most `most` bytes are left; returns whether there were any of the latter.
    fn deliver(&mut self, until: i64, most: usize, to: &mut Receiver<'_, impl Sink>) -> bool {
        if self.order.is_empty() {
            return false;
        }
        if !self.in_order {
            // Stable: equal timestamps keep their order of arrival.
            self.order.sort_by_key(|(timestamp, _)| *timestamp);
        }
        let held = &self.held;
        let at = |place: u32| &held.entries[place as usize];
        let safe = self.order.partition_point(|(timestamp, _)| *timestamp <= until);
        let mut left: usize = self.order[safe..].iter().map(|(_, place)| at(*place).bytes()).sum();
        let mut count = safe;
        while left > most {
            left -= at(self.order[count].1).bytes();
            count += 1;
        }
        self.order.drain(..count).for_each(|(_, place)| held.deliver(at(place), to));
        // The remaining entries are only moved if they are the smaller part; after making room, they are.
        if 2 * left <= held.bytes {
            self.order.iter().for_each(|(_, place)| self.spare.take(at(*place), held));
            self.order.iter_mut().zip(0..).for_each(|((_, place), moved_to)| *place = moved_to);
            std::mem::swap(&mut self.held, &mut self.spare);
            self.spare.clear();
            if self.spare.capacity() > MAX_SPARE_BYTES {
                self.spare = Held::default();
            }
        }
        self.oldest = self.order.first().map_or(i64::MAX, |(timestamp, _)| *timestamp);
        self.newest = self.order.last().map_or(i64::MIN, |(timestamp, _)| *timestamp);
        (self.in_order, self.added) = (true, 0);
        count > safe
    }
}
