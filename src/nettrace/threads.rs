//! Threads: IDs in events, and definitions in V6.

use std::fmt;

use foldhash::HashMap;

use crate::wire::{Reader, WireError};

use super::labels::text;

/// Maximum length of a thread name in bytes; longer ones are truncated.
const NAME_LIMIT: usize = 256;

/// Indexes below this are looked up without hashing. Bounds the cost for a stream that clears and refills the table repeatedly.
const DENSE: u64 = 1024;

/// Identity of a thread.
///
/// Up to V5 a stream is from one process and events contain OS thread IDs. In V6 they contain an index, which can be reassigned within a
/// stream and is only used in the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ThreadId {
    /// Process ID; 0 for the process of the stream.
    pub process: u32,
    /// OS thread ID in the process's own PID namespace; 0 if unknown.
    pub thread: u64,
    /// Number of earlier threads with the same IDs, as far as the stream shows: IDs are reused.
    pub reuse_count: u32,
}

impl ThreadId {
    /// Placeholder for threads that the stream refers to but did not define (V6).
    pub const UNKNOWN: Self = Self { process: 0, thread: 0, reuse_count: u32::MAX };

    /// Placeholder for threads that are not distinguished.
    pub const OTHERS: Self = Self { thread: u64::MAX, ..Self::UNKNOWN };

    /// Returns the thread with this ID in the process of the stream.
    #[inline]
    pub const fn of(thread: u64) -> Self {
        Self { process: 0, thread, reuse_count: 0 }
    }

    /// Returns its process, given that of the stream: threads have one of their own only in a stream of several processes.
    pub fn process_or(self, of_stream: u32) -> u32 {
        if self.process == 0 { of_stream } else { self.process }
    }

    /// Returns the thread ID if the thread is in the process of the stream.
    pub fn in_process(self) -> Option<u64> {
        (self.process == 0 && self.reuse_count != u32::MAX).then_some(self.thread)
    }
}

/// The thread ID, after the process ID if the stream has several processes.
impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = match *self {
            Self::UNKNOWN => return f.pad("?"),
            Self::OTHERS => return f.pad("…"),
            Self { process: 0, thread, .. } => thread.to_string(),
            Self { process, thread, .. } => format!("{process}/{thread}"),
        };
        if self.reuse_count > 0 {
            text.push_str(&format!("#{}", self.reuse_count.saturating_add(1)));
        }
        f.pad(&text)
    }
}

/// A thread definition (V6).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// Identity of the thread.
    pub id: ThreadId,
    /// Thread name, empty if unknown; not sanitized.
    pub name: String,
}

/// A row of a thread block.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) index: u64,
    process: Option<u64>,
    thread: Option<u64>,
    pub(super) name: String,
}

/// The defined threads, and how often their IDs were used before.
#[derive(Debug)]
pub(super) struct Threads {
    /// By index, [`ThreadId::UNKNOWN`] if undefined: most indexes are small.
    dense: Vec<ThreadId>,
    sparse: HashMap<u64, ThreadId>,
    /// Number of defined indexes.
    count: usize,
    /// Number of threads that have ended, by process ID and thread ID.
    ended: HashMap<(u32, u64), u32>,
    /// Number of threads without an OS thread ID so far.
    without_id: u32,
    limit: usize,
}

/// Result of adding a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The thread was defined.
    Defined(ThreadId),
    /// The thread was defined, and its index referred to another one before.
    Redefined(ThreadId),
    /// The limit was reached.
    Full,
}

impl Threads {
    pub(super) fn new(limit: usize) -> Self {
        Self { dense: Vec::new(), sparse: HashMap::default(), count: 0, ended: HashMap::default(), without_id: 0, limit }
    }

    /// Returns the thread of an index, if defined.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<ThreadId> {
        match self.dense.get(index as usize) {
            Some(id) => (*id != ThreadId::UNKNOWN).then_some(*id),
            None => self.sparse.get(&index).copied(),
        }
    }

    /// Assigns an index to a thread.
    fn set(&mut self, index: u64, id: ThreadId) {
        if index >= DENSE {
            self.sparse.insert(index, id);
            return;
        }
        let place = index as usize;
        if self.dense.len() <= place {
            self.dense.resize(place + 1, ThreadId::UNKNOWN);
        }
        self.dense[place] = id;
    }

    fn take(&mut self, index: u64) -> Option<ThreadId> {
        let id = self.get(index)?;
        match self.dense.get_mut(index as usize) {
            Some(place) => *place = ThreadId::UNKNOWN,
            None => _ = self.sparse.remove(&index),
        }
        self.count -= 1;
        Some(id)
    }

    /// Adds a row of a stream of process `of`, 0 if it has several processes.
    pub(super) fn add(&mut self, row: &Row, of: u32) -> Added {
        let known = self.get(row.index);
        if self.count >= self.limit && known.is_none() {
            return Added::Full;
        }
        let process = row.process.map_or(0, |process| u32::try_from(process).unwrap_or(u32::MAX));
        let process = if process == of { 0 } else { process };
        let id = match row.thread {
            Some(thread) => ThreadId { process, thread, reuse_count: self.ended.get(&(process, thread)).copied().unwrap_or(0) },
            // A repeated definition refers to the same thread.
            None if known.is_some_and(|known| known.process == process && known.thread == 0) => known.unwrap_or_default(),
            None => {
                self.without_id = self.without_id.saturating_add(1);
                ThreadId { process, thread: 0, reuse_count: self.without_id }
            }
        };
        self.set(row.index, id);
        self.count += usize::from(known.is_none());
        if known.is_none_or(|known| known == id) { Added::Defined(id) } else { Added::Redefined(id) }
    }

    /// Removes a thread that has ended; returns whether the index was defined.
    pub(super) fn remove(&mut self, index: u64) -> bool {
        let Some(ThreadId { process, thread, reuse_count }) = self.take(index) else { return false };
        if self.ended.len() >= self.limit {
            self.ended = HashMap::default();
        }
        self.ended.insert((process, thread), reuse_count.saturating_add(1));
        true
    }

    /// Makes all indexes undefined. The threads themselves continue.
    pub(super) fn clear(&mut self) {
        self.dense.clear();
        // Clearing takes time proportional to the maximum size that the table ever had.
        self.sparse = HashMap::default();
        self.count = 0;
    }
}

