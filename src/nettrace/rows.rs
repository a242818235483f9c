//! Rows of bytes that events refer to by ID: stacks, and label lists in V6. Both are valid until the next sequence point.

use crate::wire::Reader;

/// Maximum number of runs, i.e. of blocks of rows with gaps between their IDs. Runtimes leave no gaps.
const RUN_LIMIT: usize = 4096;

/// Rows of bytes with ascending IDs; a block of rows with lower IDs resets the table.
#[derive(Debug)]
pub(super) struct Rows {
    bytes: Vec<u8>,
    /// Offset and length of each row in `bytes`.
    spans: Vec<(u32, u32)>,
    runs: Vec<Run>,
    /// Maximum size in bytes, including the spans.
    limit: usize,
}

/// Rows with consecutive IDs.
#[derive(Debug, Clone, Copy)]
struct Run {
    first_id: u32,
    /// Index of the first row in `spans`.
    at: usize,
}

/// Result of loading a block: the number of rows, and whether all rows that events may refer to are still stored.
pub(super) struct Loaded {
    pub(super) count: u32,
    pub(super) kept: bool,
    /// Offset at which the block is damaged.
    pub(super) damage: Option<usize>,
}

impl Rows {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), spans: Vec::new(), runs: Vec::new(), limit }
    }

    /// Removes all rows and keeps the allocations.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.runs.clear();
    }

    /// Returns whether the existing rows are kept when a block of `size` bytes with IDs from `first_id` is added.
    pub(super) fn keeps(&self, first_id: u32, size: usize) -> bool {
        let goes_on = self.runs.last().is_none_or(|run| self.next_id(*run) <= u64::from(first_id));
        self.has_room(size) && goes_on
    }

    fn has_room(&self, size: usize) -> bool {
        size <= self.room() && self.runs.len() < RUN_LIMIT
    }

    /// Loads a block: the first ID, a count, and the rows. `next` reads a row; `None` if it is malformed.
    pub(super) fn load<'a>(&mut self, block: &'a [u8], next: impl Fn(&mut Reader<'a>) -> Option<&'a [u8]>) -> Loaded {
        let mut reader = Reader::new(block);
        let (Ok(first_id), Ok(count)) = (reader.u32(), reader.u32()) else { return Loaded { count: 0, kept: true, damage: Some(0) } };
        let mut loaded = Loaded { count: 0, kept: self.begin(first_id, reader.remaining()), damage: None };
        let mut has_room = true;
        while loaded.count < count {
            let start = reader.at();
            let Some(row) = next(&mut reader) else {
                loaded.damage = Some(start);
                break;
            };
            // IDs are consecutive: without this row, those after it would get wrong ones.
            has_room = has_room && self.push(row);
            loaded.count += 1;
        }
        loaded.kept &= has_room;
        loaded
    }

    /// Makes room for a block of rows of `size` bytes with IDs from `first_id`; returns false if older rows were dropped for it, or if it does
    /// not fit at all.
    fn begin(&mut self, first_id: u32, size: usize) -> bool {
        let fits = self.has_room(size);
        if !fits {
            self.clear();
        }
        match self.runs.last() {
            Some(run) if self.next_id(*run) == u64::from(first_id) => {}
            Some(run) if self.next_id(*run) > u64::from(first_id) => {
                self.clear();
                self.runs.push(Run { first_id, at: 0 });
            }
            _ => self.runs.push(Run { first_id, at: self.spans.len() }),
        }
        fits
    }

    /// Adds the next row of the block; returns false if it does not fit.
    fn push(&mut self, row: &[u8]) -> bool {
        let fits = row.len() + size_of::<(u32, u32)>() <= self.room();
        if fits {
            self.spans.push((self.bytes.len() as u32, row.len() as u32));
            self.bytes.extend_from_slice(row);
        }
        fits
    }

    fn room(&self) -> usize {
        self.limit.saturating_sub(self.bytes.len() + size_of_val(&*self.spans))
    }

    /// Returns whether the row with this ID exists.
    #[inline]
    pub(super) fn has(&self, id: u32) -> bool {
        self.index(id).is_some()
    }

    /// Returns whether all rows from `first` to `last` exist.
    pub(super) fn has_all(&self, first: u32, last: u32) -> bool {
        matches!((self.index(first), self.index(last)), (Some(from), Some(to)) if to.checked_sub(from) == Some((last - first) as usize))
    }

    /// Returns the row with this ID.
    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let (at, len) = self.spans[self.index(id)?];
        self.bytes.get(at as usize..at as usize + len as usize)
    }

    /// Returns the index of a row's span, without accessing it: that would cost a cache miss for each event with a stack.
    #[inline]
    fn index(&self, id: u32) -> Option<usize> {
        let after = match self.runs.last() {
            Some(run) if run.first_id <= id => self.runs.len(),
            _ => self.runs.partition_point(|run| run.first_id <= id),
        };
        let run = self.runs.get(after.checked_sub(1)?)?;
        let end = self.runs.get(after).map_or(self.spans.len(), |next| next.at);
        run.at.checked_add((id - run.first_id) as usize).filter(|index| *index < end)
    }

    fn next_id(&self, run: Run) -> u64 {
        u64::from(run.first_id) + (self.spans.len() - run.at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(rows: &mut Rows, first_id: u32, new: &[&[u8]]) -> bool {
        rows.begin(first_id, new.iter().map(|row| row.len()).sum()) && new.iter().all(|row| rows.push(row))
    }

    #[test]
    fn rows_are_found_by_id() {
        let mut rows = Rows::new(1000);
        assert!(add(&mut rows, 1, &[b"one", b""]) && add(&mut rows, 3, &[b"three"]));
        assert!(add(&mut rows, u32::MAX, &[b"last"]));
        assert_eq!(
            [0, 1, 2, 3, 4, 5, u32::MAX - 1].map(|id| rows.get(id)),
            [None, Some(&b"one"[..]), Some(b""), Some(b"three"), None, None, None]
        );
        assert_eq!(rows.get(u32::MAX), Some(&b"last"[..]));
        assert_eq!([(1, 3), (1, 4), (3, u32::MAX)].map(|(first, last)| rows.has_all(first, last)), [true, false, false]);
        assert!(add(&mut rows, 2, &[b"again"]));
        assert_eq!([1, 2, 3, u32::MAX].map(|id| rows.get(id)), [None, Some(&b"again"[..]), None, None]);
        rows.clear();
        assert_eq!(rows.get(2), None);
    }

    #[test]
    fn number_of_id_gaps_is_bounded() {
        let mut rows = Rows::new(1000);
        let evictions = (0..RUN_LIMIT as u32 * 3).filter(|block| !add(&mut rows, block * 2, &[])).count();
        assert_eq!((evictions, rows.runs.len() <= RUN_LIMIT), (2, true));
    }

    #[test]
    fn oldest_rows_are_evicted_first() {
        let mut rows = Rows::new(64);
        assert!(add(&mut rows, 1, &[&[1; 40]]));
        assert!(!add(&mut rows, 2, &[&[2; 40]]), "older rows were dropped");
        assert_eq!((rows.get(1), rows.get(2)), (None, None));
        // IDs from 5 on, and rows of 10, 60 and 1 bytes.
        let sizes = [10, 60, 1];
        let block = [&[5, 0, 0, 0, 3, 0, 0, 0][..], &sizes.map(|size| vec![size; size.into()]).concat()].concat();
        let loaded = rows.load(&block, |reader| {
            let size = *reader.rest().first()?;
            reader.take(size.into()).ok()
        });
        assert_eq!((loaded.count, loaded.kept, loaded.damage), (3, false, None));
        assert_eq!([5, 6, 7].map(|id| rows.get(id)), [Some(&[10; 10][..]), None, None], "a row after one that does not fit has no ID");
    }
}
