//! Detection of lost events by the sequence numbers of each capture thread.

use foldhash::HashMap;

use super::LossKind;

/// Size of the lookup table that avoids hashing if thread IDs differ in the low bits.
const CACHE_SLOTS: usize = 64;

/// The last sequence number of each capture thread.
///
/// Runtimes up to 10 do not report the end of a thread. As a sequence point lists all existing threads, a thread that has neither written nor
/// been listed since the last sequence point but one is removed. (Not since the last: the runtime collects the list while threads run.)
#[derive(Debug)]
pub(super) struct Sequences {
    slots: Vec<Slot>,
    /// Most recently found slots, by the low bits of the thread ID; a cache for `by_thread`.
    cache: [u32; CACHE_SLOTS],
    by_thread: HashMap<u64, u32>,
    /// Number of sequence points so far.
    points: u32,
    limit: usize,
    /// Whether there was no room for a thread, so that its losses are not detected.
    overflow: bool,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    thread: u64,
    /// Sequence number of the thread's last event.
    last: u32,
    /// Number of sequence points when the thread was last seen.
    seen: u32,
    /// Whether the thread has been seen in an event or with losses.
    started: bool,
}

/// Index of a thread's slot. Valid until the next sequence point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotId(u32);

/// No slot.
pub(super) const NO_SLOT: SlotId = SlotId(u32::MAX);

impl Sequences {
    pub(super) fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), cache: [0; CACHE_SLOTS], by_thread: HashMap::default(), points: 0, limit, overflow: false }
    }

    /// Returns the slot of a thread, or [`NO_SLOT`] if there is no more room.
    #[inline]
    pub(super) fn slot(&mut self, thread: u64) -> SlotId {
        let cached = self.cache[thread as usize % CACHE_SLOTS];
        match self.slots.get(cached as usize) {
            Some(slot) if slot.thread == thread => SlotId(cached),
            _ => self.find(thread),
        }
    }

    fn find(&mut self, thread: u64) -> SlotId {
        let slot = match self.by_thread.get(&thread) {
            Some(slot) => SlotId(*slot),
            None => self.add(thread),
        };
        self.cache[thread as usize % CACHE_SLOTS] = slot.0;
        slot
    }

    #[cold]
    fn add(&mut self, thread: u64) -> SlotId {
        if self.slots.len() >= self.limit {
            self.overflow = true;
            return NO_SLOT;
        }
        let slot = self.slots.len() as u32;
        self.slots.push(Slot { thread, last: 0, seen: self.points, started: false });
        self.by_thread.insert(thread, slot);
        SlotId(slot)
    }

    /// Handles the sequence number of an event; returns the number of missing events before it.
    #[inline]
    pub(super) fn event(&mut self, slot: SlotId, number: u32) -> Option<(u32, LossKind)> {
        let slot = self.slots.get_mut(slot.0 as usize)?;
        let missing = number.wrapping_sub(slot.last).wrapping_sub(1);
        slot.last = number;
        slot.seen = self.points;
        if missing == 0 && slot.started { None } else { slot.step(missing) }
    }

    /// Handles events with consecutive sequence numbers from `first` to `last`; returns the number of missing events before `first`.
    pub(super) fn events(&mut self, thread: u64, first: u32, last: u32) -> Option<(u32, LossKind)> {
        let slot = self.slot(thread);
        let missing = self.event(slot, first);
        if let Some(slot) = self.slots.get_mut(slot.0 as usize) {
            slot.last = last;
        }
        missing
    }

    /// Handles the last sequence number of a thread in a sequence point; returns the number of missing events before it.
    pub(super) fn listed(&mut self, thread: u64, number: u32) -> Option<u32> {
        let slot = self.slot(thread);
        let slot = self.slots.get_mut(slot.0 as usize)?;
        slot.seen = self.points;
        // The number is a lower bound: the thread may have written more events while the list was created.
        let missing = number.wrapping_sub(slot.last);
        if missing == 0 || missing > i32::MAX as u32 {
            return None;
        }
        slot.last = number;
        slot.started = true;
        Some(missing)
    }

    /// Removes a thread.
    pub(super) fn remove(&mut self, thread: u64) {
        if let Some(slot) = self.by_thread.remove(&thread) {
            self.slots.swap_remove(slot as usize);
            if let Some(moved) = self.slots.get(slot as usize) {
                self.by_thread.insert(moved.thread, slot);
            }
        }
    }

    /// Removes all threads.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        // Clearing takes time proportional to the maximum size that the table ever had.
        self.by_thread = HashMap::default();
    }

    /// Finishes a sequence point after all its threads were handled.
    pub(super) fn end_point(&mut self) {
        let before = self.slots.len();
        self.slots.retain(|slot| slot.seen.wrapping_add(1) >= self.points);
        if self.slots.len() < before {
            self.by_thread = self.slots.iter().zip(0..).map(|(slot, index)| (slot.thread, index)).collect();
        }
        self.points = self.points.wrapping_add(1);
    }

    /// Returns whether there was no room for a thread.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflow
    }
}

