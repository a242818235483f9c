//! Samples of a process, taken in by one thread and looked at by another.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::blocked::Blocked;
use super::file::CpuFile;
use super::waits::{refined, shown};
use crate::analysis::{CpuSamples, CpuStack, MissingFrames, NativeFunction, Origin, Profile, RuntimeWaits, Symbols, ThreadId, Waits};
use crate::clr::payload::SampleLosses;
use crate::model::{CpuThread, CpuTime};
use crate::net::clock::monotonic_ns;
use crate::net::perf::{
    self, BlockedTime, CodeFunction, CodeKind, CpuSample, CpuSampler, NativeCode, NativeFunctions, SampleLoss, Unwinder, Wait,
};

/// The time between two looks at the ring buffers. They have room for many times that.
const PACE: Duration = Duration::from_millis(10);
/// The time between two looks at the times of the threads, each of which is a file.
const THREADS_PACE: Duration = Duration::from_millis(500);
/// Samples are recent for so long, nanoseconds.
const RECENT_NS: i64 = 2_000_000_000;
/// How many addresses of a file get names.
const MOST_KEPT: usize = 1 << 20;

/// The samples so far.
#[derive(Debug)]
pub(in crate::session) struct Collector {
    collected: Mutex<Collected>,
    /// Locked while files are read, which samples must not wait for: never while `collected` is.
    names: Mutex<Names>,
    over: AtomicBool,
}

#[derive(Debug)]
struct Names {
    functions: NativeFunctions,
    /// What samples are named by. Where its code is, it knows only during a look.
    symbols: Symbols,
}

#[derive(Debug)]
struct Collected {
    samples: CpuSamples,
    /// Samples of threads that were blocked.
    waits: CpuSamples,
    blocked: Blocked,
    code: NativeCode,
    unwinder: Unwinder,
    file: Option<CpuFile>,
    /// The addresses of the samples in the file, sorted, as of when they last got names.
    kept: Vec<u64>,
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
        let names = Mutex::new(Names { functions: code.functions(), symbols: Symbols::default() });
        let collected = Collected {
            samples: CpuSamples::new(period_ns),
            waits: CpuSamples::of_waits(),
            blocked: Blocked::default(),
            unwinder: code.unwinder(),
            code,
            file,
            kept: Vec::new(),
            threads: Vec::new(),
            loss: SampleLoss::default(),
            sees_kernel: true,
            began: now,
            taken: now,
        };
        Self { collected: Mutex::new(collected), names, over: AtomicBool::new(false) }
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
            self.take(|each| {
                sampler.drain(&mut *each);
                if is_last {
                    sampler.finish(each);
                }
            });
            self.take_blocked(sampler.take_blocked());
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

    /// Takes note of the waits that events of the runtime show.
    pub(in crate::session) fn add_runtime_waits(&self, waits: &mut RuntimeWaits) {
        let Collected { blocked, taken, .. } = &mut *self.lock();
        blocked.add_waits(&waits.take(), &waits.waiting());
        blocked.match_until(taken.unsigned_abs());
    }

    fn take_blocked(&self, times: impl Iterator<Item = BlockedTime>) {
        let Collected { blocked, taken, .. } = &mut *self.lock();
        times.for_each(|time| blocked.add(time.thread, time.since, time.until));
        blocked.match_until(taken.unsigned_abs());
    }

