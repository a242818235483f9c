//! Where what a walk finds goes: to the format, as far as it is in the selected part.

use std::collections::HashSet as StdSet;
use std::io;
use std::ops::RangeInclusive;

use foldhash::HashMap;

use crate::nettrace::{Thread, ThreadId};

use super::stacks::{FrameId, NodeId, Stacks};
use super::writer::{Allocation, Counter, Sample, Track, TrackEvent, Writer};

/// Most threads that are remembered; then the format gets them again.
const THREADS: usize = 1 << 16;
/// Frames of a stack in which it can be seen what its thread is for, counted from the root.
const ROOTS: usize = 6;
/// What threads are for by a method near the root of their stacks, in the words of the runtime's own thread names.
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

/// The thread whose number is that of its process.
const MAIN: &str = ".NET Main";

/// What of a recording is exported.
#[derive(Debug, Clone)]
pub struct Part {
    /// Nanoseconds since the start of the session.
    pub window: RangeInclusive<i64>,
    /// Threads by their id in the operating system; empty for all.
    pub threads: StdSet<u64>,
}

impl Default for Part {
    fn default() -> Self {
        Self { window: i64::MIN..=i64::MAX, threads: StdSet::new() }
    }
}

impl Part {
    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread.thread)
    }
}

/// A format, and what it has to be given first.
pub(super) struct Output<'w> {
    writer: Box<dyn Writer + 'w>,
    pub(super) stacks: Stacks,
    part: Part,
    /// The process that the whole stream is of; 0 where it is of several.
    process: u32,
    threads: HashMap<ThreadId, Known>,
    /// Why nothing more can be written.
    error: Option<io::Error>,
    path: Vec<FrameId>,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Known {
    /// As the stream has it.
    name: String,
    /// The thread was written to the format.
    is_described: bool,
    /// A stack was looked at for a name, or none is needed.
    is_named: bool,
}

impl<'w> Output<'w> {
    pub(super) fn new(writer: Box<dyn Writer + 'w>, stacks: Stacks, part: Part, process: u32) -> Self {
        Self { writer, stacks, part, process, threads: HashMap::default(), error: None, path: Vec::new() }
    }

    fn put(&mut self, write: impl FnOnce(&mut dyn Writer, &Stacks) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut *self.writer, &self.stacks).err();
        }
    }

    /// A thread was described.
    pub(super) fn described(&mut self, thread: &Thread) {
        if !thread.name.is_empty() {
            self.make_room();
            self.threads.insert(thread.id, Known { name: thread.name.clone(), is_described: false, is_named: true });
        }
    }

    fn make_room(&mut self) {
        if self.threads.len() >= THREADS {
            self.threads.clear();
        }
    }

    /// Describes a thread that has this stack to the format, and returns whether it is exported.
    fn thread(&mut self, thread: ThreadId, node: NodeId) -> bool {
        if !self.part.has(thread) {
            return false;
        }
        if self.threads.get(&thread).is_some_and(|known| known.is_described && (known.is_named || node == 0)) {
            return true;
        }
        self.make_room();
        let known = self.threads.entry(thread).or_default();
        let is_new = !std::mem::replace(&mut known.is_described, true);
        let is_unnamed = node != 0 && !known.is_named;
        known.is_named |= is_unnamed;
        let is_main = thread.process == 0 && thread.thread == u64::from(self.process) && self.process != 0;
        let mut name = if is_main { MAIN.to_owned() } else { known.name.clone() };
        if is_unnamed && !is_main {
            name = self.purpose(node).to_owned();
        }
        if is_new || !name.is_empty() {
            self.put(|writer, _| writer.thread(thread, &name));
        }
        true
    }

    /// What a thread is for that has this stack; empty where that cannot be seen.
    fn purpose(&mut self, node: NodeId) -> &'static str {
        let mut path = std::mem::take(&mut self.path);
        self.stacks.path(node, &mut path);
        let roots = path.iter().filter(|frame| self.stacks.is_managed(**frame)).take(ROOTS).map(|frame| self.stacks.name(*frame));
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
            self.put(|writer, stacks| writer.sample(sample, stacks));
        }
    }

    pub(super) fn event(&mut self, mut event: TrackEvent<'_>) {
        let (first, last) = (*self.part.window.start(), *self.part.window.end());
        if let Some(end) = &mut event.end {
            (event.start, *end) = (event.start.max(first), (*end).min(last));
        }
        if !(first..=last).contains(&event.start) || event.end.is_some_and(|end| end < event.start) {
            return;
        }
        if event.track != Track::Thread || self.thread(event.thread, event.node) {
            self.put(|writer, stacks| writer.event(&event, stacks));
        }
    }

    pub(super) fn counter(&mut self, process: u32, counter: &Counter<'_>, at: i64, value: f64) {
        // What is no number has no place on a graph.
        if self.part.window.contains(&at) && value.is_finite() {
            self.put(|writer, _| writer.counter(process, counter, at, value));
        }
    }

    pub(super) fn allocation(&mut self, thread: ThreadId, allocation: &Allocation) {
        if self.part.window.contains(&allocation.at) && self.part.has(thread) {
            self.put(|writer, stacks| writer.allocation(allocation, stacks));
        }
    }

    /// Hands over what was found so far.
    pub(super) fn flush(&mut self) {
        self.put(|writer, _| writer.flush());
    }

    /// Describes everything again: a reader may not have what was written before, and lacks a part of it with `is_incomplete`.
    pub(super) fn restart(&mut self, is_incomplete: bool) {
        self.threads.values_mut().for_each(|known| known.is_described = false);
        self.put(|writer, _| writer.restart(is_incomplete));
    }

    /// Begins the stacks again where there are too many, and returns whether it did.
    pub(super) fn clear_stacks(&mut self) -> bool {
        let is_full = self.stacks.is_full();
        if is_full {
            self.put(|writer, stacks| writer.stacks_cleared(stacks));
            self.stacks.clear();
        }
        is_full
    }

    /// Writes what is left.
    pub(super) fn finish(mut self, newest: i64) -> io::Result<()> {
        let end = newest.min(*self.part.window.end());
        self.put(|writer, stacks| writer.finish(end, stacks));
        self.error.map_or(Ok(()), Err)
    }
}