impl Slot {
    /// Handles a sequence number other than the next.
    #[cold]
    fn step(&mut self, missing: u32) -> Option<(u32, LossKind)> {
        let first = !std::mem::replace(&mut self.started, true);
        let (missing, kind) = if missing > i32::MAX as u32 {
            // Backwards: the thread ID was reused by another thread, whose numbers start at 1.
            (self.last.saturating_sub(1), LossKind::Start)
        } else {
            (missing, if first { LossKind::Start } else { LossKind::Gap })
        };
        (missing != 0).then_some((missing, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_restarts_are_detected() {
        let mut sequences = Sequences::new(10);
        let slot = sequences.slot(7);
        let steps = [(1, None), (2, None), (5, Some((2, LossKind::Gap))), (1, None), (2, None)];
        for (number, missing) in steps {
            assert_eq!(sequences.event(slot, number), missing, "{number}");
        }
        let late = sequences.slot(8);
        assert_eq!(sequences.event(late, 4), Some((3, LossKind::Start)));
        assert_eq!(sequences.event(late, u32::MAX), Some((u32::MAX - 1, LossKind::Start)), "half the numbers ahead is back");
        assert_eq!(sequences.event(late, 0), None, "numbers wrap");
    }

    #[test]
    fn sequence_points_show_lost_tails() {
        let mut sequences = Sequences::new(10);
        let slot = sequences.slot(7);
        sequences.event(slot, 1);
        assert_eq!(sequences.listed(7, 4), Some(3));
        assert_eq!(sequences.listed(7, 3), None, "a lower bound");
        assert_eq!(sequences.listed(9, 2), Some(2), "a thread of which every event was dropped");
        sequences.end_point();
        assert_eq!(sequences.event(slot, 5), None);
        let late = sequences.slot(9);
        assert_eq!(sequences.event(late, 4), Some((1, LossKind::Gap)), "it had started");
    }

    #[test]
    fn exited_threads_are_forgotten() {
        let mut sequences = Sequences::new(2);
        for thread in [1, 2] {
            let slot = sequences.slot(thread);
            assert_eq!(sequences.event(slot, 1), None);
        }
        assert_eq!(sequences.slot(3), NO_SLOT);
        assert!(sequences.has_overflowed());
        sequences.end_point();
        sequences.listed(2, 1);
        sequences.end_point();
        assert_eq!(sequences.slot(3), NO_SLOT, "one sequence point of grace");
        sequences.listed(2, 1);
        sequences.end_point();
        assert_ne!(sequences.slot(3), NO_SLOT);
        let slot = sequences.slot(2);
        assert_eq!(sequences.event(slot, 2), None, "the living keep their numbers");
        sequences.remove(2);
        let slot = sequences.slot(2);
        assert_eq!(sequences.event(slot, 3), Some((2, LossKind::Start)));
    }
}
