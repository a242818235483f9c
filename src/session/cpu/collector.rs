//! Samples of a process, taken in by one thread and looked at by another.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::file::{CpuFile, monotonic_ns};
use crate::analysis::{CpuSamples, CpuStack, MissingFrames, NativeFunction, Origin, Symbols, ThreadId};
use crate::model::{CpuThread, CpuTime};
use crate::net::perf::{self, CodeFunction, CodeKind, CpuSampler, NativeCode, SampleLoss};

/// The time between two looks at the ring buffers. They have room for many times that.
const PACE: Duration = Duration::from_millis(10);
/// The time between two looks at the times of the threads, each of which is a file.
const THREADS_PACE: Duration = Duration::from_millis(500);
/// Samples are recent for so long, nanoseconds.
const RECENT_NS: i64 = 2_000_000_000;

/// The samples so far.
#[derive(Debug)]
pub(in crate::session) struct Collector {
    collected: Mutex<Collected>,
    over: AtomicBool,
}

#[derive(Debug)]
struct Collected {
    samples: CpuSamples,
    code: NativeCode,
    file: Option<CpuFile>,
    threads: Vec<CpuThread>,
    loss: SampleLoss,
    sees_kernel: bool,
    /// When the sampling began, and when samples were last taken in: nanoseconds on their clock.
    began: i64,
    taken: i64,
}

/// What is known about code that the process generated and that has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum MethodNames {
    /// Names may still come: it stays an address.
    Coming,
    /// All names have come: it is of no method.
    Complete,
    /// They have not come.
    Missing,
}

impl Collector {
    /// All samples go into the file, too, where there is one.
    pub(in crate::session) fn new(code: NativeCode, period_ns: u64, file: Option<CpuFile>) -> Self {
        let now = monotonic_ns();
        let collected = Collected {
            samples: CpuSamples::new(period_ns),
            code,
            file,
            threads: Vec::new(),
            loss: SampleLoss::default(),
            sees_kernel: true,
            began: now,
            taken: now,
        };
        Self { collected: Mutex::new(collected), over: AtomicBool::new(false) }
    }

    /// Takes no more samples.
    pub(in crate::session) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Takes samples in until it is stopped, or has no other owner.
    pub(in crate::session) fn collect(self: &Arc<Self>, sampler: &mut CpuSampler) {
        let mut next = Instant::now();
        loop {
            // What was written until then is taken in once more.
            let is_last = self.over.load(Ordering::Relaxed) || Arc::strong_count(self) == 1;
            self.take(sampler);
            if is_last || next <= Instant::now() {
                next = Instant::now() + THREADS_PACE;
                let threads = sampler.threads().iter().map(cpu_thread).collect();
                let mut collected = self.lock();
                (collected.threads, collected.loss, collected.sees_kernel) = (threads, sampler.loss(), sampler.sees_kernel());
            }
            if is_last {
                return;
            }
            thread::sleep(PACE);
        }
    }

    fn take(&self, sampler: &mut CpuSampler) {
        let Collected { samples, code, file, taken, began: first, .. } = &mut *self.lock();
        let began = monotonic_ns();
        sampler.drain(|sample| {
            let chain = code.chain(sample.user);
            let missing = if sample.cut { Some(MissingFrames::Cut) } else { chain.broken.then_some(MissingFrames::Broken) };
            let stack = CpuStack {
                thread: ThreadId::of(sample.thread),
                at: i64::try_from(sample.time_ns).unwrap_or(i64::MAX),
                kernel: sample.kernel,
                user: chain.frames,
                missing,
            };
            samples.add(&stack);
            if let Some(file) = file {
                file.sample(&stack);
            }
        });
        samples.forget_recent((began - RECENT_NS).max(*first));
        *taken = began;
        if let Some(file) = file {
            file.write(began);
        }
    }

    /// All samples, with the names of these methods, and of what else has an address in a sample.
    pub(in crate::session) fn cpu_time(&self, methods: &Symbols, names: MethodNames) -> CpuTime {
        let symbols = self.symbols(methods, names);
        let collected = self.lock();
        let Collected { samples, threads, loss, began, taken, sees_kernel, .. } = &*collected;
        let since = |moment: i64| Duration::from_nanos(u64::try_from(taken - moment).unwrap_or(0));
        let (cut, broken) = samples.missing();
        CpuTime {
            profile: samples.profile(&symbols),
            now: Some(*taken),
            elapsed: since(*began),
            recent: if self.over.load(Ordering::Relaxed) { Duration::ZERO } else { since(samples.recent_since().unwrap_or(*taken)) },
            threads: threads.clone(),
            lost: loss.lost,
            unreadable: loss.unreadable,
            throttled: loss.throttled,
            missed_threads: loss.threads,
            cut,
            broken,
            sees_kernel: *sees_kernel,
        }
    }

    /// Whether there is code to which the runtime has names.
    pub(in crate::session) fn has_generated_code(&self) -> bool {
        self.lock().code.has_generated()
    }

    /// Whether the samples go into a file as well.
    pub(in crate::session) fn has_file(&self) -> bool {
        self.lock().file.is_some()
    }

    /// Gives the file its names, and its own; `None` where there is no file.
    pub(in crate::session) fn finish_file(&self, methods: &Symbols, names: MethodNames) -> Option<Result<PathBuf, String>> {
        let file = self.lock().file.take()?;
        let symbols = self.symbols(methods, names);
        let collected = self.lock();
        Some(file.finish(&collected.samples.addresses(), &symbols, &collected.code, &collected.threads))
    }

    fn symbols(&self, methods: &Symbols, names: MethodNames) -> Symbols {
        // What others show of a recording is what its file holds: there are methods alone.
        let mut symbols = methods.clone();
        let mut collected = self.lock();
        collected.code.refresh();
        for address in collected.samples.addresses() {
            if symbols.find(address).is_none() {
                collected.add_name(&mut symbols, address, names);
            }
        }
        symbols
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cpu_thread(thread: &perf::CpuThread) -> CpuThread {
    let perf::CpuThread { thread, name, cpu, wall, off_cpu } = thread;
    let waits = off_cpu.waits.iter().map(|(wait, time)| (wait.word(), *time)).collect();
    CpuThread { thread: *thread, name: name.as_str().into(), cpu: *cpu, wall: *wall, runnable: off_cpu.runnable, waits }
}

impl Collected {
    fn add_name(&mut self, symbols: &mut Symbols, address: u64, names: MethodNames) {
        let function = match CpuSamples::kernel_address(address) {
            Some(in_kernel) => {
                let function = self.code.kernel_function(in_kernel);
                Some(CodeFunction { start: address - (in_kernel - function.start), ..function })
            }
            None => self.code.function(address),
        };
        let Some(CodeFunction { start, size, name, image, kind }) = function else { return };
        let of_image = || format!("[{}]", image.trim_matches(['[', ']']));
        let (origin, unknown) = match (kind, names) {
            (CodeKind::Image, _) => (Origin::of_native(&image, &name), of_image()),
            (CodeKind::Kernel, _) => (Origin::Kernel, of_image()),
            (CodeKind::Assembly | CodeKind::Generated, MethodNames::Coming) => return,
            (CodeKind::Assembly, _) => (Origin::Managed, of_image()),
            (CodeKind::Generated, MethodNames::Complete) => (Origin::Stub, "[runtime stubs]".to_owned()),
            (CodeKind::Generated, MethodNames::Missing) => (Origin::Unknown, "[JIT-compiled code]".to_owned()),
        };
        let name = if name.is_empty() { &unknown } else { &name };
        symbols.add_native(&NativeFunction { address, start, size, name, image: &image, origin });
    }
}
