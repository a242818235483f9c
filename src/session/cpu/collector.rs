//! Samples of a process, taken in by one thread and looked at by another.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::file::{CpuFile, monotonic_ns};
use crate::analysis::{CpuSamples, CpuStack, MissingFrames, NativeFunction, Origin, Profile, Symbols, ThreadId};
use crate::net::perf::{CodeFunction, CodeKind, CpuSampler, NativeCode};

/// The time between two looks at the ring buffers. They have room for many times that.
const PACE: Duration = Duration::from_millis(10);

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
        Self { collected: Mutex::new(Collected { samples: CpuSamples::new(period_ns), code, file }), over: AtomicBool::new(false) }
    }

    /// Takes no more samples.
    pub(in crate::session) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Takes samples in until it is stopped, or has no other owner.
    pub(in crate::session) fn collect(self: &Arc<Self>, sampler: &mut CpuSampler) {
        loop {
            // What was written until then is taken in once more.
            let is_last = self.over.load(Ordering::Relaxed) || Arc::strong_count(self) == 1;
            self.take(sampler);
            if is_last {
                return;
            }
            thread::sleep(PACE);
        }
    }

    fn take(&self, sampler: &mut CpuSampler) {
        let Collected { samples, code, file } = &mut *self.lock();
        let began = monotonic_ns();
        sampler.drain(|sample| {
            let chain = code.chain(sample.user);
            if let Some(file) = file {
                file.sample(sample, chain.frames);
            }
            let missing = if sample.cut { Some(MissingFrames::Cut) } else { chain.broken.then_some(MissingFrames::Broken) };
            samples.add(&CpuStack {
                thread: ThreadId::of(sample.thread),
                at: i64::try_from(sample.time_ns).unwrap_or(i64::MAX),
                kernel: sample.kernel,
                user: chain.frames,
                missing,
            });
        });
        if let Some(file) = file {
            file.write(began);
        }
    }

    /// Samples of stacks that were cut off, and of broken ones.
    pub(in crate::session) fn missing(&self) -> (u64, u64) {
        self.lock().samples.missing()
    }

    /// All samples, with the names of these methods, and of what else has an address in a sample.
    pub(in crate::session) fn profile(&self, methods: &Symbols, names: MethodNames) -> Profile {
        let symbols = self.symbols(methods, names);
        self.lock().samples.profile(&symbols)
    }

    /// Gives the file its names, and its own; `None` where there is no file.
    pub(in crate::session) fn finish_file(&self, methods: &Symbols, names: MethodNames) -> Option<Result<PathBuf, String>> {
        let file = self.lock().file.take()?;
        let symbols = self.symbols(methods, names);
        let collected = self.lock();
        Some(file.finish(&collected.samples.addresses(), &symbols, &collected.code))
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
            (CodeKind::Image, _) => (Origin::Native, of_image()),
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
