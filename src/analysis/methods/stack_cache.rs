//! Cache by stack ID; IDs are small in most streams.

use foldhash::HashMap;

/// Stack IDs below this are looked up by index.
const DENSE: usize = 1 << 16;
/// Maximum number of cached stacks with larger IDs.
const SPARSE: usize = 1 << 17;

/// Values by stack ID, valid until the next sequence point.
#[derive(Debug, Default)]
pub(super) struct StackCache<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u32, T>,
}

impl<T: Copy> StackCache<T> {
    pub(super) fn get(&self, stack_id: u32) -> Option<T> {
        match self.dense.get(stack_id as usize) {
            Some(value) => *value,
            None => self.sparse.get(&stack_id).copied(),
        }
    }

    pub(super) fn put(&mut self, stack_id: u32, value: T) {
        let index = stack_id as usize;
        if index < DENSE {
            self.dense.resize(self.dense.len().max(index + 1), None);
            self.dense[index] = Some(value);
            return;
        }
        if self.sparse.len() >= SPARSE && !self.sparse.contains_key(&stack_id) {
            self.sparse = HashMap::default();
        }
        self.sparse.insert(stack_id, value);
    }

    /// Removes all values: stack IDs have new meanings from here on.
    pub(super) fn clear(&mut self) {
        self.dense.clear();
        // Clearing the table would cost time in proportion to its capacity.
        self.sparse = HashMap::default();
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.dense.iter_mut().flatten().chain(self.sparse.values_mut())
    }
}
