//! Sizes of the ring buffers: the kernel locks them in memory, and limits the locked memory of each user.

use std::time::Duration;

use procfs::page_size;
use rustix::thread::{CapabilitySet, capabilities};

/// Largest buffer of a thread, in bytes. Samples of 40 frames fill it in 0.3 s at 999 Hz.
const MAX_BUFFER_BYTES: u64 = 128 << 10;
/// Largest buffer of a processor, in bytes. Samples of the maximum depth fill it in 1 s, and those of all programs are in it.
const MAX_PROCESSOR_BYTES: u64 = 1 << 20;
/// Smallest buffer that holds several samples of maximum length, in bytes.
const MIN_BUFFER_BYTES: u64 = 8 << 10;
/// Maximum bytes of the buffers of all threads at the start, whatever the limits are; those of later threads add less than twice as much.
const MAX_TOTAL_BYTES: u64 = 64 << 20;

/// Returns how many bytes a user may lock: `perf_event_mlock_kb` for each processor, plus the process's limit of locked memory
/// (`perf_event_open(2)`).
pub(super) fn lockable(mlock_kb: u64, processors: u64, locked_limit: Option<u64>) -> u64 {
    let limit = mlock_kb.saturating_mul(1024).saturating_mul(processors);
    locked_limit.map_or(MAX_TOTAL_BYTES, |more| limit.saturating_add(more)).min(MAX_TOTAL_BYTES)
}

/// Whether the limit of locked memory does not apply to us. It usually does apply to root in a container.
pub(super) fn may_lock() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

/// Whether the limit is no restriction: more than this is never used.
pub(super) fn is_ample(lockable: u64) -> bool {
    lockable >= MAX_TOTAL_BYTES
}

/// Returns the size of each thread's ring buffer, given how much may be locked. Half is reserved for threads created later.
pub(super) fn bytes_for_each(lockable: u64, threads: usize) -> usize {
    share(lockable / 2, threads, MAX_BUFFER_BYTES)
}

/// Returns the time after which a buffer has to be read again: at 999 Hz, samples of 40 frames fill the smallest in 21 ms.
pub(super) fn drain_interval(bytes: usize) -> Duration {
    Duration::from_millis(if bytes as u64 <= MIN_BUFFER_BYTES { 10 } else { 20 })
}

/// Returns the size of each processor's ring buffer: all together take half of what is not for the first threads.
pub(super) fn bytes_for_each_processor(lockable: u64, processors: usize) -> usize {
    share(lockable / 4, processors, MAX_PROCESSOR_BYTES)
}

/// Returns the size of each of so many buffers, at most `most`, a power of two.
fn share(bytes: u64, buffers: usize, most: u64) -> usize {
    // Each buffer also has a page of control data.
    let share = (bytes / (buffers as u64).max(1)).saturating_sub(page_size());
    let power = 1 << share.max(1).ilog2();
    power.clamp(MIN_BUFFER_BYTES, most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fit_the_lockable_memory() {
        // The defaults of a kernel, with two processors.
        let lockable = lockable(516, 2, Some(8 << 20));
        for threads in [1, 20, 64, 200] {
            let bytes = bytes_for_each(lockable, threads) as u64;
            assert!(bytes.is_power_of_two() && (bytes + page_size()) * threads as u64 <= lockable, "{threads}: {bytes}");
        }
        assert_eq!((bytes_for_each(lockable, 0), bytes_for_each(lockable, 5000)), (128 << 10, 8 << 10));
        let all = [1, 2, 32].map(|processors| bytes_for_each_processor(lockable, processors) * processors);
        assert_eq!(all, [1 << 20, 2 << 20, 32 * (64 << 10)]);
        let intervals = [1, 5000].map(|threads| drain_interval(bytes_for_each(lockable, threads)).as_millis());
        assert_eq!(intervals, [20, 10], "the smallest buffers are read more often");
        // Half of the memory is for threads that are created later.
        let [all, half] = [lockable, lockable / 2].map(|bytes| (bytes_for_each(bytes, 40) as u64 + page_size()) * 40);
        assert!(all <= lockable / 2 && half <= lockable / 4, "{all} {half}");
        // Each buffer of a growing process is sized by the number of its threads at that time.
        let growing: u64 = (1..=8192).map(|threads| bytes_for_each(MAX_TOTAL_BYTES, threads) as u64).sum();
        assert!(growing < 3 * MAX_TOTAL_BYTES, "{growing}");
        assert!(!is_ample(lockable) && is_ample(super::lockable(u64::MAX, 1, None)));
        assert_eq!(super::lockable(u64::MAX, 2, None), MAX_TOTAL_BYTES);
        assert_eq!(super::lockable(u64::MAX, 2, Some(u64::MAX)), MAX_TOTAL_BYTES);
    }
}
