//! Raw stacks: they hold what the chain of frame pointers does not show.

use std::io;
use std::time::{Duration, Instant};

use perf_event::data::{self, Record};
use perf_event::{Builder, SampleFlag, Sampler};

use super::UserStack;

/// Frame pointer, stack pointer and instruction pointer (`PERF_REG_X86_BP`, `_SP` and `_IP`), in the order in which the kernel writes them.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Bytes of the stack recorded with each sample: the frames of a few methods.
const BYTES_OF_EACH: u32 = 1 << 10;
/// Minimum size of a buffer that has room for them, in bytes.
const MIN_BUFFER_BYTES: usize = 64 << 10;
/// Bytes recorded on request.
const STACK_BYTES: u32 = 32 << 10;
/// Buffer with room for one stack, in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Processor time until a stack is recorded, in nanoseconds.
const PERIOD_NS: u64 = 1_000_000;
/// How long a thread is expected to run on, since it was just running.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// Adds the registers and the innermost part of the stack, a multiple of 8 bytes, to the samples of an event, where they can be used. Each takes
/// that much of the buffer even if the stack is shorter.
pub(super) fn record_stack(event: &mut Builder<'_>, bytes: u32) {
    if cfg!(target_arch = "x86_64") {
        event.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER).sample_regs_user(REGISTERS).sample_stack_user(bytes);
    }
}

/// Adds the stack to the samples of a running thread if there is room for it in the buffer.
pub(super) fn record_each(event: &mut Builder<'_>, buffer: usize) {
    if buffer >= MIN_BUFFER_BYTES {
        record_stack(event, BYTES_OF_EACH);
    }
}

/// Returns the stack recorded with a sample.
pub(super) fn of_sample<'a>(sample: &'a data::Sample<'_>) -> Option<UserStack<'a>> {
    let registers = sample.regs_user()?.regs[..].try_into().ok()?;
    Some(UserStack::new(registers, sample.stack_user()?))
}

/// Records one stack of a thread, and more of it than samples have.
pub(super) struct RawStack {
    sampler: Sampler,
    thread: u32,
    until: Instant,
}

impl RawStack {
    /// Starts recording the thread that the event was built for.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::Unsupported`] where stacks cannot be used.
    pub(super) fn start(mut event: Builder<'_>, thread: u32) -> io::Result<Self> {
        if !cfg!(target_arch = "x86_64") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        event.sample_period(PERIOD_NS).exclude_kernel(true);
        record_stack(&mut event, STACK_BYTES);
        let sampler = event.build()?.sampled(BUFFER_BYTES)?;
        Ok(Self { sampler, thread, until: Instant::now() + MAX_WAIT })
    }

    pub(super) fn thread(&self) -> u32 {
        self.thread
    }

    /// Passes the stack to `each` if it was recorded. Returns whether to wait for it.
    pub(super) fn take(&mut self, pid: u32, each: &mut impl FnMut(&UserStack<'_>)) -> bool {
        while let Some(record) = self.sampler.next_record() {
            if let Ok(Record::Sample(sample)) = record.parse_record()
                && sample.pid() == Some(pid)
                && let Some(stack) = of_sample(&sample)
            {
                each(&stack);
                return false;
            }
        }
        Instant::now() < self.until
    }
}
