//! Collects the samples of a process on one thread while others read them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::address_names::{AddressNames, MethodNames};
use super::collected::Collected;
use super::file::CpuFile;
use super::methods::Methods;
use super::osr::complete_frames;
use crate::analysis::{RuntimeWaits, Symbols};
use crate::model::CpuTime;
use crate::net::perf::{BlockedTime, CpuSampler, NativeCode};

/// Minimum and maximum interval between reads of the thread times, in milliseconds.
const THREADS_INTERVAL_MS: (usize, usize) = (200, 500);

/// The samples so far.
#[derive(Debug)]
pub(in crate::session) struct Collector {
    collected: Mutex<Collected>,
    /// Locked while files are read, which must not delay sampling: never lock it while holding `collected`.
    names: Mutex<AddressNames>,
    over: AtomicBool,
}

impl Collector {
    /// If there is a file, all samples are also written to it.
    pub(in crate::session) fn new(code: NativeCode, period_ns: u64, file: Option<CpuFile>) -> Self {
        let names = Mutex::new(AddressNames::new(code.functions()));
        Self { collected: Mutex::new(Collected::new(code, period_ns, file)), names, over: AtomicBool::new(false) }
    }

    /// Stops sampling.
    pub(in crate::session) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Collects samples until stopped, or until there is no other owner.
    pub(in crate::session) fn collect(self: &Arc<Self>, sampler: &mut CpuSampler) {
        let mut next = Instant::now();
        loop {
            // Samples written until the stop are collected once more.
            let is_last = self.over.load(Ordering::Relaxed) || Arc::strong_count(self) == 1;
            self.lock().take(|each| {
                sampler.drain(&mut *each);
                if is_last {
                    sampler.finish(each);
                }
            });
            self.take_blocked(sampler.take_blocked());
            self.find_callers(sampler);
            if is_last || next <= Instant::now() {
                let threads = sampler.threads();
                next = Instant::now() + threads_interval(threads.len());
                let mut collected = self.lock();
                collected.gc.set_gc_threads(threads.iter().filter(|thread| thread.only_collects()).map(|thread| thread.thread));
                (collected.threads, collected.loss, collected.includes_kernel) = (threads, sampler.loss(), sampler.includes_kernel());
            }
            if is_last {
                return;
            }
            thread::sleep(sampler.drain_interval());
        }
    }

    /// Adds waits shown by runtime events.
    pub(in crate::session) fn add_runtime_waits(&self, waits: &mut RuntimeWaits) {
        let Collected { blocked, gc, taken, .. } = &mut *self.lock();
        let finished = waits.take();
        gc.add_pauses(&finished, waits.pausing());
        blocked.add_waits(&finished, &waits.waiting());
        blocked.match_until(taken.unsigned_abs());
    }

    fn take_blocked(&self, times: impl Iterator<Item = BlockedTime>) {
        let Collected { blocked, taken, .. } = &mut *self.lock();
        times.for_each(|time| blocked.add(time.thread, time.since, time.until));
        blocked.match_until(taken.unsigned_abs());
    }

    /// Finds missing callers in the raw stacks requested before, and requests further ones.
    fn find_callers(&self, sampler: &mut CpuSampler) {
        let Collected { callers, code, incomplete, .. } = &mut *self.lock();
        sampler.take_stacks(|stack| {
            let mut frames: Vec<_> = stack.frames().map(|frame| frame.address).collect();
            complete_frames(stack, &mut frames, callers, code);
        });
        for (thread, site) in std::mem::take(incomplete) {
            if sampler.record_stack(thread) {
                callers.attempt(site);
            }
        }
    }

    /// Takes the code of methods in on-stack replacement: the callers of such methods are missing in the samples, and are searched for from now on.
    pub(in crate::session) fn set_osr_code(&self, methods: &Symbols) {
        self.lock().callers.set_code(methods);
    }

    /// Returns all samples, with names from these methods and for all other sampled addresses.
    pub(in crate::session) fn cpu_time(&self, methods: &impl Methods, known: MethodNames) -> CpuTime {
        self.release_if_over();
        let mut names = self.find_names(methods, known);
        let time = self.lock().cpu_time(&names.symbols, self.over.load(Ordering::Relaxed));
        names.symbols.forget_code();
        time
    }

    /// Whether the samples so far should be [named](Self::name): there are far fewer functions than addresses, so that the stacks take less memory.
    pub(in crate::session) fn has_grown(&self) -> bool {
        self.lock().has_grown()
    }

    /// Names the samples so far.
    pub(in crate::session) fn name(&self, methods: &impl Methods, known: MethodNames) {
        let mut names = self.find_names(methods, known);
        self.lock().name(&names.symbols);
        names.symbols.forget_code();
    }

    fn find_names(&self, methods: &impl Methods, known: MethodNames) -> MutexGuard<'_, AddressNames> {
        methods.with(&mut |methods| self.set_osr_code(methods));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let code = self.code();
        // Reading files for names takes time: the second round names the samples collected during the first.
        for _ in 0..2 {
            let addresses = self.lock().addresses();
            names.find(&code, methods, known, &addresses);
        }
        names
    }

    /// Whether the process has generated code, for which the runtime has the names.
    pub(in crate::session) fn has_generated_code(&self) -> bool {
        self.lock().code.has_generated()
    }

    /// Whether the samples are also written to a file.
    pub(in crate::session) fn has_file(&self) -> bool {
        self.lock().file.is_some()
    }

    /// Removes the file if no thread was sampled while it was running. Returns whether it did.
    pub(in crate::session) fn discard_empty_file(&self) -> bool {
        self.release_if_over();
        let mut collected = self.lock();
        let is_empty = collected.samples.is_empty();
        if is_empty {
            collected.file = None;
        }
        is_empty
    }

    /// Once sampling has ended, all events have been passed on: no sample is held back any longer.
    fn release_if_over(&self) {
        if self.over.load(Ordering::Relaxed) {
            let mut collected = self.lock();
            let taken = collected.taken;
            collected.release(i64::MAX, taken);
        }
    }

    /// Writes the names to the file and gives it its final name; `None` if there is no file.
    pub(in crate::session) fn finish_file(&self, methods: &impl Methods, known: MethodNames) -> Option<Result<PathBuf, String>> {
        methods.with(&mut |methods| self.set_osr_code(methods));
        self.release_if_over();
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
        let threads = collected.threads(&collected.waits.profile(symbols));
        let finished = file.finish(&addresses, symbols, &code, (&threads, &collected.losses()), &collected.callers);
        names.symbols.forget_code();
        Some(finished)
    }

    /// The current code mappings of the process.
    fn code(&self) -> NativeCode {
        let mut code = self.lock().code.clone();
        code.refresh();
        code
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the interval between reads of the thread times: reading those of one thread takes some microseconds.
fn threads_interval(threads: usize) -> Duration {
    Duration::from_millis(threads.clamp(THREADS_INTERVAL_MS.0, THREADS_INTERVAL_MS.1) as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::analysis::SampleFilter;
    use crate::net::perf::CpuSample;

    /// The CPU time in the live view is as recent as its samples; reading the times of many threads takes long.
    #[test]
    fn thread_times_are_read_less_often_if_there_are_many() {
        assert_eq!([1, 200, 300, 5000].map(|threads| threads_interval(threads).as_millis()), [200, 200, 300, 500]);
    }

    #[test]
    fn sampling_continues_while_symbols_are_read() {
        let collector = Arc::new(Collector::new(NativeCode::empty(), 1_001_001, None));
        // Locked as during the reading of a large file's symbols.
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
                    collector.lock().take(|each| each(&sample));
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
