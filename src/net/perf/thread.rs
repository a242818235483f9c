//! The records that the kernel writes for a thread.

use std::borrow::Cow;
use std::time::Duration;

use perf_event::Sampler;
use perf_event::data::{self, Record};

use super::chain::Chain;
use super::wait::OffCpuClock;
use super::wait_stacks::WaitStacks;
use super::{BlockedTime, CpuSample, SampleLoss, UserStack, raw_stack};
use crate::model::{CpuThread, SafeText};
use crate::net::clock::monotonic_ns;

/// Type of a sample, `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
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
            let parsed = record.parse_record();
            if let Some(sample) = RunningSample::parsed(&parsed, &record) {
                if sample.pid == pid {
                    each(&sample.cpu_sample(self.inner, depth));
                }
                continue;
            }
            match parsed {
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

/// A sample of a running thread.
pub(super) struct RunningSample<'a> {
    pub(super) pid: u32,
    pub(super) thread: u32,
    time_ns: u64,
    chain: Cow<'a, [u64]>,
    stack: Option<UserStack<'a>>,
}

impl<'a> RunningSample<'a> {
    /// Returns the sample that a record is, if it is one.
    pub(super) fn parsed<E>(parsed: &'a Result<Record<'_>, E>, record: &perf_event::Record<'_>) -> Option<Self> {
        match parsed {
            Ok(Record::Sample(sample)) => Some(Self::of(sample)),
            Ok(_) => None,
            Err(_) => Self::without_stack(record),
        }
    }

    fn of(sample: &'a data::Sample<'_>) -> Self {
        Self {
            pid: sample.pid().unwrap_or_default(),
            thread: sample.tid().unwrap_or_default(),
            time_ns: sample.time().unwrap_or_default(),
            chain: sample.callchain().unwrap_or_default().into(),
            stack: raw_stack::of_sample(sample),
        }
    }

    /// Reads a sample of a thread that is exiting and has no memory any more: the parser expects registers even then. Fields are in the order of
    /// `PERF_RECORD_SAMPLE` (`perf_event_open(2)`): thread, time and call chain, those recorded of each sample.
    fn without_stack(record: &perf_event::Record<'_>) -> Option<Self> {
        let bytes = record.to_contiguous();
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let ids = words.next().filter(|_| record.ty() == SAMPLE)?;
        let (time_ns, frames) = (words.next()?, usize::try_from(words.next()?).ok()?);
        let chain: Vec<_> = words.take(frames).collect();
        let ids = ids.to_ne_bytes();
        let id = |at: usize| ids[at..].first_chunk().map(|id| u32::from_ne_bytes(*id));
        Some(Self { pid: id(0)?, thread: id(4)?, time_ns, chain: chain.into(), stack: None })
    }

    /// Returns the sample with the thread's ID in the pid namespace of its process.
    pub(super) fn cpu_sample(&self, thread: u64, depth: usize) -> CpuSample<'_> {
        let Chain { kernel, user } = Chain::new(&self.chain);
        let cut = kernel.len() + user.len() >= depth;
        CpuSample { thread, time_ns: self.time_ns, waited_ns: None, kernel, user, cut, stack: self.stack }
    }
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