    /// Takes in what `drain` hands over.
    fn take(&self, drain: impl FnOnce(&mut dyn FnMut(&CpuSample<'_>))) {
        let Collected { samples, waits, code, unwinder, file, taken, began: first, .. } = &mut *self.lock();
        let began = monotonic_ns();
        drain(&mut |sample| {
            let chain = code.chain_of(sample, unwinder);
            let missing = if sample.cut { Some(MissingFrames::Cut) } else { chain.broken.then_some(MissingFrames::Broken) };
            let stack = CpuStack {
                thread: ThreadId::of(sample.thread),
                at: i64::try_from(sample.time_ns).unwrap_or(i64::MAX),
                kernel: sample.kernel,
                user: chain.frames,
                missing,
            };
            match sample.waited_ns {
                None => samples.add(&stack),
                Some(ns) => waits.add_time(&stack, ns),
            }
            if let Some(file) = file {
                file.sample(&stack, sample.waited_ns);
            }
        });
        for samples in [samples, waits] {
            samples.forget_recent((began - RECENT_NS).max(*first));
        }
        *taken = began;
        if let Some(file) = file {
            file.write(began, code);
        }
    }

    /// All samples, with the names of these methods, and of what else has an address in a sample.
    pub(in crate::session) fn cpu_time(&self, methods: &Symbols, known: MethodNames) -> CpuTime {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let code = self.code();
        // Reading files for names takes time: samples that came meanwhile are named in the second round.
        for _ in 0..2 {
            let addresses = self.lock().addresses();
            names.find(&code, methods, known, &addresses);
        }
        let time = self.lock().cpu_time(&names.symbols, self.over.load(Ordering::Relaxed));
        names.symbols.forget_code();
        time
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
    pub(in crate::session) fn finish_file(&self, methods: &Symbols, known: MethodNames) -> Option<Result<PathBuf, String>> {
        let (file, addresses) = {
            let mut collected = self.lock();
            collected.keep_addresses();
            (collected.file.take()?, std::mem::take(&mut collected.kept))
        };
        let code = self.code();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.find(&code, methods, known, &addresses);
        let symbols = &names.symbols;
        let collected = self.lock();
        let SampleLoss { lost, throttled, unreadable, threads: missed_threads, short_threads, .. } = collected.loss;
        let losses = SampleLosses { sees_kernel: collected.sees_kernel, lost, unreadable, throttled, missed_threads, short_threads };
        let threads = collected.threads(&collected.waits.profile(symbols));
        let finished = file.finish(&addresses, symbols, &code, &threads, &losses);
        names.symbols.forget_code();
        Some(finished)
    }

    /// The code that the process has.
    fn code(&self) -> NativeCode {
        let mut code = self.lock().code.clone();
        code.refresh();
        code
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    /// Finds what is at each of these addresses.
    fn find(&mut self, code: &NativeCode, methods: &Symbols, known: MethodNames, addresses: &[u64]) {
        for &address in addresses {
            if self.symbols.find(address).is_none() && !self.symbols.add_method_at(address, methods) {
                add_name(&mut self.symbols, address, code, &mut self.functions, known);
            }
        }
    }
}

impl Collected {
    /// All samples, with these names.
    fn cpu_time(&mut self, symbols: &Symbols, is_over: bool) -> CpuTime {
        if self.file.is_some() {
            self.keep_addresses();
        }
        for samples in [&mut self.samples, &mut self.waits] {
            samples.name(symbols);
        }
        let Collected { samples, waits, loss, began, taken, sees_kernel, .. } = &*self;
        let waits = waits.profile(symbols);
        let (busy, idle) = shown(Some(&waits).filter(|waits| !waits.is_empty()));
        let since = |moment: i64| Duration::from_nanos(u64::try_from(taken - moment).unwrap_or(0));
        let (cut, broken) = samples.missing();
        CpuTime {
            profile: samples.profile(symbols),
            waits: busy,
            idle,
            now: Some(*taken),
            elapsed: since(*began),
            recent: if is_over { Duration::ZERO } else { since(samples.recent_since().unwrap_or(*taken)) },
            threads: self.threads(&waits),
            lost: loss.lost,
            unreadable: loss.unreadable,
            throttled: loss.throttled,
            missed_threads: loss.threads,
            short_threads: loss.short_threads,
            unfollowed: loss.unfollowed,
            lost_waits: loss.lost_waits,
            cut,
            broken,
            sees_kernel: *sees_kernel,
        }
    }

    /// The addresses of the samples that have no name yet.
    fn addresses(&self) -> Vec<u64> {
        [&self.samples, &self.waits].map(CpuSamples::addresses).concat()
    }

    /// Adds them to those that are kept.
    fn keep_addresses(&mut self) {
        if self.kept.len() >= MOST_KEPT {
            return;
        }
        self.kept.extend(self.addresses());
        self.kept.sort_unstable();
        self.kept.dedup();
    }

    /// The threads, with what they waited for as far as the stacks of their waits show it, and events of the runtime.
    fn threads(&self, waits: &Profile) -> Vec<CpuThread> {
        let known = waits.waits(Wait::of_functions);
        let nothing = Waits::new();
        let thread = |thread: &CpuThread| {
            let known = known.get(&ThreadId::of(thread.thread)).unwrap_or(&nothing);
            let by_events = self.blocked.of(thread.thread, self.began.unsigned_abs(), self.taken.unsigned_abs());
            CpuThread { waits: refined(&thread.waits, known, by_events), ..thread.clone() }
        };
        self.threads.iter().map(thread).collect()
    }
}

fn cpu_thread(thread: &perf::CpuThread) -> CpuThread {
    let perf::CpuThread { thread, name, cpu, wall, off_cpu } = thread;
    let waits = off_cpu.waits.iter().map(|(wait, time)| (wait.word(), *time)).collect();
    CpuThread { thread: *thread, name: name.as_str().into(), cpu: *cpu, wall: *wall, runnable: off_cpu.runnable, waits }
}

/// Adds the function of an address, by the code that the process has there.
fn add_name(symbols: &mut Symbols, address: u64, code: &NativeCode, functions: &mut NativeFunctions, names: MethodNames) {
    let function = match CpuSamples::kernel_address(address) {
        Some(in_kernel) => {
            let function = functions.kernel_function(in_kernel);
            Some(CodeFunction { start: address - (in_kernel - function.start), ..function })
        }
        None => functions.function(code, address),
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::analysis::SampleFilter;

    #[test]
    fn samples_are_taken_in_while_files_are_read() {
        let collector = Arc::new(Collector::new(NativeCode::of_nothing(), 1_001_001, None));
        // Locked as while the symbols of a large file are read.
        let reading = collector.names.lock().unwrap();
        let names = thread::spawn({
            let collector = Arc::clone(&collector);
            move || collector.cpu_time(&Symbols::default(), MethodNames::Complete)
        });
        let (done, taken) = mpsc::channel();
        let taking = thread::spawn({
            let collector = Arc::clone(&collector);
            move || {
                for time_ns in 1..=100 {
                    let sample = CpuSample { thread: 7, time_ns, waited_ns: None, kernel: &[], user: &[10, 20], cut: false, stack: None };
                    collector.take(|each| each(&sample));
                    thread::sleep(Duration::from_millis(1));
                }
                done.send(()).unwrap();
            }
        });
        let waited = taken.recv_timeout(Duration::from_secs(60));
        assert!(waited.is_ok() && !names.is_finished(), "samples waited for names");
        drop(reading);
        taking.join().unwrap();
        names.join().unwrap();
        assert_eq!(collector.cpu_time(&Symbols::default(), MethodNames::Complete).profile.count(SampleFilter::ALL).samples().all(), 100);
    }
}
