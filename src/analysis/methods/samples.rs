//! Sample counts by stack and thread.

mod weight;

use foldhash::HashMap;

use super::{Rounds, SampleCount};
use crate::nettrace::ThreadId;

/// Maximum number of combinations of stack and thread.
const CELLS: usize = 1 << 17;
/// Maximum number of distinct threads.
const THREADS: usize = 4096;
/// Index for all threads that are not distinguished.
const OTHERS: u32 = 0;

/// Samples by tree node and thread.
#[derive(Debug)]
pub(super) struct Samples {
    cells: Vec<Cell>,
    index: HashMap<(u32, u32), u32>,
    threads: Vec<Thread>,
    thread_index: HashMap<ThreadId, u32>,
    rounds: Rounds,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) node: u32,
    /// Thread index.
    pub(super) thread: u32,
    /// By [`ThreadState`].
    states: [Tally; 3],
    /// Recent part of all these, in nanoseconds.
    recent_ns: u64,
    /// Time that was not blocked: nanoseconds since the latest CPU times, and the CPU time of everything before.
    open_ns: u64,
    cpu_ns: u64,
}

/// Number of samples, and the time they represent.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    samples: u32,
    ns: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Thread state shown by a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// In managed code.
    Managed,
    /// In native code, or in managed code that had to be stopped for the sample.
    External,
    /// Waiting for a lock.
    Blocked,
}

impl Cell {
    /// Returns the samples in which the thread may have been running: if its method only waits, only those in managed code.
    fn may_run(&self, waits: bool) -> Tally {
        let [mut tally, external, _] = self.states;
        if !waits {
            tally.add(external);
        }
        tally
    }

