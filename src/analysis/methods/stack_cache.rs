//! What is known of stacks by their numbers, which are small in most streams.

use foldhash::HashMap;

/// Numbers of stacks below this are looked up by index.
const DENSE: usize = 1 << 16;
/// Stacks of larger numbers that are remembered.
const SPARSE: usize = 1 << 17;

/// A value by number of the stack, until the next sequence point.
#[derive(Debug)]
pub(super) struct StackCache<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u32, T>,
}

impl<T> Default for StackCache<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: HashMap::default() }
    }
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

    /// From here on, numbers of stacks mean others.
    pub(super) fn clear(&mut self) {
        self.dense.clear();
        // Clearing would cost the largest size that the table ever had.
        self.sparse = HashMap::default();
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.dense.iter_mut().flatten().chain(self.sparse.values_mut())
    }
}
