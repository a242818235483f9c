//! The latest items of an unbounded sequence.

use std::collections::VecDeque;

/// Keeps at most `MOST` items, and counts all of them.
#[derive(Debug)]
pub(super) struct Latest<T, const MOST: usize> {
    items: VecDeque<T>,
    count: u64,
}

impl<T, const MOST: usize> Default for Latest<T, MOST> {
    fn default() -> Self {
        Self { items: VecDeque::new(), count: 0 }
    }
}

impl<T, const MOST: usize> Latest<T, MOST> {
    /// Appends an item, and drops the oldest one if there are too many.
    pub(super) fn push(&mut self, item: T) {
        if self.items.len() >= MOST {
            self.items.pop_front();
        }
        self.items.push_back(item);
        self.count += 1;
    }

    /// Removes the item that the next [`push`](Self::push) would drop, to reuse its memory.
    pub(super) fn take_oldest(&mut self) -> Option<T> {
        if self.items.len() < MOST { None } else { self.items.pop_front() }
    }

    /// Returns the items, oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.iter()
    }

    /// Returns the items, oldest first.
    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// Returns the items after the first `seen` of the sequence, oldest first, each with its number in the sequence, counted from 1.
    pub(super) fn after(&self, seen: u64) -> impl Iterator<Item = (u64, &T)> {
        let first = self.count - self.items.len() as u64;
        (first + 1..).zip(&self.items).skip(usize::try_from(seen.saturating_sub(first)).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered_from_the_first_of_the_sequence() {
        let mut latest = Latest::<u64, 3>::default();
        let after = |latest: &Latest<u64, 3>, seen| latest.after(seen).map(|(number, item)| (number, *item)).collect::<Vec<_>>();
        assert_eq!((latest.take_oldest(), after(&latest, 0)), (None, vec![]));
        (1..=5).for_each(|item| latest.push(item * 10));
        for (seen, expected) in [
            (0, vec![(3, 30), (4, 40), (5, 50)]),
            (2, vec![(3, 30), (4, 40), (5, 50)]),
            (3, vec![(4, 40), (5, 50)]),
            (5, vec![]),
            (u64::MAX, vec![]),
        ] {
            assert_eq!(after(&latest, seen), expected, "{seen}");
        }
        assert_eq!(latest.take_oldest(), Some(30));
        latest.push(60);
        assert_eq!(after(&latest, 4), [(5, 50), (6, 60)]);
    }
}
