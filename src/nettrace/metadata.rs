//! Metadata records: what kinds of events a stream has.

mod parse;

use std::collections::hash_map::Entry;
use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::fast::RandomState;

use super::Field;

pub(super) use parse::{parse_v4, parse_v6};

/// Ids below this are found by index.
const DENSE: usize = 4096;

/// What a kind of event is called and what its payload holds. Text is not sanitised.
///
/// One event of a provider can have several records, one for each version of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Metadata {
    /// A number for accumulators, dense from 1: records of equal content have one. 0 stands for every id that the stream did not define.
    pub index: u32,
    /// Its id in the stream. With V6 several ids can come to mean the same record.
    pub id: u32,
    /// Name of the provider.
    pub provider: String,
    /// Number of the event within its provider. Self-describing events (`EventCounters`) have any: know those by name.
    pub event_id: u32,
    /// Name of the event; empty for native runtime events.
    pub name: String,
    /// Keywords as they stand in the stream, where bits 44 to 47 are set for every event of an EventSource.
    pub keywords: u64,
    /// Version of the event's payload.
    pub version: u32,
    /// Level, 0 (always) to 5 (verbose).
    pub level: u32,
    /// Opcode, where it is known.
    pub opcode: Option<u8>,
    /// What the payload holds; empty for native runtime events.
    pub fields: Vec<Field>,
}

/// The records of a stream.
#[derive(Debug)]
pub(super) struct Table {
    /// By index; the first is the unknown one.
    records: Vec<Metadata>,
    /// By index, whether events of it are wanted in the order of time.
    ordered: Vec<bool>,
    /// Index by id, for small ids, 0 where there is none. Runtimes count ids up from 1.
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
    hasher: RandomState,
    /// Index by hash of the content.
    by_content: HashMap<u64, u32>,
    /// The largest id that was ever defined.
    largest: u32,
    /// Bytes that more records may have on the wire.
    room: usize,
    limit: usize,
}

/// What became of a record.
pub(super) enum Added<'a> {
    /// It is new.
    New(&'a Metadata),
    /// It was known.
    Known,
    /// There is no room.
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

    /// The record of an id, the unknown one where it has none.
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

    /// The record of an index, which is one of this table's.
    pub(super) fn record(&self, index: u32) -> &Metadata {
        &self.records[index as usize]
    }

    /// The largest id that was ever defined, 0 where none was.
    pub(super) fn largest_id(&self) -> u32 {
        self.largest
    }

    /// Whether events of a record are wanted in the order of time.
    #[inline]
    pub(super) fn is_ordered(&self, index: u32) -> bool {
        self.ordered[index as usize]
    }

    /// Marks events of the newest record as such.
    pub(super) fn set_ordered(&mut self) {
        if let Some(ordered) = self.ordered.last_mut() {
            *ordered = true;
        }
    }

    /// Defines an id, again perhaps: the last definition counts. `size` is what the record takes on the wire. Also gives whether the id meant another
    /// record before.
    pub(super) fn add(&mut self, mut record: Metadata, size: usize) -> (Added<'_>, bool) {
        // Equal content must hash equal whatever its id.
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

    /// Whether a record of that size would fit.
    pub(super) fn has_room(&self, size: usize) -> bool {
        size <= self.room
    }

    /// Makes an id one that is not known.
    pub(super) fn undefine(&mut self, id: u32) {
        self.define(id, 0);
    }

    /// Drops which id means which record.
    pub(super) fn forget_ids(&mut self) {
        self.dense.clear();
        // Clearing would cost the largest size that the table ever had.
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
    fn the_last_definition_counts_and_equal_ones_share_an_index() {
        let mut table = Table::new(10, 1000);
        assert_eq!(table.get(1).index, 0);
        assert!(matches!(table.add(record(1, "a"), 1), (Added::New(Metadata { index: 1, .. }), _)));
        assert!(matches!(table.add(record(u32::MAX, "b"), 1), (Added::New(Metadata { index: 2, .. }), _)));
        assert!(matches!(table.add(record(1, "c"), 1), (Added::New(Metadata { index: 3, .. }), true)), "it meant another");
        assert!(matches!(table.add(record(7, "a"), 1), (Added::Known, _)));
        assert_eq!([1, 7, u32::MAX, 8].map(|id| table.get(id).name.clone()), ["c", "a", "b", ""]);
        table.forget_ids();
        assert_eq!(table.get(1).index, 0);
        assert!(matches!(table.add(record(u32::MAX, "c"), 1), (Added::Known, _)));
        assert_eq!((table.get(u32::MAX).index, table.largest_id()), (3, u32::MAX));
    }

    #[test]
    fn there_is_an_end_to_it() {
        let mut table = Table::new(3, 10);
        assert!(matches!(table.add(record(1, "large"), 11), (Added::Full, _)));
        assert!(matches!(table.add(record(1, "a"), 1), (Added::New(_), _)));
        assert!(matches!(table.add(record(2, "b"), 1), (Added::New(_), _)));
        assert!(matches!(table.add(record(3, "c"), 1), (Added::Full, _)));
        assert!(matches!(table.add(record(3, "a"), 1), (Added::Known, _)));
        assert!(matches!(table.add(record(1, "d"), 1), (Added::Full, _)));
        assert_eq!([1, 2, 3].map(|id| table.get(id).index), [0, 2, 1], "an id whose new record does not fit is unknown");
    }
}
