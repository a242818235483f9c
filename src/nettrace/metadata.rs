//! Metadata records: the kinds of events in a stream.

mod parse;

use std::collections::hash_map::Entry;
use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::fast::RandomState;

use super::Field;

pub(super) use parse::{parse_v4, parse_v6};

/// IDs below this are looked up by index.
const DENSE: usize = 4096;

/// Name and payload layout of a kind of event. Text is not sanitized.
///
/// An event can have several records, one per version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Metadata {
    /// Consecutive number from 1, for use in accumulators; equal records share one. 0 stands for all undefined IDs.
    pub index: u32,
    /// ID in the stream. In V6 several IDs can refer to the same record.
    pub id: u32,
    /// Name of the provider.
    pub provider: String,
    /// Event ID within the provider. Arbitrary for self-describing events (`EventCounters`): identify those by name.
    pub event_id: u32,
    /// Name of the event; empty for native runtime events.
    pub name: String,
    /// Keywords as in the stream, where bits 44 to 47 are set for every EventSource event.
    pub keywords: u64,
    /// Payload version.
    pub version: u32,
    /// Level, 0 (always) to 5 (verbose).
    pub level: u32,
    /// Opcode, if known.
    pub opcode: Option<u8>,
    /// Payload fields; empty for native runtime events.
    pub fields: Vec<Field>,
}

/// The metadata records of a stream.
#[derive(Debug)]
pub(super) struct Table {
    /// By index; the first one stands for undefined IDs.
    records: Vec<Metadata>,
    /// By index: whether its events must be delivered in time order.
    ordered: Vec<bool>,
    /// Index by ID, for small IDs, 0 if undefined. Runtimes assign IDs consecutively from 1.
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
    hasher: RandomState,
    /// Index by hash of the content.
    by_content: HashMap<u64, u32>,
    /// The largest ID ever defined.
    largest: u32,
    /// Remaining size of the records to come, in bytes.
    room: usize,
    limit: usize,
}

/// Values by metadata record, added as a [`Sink`](super::Sink) receives the records.
#[derive(Debug, Clone, Default)]
pub struct ByMetadata<T>(Vec<T>);

impl<T> ByMetadata<T> {
    /// Adds the value of the next record of the stream.
    pub fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// Returns the value of a record; `None` for an event without a record.
    #[inline]
    pub fn get(&self, metadata: &Metadata) -> Option<&T> {
        // Index 0 represents missing metadata.
        self.0.get(metadata.index.wrapping_sub(1) as usize)
    }

    /// Returns all values, in the order of the records.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

impl<T: Copy + Default> ByMetadata<T> {
    /// Returns the value of a record; the default for an event without a record.
    #[inline]
    pub fn of(&self, metadata: &Metadata) -> T {
        self.get(metadata).copied().unwrap_or_default()
    }
}

/// Result of adding a record.
pub(super) enum Added<'a> {
    /// A new record.
    New(&'a Metadata),
    /// A record with the same content exists.
    Known,
    /// A limit was reached.
    Full,
}

impl Table {
    pub(super) fn new(limit: usize, bytes: usize) -> Self {
        Self {
            records: vec![Metadata::default()],
            ordered: vec![false],
            dense: Vec::new(),
            sparse: HashMap::default(),
            hasher: RandomState::default(),
            by_content: HashMap::default(),
            largest: 0,
            room: bytes,
            limit,
        }
    }

    /// Returns the record of an ID, or the one for undefined IDs.
    #[inline]
    pub(super) fn get(&self, id: u32) -> &Metadata {
        &self.records[self.index(id) as usize]
    }

    #[inline]
    fn index(&self, id: u32) -> u32 {
        match self.dense.get(id as usize) {
            Some(index) => *index,
            None => self.sparse.get(&id).copied().unwrap_or(0),
        }
    }

    /// Returns the record at an index of this table.
    pub(super) fn record(&self, index: u32) -> &Metadata {
        &self.records[index as usize]
    }

    /// Returns all records by index.
    pub(super) fn records(&self) -> &[Metadata] {
        &self.records
    }

    /// Returns the largest ID ever defined, 0 if there is none.
    pub(super) fn largest_id(&self) -> u32 {
        self.largest
    }

    /// Returns whether events of a record must be delivered in time order.
    #[inline]
    pub(super) fn is_ordered(&self, index: u32) -> bool {
        self.ordered[index as usize]
    }

    /// Marks the newest record for delivery in time order.
    pub(super) fn set_ordered(&mut self) {
        if let Some(ordered) = self.ordered.last_mut() {
            *ordered = true;
        }
    }

