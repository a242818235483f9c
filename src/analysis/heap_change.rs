//! Changes of the heap between two heap walks, by type.

use foldhash::HashMap;

use super::heap::{HeapSnapshot, HeapType};

use crate::sorting::CompactSort;

/// A type whose objects differ between two heap walks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapChange<'a> {
    /// Type name; empty if unknown. Not sanitized.
    pub name: &'a str,
    /// Module name. Not sanitized.
    pub module: &'a str,
    /// Objects in the first walk.
    pub before: HeapAmount,
    /// Objects in the second walk.
    pub after: HeapAmount,
}

/// Number and size of the objects of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapAmount {
    /// The exact amount.
    Known {
        /// Number of objects.
        objects: u64,
        /// Their size in bytes.
        bytes: u64,
    },
    /// The type is not listed: its objects take at most this many bytes.
    AtMost(u64),
}

impl HeapAmount {
    /// Returns the bytes, or their upper bound.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Known { bytes, .. } | Self::AtMost(bytes) => bytes,
        }
    }

    fn of(named: &HeapType) -> Self {
        Self::Known { objects: named.objects, bytes: named.bytes }
    }

    /// Returns the amount of a type that is not listed in a walk.
    fn unlisted(heap: &HeapSnapshot) -> Self {
        match heap.types.last().filter(|_| heap.others.0 > 0) {
            Some(smallest) => Self::AtMost(smallest.bytes),
            None => Self::Known { objects: 0, bytes: 0 },
        }
    }
}

impl HeapChange<'_> {
    /// Returns the growth in bytes; if one of the amounts is only a bound, the minimum growth or shrinkage.
    pub fn bytes(&self) -> i64 {
        growth(self.before.bytes(), self.after.bytes())
    }

    /// Returns the growth in objects; `None` if unknown.
    pub fn objects(&self) -> Option<i64> {
        match (self.before, self.after) {
            (HeapAmount::Known { objects: before, .. }, HeapAmount::Known { objects: after, .. }) => Some(growth(before, after)),
            _ => None,
        }
    }
}

/// Returns the growth from one number to another; a process can report any.
pub fn growth(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(if after > before { i64::MAX } else { i64::MIN })
}

impl HeapSnapshot {
    /// Returns the changes since another walk over the same heap, greatest growth first.
    pub fn changes_since<'a>(&'a self, before: &'a Self) -> Vec<HeapChange<'a>> {
        let key = |named: &'a HeapType| (named.name.as_str(), named.module.as_str());
        let mut earlier: HashMap<_, _> = before.types.iter().map(|named| (key(named), named)).collect();
        let change = |named: &'a HeapType, before, after| HeapChange { name: &named.name, module: &named.module, before, after };
        let mut changes: Vec<_> = self
            .types
            .iter()
            .map(|named| {
                let before = earlier.remove(&key(named)).map_or_else(|| HeapAmount::unlisted(before), HeapAmount::of);
                change(named, before, HeapAmount::of(named))
            })
            .collect();
        changes.extend(earlier.into_values().map(|named| change(named, HeapAmount::of(named), HeapAmount::unlisted(self))));
        changes.retain(|change| change.before != change.after);
        changes.compact_sort_by_key(|change| (std::cmp::Reverse(change.bytes()), change.name, change.module));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(types: &[(&str, u64, u64)], others: u64) -> HeapSnapshot {
        let named = |(name, objects, bytes): &(&str, u64, u64)| HeapType {
            name: (*name).to_owned(),
            module: "App".to_owned(),
            objects: *objects,
            bytes: *bytes,
        };
        HeapSnapshot {
            objects: 0,
            bytes: 0,
            references: 0,
            types: types.iter().map(named).collect(),
            others: (others, 0, 0),
            is_finished: true,
            problems: Vec::new(),
        }
    }

    #[test]
    fn heap_changes_are_sorted_and_omit_unchanged_types() {
        let before = heap(&[("Same", 9, 900), ("Gone", 5, 500), ("Less", 4, 400), ("More", 1, 100)], 0);
        let after = heap(&[("Same", 9, 900), ("More", 3, 300), ("New", 7, 250), ("Less", 1, 100)], 0);
        let found: Vec<_> =
            after.changes_since(&before).iter().map(|change| (change.name.to_owned(), change.bytes(), change.objects())).collect();
        let expected = [("New", 250, Some(7)), ("More", 200, Some(2)), ("Less", -300, Some(-3)), ("Gone", -500, Some(-5))];
        assert_eq!(found, expected.map(|(name, bytes, objects)| (name.to_owned(), bytes, objects)));
    }

    #[test]
    fn excessive_sizes_are_capped() {
        let (none, all) = (heap(&[("A", 0, 5)], 0), heap(&[("A", 0, u64::MAX)], 0));
        assert_eq!((all.changes_since(&none)[0].bytes(), none.changes_since(&all)[0].bytes()), (i64::MAX, i64::MIN));
    }

    /// For a type that is not listed, only an upper bound is known.
    #[test]
    fn truncated_type_list_gives_only_an_upper_bound() {
        let before = heap(&[("Big", 9, 900), ("Small", 1, 24)], 40);
        let after = heap(&[("Leak", 99, 9900), ("Big", 9, 900), ("Small", 1, 24)], 40);
        let changes = after.changes_since(&before);
        assert_eq!((changes.len(), changes[0].before, changes[0].bytes(), changes[0].objects()), (1, HeapAmount::AtMost(24), 9876, None));
    }
}