/// Parses the next row of a thread block.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Row, WireError> {
    let size = reader.u16()?.into();
    let mut row = Reader::new(reader.take(size)?);
    let mut thread = Row { index: row.varu64()?, ..Row::default() };
    while !row.is_empty() {
        match row.u8()? {
            1 => {
                let name = text(&mut row)?;
                thread.name = String::from_utf8_lossy(&name[..name.len().min(NAME_LIMIT)]).into_owned();
            }
            2 => thread.process = Some(row.varu64()?),
            3 => thread.thread = Some(row.varu64()?),
            4 => {
                text(&mut row)?;
                text(&mut row)?;
            }
            // Options added by later versions have unknown lengths: the rest of the row is ignored.
            _ => break,
        }
    }
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_indexes_are_reused() {
        let mut threads = Threads::new(3);
        let row = |index, process, thread| Row { index, process: Some(process), thread: Some(thread), name: String::new() };
        let id = |process, thread, reuse_count| ThreadId { process, thread, reuse_count };
        assert_eq!(threads.add(&row(1, 7, 70), 0), Added::Defined(id(7, 70, 0)));
        assert_eq!(threads.add(&row(1, 7, 70), 0), Added::Defined(id(7, 70, 0)), "reported twice");
        assert_eq!(threads.add(&row(2, 9, 70), 9), Added::Defined(id(0, 70, 0)), "the stream's own process");
        threads.clear();
        assert_eq!(threads.add(&row(1, 8, 80), 0), Added::Defined(id(8, 80, 0)));
        assert_eq!(threads.add(&row(3, 7, 70), 0), Added::Defined(id(7, 70, 0)), "the same thread by another index");
        assert!(threads.remove(3) && !threads.remove(3));
        assert_eq!(threads.add(&row(3, 7, 70), 0), Added::Defined(id(7, 70, 1)), "another thread of the same ids");
        assert_eq!(threads.add(&row(3, 7, 71), 0), Added::Redefined(id(7, 71, 0)));
        let without_id = |index| Row { index, ..Row::default() };
        assert_eq!(threads.add(&without_id(5), 0), Added::Defined(id(0, 0, 1)));
        assert_eq!(threads.add(&without_id(5), 0), Added::Defined(id(0, 0, 1)));
        assert_eq!(threads.add(&without_id(6), 0), Added::Full);
    }

    #[test]
    fn number_of_ended_threads_is_limited() {
        let reuse_of_first = |ended: u64| {
            let mut threads = Threads::new(3);
            let mut add = |thread| {
                let row = Row { index: 1, thread: Some(thread), ..Row::default() };
                let Added::Defined(id) = threads.add(&row, 0) else { panic!("not defined") };
                assert!(threads.remove(1));
                id.reuse_count
            };
            (0..ended).for_each(|thread| assert_eq!(add(70 + thread), 0));
            add(70)
        };
        assert_eq!((reuse_of_first(3), reuse_of_first(4)), (1, 0));
    }

    #[test]
    fn long_name_is_truncated() {
        // Option 1 of the thread with index 7: a text of 300 bytes.
        let row = [&[7, 1, 0xac, 2][..], &[b'a'; 300]].concat();
        let bytes = [&(row.len() as u16).to_le_bytes()[..], &row].concat();
        let row = parse(&mut Reader::new(&bytes)).unwrap();
        assert_eq!((row.index, row.name), (7, "a".repeat(NAME_LIMIT)));
    }

    #[test]
    fn thread_ids_are_formatted() {
        let of = |process, thread, reuse_count| ThreadId { process, thread, reuse_count }.to_string();
        assert_eq!([of(0, 42, 0), of(7, 42, 0), of(0, 42, 1), of(7, 42, 2)], ["42", "7/42", "42#2", "7/42#3"]);
        assert_eq!((ThreadId::UNKNOWN.to_string(), format!("{:>5}", ThreadId::of(42))), ("?".to_owned(), "   42".to_owned()));
    }
}
