//! Samples a process: its threads by one perf event and ring buffer each, or the processors, where that is permitted.
//!
//! Inherited events would also need a ring buffer per processor (the kernel maps no other), multiplying the locked memory and the open files.
//! Instead, new threads are found by the fork records in their creators' buffers, and by listing all threads periodically.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, Clock, ReadFormat, SampleFlag};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

use super::buffer::{bytes_for_each, drain_interval, is_ample, lockable, may_lock};
use super::error::Subject;
use super::processors::ProcessorSamples;
use super::raw_stack::RawStack;
use super::thread::{SampledThread, ThreadEvent, now_ns};
use super::wait::{OffCpuClock, Wait};
use super::wait_stacks::{WaitStacks, max_stacks_per_thread, record_blocked_stack};
use super::{BlockedTime, CpuSample, Frequency, PerfCause, PerfError, SampleLoss, UserStack, raw_stack};
use crate::model::{CpuThread, ProcessKey};
use crate::net::client::Client;
use crate::net::proc::Proc;

/// Interval between listings of all threads.
const LIST_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which the waits of blocked threads are observed.
const OBSERVE_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between reports of waits in progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of threads sampled at a time, and of threads remembered.
const THREAD_LIMITS: (usize, usize) = (8192, 65_536);
/// Maximum number of raw stacks recorded at a time.
const MAX_STACKS: usize = 4;
/// Number of open files reserved for everything else.
const OTHER_FILES: u64 = 64;
/// Frames after which the kernel cuts off chains, if `kernel.perf_event_max_stack` is not readable.
const DEFAULT_DEPTH: usize = 127;
/// Common prefix of the kernel's perf event settings.
const SETTINGS: &str = "sys/kernel/perf_event_";

/// Samples all threads of a process until it is dropped.
///
/// Must be [drained](Self::drain) many times a second.
pub struct CpuSampler {
    proc: Arc<Proc>,
    key: ProcessKey,
    frequency: Frequency,
    includes_kernel: bool,
    /// The samples, if taken by processor. The events of the threads then only measure and follow them.
    processors: Option<ProcessorSamples>,
    /// Whether the process has the same IDs in our pid namespace as in its own.
    shares_ids: bool,
    /// Bytes that we may lock for ring buffers.
    lockable: u64,
    /// Number of threads at the start.
    first_threads: usize,
    depth: usize,
    /// Whether the kernel has shown what any thread waits for.
    shows_waits: bool,
    /// Maximum number of threads sampled at a time: each needs an open file.
    max_threads: usize,
    /// By thread ID in our pid namespace.
    threads: BTreeMap<u32, SampledThread>,
    ended: Vec<CpuThread>,
    /// Blocked periods not yet taken.
    blocked: Vec<BlockedTime>,
    /// Requested stacks.
    stacks: Vec<RawStack>,
    /// Threads that could not be sampled; removed when no longer listed, or when their ID is reused.
    refused: HashSet<u32>,
    loss: SampleLoss,
    next_list: Instant,
    next_observation: Instant,
    next_report: Instant,
}

impl Client {
    /// Starts sampling the threads of the process.
    ///
    /// # Errors
    /// [`PerfError`] states why the kernel does not allow it, and what to do.
    pub fn sample_cpu(&self, frequency: Frequency) -> Result<CpuSampler, PerfError> {
        let key = self.endpoint().key;
        let proc = self.own_proc().filter(|proc| proc.is_real()).ok_or(PerfError { pid: key.pid, cause: PerfCause::NotShown })?;
        CpuSampler::start(Arc::clone(proc), key, frequency, true)
    }
}

impl CpuSampler {
    /// Whether the kernel lets this process sample itself, in user space.
    pub fn may_sample_own() -> bool {
        Builder::new(Software::CPU_CLOCK).observe_self().any_cpu().exclude_kernel(true).build().is_ok()
    }

