//! One perf event for each thread of a process, and their ring buffers.
//!
//! An event that new threads inherit would need a ring buffer for each processor besides (the kernel maps no other), and so many times the locked memory
//! and the open files. So new threads are found by the records that the events of their creators get, and by listing all threads now and then.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, Clock, ReadFormat, SampleFlag};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::buffer::{bytes_for_each, is_ample, lockable};
use super::error::Subject;
use super::thread::{News, Sampled, now_ns};
use super::wait::{OffCpuClock, Wait};
use super::wait_stacks::{WaitStacks, most_of_a_thread};
use super::{BlockedTime, CpuSample, CpuThread, Frequency, PerfError, SampleLoss};
use crate::model::ProcessKey;
use crate::net::client::Client;
use crate::net::proc::Proc;

/// How often all threads are listed.
const LIST_PACE: Duration = Duration::from_millis(100);
/// How often threads that are blocked are looked at.
const LOOK_PACE: Duration = Duration::from_millis(20);
/// How often waits that are not over are reported.
const REPORT_PACE: Duration = Duration::from_secs(1);
/// What is read of the stacks of threads that are blocked already, bytes.
const BLOCKED_STACK: usize = 32 << 10;
/// Most threads that are sampled at a time, and that are remembered.
const MOST: (usize, usize) = (8192, 65_536);
/// Open files that are left for everything else.
const OTHER_FILES: u64 = 64;
/// Frames after which the kernel cuts chains off, where it does not say it (`kernel.perf_event_max_stack`).
const DEFAULT_DEPTH: usize = 127;
/// Where the kernel has its settings of perf events.
const SETTINGS: &str = "sys/kernel/perf_event_";

/// Samples all threads of a process, until it is dropped.
///
/// Its buffers are to be [drained](Self::drain) many times a second.
pub struct CpuSampler {
    proc: Arc<Proc>,
    key: ProcessKey,
    frequency: Frequency,
    sees_kernel: bool,
    buffer_bytes: usize,
    /// Whether waits have stacks: these take as much room again.
    follows_waits: bool,
    /// How many threads there were in the beginning.
    first_threads: usize,
    depth: usize,
    /// Most threads that are sampled at a time: each is an open file.
    most_threads: usize,
    /// By the number that we know them by.
    threads: BTreeMap<u32, Sampled>,
    ended: Vec<CpuThread>,
    /// When threads were blocked, until that is taken.
    blocked: Vec<BlockedTime>,
    /// Threads that could not be sampled, until they are no longer listed or another thread gets their number.
    refused: HashSet<u32>,
    loss: SampleLoss,
    next_list: Instant,
    next_look: Instant,
    next_report: Instant,
}

impl Client {
    /// Samples the threads of the process from now on.
    ///
    /// # Errors
    /// [`PerfError`] states why the kernel does not allow it, and what to do.
    pub fn sample_cpu(&self, frequency: Frequency) -> Result<CpuSampler, PerfError> {
        let key = self.endpoint().key;
        let proc = self.shared_proc().filter(|proc| proc.is_of_kernel()).ok_or(PerfError::NotShown(key.pid))?;
        CpuSampler::start(proc, key, frequency)
    }
}

