//! Passes the results of a walk to the output format, as far as they are within the selected part.

use std::collections::HashSet as StdSet;
use std::io;
use std::ops::RangeInclusive;

use foldhash::HashMap;

use crate::nettrace::{Thread, ThreadId};

use super::stacks::{FrameId, NodeId, Stacks};
use super::writer::{Allocation, Counter, LivePackets, Sample, Track, TrackEvent, Writer};

/// Maximum number of remembered threads; beyond it threads are described again.
const MAX_THREADS: usize = 1 << 16;
/// Number of frames, counted from the root, in which the purpose of a thread is looked for.
const ROOT_FRAMES: usize = 6;
/// Thread purposes by a method near the root of the stack, named like the runtime's own threads.
const PURPOSES: [(&str, &str); 9] = [
    ("System.Threading.PortableThreadPool+WorkerThread.", ".NET TP Worker"),
    ("System.Threading.ThreadPoolWorkQueue.Dispatch", ".NET TP Worker"),
    ("System.Threading.PortableThreadPool+GateThread.", ".NET TP Gate"),
    ("System.Threading.PortableThreadPool+WaitThread.", ".NET TP Wait"),
    ("System.Threading.PortableThreadPool+IOCompletionPoller.", ".NET TP IO"),
    ("System.Threading.TimerQueue.TimerThread", ".NET Timer"),
    ("System.Net.Sockets.SocketAsyncEngine.EventLoop", ".NET Sockets"),
    ("System.Runtime.CompilerServices.TieredCompilation", ".NET Tiered Compilation Worker"),
    ("System.GC.RunFinalizers", ".NET Finalizer"),
];

/// Name of the thread whose id equals the pid.
const MAIN_THREAD: &str = ".NET Main";

/// The part of a recording that is exported.
#[derive(Debug, Clone)]
pub struct Part {
    /// Nanoseconds since the start of the session.
    pub window: RangeInclusive<i64>,
    /// Threads by operating system id; empty for all.
    pub threads: StdSet<u64>,
}

impl Default for Part {
    fn default() -> Self {
        Self { window: i64::MIN..=i64::MAX, threads: StdSet::new() }
    }
}

impl Part {
    pub(super) fn has_thread(&self, thread: ThreadId) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread.thread)
    }
}

/// What was written of the selected part.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Number of samples.
    pub samples: u64,
    /// Number of everything else: events, slices, values of counters, allocations.
    pub others: u64,
    /// Number of events of the program's own providers that were left out because the recording has too many.
    pub left_out: u64,
    /// Selected threads to which something belongs; empty if all threads are selected.
    pub threads: StdSet<u64>,
    /// Time of the newest event of the recording, in the part or not. Nanoseconds since the start of the session.
    pub newest: i64,
}

impl Written {
    pub(super) fn note_thread(&mut self, thread: ThreadId, part: &Part) {
        if !part.threads.is_empty() {
            self.threads.insert(thread.thread);
        }
    }
}

/// A format writer, with the state that it needs.
pub(super) struct Output<'w> {
    writer: Box<dyn Writer + 'w>,
    pub(super) stacks: Stacks,
    part: Part,
    /// The process of the whole stream; 0 if it has several.
    process: u32,
    threads: HashMap<ThreadId, ThreadInfo>,
    /// The first error; nothing more is written after it.
    error: Option<io::Error>,
    path: Vec<FrameId>,
    /// Number of slices so far that began before the part.
    early: i64,
    pub(super) written: Written,
}

/// State of a thread.
#[derive(Debug, Default)]
struct ThreadInfo {
    /// Name in the stream.
    name: String,
    /// Whether the thread was passed to the format.
    is_described: bool,
    /// Whether a name is known, or was already looked for in a stack.
    is_named: bool,
}

impl<'w> Output<'w> {
    pub(super) fn new(writer: Box<dyn Writer + 'w>, stacks: Stacks, part: Part, process: u32) -> Self {
        Self {
            writer,
            stacks,
            part,
            process,
            threads: HashMap::default(),
            error: None,
            path: Vec::new(),
            early: 0,
            written: Written::default(),
        }
    }

