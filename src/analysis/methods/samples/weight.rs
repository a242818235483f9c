//! Estimates the CPU time of samples from the known CPU times of threads: the sampler also captures threads that wait in native code, and a
//! sample does not distinguish these from running ones.

use foldhash::HashMap;

use super::{Cell, Samples};

/// Reciprocal of the maximum share of time for which CPU times may be unknown.
const UNKNOWN_DIVISOR: u64 = 20;

impl Samples {
    /// Applies the total CPU time of threads, in nanoseconds, by thread ID within the process. The samples since the previous update represent
    /// the CPU time added since then. Samples of missing threads are weighted as before.
    pub(in super::super) fn apply_cpu_times(&mut self, times: &[(u64, u64)]) {
        if times.is_empty() {
            return;
        }
        let mut open = vec![0_u64; self.threads.len()];
        for cell in &self.cells {
            let open = &mut open[cell.thread as usize];
            *open = open.saturating_add(cell.open_ns);
        }
        let times: HashMap<_, _> = times.iter().copied().collect();
        for (thread, open) in self.threads.iter_mut().zip(&mut open) {
            let Some(cpu_ns) = thread.id.in_process().and_then(|id| times.get(&id)).copied() else {
                *open = 0;
                continue;
            };
            thread.is_timed = true;
            // Without samples, the CPU time belongs to samples still to come.
            if *open > 0 {
                // If it decreased, the ID was reused by another thread.
                let spent = cpu_ns.checked_sub(thread.cpu_ns).unwrap_or(cpu_ns);
                (thread.cpu_ns, thread.share) = (cpu_ns, (spent as f64 / *open as f64).min(1.0));
            }
        }
        for cell in &mut self.cells {
            if open[cell.thread as usize] > 0 {
                let share = self.threads[cell.thread as usize].share;
                cell.cpu_ns = cell.cpu_ns.saturating_add((std::mem::take(&mut cell.open_ns) as f64 * share) as u64);
            }
        }
    }

    /// Returns whether the CPU times are known for nearly all time that may be CPU time: they are missing for threads that lived only between
    /// two updates, and for those of a process with very many threads.
    pub(in super::super) fn has_cpu_times(&self) -> bool {
        let (mut all, mut unknown) = (0_u64, 0_u64);
        for cell in &self.cells {
            let ns = cell.may_run(false).ns;
            all = all.saturating_add(ns);
            unknown = unknown.saturating_add(if self.threads[cell.thread as usize].is_timed { 0 } else { ns });
        }
        all > 0 && unknown <= all / UNKNOWN_DIVISOR
    }

