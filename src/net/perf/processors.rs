//! Samples of the processors instead of the threads, where the kernel permits it.
//!
//! An event of a thread has a timer, which the kernel stops and starts at every context switch: some microseconds each time, which slow down a
//! program whose threads take turns. The timer of a processor just runs. It also samples threads from their beginning.

use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Clock, ReadFormat, SampleFlag, Sampler};
use rustix::io::Errno;

use super::buffer::bytes_for_each_processor;
use super::thread::{RunningSample, count_loss};
use super::{CpuSample, Frequency, SampleLoss, raw_stack};

/// Maximum number of processors sampled. With more, other programs are interrupted for the sake of one that runs on a few of them.
const MAX_PROCESSORS: usize = 32;
/// Maximum number of records read of one processor before the others get their turn.
const MAX_RECORDS_PER_DRAIN: usize = 4096;

/// One event and ring buffer per processor. Samples of other processes are dropped.
pub(super) struct ProcessorSamples {
    samplers: Vec<Sampler>,
}

impl ProcessorSamples {
    /// Starts sampling all processors.
    ///
    /// # Errors
    /// The kernel's error: sampling all processes requires privileges. [`Errno::TOOBIG`] if there are too many processors.
    pub(super) fn start(frequency: Frequency, lockable: u64) -> io::Result<Self> {
        let mut counters = Vec::new();
        for processor in 0.. {
            match event(frequency, lockable).one_cpu(processor).build() {
                Ok(_) if counters.len() == MAX_PROCESSORS => return Err(Errno::TOOBIG.into()),
                Ok(counter) => counters.push(counter),
                // This processor is offline.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => {}
                // There is no such processor.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) && !counters.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        let bytes = bytes_for_each_processor(lockable, counters.len());
        let mut samplers = counters.into_iter().map(|counter| counter.sampled(bytes)).collect::<Result<Vec<_>, _>>()?;
        samplers.iter_mut().try_for_each(|sampler| sampler.enable())?;
        Ok(Self { samplers })
    }

    /// Passes the samples of a process to `each`. `inner` returns the ID of its thread in its own pid namespace; a sample of an unknown thread is
    /// counted as lost.
    pub(super) fn drain(
        &mut self,
        pid: u32,
        depth: usize,
        inner: impl Fn(u32) -> Option<u64>,
        loss: &mut SampleLoss,
        each: &mut impl FnMut(&CpuSample<'_>),
    ) {
        for sampler in &mut self.samplers {
            for _ in 0..MAX_RECORDS_PER_DRAIN {
                let Some(record) = sampler.next_record() else { break };
                let parsed = record.parse_record();
                match RunningSample::parsed(&parsed, &record) {
                    Some(sample) if sample.pid == pid => match inner(sample.thread) {
                        Some(thread) => each(&sample.cpu_sample(thread, depth)),
                        None => loss.lost += 1,
                    },
                    Some(_) => {}
                    None => count_loss(&parsed, loss),
                }
            }
        }
    }
}

/// Prepares an event of a processor. The idle task is not sampled.
fn event(frequency: Frequency, lockable: u64) -> Builder<'static> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .any_pid()
        .exclude_kernel(false)
        .exclude_idle(true)
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN)
        .sample_period(frequency.period_ns())
        .read_format(ReadFormat::empty())
        .clockid(Clock::MONOTONIC);
    raw_stack::record_each(&mut builder, bytes_for_each_processor(lockable, MAX_PROCESSORS));
    builder
}
