//! The records that the kernel writes for a thread.

use std::time::Duration;

use perf_event::Sampler;
use perf_event::data::{self, Record};

use super::chain::Chain;
use super::wait::OffCpuClock;
use super::wait_stacks::WaitStacks;
use super::{BlockedTime, CpuSample, SampleLoss};
use crate::model::{CpuThread, SafeText};
use crate::net::clock::monotonic_ns;

/// Type of a context switch record, `PERF_RECORD_SWITCH`.
const SWITCH: u32 = 14;
/// The thread leaves the processor, `PERF_RECORD_MISC_SWITCH_OUT`.
const SWITCH_OUT: u16 = 1 << 13;
/// The thread was preempted while runnable, `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Maximum number of records read of one thread before the others get their turn.
const MAX_RECORDS_PER_DRAIN: usize = 4096;

/// A sampled thread with its events.
pub(super) struct SampledThread {
    /// Records of the thread; its value is its processor time, in nanoseconds.
    pub(super) sampler: Sampler,
    pub(super) waits: Option<WaitStacks>,
    /// Thread ID in the pid namespace of its process.
    pub(super) inner: u64,
    pub(super) name: Vec<u8>,
    pub(super) off_cpu: OffCpuClock,
    /// When it ended, in nanoseconds on the clock of the samples.
    pub(super) ended: Option<u64>,
}

/// Changes of threads found in a thread's buffer.
pub(super) enum ThreadEvent {
    Started(u32),
    Renamed(u32, Vec<u8>),
    Blocked(BlockedTime),
}

impl SampledThread {
    /// Reads the records of the thread, passing samples to `each`.
    pub(super) fn drain(
        &mut self,
        pid: u32,
        depth: usize,
        loss: &mut SampleLoss,
        events: &mut Vec<ThreadEvent>,
        each: &mut impl FnMut(&CpuSample<'_>),
    ) {
        for _ in 0..MAX_RECORDS_PER_DRAIN {
            let Some(record) = self.sampler.next_record() else { return };
            // The parser does not support switch records.
            if record.ty() == SWITCH {
                let (at, misc) = (record_time(&record), record.misc());
                if misc & SWITCH_OUT == 0 {
                    if let Some(since) = self.off_cpu.switched_in(at) {
                        events.push(ThreadEvent::Blocked(BlockedTime { thread: self.inner, since, until: at }));
                    }
                    if let Some(sample) = self.waits.as_mut().and_then(|waits| waits.switched_in(at, self.inner, depth)) {
                        each(&sample);
                    }
                } else {
                    let is_runnable = misc & SWITCH_OUT_PREEMPT != 0;
                    self.off_cpu.switched_out(at, is_runnable);
                    if let Some(waits) = &mut self.waits {
                        waits.switched_out(at, is_runnable, pid);
                    }
                }
                continue;
            }
            match record.parse_record() {
                Ok(Record::Sample(sample)) if sample.pid() == Some(pid) => each(&running(&sample, self.inner, depth)),
                Ok(Record::Fork(fork)) if fork.pid == pid => events.push(ThreadEvent::Started(fork.tid)),
                Ok(Record::Exit(exit)) if exit.pid == pid => self.ended = Some(exit.time),
                Ok(Record::Comm(comm)) if comm.pid == pid => events.push(ThreadEvent::Renamed(comm.tid, comm.comm.to_vec())),
                record => count_loss(&record, loss),
            }
        }
    }

    /// Returns the thread with its times so far.
    pub(super) fn thread(&mut self) -> CpuThread {
        let cpu = Duration::from_nanos(self.sampler.read().unwrap_or_default());
        let times = self.off_cpu.times(self.ended.unwrap_or_else(now_ns), cpu);
        CpuThread { thread: self.inner, name: SafeText::from_bytes(&self.name), ..times }
    }
}

/// Returns a sample of a running thread.
pub(super) fn running<'a>(sample: &'a data::Sample<'_>, thread: u64, depth: usize) -> CpuSample<'a> {
    let Chain { kernel, user } = Chain::new(sample.callchain().unwrap_or_default());
    let cut = kernel.len() + user.len() >= depth;
    CpuSample { thread, time_ns: sample.time().unwrap_or_default(), waited_ns: None, kernel, user, cut, stack: None }
}

/// Counts what a record says is missing.
pub(super) fn count_loss<E>(record: &Result<Record<'_>, E>, loss: &mut SampleLoss) {
    match record {
        Ok(Record::Lost(lost)) => loss.lost = loss.lost.saturating_add(lost.lost),
        Ok(Record::LostSamples(lost)) => loss.lost = loss.lost.saturating_add(lost.lost),
        Ok(Record::Throttle(_)) => loss.throttled += 1,
        Ok(_) => {}
        Err(_) => loss.unreadable += 1,
    }
}

/// Returns when a record other than a sample was written: its last field, because of `sample_id_all`.
fn record_time(record: &perf_event::Record<'_>) -> u64 {
    record.to_contiguous().last_chunk().map_or(0, |time| u64::from_ne_bytes(*time))
}

/// Current time in nanoseconds on the clock of the samples.
pub(super) fn now_ns() -> u64 {
    monotonic_ns().unsigned_abs()
}