    /// Starts sampling: the processors if `by_processor`, and if that is permitted.
    fn start(proc: Arc<Proc>, key: ProcessKey, frequency: Frequency, by_processor: bool) -> Result<Self, PerfError> {
        let threads = proc.thread_ids(key.pid, THREAD_LIMITS.0).map_err(|error| PerfError::not_listed(key.pid, error))?;
        let setting = |name: &str| proc.setting(&format!("{SETTINGS}{name}"));
        let locked_limit = if may_lock() { None } else { Some(getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX)) };
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let lockable = lockable(setting("mlock_kb").map_or(516, |kb: i64| kb.unsigned_abs()), processors, locked_limit);
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
        let max_threads = usize::try_from(files).unwrap_or(THREAD_LIMITS.0).min(THREAD_LIMITS.0);
        if threads.len() > max_threads {
            return Err(PerfError { pid: key.pid, cause: PerfCause::Files(threads.len(), Errno::MFILE.into()) });
        }
        let mut this = Self {
            key,
            max_threads,
            frequency,
            includes_kernel: true,
            processors: if by_processor { ProcessorSamples::start(frequency, lockable).ok() } else { None },
            shares_ids: proc.identity(key.pid).is_ok_and(|identity| identity.ns_pid == key.pid),
            lockable,
            first_threads: threads.len(),
            depth: setting("max_stack").and_then(|depth| usize::try_from(depth).ok()).unwrap_or(DEFAULT_DEPTH),
            shows_waits: false,
            threads: BTreeMap::new(),
            ended: Vec::new(),
            blocked: Vec::new(),
            stacks: Vec::new(),
            refused: HashSet::new(),
            loss: SampleLoss::default(),
            next_list: Instant::now() + LIST_INTERVAL,
            next_observation: Instant::now() + OBSERVE_INTERVAL,
            next_report: Instant::now(),
            proc,
        };
        for thread in threads {
            this.add(thread)?;
        }
        let mut memory = None;
        for (thread, sampled) in &mut this.threads {
            if let Some(waits) = &mut sampled.waits {
                // Without a stack, it has none until its next wait.
                record_blocked_stack(&this.proc, key.pid, *thread, waits, &mut memory);
            }
        }
        // A thread ID reused by another process yields no samples, because records carry their pid.
        if this.threads.is_empty() || !this.proc.exists(key) {
            return Err(PerfError { pid: key.pid, cause: PerfCause::Ended });
        }
        Ok(this)
    }

    /// Starts sampling a thread. Returns `false` if it has already exited.
    fn add(&mut self, thread: u32) -> Result<bool, PerfError> {
        if self.threads.contains_key(&thread) {
            return Ok(true);
        }
        let folder = format!("{}/task/{thread}", self.key.pid);
        // If its identity cannot be read, the thread has exited.
        let Ok(identity) = self.proc.identity_of(&folder, thread) else { return Ok(false) };
        let began = now_ns();
        // A process with few threads at the start gets large buffers, of which it must not get thousands.
        let threads = self.first_threads.max(self.threads.len() + 1);
        let bytes = bytes_for_each(self.lockable, threads);
        let opened = match self.open(thread, bytes) {
            // Sampling the kernel takes more privileges than sampling user space.
            Err(error) if self.includes_kernel && matches!(Errno::from_io_error(&error), Some(Errno::ACCESS | Errno::PERM)) => {
                self.includes_kernel = false;
                self.open(thread, bytes)
            }
            opened => opened,
        };
        let counter = match opened {
            Ok(counter) => counter,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(PerfError::not_opened(self.subject(), error)),
        };
        let sampler = counter.sampled(bytes).map_err(|error| PerfError::not_mapped(self.subject(), error))?;
        let name = self.proc.thread_name(&folder).unwrap_or_default();
        // The stacks of waits need as much memory again.
        let may_record = self.includes_kernel && is_ample(self.lockable);
        let waits = if may_record { self.record_wait_stacks(thread, threads).ok() } else { None };
        self.loss.unfollowed += u64::from(self.includes_kernel && waits.is_none());
        let sampled = SampledThread { sampler, waits, inner: identity.ns_pid.into(), name, off_cpu: OffCpuClock::new(began), ended: None };
        self.threads.insert(thread, sampled);
        Ok(true)
    }

    fn open(&self, thread: u32, buffer: usize) -> io::Result<perf_event::Counter> {
        let mut builder = match self.processors {
            Some(_) => self.event(Software::TASK_CLOCK, thread)?,
            None => self.event(Software::CPU_CLOCK, thread)?,
        };
        if self.processors.is_none() {
            builder.sample_period(self.frequency.period_ns());
            raw_stack::record_each(&mut builder, buffer);
        }
        builder.sample_id_all(true).context_switch(true).task(true).comm(true).build()
    }

    fn record_wait_stacks(&self, thread: u32, threads: usize) -> io::Result<WaitStacks> {
        // A second open file per thread must not reduce the number of threads that can be sampled.
        if 2 * (self.threads.len() + 1) > self.max_threads {
            return Err(Errno::MFILE.into());
        }
        WaitStacks::start(self.event(Software::CONTEXT_SWITCHES, thread)?, threads)
    }

    /// Prepares an event of a thread whose samples have a call chain.
    fn event(&self, event: Software, thread: u32) -> io::Result<Builder<'static>> {
        let thread = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut builder = Builder::new(event);
        builder
            .observe_pid(thread)
            .any_cpu()
            .enabled(true)
            .exclude_kernel(!self.includes_kernel)
            .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN)
            .read_format(ReadFormat::empty())
            .clockid(Clock::MONOTONIC);
        Ok(builder)
    }

    fn subject(&self) -> Subject {
        let owner = self.proc.identity(self.key.pid).ok().map(|identity| identity.uid);
        let us = geteuid();
        Subject {
            pid: self.key.pid,
            other_user: owner.filter(|owner| !us.is_root() && *owner != us.as_raw()),
            threads: self.threads.len() + 1,
            paranoid: self.proc.setting(&format!("{SETTINGS}paranoid")).and_then(|value| i32::try_from(value).ok()),
        }
    }

    /// Passes the samples in all buffers to `each`, thread by thread, and follows threads that start and end.
    pub fn drain(&mut self, mut each: impl FnMut(&CpuSample<'_>)) {
        let mut events = Vec::new();
        let mut ended = Vec::new();
        let mut memory = None;
        for (thread, sampled) in &mut self.threads {
            sampled.drain(self.key.pid, self.depth, &mut self.loss, &mut events, &mut each);
            if let Some(waits) = &mut sampled.waits
                && waits.take_missing()
                && !record_blocked_stack(&self.proc, self.key.pid, *thread, waits, &mut memory)
            {
                waits.not_recorded();
            }
            if sampled.ended.is_some() {
                ended.push(*thread);
            }
        }
        for event in events {
            match event {
                // Already listed, sampled and ended before this record was read.
                ThreadEvent::Started(thread) if ended.contains(&thread) => {}
                ThreadEvent::Started(thread) => {
                    self.refused.remove(&thread);
                    let is_sampled = self.follow(thread) || self.processors.is_some() && self.shares_ids;
                    self.loss.short_threads += u64::from(!is_sampled);
                }
                ThreadEvent::Renamed(thread, name) => {
                    if let Some(sampled) = self.threads.get_mut(&thread) {
                        sampled.name = name;
                    }
                }
                ThreadEvent::Blocked(time) => self.blocked.push(time),
            }
        }
        self.drain_processors(&mut each);
        for thread in &ended {
            if let Some(mut sampled) = self.threads.remove(thread)
                && self.ended.len() < THREAD_LIMITS.1
            {
                self.ended.push(sampled.thread());
            }
        }
        let now = Instant::now();
        if now >= self.next_report {
            self.next_report = now + REPORT_INTERVAL;
            self.report_waits(&mut each);
        }
        if now >= self.next_observation {
            self.next_observation = now + OBSERVE_INTERVAL;
            let at = now_ns();
            for (thread, sampled) in &mut self.threads {
                let wait = || Wait::seen(&self.proc.wait_channel(self.key.pid, *thread).ok()?, &mut self.shows_waits);
                sampled.off_cpu.observe(at, wait);
            }
        }
        if now >= self.next_list {
            self.next_list = now + LIST_INTERVAL;
            let listed = if self.proc.exists(self.key) { self.proc.thread_ids(self.key.pid, THREAD_LIMITS.0) } else { Ok(Vec::new()) };
            // If they cannot be listed, the process has exited.
            let listed = listed.unwrap_or_default();
            self.refused = listed.iter().filter(|thread| self.refused.contains(*thread)).copied().collect();
            for thread in listed {
                self.follow(thread);
            }
        }
    }

    fn drain_processors(&mut self, each: &mut impl FnMut(&CpuSample<'_>)) {
        let Self { processors, threads, shares_ids, loss, .. } = self;
        // Without a thread, the process has exited, and another may get its ID.
        let Some(processors) = processors.as_mut().filter(|_| !threads.is_empty()) else { return };
        let inner = |thread| threads.get(&thread).map(|sampled| sampled.inner).or_else(|| shares_ids.then(|| thread.into()));
        processors.drain(self.key.pid, self.depth, inner, loss, each);
    }

    /// Reports waits in progress, and stops recording the stacks of threads that wait too often.
    fn report_waits(&mut self, each: &mut impl FnMut(&CpuSample<'_>)) {
        let at = now_ns();
        let mut taken = Vec::with_capacity(self.threads.len());
        for SampledThread { waits, inner, .. } in self.threads.values_mut() {
            if let Some(sample) = waits.as_mut().and_then(|waits| waits.wait_in_progress(at, *inner, self.depth)) {
                each(&sample);
            }
            let (of_thread, lost) = waits.as_mut().map_or((0, 0), WaitStacks::take_counts);
            taken.push(of_thread);
            self.loss.lost_waits += lost;
        }
        let most = max_stacks_per_thread(taken.iter().sum(), taken.len());
        for (sampled, _) in self.threads.values_mut().zip(taken).filter(|(_, taken)| *taken > most) {
            // A thread that spins for a lock yields often, but stays runnable.
            if sampled.waits.take_if(|waits| !waits.is_paused()).is_some() {
                self.loss.unfollowed += 1;
            }
        }
    }

    /// Starts recording the raw stack of a running thread, if that is possible. Returns `false` if there was no attempt: too many are being recorded.
    pub fn record_stack(&mut self, thread: u64) -> bool {
        let id = self.threads.iter().find(|(_, sampled)| sampled.inner == thread).map(|(id, _)| *id);
        let Some(id) = id.filter(|id| self.stacks.len() < MAX_STACKS && self.stacks.iter().all(|stack| stack.thread() != *id)) else {
            return false;
        };
        let stack = self.event(Software::CPU_CLOCK, id).and_then(|event| RawStack::start(event, id));
        self.stacks.extend(stack.ok());
        true
    }

    /// Passes the requested stacks recorded by now to `each`.
    pub fn take_stacks(&mut self, mut each: impl FnMut(&UserStack<'_>)) {
        self.stacks.retain_mut(|stack| stack.take(self.key.pid, &mut each));
    }

    /// Takes the blocked periods drained since the last call; those of one thread are in chronological order.
    pub fn take_blocked(&mut self) -> std::vec::Drain<'_, BlockedTime> {
        self.blocked.drain(..)
    }

    /// Reports waits in progress, before sampling ends.
    pub fn finish(&mut self, mut each: impl FnMut(&CpuSample<'_>)) {
        self.report_waits(&mut each);
    }

    /// Starts sampling a new thread, or counts it as refused. Returns whether the thread still exists.
    fn follow(&mut self, thread: u32) -> bool {
        if self.refused.contains(&thread) || self.refused.len() >= THREAD_LIMITS.1 {
            return true;
        }
        let added = if self.threads.len() < self.max_threads { self.add(thread).ok() } else { None };
        if added.is_none() {
            self.refused.insert(thread);
            self.loss.threads += 1;
        }
        added.unwrap_or(true)
    }

    /// Whether samples include the kernel. If not, there are no samples of kernel mode, and the sum of samples lacks its time.
    pub fn includes_kernel(&self) -> bool {
        self.includes_kernel
    }

    /// What the samples lack so far.
    pub fn loss(&self) -> SampleLoss {
        self.loss
    }

    /// Time after which the buffers have to be drained again.
    pub fn drain_interval(&self) -> Duration {
        drain_interval(bytes_for_each(self.lockable, self.first_threads.max(self.threads.len())))
    }

    /// Processor time that one sample represents, in nanoseconds.
    pub fn period_ns(&self) -> u64 {
        self.frequency.period_ns()
    }

    /// Returns all threads since sampling began, each with its processor time so far.
    pub fn threads(&mut self) -> Vec<CpuThread> {
        let alive = self.threads.values_mut().map(SampledThread::thread);
        self.ended.iter().cloned().chain(alive).collect()
    }
}

#[cfg(test)]
mod tests;