    /// Defines or redefines the ID of a record, of `size` bytes in the stream. Also returns whether the ID referred to another record before.
    pub(super) fn add(&mut self, mut record: Metadata, size: usize) -> (Added<'_>, bool) {
        // The hash must not depend on the ID.
        let id = std::mem::take(&mut record.id);
        let before = self.index(id);
        let content = self.hasher.hash_one(&record);
        let next = self.records.len() as u32;
        let known = match self.by_content.entry(content) {
            Entry::Occupied(entry) => {
                let old = &self.records[*entry.get() as usize];
                record.index = old.index;
                record.id = old.id;
                (*old == record).then_some(old.index)
            }
            Entry::Vacant(entry) if self.records.len() < self.limit && size <= self.room => {
                entry.insert(next);
                None
            }
            Entry::Vacant(_) => None,
        };
        if let Some(index) = known {
            self.define(id, index);
            return (Added::Known, before != 0 && before != index);
        }
        if self.records.len() >= self.limit || size > self.room {
            self.undefine(id);
            return (Added::Full, false);
        }
        self.room -= size;
        self.records.push(Metadata { index: next, id, ..record });
        self.ordered.push(false);
        self.define(id, next);
        (Added::New(&self.records[next as usize]), before != 0)
    }

    /// Returns whether a record of this size fits.
    pub(super) fn has_room(&self, size: usize) -> bool {
        size <= self.room
    }

    /// Makes an ID undefined.
    pub(super) fn undefine(&mut self, id: u32) {
        self.define(id, 0);
    }

    /// Makes all IDs undefined.
    pub(super) fn clear_ids(&mut self) {
        self.dense.clear();
        // Clearing takes time proportional to the maximum size that the table ever had.
        self.sparse = HashMap::default();
    }

    fn define(&mut self, id: u32, index: u32) {
        self.largest = self.largest.max(id);
        let at = id as usize;
        if at < DENSE {
            if self.dense.len() < DENSE {
                self.dense.resize(DENSE, 0);
            }
            self.dense[at] = index;
        } else if self.sparse.len() < self.limit || self.sparse.contains_key(&id) {
            self.sparse.insert(id, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u32, name: &str) -> Metadata {
        Metadata { id, name: name.into(), ..Metadata::default() }
    }

    #[test]
    fn last_definition_wins_and_equal_ones_share_an_index() {
        let mut table = Table::new(10, 1000);
        assert_eq!(table.get(1).index, 0);
        assert!(matches!(table.add(record(1, "a"), 1), (Added::New(Metadata { index: 1, .. }), _)));
        assert!(matches!(table.add(record(u32::MAX, "b"), 1), (Added::New(Metadata { index: 2, .. }), _)));
        assert!(matches!(table.add(record(1, "c"), 1), (Added::New(Metadata { index: 3, .. }), true)), "it meant another");
        assert!(matches!(table.add(record(7, "a"), 1), (Added::Known, false)));
        assert!(matches!(table.add(record(7, "a"), 1), (Added::Known, false)));
        assert_eq!([1, 7, u32::MAX, 8].map(|id| table.get(id).name.clone()), ["c", "a", "b", ""]);
        table.clear_ids();
        assert_eq!(table.get(1).index, 0);
        assert!(matches!(table.add(record(u32::MAX, "c"), 1), (Added::Known, _)));
        assert_eq!((table.get(u32::MAX).index, table.largest_id()), (3, u32::MAX));
    }

    #[test]
    fn metadata_table_is_bounded() {
        let mut table = Table::new(3, 10);
        assert!(matches!(table.add(record(1, "large"), 11), (Added::Full, _)));
        assert!(matches!(table.add(record(2, "large"), 11), (Added::Full, _)));
        assert!(matches!(table.add(record(1, "a"), 1), (Added::New(_), _)));
        assert!(matches!(table.add(record(2, "b"), 1), (Added::New(_), _)));
        assert!(matches!(table.add(record(3, "c"), 1), (Added::Full, _)));
        assert!(matches!(table.add(record(3, "a"), 1), (Added::Known, _)));
        assert!(matches!(table.add(record(1, "d"), 1), (Added::Full, _)));
        assert_eq!([1, 2, 3].map(|id| table.get(id).index), [0, 2, 1], "an id whose new record does not fit is unknown");
        let large = 1 << 30..(1 << 30) + 9;
        for id in large.clone() {
            table.add(record(id, "a"), 1);
        }
        assert_eq!(large.filter(|id| table.get(*id).index == 1).count(), 3);
    }
}
