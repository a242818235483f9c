//! The stacks in which a thread waits: recorded by the kernel each time the thread leaves the processor, if permitted.
//!
//! The stacks have their own ring buffer. The switch record, which shows whether the thread was blocked, is in the buffer of the samples, and is
//! written right after the stack.

use std::io;

use perf_event::data::Record;
use perf_event::{Builder, Sampler};

use super::chain::Chain;
use super::raw_stack::{self, record_stack};
use super::thread::now_ns;
use super::{CpuSample, UserStack};
use crate::net::proc::{BlockedStack, Proc, ReadableMemory};

/// Maximum time between a stack and its switch record, in nanoseconds.
const MAX_SKEW_NS: u64 = 1_000_000;
/// Maximum number of stacks per second over all threads. Each costs the process a few microseconds.
const MAX_STACKS_PER_SECOND: u64 = 10_000;
/// Time after which a thread that never blocked is expected to go on like that: no stacks are recorded until it blocks. Each preemption would cost
/// it as much as a wait, for a stack that is not used.
const BUSY_NS: u64 = 1_000_000_000;
/// Bytes recorded of the raw stack: most are shorter.
const STACK_BYTES: u32 = 4 << 10;
/// Bytes read of the stack of a thread that is already blocked.
const BLOCKED_STACK: usize = 32 << 10;
/// Bytes for the buffers of all threads at the start, and minimum and maximum for each: a buffer should hold the switches of some milliseconds,
/// and a thread spinning for a lock yields many times per millisecond.
const BUFFERS: (usize, usize, usize) = (32 << 20, 64 << 10, 1 << 20);

/// Returns the buffer size per thread, in bytes.
fn buffer_bytes(threads: usize) -> usize {
    let (all, least, most) = BUFFERS;
    (1 << (all / threads.max(1)).max(1).ilog2()).clamp(least, most)
}

/// Returns the maximum number of stacks of one thread per second, given the total of all threads.
pub(super) fn max_stacks_per_thread(all: u64, threads: usize) -> u64 {
    if all <= MAX_STACKS_PER_SECOND { u64::MAX } else { MAX_STACKS_PER_SECOND / threads.max(1) as u64 }
}

/// Records the stack of a thread that is already blocked. Returns `false` if it is not readable. The readable memory is listed for the first thread,
/// and kept for others that are recorded at the same time.
pub(super) fn record_blocked_stack(
    proc: &Proc,
    pid: u32,
    thread: u32,
    waits: &mut WaitStacks,
    memory: &mut Option<ReadableMemory>,
) -> bool {
    if cfg!(target_arch = "x86_64") && memory.is_none() {
        *memory = proc.readable_memory(pid).ok();
    }
    let at = now_ns();
    let stack = memory.as_ref().and_then(|memory| proc.blocked_stack(pid, thread, BLOCKED_STACK, memory).ok().flatten());
    stack.map(|stack| waits.blocked_at(at, stack)).is_some()
}

/// Records the stacks of the waits of one thread.
pub(super) struct WaitStacks {
    sampler: Sampler,
    /// The latest stack, and one already read that belongs to a later switch.
    latest: Stack,
    ahead: Stack,
    /// The stack of the current wait; its time is that up to which the wait has been reported.
    waiting: Stack,
    /// Time of the first switch since the thread last blocked.
    busy_since: Option<u64>,
    /// Whether recording is paused.
    is_paused: bool,
    /// When recording last resumed.
    resumed_at: u64,
    /// Whether the current wait began while recording was paused.
    is_missing: bool,
    /// Stacks since the last query: recorded, and lost for lack of room or because of a pause.
    taken: u64,
    lost: u64,
}

/// A stack; its memory is reused.
#[derive(Debug, Default)]
struct Stack {
    /// When it was recorded; `None` if there is no stack.
    at: Option<u64>,
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// Frame pointer, stack pointer and instruction pointer, if known.
    registers: Option<[u64; 3]>,
    bytes: Vec<u8>,
}

impl WaitStacks {
    /// Starts recording the thread that the event was built for.
    ///
    /// # Errors
    /// The kernel's error: recording kernel stacks requires privileges.
    pub(super) fn start(mut event: Builder<'_>, threads: usize) -> io::Result<Self> {
        event.sample_period(1);
        record_stack(&mut event, STACK_BYTES);
        let sampler = event.build()?.sampled(buffer_bytes(threads))?;
        let [latest, ahead, waiting] = Default::default();
        let (busy_since, is_paused, resumed_at, is_missing) = (None, false, 0, false);
        Ok(Self { sampler, latest, ahead, waiting, busy_since, is_paused, resumed_at, is_missing, taken: 0, lost: 0 })
    }

    /// Returns whether no stacks are recorded until the thread blocks.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns whether the stack of the current wait was not recorded because of a pause, once per wait.
    pub(super) fn take_missing(&mut self) -> bool {
        std::mem::take(&mut self.is_missing)
    }

    /// Records that the stack of the current wait is unknown.
    pub(super) fn not_recorded(&mut self) {
        self.lost += 1;
    }

    /// Records the stack of a thread that was blocked while nothing was recorded.
    pub(super) fn blocked_at(&mut self, at: u64, stack: BlockedStack) {
        let BlockedStack { instruction_pointer, stack_pointer, bytes } = stack;
        // The frame pointer is unknown: the innermost functions are those of the C library, which do not keep it but save that of their callers.
        let registers = Some([0, stack_pointer, instruction_pointer]);
        self.waiting = Stack { at: Some(at), kernel: Vec::new(), user: vec![instruction_pointer], registers, bytes };
    }

