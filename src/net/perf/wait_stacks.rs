//! Where a thread waits: its stack at each moment that it leaves the processor, which the kernel takes for those who may see it.
//!
//! The stacks are in a ring buffer of their own. The record of the switch, which shows whether the thread was blocked, is in that of the samples: it is
//! written right after the stack.

use std::io;

use perf_event::data::Record;
use perf_event::{Builder, SampleFlag, Sampler};

use super::chain::Chain;
use super::{CpuSample, UserStack};
use crate::net::proc::BlockedStack;

/// The longest time between a stack and the record of its switch, nanoseconds.
const APART: u64 = 1_000_000;
/// Most stacks of all threads that are taken in a second. Each costs the process a few microseconds.
const MOST: u64 = 10_000;
/// What is kept of the stack itself, bytes: most are shorter. It takes as much of the buffer, however short it is.
const STACK: u32 = 4 << 10;
/// Frame pointer, stack pointer and instruction pointer (`PERF_REG_X86_BP`, `_SP` and `_IP`), in the order in which the kernel writes them.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// What the buffers of all threads may take, bytes, and that of one: it is to hold the switches of some milliseconds, and a thread that spins for a lock
/// gives its turn away many times in one.
const BUFFERS: (usize, usize, usize) = (32 << 20, 64 << 10, 1 << 20);

/// The size of the buffer of each of so many threads, bytes.
fn buffer_bytes(threads: usize) -> usize {
    let (all, least, most) = BUFFERS;
    (1 << (all / threads.max(1)).max(1).ilog2()).clamp(least, most)
}

/// How many stacks a thread may have in a second, where all together have so many.
pub(super) fn most_of_a_thread(all: u64, threads: usize) -> u64 {
    if all <= MOST { u64::MAX } else { MOST / threads.max(1) as u64 }
}

/// Follows the waits of one thread.
pub(super) struct WaitStacks {
    sampler: Sampler,
    /// The latest stack, and one that is read already and belongs to a later switch.
    latest: Stack,
    ahead: Stack,
    /// Where it waits now, and up to when that has been reported.
    waiting: Stack,
    /// Stacks since the last look, and such that had no room.
    taken: u64,
    lost: u64,
}

/// A stack; the memory stays when it is taken.
#[derive(Debug, Default)]
struct Stack {
    /// When; nothing where there is none.
    at: Option<u64>,
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// Frame pointer, stack pointer and instruction pointer, where they are known.
    registers: Option<[u64; 3]>,
    bytes: Vec<u8>,
}

impl WaitStacks {
    /// Begins with the thread that an event was built for.
    ///
    /// # Errors
    /// What the kernel answers: it takes rights to see stacks in the kernel.
    pub(super) fn start(mut event: Builder<'_>, threads: usize) -> io::Result<Self> {
        event.sample_period(1);
        if cfg!(target_arch = "x86_64") {
            event.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER).sample_regs_user(REGISTERS).sample_stack_user(STACK);
        }
        let sampler = event.build()?.sampled(buffer_bytes(threads))?;
        let [latest, ahead, waiting] = Default::default();
        Ok(Self { sampler, latest, ahead, waiting, taken: 0, lost: 0 })
    }

    /// The thread is blocked, and was before there were stacks of it.
    pub(super) fn blocked_at(&mut self, at: u64, stack: BlockedStack) {
        let BlockedStack { instruction_pointer, stack_pointer, bytes } = stack;
        // The frame pointer is not known: the first functions are those of the C library, which keep none and save that of their callers.
        let registers = Some([0, stack_pointer, instruction_pointer]);
        self.waiting = Stack { at: Some(at), kernel: Vec::new(), user: vec![instruction_pointer], registers, bytes };
    }

    /// The thread leaves the processor: because it is blocked, or because another one has its turn.
    pub(super) fn switched_out(&mut self, at: u64, is_runnable: bool, pid: u32) {
        self.waiting.at = None;
        if self.read_until(at, pid) && !is_runnable {
            std::mem::swap(&mut self.waiting, &mut self.latest);
            self.waiting.at = Some(at);
        }
        self.latest.at = None;
    }

    /// It is back; gives the rest of its wait.
    pub(super) fn switched_in(&mut self, at: u64, thread: u64, depth: usize) -> Option<CpuSample<'_>> {
        let since = self.waiting.at.take()?;
        Some(self.waiting.sample(thread, since, at, depth))
    }

    /// Gives what of a wait that is not over has not been reported.
    pub(super) fn so_far(&mut self, now: u64, thread: u64, depth: usize) -> Option<CpuSample<'_>> {
        let since = self.waiting.at?;
        self.waiting.at = Some(now.max(since));
        (now > since).then(|| self.waiting.sample(thread, since, now, depth))
    }

    /// How many stacks were taken since it was last asked, and how many were lost.
    pub(super) fn taken(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.taken), std::mem::take(&mut self.lost))
    }

    /// Reads the stacks up to a switch: whether the latest is that of the switch.
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
        self.latest.at.is_some_and(|taken| at - taken < APART)
    }

    /// Reads the next stack; whether there is one.
    fn read(&mut self, pid: u32) -> bool {
        while let Some(record) = self.sampler.next_record() {
            match record.parse_record() {
                Ok(Record::Sample(sample)) if sample.pid() == Some(pid) => {
                    self.taken += 1;
                    let (Some(at), Some(chain)) = (sample.time(), sample.callchain()) else { continue };
                    let registers = sample.regs_user().and_then(|known| known.regs[..].try_into().ok());
                    self.ahead.put(at, Chain::new(chain), registers, sample.stack_user().unwrap_or_default());
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
    fn put(&mut self, at: u64, Chain { kernel, user }: Chain<'_>, registers: Option<[u64; 3]>, bytes: &[u8]) {
        (self.at, self.registers) = (Some(at), registers);
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.kernel.clear();
        self.kernel.extend_from_slice(kernel);
        self.user.clear();
        self.user.extend_from_slice(user);
    }

    fn sample(&self, thread: u64, since: u64, until: u64, depth: usize) -> CpuSample<'_> {
        let Self { kernel, user, registers, bytes, .. } = self;
        let cut = kernel.len() + user.len() >= depth;
        let stack = registers.map(|[frame_pointer, stack_pointer, instruction_pointer]| UserStack {
            instruction_pointer,
            stack_pointer,
            frame_pointer,
            bytes,
        });
        CpuSample { thread, time_ns: until, waited_ns: Some(until.saturating_sub(since)), kernel, user, cut, stack }
    }
}
