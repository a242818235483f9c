//! CPU time of a process in a file: kernel samples (`Universal.Events`) and the names recorded with them (`Universal.System`).

use std::collections::BTreeMap;

use crate::clr::EventKind;
use crate::clr::payload::{ContextSwitch, SampleLosses, ThreadTime};
use crate::nettrace::{Event, ThreadId};

use super::images::{KERNEL, NativeCode, read};
use super::{CpuSamples, CpuStack, Images, MissingFrames, NativeFunction, Profile, Symbols};

/// CPU samples of a single process. Not available for files with several processes, as an address has a different meaning in each.
#[derive(Debug, Default)]
pub(super) struct RecordedCpu {
    images: Images,
    samples: Option<(u32, CpuSamples)>,
    waits: Option<CpuSamples>,
    is_of_several: bool,
    /// By thread ID.
    threads: BTreeMap<u64, ThreadTimes>,
    losses: Option<SampleLosses>,
    /// Number of entries in all thread times.
    times: usize,
    /// Frames of a sample; a reused buffer.
    frames: Vec<u64>,
}

/// Maximum number of pairs of thread and state, and of states per thread.
const TIMES: (usize, usize) = (1 << 17, 64);
/// Maximum length of a thread or state name in bytes; the kernel keeps 15.
const MAX_NAME_LENGTH: usize = 64;

/// CPU time of a process in a file.
#[derive(Debug)]
pub struct RecordedCpuTime {
    /// CPU samples.
    pub profile: Profile,
    /// Samples of blocked threads, if the file has any: the time of a sample is the duration of the wait.
    pub waits: Option<Profile>,
    /// On-CPU and off-CPU times of the threads, if the file has them.
    pub threads: Vec<ThreadTimes>,
    /// Number of samples with a truncated stack: see [`MissingFrames::Cut`].
    pub cut: u64,
    /// Number of samples with a broken stack: see [`MissingFrames::Broken`].
    pub broken: u64,
    /// Samples lost in the whole recording, if the file states it.
    pub losses: Option<SampleLosses>,
}

/// On-CPU and off-CPU time of a thread, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// Thread ID within its process.
    pub thread: u64,
    /// Thread name; not sanitized.
    pub name: String,
    /// On-CPU time.
    pub cpu_ns: u64,
    /// Off-CPU time by state: `runnable`, or the kind of wait. Not sanitized.
    pub off_cpu_ns: BTreeMap<String, u64>,
}

impl ThreadTimes {
    /// Returns the total time.
    pub fn wall_ns(&self) -> u64 {
        self.off_cpu_ns.values().fold(self.cpu_ns, |sum, ns| sum.saturating_add(*ns))
    }
}

impl RecordedCpu {
    /// Processes an event of a file in which each sample represents this many nanoseconds.
    pub(super) fn feed(&mut self, kind: EventKind, event: &Event<'_>, at: i64, period_ns: u32) -> Option<()> {
        if kind == EventKind::ThreadTime {
            return self.thread_time(event);
        }
        if kind == EventKind::SampleLosses {
            self.losses = Some(read(event)?);
            return Some(());
        }
        let waited = match kind {
            EventKind::CpuSample => None,
            EventKind::ContextSwitch => Some(read(event)?),
            _ => return self.images.feed(kind, event),
        };
        let ThreadId { process, thread, .. } = event.thread();
        let (of, samples) = self.samples.get_or_insert_with(|| (process, CpuSamples::new(period_ns.into())));
        self.is_of_several |= *of != process;
        if self.is_of_several {
            return None;
        }
        self.frames.clear();
        self.frames.extend(event.stack().into_iter().flat_map(|stack| stack.frames()));
        let kernel = self.frames.iter().take_while(|frame| **frame >= KERNEL).count();
        let (kernel, user) = self.frames.split_at(kernel);
        let missing = event.labels().find_map(MissingFrames::from_label);
        let stack = CpuStack { thread: ThreadId::of(thread), at, kernel, user, missing };
        match waited {
            None => samples.add(&stack),
            Some(ContextSwitch { duration_ns }) => self.waits.get_or_insert_with(CpuSamples::of_waits).add_time(&stack, duration_ns),
        }
        Some(())
    }

    fn thread_time(&mut self, event: &Event<'_>) -> Option<()> {
        let ThreadTime { name, state, duration_ns } = read(event)?;
        if name.len().max(state.len()) > MAX_NAME_LENGTH {
            return None;
        }
        let (name, state) = (std::str::from_utf8(name).ok()?, std::str::from_utf8(state).ok()?);
        let thread = event.thread().thread;
        let known = self.threads.get(&thread);
        let is_known = known.is_some_and(|times| state == "cpu" || times.off_cpu_ns.contains_key(state));
        let is_full = self.times >= TIMES.0 || known.is_some_and(|times| times.off_cpu_ns.len() >= TIMES.1);
        if is_full && !is_known {
            return None;
        }
        self.times += usize::from(!is_known);
        let times = self.threads.entry(thread).or_insert_with(|| ThreadTimes { thread, name: name.to_owned(), ..ThreadTimes::default() });
        let sum = match state {
            "cpu" => &mut times.cpu_ns,
            _ => times.off_cpu_ns.entry(state.to_owned()).or_default(),
        };
        *sum = sum.saturating_add(duration_ns);
        Some(())
    }

    /// Returns the samples by function and the thread times; `None` if there are no samples, or samples of several processes.
    pub(super) fn time(&self) -> Option<RecordedCpuTime> {
        let (cut, broken) = self.samples.as_ref().map(|(_, samples)| samples.missing()).unwrap_or_default();
        let threads = self.threads.values().cloned().collect();
        let (process, samples) = self.samples.as_ref().filter(|_| !self.is_of_several)?;
        let waits = self.waits.as_ref().map(|waits| self.profile(*process, waits));
        Some(RecordedCpuTime { profile: self.profile(*process, samples), waits, threads, cut, broken, losses: self.losses })
    }

    fn profile(&self, process: u32, samples: &CpuSamples) -> Profile {
        let mut symbols = Symbols::default();
        for address in samples.addresses() {
            // Already added for another address of the same function.
            if symbols.find(address).is_some() {
                continue;
            }
            let in_kernel = CpuSamples::kernel_address(address);
            let Some(code) = self.images.function_at(process, in_kernel.unwrap_or(address)) else { continue };
            let NativeCode { start, size, name, image, origin } = &code;
            let start = if in_kernel.is_some() { *start & !KERNEL } else { *start };
            symbols.add_native(&NativeFunction { address, start, size: *size, name, image, origin: *origin });
        }
        samples.profile(&symbols)
    }
}