    /// Records that the thread leaves the processor: it is blocked or preempted.
    pub(super) fn switched_out(&mut self, at: u64, is_runnable: bool, pid: u32) {
        self.waiting.at = None;
        let is_recorded = self.read_until(at, pid);
        if is_runnable {
            let since = *self.busy_since.get_or_insert(at);
            if !self.is_paused && at.saturating_sub(since) >= BUSY_NS {
                self.is_paused = self.sampler.disable().is_ok();
            }
        } else {
            self.busy_since = None;
            if self.is_paused && self.sampler.enable().is_ok() {
                (self.is_paused, self.resumed_at) = (false, now_ns());
            }
            if is_recorded {
                std::mem::swap(&mut self.waiting, &mut self.latest);
                self.waiting.at = Some(at);
            }
            self.is_missing = !is_recorded && at <= self.resumed_at;
        }
        self.latest.at = None;
    }

    /// Records that the thread is back on a processor; returns the rest of its wait.
    pub(super) fn switched_in(&mut self, at: u64, thread: u64, depth: usize) -> Option<CpuSample<'_>> {
        self.lost += u64::from(self.take_missing());
        let since = self.waiting.at.take()?;
        Some(self.waiting.sample(thread, since, at, depth))
    }

    /// Returns the part of a wait in progress that has not been reported yet.
    pub(super) fn wait_in_progress(&mut self, now: u64, thread: u64, depth: usize) -> Option<CpuSample<'_>> {
        let since = self.waiting.at?;
        self.waiting.at = Some(now.max(since));
        (now > since).then(|| self.waiting.sample(thread, since, now, depth))
    }

    /// Returns how many stacks were recorded and how many were lost since the last call.
    pub(super) fn take_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.taken), std::mem::take(&mut self.lost))
    }

    /// Reads the stacks up to a switch. Returns whether the latest is the stack of that switch.
    fn read_until(&mut self, at: u64, pid: u32) -> bool {
        loop {
            if self.ahead.at.is_none() && !self.read(pid) {
                break;
            }
            if self.ahead.at > Some(at) {
                break;
            }
            std::mem::swap(&mut self.latest, &mut self.ahead);
            self.ahead.at = None;
        }
        self.latest.at.is_some_and(|taken| at - taken < MAX_SKEW_NS)
    }

    /// Reads the next stack. Returns `false` if there is none.
    fn read(&mut self, pid: u32) -> bool {
        while let Some(record) = self.sampler.next_record() {
            match record.parse_record() {
                Ok(Record::Sample(sample)) if sample.pid() == Some(pid) => {
                    self.taken += 1;
                    let (Some(at), Some(chain)) = (sample.time(), sample.callchain()) else { continue };
                    self.ahead.put(at, Chain::new(chain), raw_stack::of_sample(&sample));
                    return true;
                }
                Ok(Record::Lost(lost)) => self.lost += lost.lost,
                Ok(Record::LostSamples(lost)) => self.lost += lost.lost,
                _ => {}
            }
        }
        false
    }
}

impl Stack {
    fn put(&mut self, at: u64, Chain { kernel, user }: Chain<'_>, stack: Option<UserStack<'_>>) {
        (self.at, self.registers) = (Some(at), stack.map(|stack| stack.registers()));
        stack.map_or(&[][..], |stack| stack.bytes).clone_into(&mut self.bytes);
        kernel.clone_into(&mut self.kernel);
        user.clone_into(&mut self.user);
    }

    fn sample(&self, thread: u64, since: u64, until: u64, depth: usize) -> CpuSample<'_> {
        let Self { kernel, user, registers, bytes, .. } = self;
        let cut = kernel.len() + user.len() >= depth;
        let stack = registers.map(|registers| UserStack::new(registers, bytes));
        CpuSample { thread, time_ns: until, waited_ns: Some(until.saturating_sub(since)), kernel, user, cut, stack }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_a_growing_process_are_limited() {
        assert_eq!([1, 32, 33, 5000].map(buffer_bytes), [1 << 20, 1 << 20, 512 << 10, 64 << 10]);
        // Half of the maximum number of sampled threads have stacks.
        let growing: usize = (1..=4096).map(buffer_bytes).sum();
        assert!(growing < 12 * BUFFERS.0, "{growing}");
    }

    #[test]
    fn stacks_are_limited_if_all_threads_together_have_too_many() {
        let most = [MAX_STACKS_PER_SECOND, MAX_STACKS_PER_SECOND + 1].map(|all| max_stacks_per_thread(all, 10));
        assert_eq!(most, [u64::MAX, MAX_STACKS_PER_SECOND / 10]);
        assert_eq!(max_stacks_per_thread(u64::MAX, 0), MAX_STACKS_PER_SECOND);
    }

    #[test]
    fn stack_of_the_maximum_depth_is_cut() {
        let stack = Stack { kernel: vec![1; 3], user: vec![2; 4], ..Stack::default() };
        assert_eq!([7, 8].map(|depth| stack.sample(1, 5, 9, depth).cut), [true, false]);
        assert_eq!(stack.sample(1, 5, 9, 8).waited_ns, Some(4));
    }
}
