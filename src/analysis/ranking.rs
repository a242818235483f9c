//! Keeps the heaviest of many rows, and the latest of many values, in bounded memory.

use std::collections::VecDeque;

use foldhash::HashMap;

use crate::sorting::CompactSort;

/// Maximum number of significant bytes of a key.
pub(super) const MAX_KEY_LENGTH: usize = 1024;

/// The data of a key.
pub(super) trait Row: Default {
    /// Maximum number of rows.
    const LIMIT: usize;

    /// Returns the weight: light rows are evicted.
    fn weight(&self) -> u64;

    /// Merges an evicted row into this one.
    fn fold(&mut self, row: Self);
}

/// Rows by key, up to a limit. When it is reached, the lighter half is folded into a single row: the sum over all rows stays correct, and an
/// evicted key that occurs again starts from zero.
#[derive(Debug, Default)]
pub(super) struct Ranking<R> {
    index: HashMap<Box<[u8]>, u32>,
    rows: Vec<R>,
    rest: R,
}

impl<R: Row> Ranking<R> {
    /// Returns the row of a key, creating it if needed. Allocates only then.
    pub(super) fn row(&mut self, key: &[u8]) -> &mut R {
        let key = &key[..key.len().min(MAX_KEY_LENGTH)];
        let at = match self.index.get(key) {
            Some(at) => *at as usize,
            None => {
                if self.rows.len() >= R::LIMIT {
                    self.make_room();
                }
                self.index.insert(key.into(), self.rows.len() as u32);
                self.rows.push(R::default());
                self.rows.len() - 1
            }
        };
        &mut self.rows[at]
    }

    /// Returns all keys and rows, in no particular order.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[u8], &R)> {
        self.index.iter().map(|(key, at)| (&**key, &self.rows[*at as usize]))
    }

    /// Returns the heaviest rows with their keys, heaviest first; equal ones by key.
    pub(super) fn heaviest(&self, count: usize) -> Vec<(&[u8], &R)> {
        let mut rows: Vec<_> = self.rows().collect();
        rows.compact_sort_by(|(a_key, a), (b_key, b)| b.weight().cmp(&a.weight()).then(a_key.cmp(b_key)));
        rows.truncate(count);
        rows
    }

    /// Returns the sum of all evicted rows.
    pub(super) fn rest(&self) -> &R {
        &self.rest
    }

    fn make_room(&mut self) {
        let mut weights: Vec<u64> = self.rows.iter().map(Row::weight).collect();
        let half = weights.len() / 2;
        let middle = *weights.select_nth_unstable(half).1;
        // Of the rows as heavy as the middle one, evict only as many as needed.
        let lighter = weights[..half].iter().filter(|weight| **weight < middle).count();
        let mut equal = half.saturating_sub(lighter);
        let mut kept = Vec::with_capacity(R::LIMIT);
        let mut places = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            let is_evicted = row.weight() < middle || (row.weight() == middle && equal > 0);
            if is_evicted {
                equal -= usize::from(row.weight() == middle);
                self.rest.fold(row);
                places.push(None);
            } else {
                places.push(Some(kept.len() as u32));
                kept.push(row);
            }
        }
        self.rows = kept;
        self.index.retain(|_, at| match places[*at as usize] {
            Some(place) => {
                *at = place;
                true
            }
            None => false,
        });
    }
}

/// Appends a value, and drops the oldest one if there are already `most`.
pub(super) fn push_latest<T>(latest: &mut VecDeque<T>, most: usize, value: T) {
    if latest.len() >= most {
        latest.pop_front();
    }
    latest.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Row for u64 {
        const LIMIT: usize = 4;

        fn weight(&self) -> u64 {
            *self
        }

        fn fold(&mut self, row: Self) {
            *self += row;
        }
    }

    #[test]
    fn heaviest_rows_are_kept() {
        let mut ranking = Ranking::<u64>::default();
        for (key, weight) in [("a", 5), ("b", 1), ("c", 9), ("b", 1), ("d", 1), ("e", 3), ("a", 5)] {
            *ranking.row(key.as_bytes()) += weight;
        }
        let heaviest: Vec<_> = ranking.heaviest(2).into_iter().map(|(key, weight)| (key, *weight)).collect();
        assert_eq!(heaviest, [(&b"a"[..], 10), (&b"c"[..], 9)]);
        assert_eq!((ranking.rest(), ranking.rows.len()), (&3, 3), "b and d made room for e");
    }

    proptest! {
        #[test]
        fn total_weight_is_preserved(weights: Vec<(u8, u8)>) {
            let mut ranking = Ranking::<u64>::default();
            for (key, weight) in &weights {
                *ranking.row(&[*key]) += u64::from(*weight);
                prop_assert!(ranking.rows.len() <= u64::LIMIT && ranking.rows.len() == ranking.index.len());
            }
            let sum: u64 = ranking.rows().map(|(_, weight)| weight).sum::<u64>() + ranking.rest();
            prop_assert_eq!(sum, weights.iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>());
        }
    }
}