    /// Returns the sample count, with this much of it being CPU time.
    pub(super) fn count(&self, waits: bool, cpu_ns: u64) -> SampleCount {
        let Tally { samples, ns } = self.may_run(waits);
        let samples = f64::from(samples);
        // The times of a damaged stream are so large that rounding can exceed the number.
        let running = if cpu_ns >= ns { samples } else { (samples * cpu_ns as f64 / ns as f64).ceil().min(samples) } as u64;
        let all_ns = self.states.iter().fold(0_u64, |sum, tally| sum.saturating_add(tally.ns));
        SampleCount {
            running,
            waiting: self.samples() - running,
            running_ns: cpu_ns,
            waiting_ns: all_ns.saturating_sub(cpu_ns),
            recent_ns: self.recent_ns,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.states.iter_mut().zip(other.states).for_each(|(sum, tally)| sum.add(tally));
        self.recent_ns = self.recent_ns.saturating_add(other.recent_ns);
        self.open_ns = self.open_ns.saturating_add(other.open_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }

    fn samples(&self) -> u64 {
        self.states.iter().map(|tally| u64::from(tally.samples)).sum()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    id: ThreadId,
    samples: u64,
    first: i64,
    last: i64,
    /// Node of the newest sample.
    node: u32,
    /// Sampling round of the newest sample.
    round: u32,
    /// CPU time at the latest update with samples, in nanoseconds; 0 before the first.
    cpu_ns: u64,
    /// CPU time of samples that were moved to [`OTHERS`].
    moved_ns: u64,
    /// Whether its CPU time was ever reported.
    is_timed: bool,
    /// CPU time as a share of the time that was not blocked, at the latest update.
    share: f64,
}

impl Thread {
    fn new(id: ThreadId) -> Self {
        Self { id, first: i64::MAX, last: i64::MIN, round: Rounds::NEVER, share: 1.0, ..Self::default() }
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            index: HashMap::default(),
            threads: vec![Thread::new(ThreadId::OTHERS)],
            thread_index: HashMap::default(),
            rounds: Rounds::default(),
        }
    }
}

impl Samples {
    /// Counts a sample and returns its cell.
    pub(super) fn add(&mut self, node: u32, thread: ThreadId, at: i64, state: ThreadState) -> u32 {
        let cell = self.cell_of(node, thread);
        self.add_to_cell(cell, at, state);
        cell
    }

    /// Counts a sample that represents a number of nanoseconds, regardless of earlier samples, and returns its cell.
    pub(super) fn add_weighted(&mut self, node: u32, thread: ThreadId, at: i64, state: ThreadState, ns: u64) -> u32 {
        let cell = self.cell_of(node, thread);
        self.tally(cell, at, state, ns);
        cell
    }

    /// Like [`Self::add_weighted`], for a recent sample of a thread that runs.
    pub(super) fn add_recent(&mut self, node: u32, thread: ThreadId, at: i64, ns: u64) -> u32 {
        let cell = self.add_weighted(node, thread, at, ThreadState::Managed, ns);
        let recent = &mut self.cells[cell as usize].recent_ns;
        *recent = recent.saturating_add(ns);
        cell
    }

    /// Removes nanoseconds from the recent part of a cell.
    pub(super) fn forget_recent(&mut self, cell: u32, ns: u64) {
        let recent = &mut self.cells[cell as usize].recent_ns;
        *recent = recent.saturating_sub(ns);
    }

    fn cell_of(&mut self, node: u32, thread: ThreadId) -> u32 {
        let next = self.threads.len() as u32;
        let thread = match self.thread_index.get(&thread) {
            Some(index) => *index,
            None if self.threads.len() < THREADS => {
                self.threads.push(Thread::new(thread));
                self.thread_index.insert(thread, next);
                next
            }
            None => OTHERS,
        };
        self.cell(node, thread)
    }

    /// Counts another sample of a cell.
    #[inline]
    pub(super) fn add_to_cell(&mut self, cell: u32, at: i64, state: ThreadState) {
        let index = self.cells[cell as usize].thread;
        let thread = &mut self.threads[index as usize];
        let (round, ns) = self.rounds.sample(thread.round, at);
        // There are several samples of undistinguished threads per round.
        if index != OTHERS {
            thread.round = round;
        }
        self.tally(cell, at, state, ns);
    }

    #[inline]
    fn tally(&mut self, cell: u32, at: i64, state: ThreadState, ns: u64) {
        let cell = &mut self.cells[cell as usize];
        let thread = &mut self.threads[cell.thread as usize];
        cell.states[state as usize].add(Tally { samples: 1, ns });
        if state != ThreadState::Blocked {
            cell.open_ns = cell.open_ns.saturating_add(ns);
        }
        thread.samples += 1;
        thread.first = thread.first.min(at);
        if at >= thread.last {
            (thread.last, thread.node) = (at, cell.node);
        }
    }

    fn cell(&mut self, node: u32, thread: u32) -> u32 {
        let next = self.cells.len() as u32;
        let cell = *self.index.entry((node, thread)).or_insert(next);
        if cell == next {
            self.cells.push(Cell { node, thread, ..Cell::default() });
        }
        cell
    }

    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the threads by index.
    pub(super) fn threads(&self) -> impl Iterator<Item = ThreadId> {
        self.threads.iter().map(|thread| thread.id)
    }

    /// Returns time and node of the newest sample, by thread index.
    pub(super) fn newest(&self) -> impl Iterator<Item = (i64, u32)> {
        self.threads.iter().map(|thread| (thread.last, thread.node))
    }

    pub(super) fn count(&self) -> u64 {
        self.threads.iter().map(|thread| thread.samples).sum()
    }

    /// Returns the time between two samples of a thread, measured on the thread with the most samples.
    pub(super) fn interval_ns(&self) -> Option<u64> {
        let most = self.threads[1..].iter().max_by_key(|thread| thread.samples).filter(|thread| thread.samples > 1)?;
        Some(most.last.abs_diff(most.first) / (most.samples - 1))
    }

    pub(super) fn is_full(&self) -> bool {
        self.cells.len() >= CELLS
    }

    /// Returns the number of samples by node.
    pub(super) fn by_node(&self, nodes: usize) -> Vec<u64> {
        let mut weights = vec![0; nodes];
        for cell in &self.cells {
            weights[cell.node as usize] += cell.samples();
        }
        weights
    }

    /// Applies new node indexes. Returns the new cell of every old one.
    pub(super) fn renumber_nodes(&mut self, moved: &[u32]) -> Vec<u32> {
        self.threads.iter_mut().for_each(|thread| thread.node = moved[thread.node as usize]);
        self.rearrange(|cell, _| (moved[cell.node as usize], cell.thread))
    }

    /// Like [`Self::renumber_nodes`]; if that is not enough, merges the lightest cells into the undistinguished threads.
    pub(super) fn make_room(&mut self, moved: &[u32]) -> Vec<u32> {
        let followed = self.renumber_nodes(moved);
        if self.cells.len() <= CELLS / 2 {
            return followed;
        }
        let mut weights: Vec<u64> = self.cells.iter().map(Cell::samples).collect();
        let threshold = *weights.select_nth_unstable_by(CELLS / 4, |a, b| b.cmp(a)).1;
        let places = self.rearrange(|cell, threads| {
            if cell.samples() > threshold {
                return (cell.node, cell.thread);
            }
            let moved_ns = &mut threads[cell.thread as usize].moved_ns;
            *moved_ns = moved_ns.saturating_add(cell.cpu_ns);
            (cell.node, OTHERS)
        });
        followed.into_iter().map(|cell| places[cell as usize]).collect()
    }

    /// Merges the samples of some threads into the undistinguished ones.
    pub(super) fn fold_threads(&mut self, is_folded: impl Fn(ThreadId) -> bool) {
        self.rearrange(|cell, threads| (cell.node, if is_folded(threads[cell.thread as usize].id) { OTHERS } else { cell.thread }));
    }

    /// Gives every cell another node and thread, and merges those that become equal. Returns the new cell of every old one.
    fn rearrange(&mut self, mut place: impl FnMut(&Cell, &mut [Thread]) -> (u32, u32)) -> Vec<u32> {
        let Self { cells, index, threads, .. } = self;
        index.clear();
        let mut kept = 0;
        let rearranged = (0..cells.len()).map(|old| {
            let cell = cells[old];
            let (node, thread) = place(&cell, threads);
            let new = *index.entry((node, thread)).or_insert(kept);
            if new == kept {
                // In place: cells only move forward.
                cells[new as usize] = Cell { node, thread, ..cell };
                kept += 1;
            } else {
                cells[new as usize].merge(&cell);
            }
            new
        });
        let rearranged = rearranged.collect();
        cells.truncate(kept as usize);
        rearranged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of a damaged stream.
    #[test]
    fn not_more_samples_run_than_there_are() {
        for (samples, ns) in [(522_434, 4_776_146_798_496_691_721), (705_907, 18_237_492_139_337_157_203)] {
            let cell = Cell { states: [Tally { samples, ns }, Tally::default(), Tally::default()], ..Cell::default() };
            let count = cell.count(false, ns - 1);
            assert_eq!((count.running, count.waiting), (samples.into(), 0), "{samples} {ns}");
        }
    }
}