    /// Returns the CPU time of each cell in nanoseconds, at most the time that its thread was not blocked. `waits` selects cells whose method
    /// only waits: their CPU time is attributed to the other cells of their threads.
    pub(in super::super) fn cpu_ns(&self, waits: impl Fn(&Cell) -> bool) -> Vec<u64> {
        let part = |ns: u64, cell: &Cell| ns as f64 * cell.may_run(waits(cell)).ns as f64 / cell.may_run(false).ns.max(1) as f64;
        let mut known = vec![0.0; self.threads.len()];
        for cell in &self.cells {
            known[cell.thread as usize] += part(cell.cpu_ns, cell);
        }
        let cpu_ns = |cell: &Cell| {
            let thread = &self.threads[cell.thread as usize];
            let missing = Some(thread.cpu_ns.saturating_sub(thread.moved_ns) as f64 / known[cell.thread as usize])
                .filter(|factor| factor.is_finite());
            let ns = part(cell.cpu_ns, cell) * missing.unwrap_or(1.0).max(1.0) + part(cell.open_ns, cell) * thread.share;
            (ns.round() as u64).min(cell.may_run(waits(cell)).ns)
        };
        self.cells.iter().map(cpu_ns).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ThreadState;
    use super::*;
    use crate::nettrace::ThreadId;

    const MS: i64 = 1_000_000;

    /// Adds samples of one thread, one per millisecond, cycling through the cells.
    fn sample(samples: &mut Samples, from: i64, turns: i64, cells: &[u32]) {
        for turn in 0..turns {
            for (at, node) in cells.iter().enumerate() {
                let at = (from + turn * cells.len() as i64 + at as i64) * MS;
                samples.add(*node, ThreadId::of(7), at, ThreadState::External);
            }
        }
    }

    fn cpu_ms(samples: &Samples, waits: &[u32]) -> Vec<i64> {
        samples.cpu_ns(|cell| waits.contains(&cell.node)).iter().map(|ns| (*ns as f64 / MS as f64).round() as i64).collect()
    }

    #[test]
    fn cpu_time_is_distributed_over_a_threads_samples() {
        let mut samples = Samples::default();
        sample(&mut samples, 0, 1000, &[1]);
        assert_eq!((cpu_ms(&samples, &[]), samples.has_cpu_times()), (vec![1000], false), "as long as nothing else is known");
        samples.apply_cpu_times(&[(7, 1000 * MS as u64)]);
        assert_eq!((cpu_ms(&samples, &[]), samples.has_cpu_times()), (vec![1000], true));
        // From here on it waits in a socket, then alternates.
        sample(&mut samples, 1000, 1000, &[2]);
        assert_eq!(cpu_ms(&samples, &[]), [1000, 1000], "as before, until its time comes");
        samples.apply_cpu_times(&[(7, 1020 * MS as u64)]);
        assert_eq!(cpu_ms(&samples, &[]), [1000, 20]);
        sample(&mut samples, 2000, 500, &[1, 2]);
        assert_eq!(cpu_ms(&samples, &[]), [1010, 30], "what is new counts as what was last");
        samples.apply_cpu_times(&[(7, 1520 * MS as u64)]);
        assert_eq!(cpu_ms(&samples, &[]), [1250, 270]);
        // Once its name is known, its time is attributed to the others.
        assert_eq!(cpu_ms(&samples, &[2]), [1500, 0]);
    }

    #[test]
    fn mostly_waiting_thread_keeps_its_small_cpu_time() {
        let mut samples = Samples::default();
        // Two samples in a hundred are outside the wait, whose name is resolved later.
        for round in 0..20 {
            sample(&mut samples, round * 100, 1, &[[1; 2].as_slice(), &[2; 98]].concat());
            samples.apply_cpu_times(&[(7, (round as u64 + 1) * 2 * MS as u64)]);
        }
        assert_eq!(cpu_ms(&samples, &[2]), [40, 0]);
        let of_others = |samples: &mut Samples| samples.apply_cpu_times(&[(8, 5), (9, 7)]);
        of_others(&mut samples);
        assert_eq!(cpu_ms(&samples, &[2]), [40, 0]);
    }

    #[test]
    fn cpu_time_handles_exited_threads_and_reused_ids() {
        let mut samples = Samples::default();
        sample(&mut samples, 0, 1000, &[1]);
        samples.apply_cpu_times(&[(7, 900 * MS as u64)]);
        sample(&mut samples, 1000, 1000, &[1]);
        samples.apply_cpu_times(&[(8, 5 * MS as u64)]);
        assert_eq!(cpu_ms(&samples, &[]), [1800], "it ended before the look");
        // Another thread has reused its ID.
        samples.apply_cpu_times(&[(7, 500 * MS as u64)]);
        assert_eq!(cpu_ms(&samples, &[]), [1400]);
    }

    #[test]
    fn has_cpu_times_is_false_if_many_samples_lack_times() {
        let mut samples = Samples::default();
        let all = |samples: &mut Samples, thread, count: i64| {
            (0..count).for_each(|at| _ = samples.add(1, ThreadId::of(thread), at * MS, ThreadState::External));
        };
        all(&mut samples, 7, 1000);
        all(&mut samples, 8, 40);
        samples.apply_cpu_times(&[(7, 500 * MS as u64)]);
        assert!(samples.has_cpu_times());
        all(&mut samples, 9, 40);
        assert!(!samples.has_cpu_times());
        samples.apply_cpu_times(&[(9, 0)]);
        assert!(samples.has_cpu_times());
    }

    #[test]
    fn cpu_time_never_exceeds_sampled_time() {
        let mut samples = Samples::default();
        samples.apply_cpu_times(&[(7, 0)]);
        samples.apply_cpu_times(&[(7, u64::MAX)]);
        sample(&mut samples, 0, 100, &[1]);
        samples.add(1, ThreadId::of(7), 100 * MS, ThreadState::Blocked);
        samples.apply_cpu_times(&[(7, u64::MAX)]);
        samples.apply_cpu_times(&[(7, 0)]);
        assert_eq!(cpu_ms(&samples, &[]), [100]);
        assert_eq!(samples.cells[0].count(false, 50 * MS as u64).running, 50);
    }
}