    fn put(&mut self, write: impl FnOnce(&mut dyn Writer, &Stacks) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut *self.writer, &self.stacks).err();
        }
    }

    /// Records the name of a thread.
    pub(super) fn set_thread_name(&mut self, thread: &Thread) {
        if !thread.name.is_empty() {
            self.make_room();
            self.threads.insert(thread.id, ThreadInfo { name: thread.name.clone(), is_described: false, is_named: true });
        }
    }

    /// Forgets all threads if there are too many, and so does the format, which keeps the open calls of each.
    fn make_room(&mut self) {
        if self.threads.len() >= MAX_THREADS {
            self.threads.clear();
            self.put(|writer, stacks| writer.stacks_cleared(stacks));
        }
    }

    /// Describes a thread with this stack to the format, and returns whether it is exported.
    fn thread(&mut self, thread: ThreadId, node: NodeId) -> bool {
        if !self.part.has_thread(thread) {
            return false;
        }
        self.written.note_thread(thread, &self.part);
        if self.threads.get(&thread).is_some_and(|known| known.is_described && (known.is_named || node == 0)) {
            return true;
        }
        self.make_room();
        let known = self.threads.entry(thread).or_default();
        let is_new = !std::mem::replace(&mut known.is_described, true);
        let is_unnamed = node != 0 && !known.is_named;
        known.is_named |= is_unnamed;
        let is_main = thread.process == 0 && thread.thread == u64::from(self.process) && self.process != 0;
        let mut name = if is_main { MAIN_THREAD.to_owned() } else { known.name.clone() };
        if is_unnamed && !is_main {
            name = self.purpose(node).to_owned();
        }
        if is_new || !name.is_empty() {
            self.put(|writer, _| writer.thread(thread, &name));
        }
        true
    }

    /// Returns the purpose of a thread with this stack; empty if unknown.
    fn purpose(&mut self, node: NodeId) -> &'static str {
        let mut path = std::mem::take(&mut self.path);
        self.stacks.path(node, &mut path);
        let roots = path.iter().filter(|frame| self.stacks.is_managed(**frame)).take(ROOT_FRAMES).map(|frame| self.stacks.name(*frame));
        let purpose = roots
            .filter_map(|name| PURPOSES.iter().find(|(method, _)| name.starts_with(method)))
            .map(|(_, purpose)| *purpose)
            .next()
            .unwrap_or_default();
        self.path = path;
        purpose
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        if self.part.window.contains(&sample.at) && self.thread(sample.thread, sample.node) {
            self.written.samples += 1;
            self.put(|writer, stacks| writer.sample(sample, stacks));
        }
    }

    pub(super) fn event(&mut self, mut event: TrackEvent<'_>) {
        let (first, last) = (*self.part.window.start(), *self.part.window.end());
        if event.start > last || event.end.unwrap_or(event.start) < event.start.max(first) {
            return;
        }
        if let Some(end) = &mut event.end {
            *end = (*end).min(last);
            if event.start < first {
                // Enclosing slices follow those inside, but readers take the first of two with the same start for the enclosing one.
                event.start = event.start.max(first.saturating_sub(self.early));
                self.early += 1;
            }
        }
        if event.track != Track::Thread || self.thread(event.thread, event.node) {
            self.written.others += 1;
            self.put(|writer, stacks| writer.event(&event, stacks));
        }
    }

    pub(super) fn counter(&mut self, process: u32, counter: &Counter<'_>, at: i64, value: f64) {
        // NaN and infinity cannot be plotted.
        if self.part.window.contains(&at) && value.is_finite() {
            self.written.others += 1;
            self.put(|writer, _| writer.counter(process, counter, at, value));
        }
    }

    pub(super) fn allocation(&mut self, thread: ThreadId, allocation: &Allocation) {
        if self.writer.has_allocations() && self.part.window.contains(&allocation.at) && self.part.has_thread(thread) {
            self.written.note_thread(thread, &self.part);
            self.written.others += 1;
            self.put(|writer, stacks| writer.allocation(allocation, stacks));
        }
    }

    /// Takes the packets written so far.
    pub(super) fn take(&mut self) -> LivePackets {
        self.writer.take()
    }

    /// Describes everything again, for readers that may lack earlier packets; `is_incomplete` if some were lost.
    pub(super) fn restart(&mut self, is_incomplete: bool) {
        self.threads.values_mut().for_each(|known| known.is_described = false);
        self.put(|writer, _| writer.restart(is_incomplete));
    }

    /// Resets the stacks if there are too many, and returns whether it did.
    pub(super) fn clear_stacks(&mut self) -> bool {
        let is_full = self.stacks.is_full();
        if is_full {
            self.put(|writer, stacks| writer.stacks_cleared(stacks));
            self.stacks.clear();
        }
        is_full
    }

    /// Writes the rest.
    pub(super) fn finish(&mut self, newest: i64) -> io::Result<Written> {
        let end = newest.min(*self.part.window.end());
        self.put(|writer, stacks| writer.finish(end, stacks));
        self.error.take().map_or(Ok(Written { newest, ..std::mem::take(&mut self.written) }), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::analysis::{Images, Symbols};

    #[test]
    fn format_forgets_threads_if_there_are_too_many() {
        struct Clears(Rc<Cell<usize>>);
        impl Writer for Clears {
            fn stacks_cleared(&mut self, _stacks: &Stacks) -> io::Result<()> {
                self.0.set(self.0.get() + 1);
                Ok(())
            }

            fn finish(&mut self, _end: i64, _stacks: &Stacks) -> io::Result<()> {
                Ok(())
            }
        }
        let clears = Rc::<Cell<usize>>::default();
        let stacks = Stacks::new(Symbols::default(), Images::default());
        let mut output = Output::new(Box::new(Clears(clears.clone())), stacks, Part::default(), 0);
        for thread in 0..=2 * MAX_THREADS as u64 {
            output.sample(&Sample { thread: ThreadId::of(thread), at: 0, duration: 1, node: 0, is_native: false });
        }
        assert_eq!(clears.get(), 2);
    }
}
