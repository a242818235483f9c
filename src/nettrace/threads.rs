//! Threads as V6 describes them: events name a row of this table.

use foldhash::HashMap;

use crate::wire::{Reader, WireError};

use super::labels::text;

/// Longest thread name that is kept, bytes.
const NAME_LIMIT: usize = 256;

/// A thread that events refer to by its index (V6).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// What events call it. An index can be given to another thread once the first is removed.
    pub index: u64,
    /// Process id, where it is told.
    pub process_id: Option<u64>,
    /// Thread id of the operating system, where it is told.
    pub thread_id: Option<u64>,
    /// Its name, empty where it is not told; not sanitised.
    pub name: String,
}

/// The threads that are known now.
#[derive(Debug)]
pub(super) struct Threads {
    by_index: HashMap<u64, Thread>,
    limit: usize,
}

impl Threads {
    pub(super) fn new(limit: usize) -> Self {
        Self { by_index: HashMap::default(), limit }
    }

    pub(super) fn get(&self, index: u64) -> Option<&Thread> {
        self.by_index.get(&index)
    }

    /// `false` where there is no room.
    pub(super) fn add(&mut self, thread: Thread) -> bool {
        let fits = self.by_index.len() < self.limit || self.by_index.contains_key(&thread.index);
        if fits {
            self.by_index.insert(thread.index, thread);
        }
        fits
    }

    pub(super) fn remove(&mut self, index: u64) {
        self.by_index.remove(&index);
    }

    pub(super) fn clear(&mut self) {
        // Clearing would cost the largest size that the table ever had.
        self.by_index = HashMap::default();
    }
}

/// Reads the next row of a thread block.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Thread, WireError> {
    let size = reader.u16()?.into();
    let mut row = Reader::new(reader.take(size)?);
    let mut thread = Thread { index: row.varu64()?, ..Thread::default() };
    while !row.is_empty() {
        match row.u8()? {
            1 => {
                let name = text(&mut row)?;
                thread.name = String::from_utf8_lossy(&name[..name.len().min(NAME_LIMIT)]).into_owned();
            }
            2 => thread.process_id = Some(row.varu64()?),
            3 => thread.thread_id = Some(row.varu64()?),
            4 => {
                text(&mut row)?;
                text(&mut row)?;
            }
            // What a later version adds has no known length: the rest of the row is left out.
            _ => break,
        }
    }
    Ok(thread)
}