impl CpuSampler {
    fn start(proc: Arc<Proc>, key: ProcessKey, frequency: Frequency) -> Result<Self, PerfError> {
        let threads = proc.thread_ids(key.pid, MOST.0).map_err(|error| PerfError::not_listed(key.pid, error))?;
        let setting = |name: &str| proc.setting(&format!("{SETTINGS}{name}"));
        let locked_limit = if may_lock() { None } else { Some(getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX)) };
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let room = lockable(setting("mlock_kb").map_or(516, |kb: i64| kb.unsigned_abs()), processors, locked_limit);
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
        let most_threads = usize::try_from(files).unwrap_or(MOST.0).min(MOST.0);
        if threads.len() > most_threads {
            return Err(PerfError::Files { pid: key.pid, threads: threads.len(), error: Errno::MFILE.into() });
        }
        let mut this = Self {
            key,
            most_threads,
            frequency,
            sees_kernel: true,
            buffer_bytes: bytes_for_each(room, threads.len()),
            first_threads: threads.len(),
            follows_waits: is_ample(room),
            depth: setting("max_stack").and_then(|depth| usize::try_from(depth).ok()).unwrap_or(DEFAULT_DEPTH),
            threads: BTreeMap::new(),
            ended: Vec::new(),
            blocked: Vec::new(),
            refused: HashSet::new(),
            loss: SampleLoss::default(),
            next_list: Instant::now() + LIST_PACE,
            next_look: Instant::now() + LOOK_PACE,
            next_report: Instant::now(),
            proc,
        };
        for thread in threads {
            this.add(thread)?;
        }
        this.look_at_blocked();
        // A number that another process has got by now gives no samples: those tell their process.
        if this.threads.is_empty() || !this.proc.shows(key) {
            return Err(PerfError::Ended(key.pid));
        }
        Ok(this)
    }

    /// Finds out where the threads wait that are blocked already.
    fn look_at_blocked(&mut self) {
        let Self { proc, key, threads, .. } = self;
        for (thread, sampled) in threads.iter_mut().filter(|_| cfg!(target_arch = "x86_64")) {
            let at = now_ns();
            // Where it may not be looked at, it has no stack until it waits again.
            if let Some(waits) = &mut sampled.waits
                && let Ok(Some(stack)) = proc.blocked_stack(key.pid, *thread, BLOCKED_STACK)
            {
                waits.blocked_at(at, stack);
            }
        }
    }

    /// Begins with a thread, if it is there still: whether it is.
    fn add(&mut self, thread: u32) -> Result<bool, PerfError> {
        if self.threads.contains_key(&thread) {
            return Ok(true);
        }
        let folder = format!("{}/task/{thread}", self.key.pid);
        // Where these cannot be read the thread has ended.
        let Ok(identity) = self.proc.identity_of(&folder, thread) else { return Ok(false) };
        let began = now_ns();
        let opened = match self.open(thread) {
            // Events of the kernel take more rights than those of a program.
            Err(error) if self.sees_kernel && matches!(Errno::from_io_error(&error), Some(Errno::ACCESS | Errno::PERM)) => {
                self.sees_kernel = false;
                self.open(thread)
            }
            opened => opened,
        };
        let counter = match opened {
            Ok(counter) => counter,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(PerfError::not_opened(self.subject(), error)),
        };
        let sampler = counter.sampled(self.buffer_bytes).map_err(|error| PerfError::not_mapped(self.subject(), error))?;
        let name = self.proc.thread_name(&folder).unwrap_or_default();
        let waits = if self.sees_kernel && self.follows_waits { self.follow_waits(thread).ok() } else { None };
        self.loss.unfollowed += u64::from(self.sees_kernel && waits.is_none());
        let sampled = Sampled { sampler, waits, inner: identity.ns_pid.into(), name, off_cpu: OffCpuClock::new(began), ended: None };
        self.threads.insert(thread, sampled);
        Ok(true)
    }

    fn open(&self, thread: u32) -> io::Result<perf_event::Counter> {
        let mut builder = self.event(Software::CPU_CLOCK, thread)?;
        builder.sample_period(self.frequency.period_ns()).sample_id_all(true).context_switch(true).task(true).comm(true);
        builder.build()
    }

    fn follow_waits(&self, thread: u32) -> io::Result<WaitStacks> {
        // With one more for each, no more threads could be sampled.
        if 2 * (self.threads.len() + 1) > self.most_threads {
            return Err(Errno::MFILE.into());
        }
        WaitStacks::start(self.event(Software::CONTEXT_SWITCHES, thread)?, self.first_threads)
    }

    /// An event of a thread whose samples have a stack.
    fn event(&self, event: Software, thread: u32) -> io::Result<Builder<'static>> {
        let thread = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut builder = Builder::new(event);
        builder
            .observe_pid(thread)
            .any_cpu()
            .enabled(true)
            .exclude_kernel(!self.sees_kernel)
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

    /// Hands over what the kernel has written, thread after thread, and follows threads that start and end.
    pub fn drain(&mut self, mut each: impl FnMut(&CpuSample<'_>)) {
        let mut news = Vec::new();
        let mut ended = Vec::new();
        for (thread, sampled) in &mut self.threads {
            let before = news.len();
            sampled.drain(self.key.pid, self.depth, &mut self.loss, &mut news, &mut each);
            if news[before..].iter().any(|news| matches!(news, News::Ended)) {
                ended.push(*thread);
            }
        }
        for thread in &ended {
            if let Some(mut sampled) = self.threads.remove(thread)
                && self.ended.len() < MOST.1
            {
                self.ended.push(sampled.thread());
            }
        }
        for news in news {
            match news {
                // It was listed and sampled before this record was read.
                News::Started(thread) if ended.contains(&thread) => {}
                News::Started(thread) => {
                    self.refused.remove(&thread);
                    if !self.follow(thread) {
                        self.loss.short_threads += 1;
                    }
                }
                News::Named(thread, name) => {
                    if let Some(sampled) = self.threads.get_mut(&thread) {
                        sampled.name = name;
                    }
                }
                News::Blocked(time) => self.blocked.push(time),
                News::Ended => {}
            }
        }
        let now = Instant::now();
        if now >= self.next_report {
            self.next_report = now + REPORT_PACE;
            self.report_waits(&mut each);
        }
        if now >= self.next_look {
            self.next_look = now + LOOK_PACE;
            let at = now_ns();
            for (thread, sampled) in &mut self.threads {
                sampled.off_cpu.look(at, || Wait::of(&self.proc.wait_channel(self.key.pid, *thread).ok()?));
            }
        }
        if now >= self.next_list {
            self.next_list = now + LIST_PACE;
            // It has ended where they cannot be listed.
            let listed = self.proc.thread_ids(self.key.pid, MOST.0).unwrap_or_default();
            self.refused.retain(|thread| listed.contains(thread));
            for thread in listed {
                self.follow(thread);
            }
        }
    }

    /// Hands over waits that are not over, and gives up those of threads that wait too often.
    fn report_waits(&mut self, each: &mut impl FnMut(&CpuSample<'_>)) {
        let at = now_ns();
        let mut taken = Vec::with_capacity(self.threads.len());
        for Sampled { waits, inner, .. } in self.threads.values_mut() {
            if let Some(sample) = waits.as_mut().and_then(|waits| waits.so_far(at, *inner, self.depth)) {
                each(&sample);
            }
            let (of_thread, lost) = waits.as_mut().map_or((0, 0), WaitStacks::taken);
            taken.push(of_thread);
            self.loss.lost_waits += lost;
        }
        let most = most_of_a_thread(taken.iter().sum(), taken.len());
        for (sampled, _) in self.threads.values_mut().zip(taken).filter(|(_, taken)| *taken > most) {
            sampled.waits = None;
            self.loss.unfollowed += 1;
        }
    }

    /// When threads were blocked, of what was drained since this was last called: those of one thread in their order.
    pub fn take_blocked(&mut self) -> std::vec::Drain<'_, BlockedTime> {
        self.blocked.drain(..)
    }

    /// Hands over the waits that are not over, before the sampling ends.
    pub fn finish(&mut self, mut each: impl FnMut(&CpuSample<'_>)) {
        self.report_waits(&mut each);
    }

    /// Samples a new thread, or counts it as one that could not be: whether there is such a thread still.
    fn follow(&mut self, thread: u32) -> bool {
        if self.refused.contains(&thread) || self.refused.len() >= MOST.1 {
            return true;
        }
        let added = if self.threads.len() < self.most_threads { self.add(thread).ok() } else { None };
        if added.is_none() {
            self.refused.insert(thread);
            self.loss.threads += 1;
        }
        added.unwrap_or(true)
    }

    /// Whether it is still the process that the sampling began with.
    pub fn is_alive(&self) -> bool {
        self.proc.shows(self.key)
    }

    /// Whether samples show what runs in the kernel. Where they do not, there are none of it, and it is missing from the sum of the samples.
    pub fn sees_kernel(&self) -> bool {
        self.sees_kernel
    }

    /// What there are no samples of.
    pub fn loss(&self) -> SampleLoss {
        self.loss
    }

    /// The processor time that a sample stands for, nanoseconds.
    pub fn period_ns(&self) -> u64 {
        self.frequency.period_ns()
    }

    /// All threads since the sampling began; each with its processor time so far.
    pub fn threads(&mut self) -> Vec<CpuThread> {
        let alive = self.threads.values_mut().map(Sampled::thread);
        self.ended.iter().cloned().chain(alive).collect()
    }
}

impl std::fmt::Debug for CpuSampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuSampler").field("key", &self.key).field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

/// Whether no limit of locked memory holds for us: what root in a container may not do as a rule.
fn may_lock() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Samples this very process; `None` where the kernel forbids it, as in most containers.
    fn of_ourselves() -> Option<CpuSampler> {
        let (proc, pid) = (Proc::open(Path::new("/proc")).unwrap(), std::process::id());
        let key = ProcessKey { pid, started: proc.stat(pid).unwrap().starttime };
        CpuSampler::start(Arc::new(proc), key, Frequency::HIGHEST).inspect_err(|error| eprintln!("skipped: {error}")).ok()
    }

    #[test]
    fn threads_that_ended_before_they_could_be_sampled_are_counted() {
        let Some(mut sampler) = of_ourselves() else { return };
        assert_eq!(sampler.loss().short_threads, 0);
        for _ in 0..20 {
            thread::spawn(|| {}).join().unwrap();
        }
        sampler.drain(|_| {});
        assert!(sampler.loss().short_threads >= 20, "{:?}", sampler.loss());
    }

    #[test]
    fn a_thread_that_gets_the_number_of_a_refused_one_is_sampled() {
        let Some(mut sampler) = of_ourselves() else { return };
        let (numbers, number) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let waiting = thread::spawn(move || {
            numbers.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            ended.recv().unwrap_err();
        });
        let number = number.recv().unwrap();
        // One with the same number was refused before; and one that is gone.
        sampler.refused.extend([number, u32::MAX]);
        sampler.next_list = Instant::now();
        sampler.drain(|_| {});
        assert!(sampler.threads.contains_key(&number) && sampler.refused.is_empty(), "{:?}", sampler.refused);
        drop(end);
        waiting.join().unwrap();
    }
}
