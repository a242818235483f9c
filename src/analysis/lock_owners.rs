//! The threads that hold a lock while others wait for it.

use std::cmp::Reverse;

use crate::sorting::CompactSort;

/// Number of threads that are kept.
const OWNERS: usize = 4;

/// The threads that held the lock when waits began, those with the longest waits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Owners([Owner; OWNERS]);

/// A thread, or 0 if the place is free.
#[derive(Debug, Clone, Copy, Default)]
struct Owner {
    thread: u64,
    waits: u64,
    wait_ns: u64,
}

impl Owners {
    pub(super) fn of(thread: u64, wait_ns: u64) -> Self {
        let mut owners = Self::default();
        owners.add(Owner { thread, waits: 1, wait_ns });
        owners
    }

    /// Adds to the thread's place, or replaces the one with the shortest waits if these are longer.
    fn add(&mut self, owner: Owner) {
        if owner.thread == 0 {
            return;
        }
        if let Some(known) = self.0.iter_mut().find(|known| known.thread == owner.thread) {
            known.waits = known.waits.saturating_add(owner.waits);
            known.wait_ns = known.wait_ns.saturating_add(owner.wait_ns);
        } else if let Some(least) = self.0.iter_mut().min_by_key(|known| (known.thread != 0, known.wait_ns))
            && (least.thread == 0 || least.wait_ns < owner.wait_ns)
        {
            *least = owner;
        }
    }

    /// Adds the threads of another site.
    pub(super) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|owner| self.add(owner));
    }

    /// Returns the threads with their numbers of waits, those with the longest waits first.
    pub(super) fn list(&self) -> Vec<(u64, u64)> {
        let mut known: Vec<_> = self.0.iter().filter(|owner| owner.thread != 0).collect();
        known.compact_sort_by_key(|owner| (Reverse(owner.wait_ns), owner.thread));
        known.into_iter().map(|owner| (owner.thread, owner.waits)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_with_the_longest_waits_are_kept() {
        let mut owners = Owners::default();
        for (thread, wait_ns) in [(7, 5), (0, 99), (8, 1), (7, 5), (9, 20), (6, 2), (5, 1), (4, 30), (0, 999)] {
            owners.merge(Owners::of(thread, wait_ns));
        }
        assert_eq!(owners.list(), [(4, 1), (9, 1), (7, 2), (6, 1)]);
        let mut short = Owners::of(7, 0);
        short.merge(Owners::of(8, 0));
        assert_eq!(short.list(), [(7, 1), (8, 1)]);
    }
}
