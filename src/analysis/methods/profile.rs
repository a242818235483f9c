//! All samples at one moment, apart from the stream that they came from, to be viewed in every way.

use foldhash::HashMap;

use crate::clr::payload::Tier;
use crate::nettrace::ThreadId;

use super::super::{Origin, Symbols};
use super::samples::Samples;
use super::tree::{Frame, Meaning, StackTree};
use super::{Counts, SampleCount, SampleFilter};

/// Samples as a tree of stacks whose frames are methods, as far as those are known, and by thread.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub(super) frames: Vec<ProfileFrame>,
    /// The root first, and every node behind its parent.
    pub(super) nodes: Vec<Node>,
    pub(super) cells: Vec<Cell>,
    /// Threads by index.
    pub(super) threads: Vec<ThreadId>,
    /// By index of the thread: when its newest sample was, and the node of that.
    pub(super) newest: Vec<(i64, u32)>,
    /// Time between two samples of a thread, as measured, nanoseconds: what a sample stands for. `None` before there are some.
    pub interval_ns: Option<u64>,
    /// Samples of threads that ran no managed code, or whose stack the stream does not hold.
    pub without_stack: u64,
    /// Whether the CPU times of the threads are known, so that what is running is CPU time, estimated from both. Where they are not, threads that count as
    /// running may be waiting.
    pub is_weighed: bool,
}

/// What a frame of a stack is: a method with all of its bodies, an address, all that was too light to be kept, or the callers that are missing where the
/// runtime cut the stack off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFrame {
    /// Type and name; an address where the method is not known; `…` for what was folded away. Not sanitised.
    pub name: String,
    /// Its parameters in parentheses, types without namespaces; empty where they are not known. Not sanitised.
    pub parameters: String,
    /// Its module, without extension; empty where it is not known. Not sanitised.
    pub module: String,
    /// The tiers that it was compiled in.
    pub tiers: Vec<Tier>,
    /// Whose code it is.
    pub origin: Origin,
    pub(super) kind: FrameKind,
}

impl ProfileFrame {
    /// Its name with its parameters, which distinguish overloads.
    pub fn full_name(&self) -> String {
        format!("{}{}", self.name, self.parameters)
    }

    /// Whether it is a method whose name is not known.
    pub fn is_unresolved(&self) -> bool {
        self.kind == FrameKind::Address
    }

    /// Whether it is a method whose name is known.
    pub fn is_known(&self) -> bool {
        self.kind == FrameKind::Method
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Method,
    Address,
    Folded,
    Cut,
    Broken,
}

/// What stands for callers that are missing.
const CUT: &str = "(callers missing: stack cut off)";
const BROKEN: &str = "(callers missing: code without frame pointers)";

/// No node.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) frame: u32,
    first_child: u32,
    next: u32,
}

/// Samples of a node in a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) node: u32,
    /// Index of the thread.
    pub(super) thread: u32,
    pub(super) count: SampleCount,
}

/// Frames that were described, while a profile is made.
#[derive(Default)]
struct Known {
    by_frame: HashMap<Frame, u32>,
    /// By name, parameters and module.
    by_title: HashMap<[String; 3], u32>,
    /// Whether a thread waits whose leaf it is.
    waiting: Vec<bool>,
}

impl Profile {
    pub(super) fn new(tree: &StackTree, samples: &Samples, symbols: &Symbols, without_stack: u64) -> Self {
        let (interval_ns, is_weighed) = (samples.interval_ns(), samples.is_weighed());
        let mut profile = Self { interval_ns, without_stack, is_weighed, ..Self::default() };
        let mut frames = Known::default();
        let mut children = HashMap::<(u32, u32), u32>::default();
        let mut places = vec![StackTree::ROOT; tree.len()];
        let root = profile.frame(&mut frames, tree.nodes()[0].frame, symbols);
        profile.nodes.push(Node { parent: 0, frame: root, first_child: NONE, next: NONE });
        for (index, node) in tree.nodes().iter().enumerate().skip(1) {
            let parent = places[node.parent as usize];
            let frame = node.frame.resolved(symbols);
            // Code that the runtime makes to get from one app to another belongs to its caller.
            if let Meaning::Method(method) = frame.meaning()
                && symbols.is_stub(method)
            {
                places[index] = parent;
                continue;
            }
            let is_nameless = matches!(frame.meaning(), Meaning::Method(method) if symbols.is_nameless(method));
            let frame = profile.frame(&mut frames, frame, symbols);
            // Functions that call each other, and that look the same.
            if is_nameless && parent != StackTree::ROOT && profile.nodes[parent as usize].frame == frame {
                places[index] = parent;
                continue;
            }
            places[index] = profile.child(&mut children, parent, frame);
        }
        profile.link();
        let mut cells = HashMap::<(u32, u32), u32>::default();
        let frame_of = |node: u32| profile.nodes[places[node as usize] as usize].frame;
        let cpu_ns = samples.cpu_ns(|cell| frames.waiting[frame_of(cell.node) as usize]);
        for (cell, cpu_ns) in samples.cells().iter().zip(cpu_ns) {
            let node = places[cell.node as usize];
            let waits = frames.waiting[profile.nodes[node as usize].frame as usize];
            let count = cell.count(waits, cpu_ns);
            profile.put(&mut cells, Cell { node, thread: cell.thread, count });
        }
        profile.threads = samples.threads().collect();
        profile.newest = samples.newest().map(|(at, node)| (at, places[node as usize])).collect();
        profile
    }

    /// The index of a frame, which is new or was there before. Methods that are called the same are one.
    fn frame(&mut self, known: &mut Known, frame: Frame, symbols: &Symbols) -> u32 {
        let next = self.frames.len() as u32;
        let index = *known.by_frame.entry(frame).or_insert(next);
        if index == next {
            let nameless = |kind, name| ProfileFrame {
                name,
                parameters: String::new(),
                module: String::new(),
                tiers: Vec::new(),
                origin: Origin::Unknown,
                kind,
            };
            let described = match frame.meaning() {
                Meaning::Method(method) => ProfileFrame {
                    name: symbols.full_name(method),
                    parameters: symbols.parameters(method).to_owned(),
                    module: symbols.module(method).to_owned(),
                    tiers: symbols.tiers(method),
                    origin: symbols.origin(method),
                    kind: FrameKind::Method,
                },
                Meaning::Address(address) => nameless(FrameKind::Address, format!("{address:#x}")),
                Meaning::Folded => nameless(FrameKind::Folded, "…".to_owned()),
                Meaning::Cut => nameless(FrameKind::Cut, CUT.to_owned()),
                Meaning::Broken => nameless(FrameKind::Broken, BROKEN.to_owned()),
            };
            if described.kind == FrameKind::Method {
                let title = [&described.name, &described.parameters, &described.module].map(String::clone);
                let same = *known.by_title.entry(title).or_insert(next);
                if same != next {
                    known.by_frame.insert(frame, same);
                    let tiers = &mut self.frames[same as usize].tiers;
                    let others = described.tiers.into_iter().filter(|tier| !tiers.contains(tier)).collect::<Vec<_>>();
                    tiers.extend(others);
                    return same;
                }
            }
            let wait = match frame.meaning() {
                Meaning::Method(method) => {
                    let (namespace, name) = symbols.names(method);
                    waits(namespace, name)
                }
                Meaning::Address(_) | Meaning::Folded | Meaning::Cut | Meaning::Broken => false,
            };
            self.frames.push(described);
            known.waiting.push(wait);
        }
        index
    }

    /// Whose code its frames are.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        self.frames.iter().filter(|frame| frame.kind == FrameKind::Method).map(|frame| frame.origin)
    }

    /// The same without the frames of some origins: their time is that of the nearest caller that is left, and of none where there is none.
    #[must_use]
    pub fn without(&self, is_hidden: impl Fn(Origin) -> bool) -> Self {
        self.without_frames(|frame| is_hidden(frame.origin))
    }

    /// The same without some frames.
    pub(in crate::analysis) fn without_frames(&self, is_hidden: impl Fn(&ProfileFrame) -> bool) -> Self {
        let Self { frames, nodes, cells, threads, newest, interval_ns, without_stack, is_weighed } = self;
        let mut left = Self {
            frames: frames.clone(),
            nodes: Vec::new(),
            cells: Vec::new(),
            threads: threads.clone(),
            newest: newest.clone(),
            interval_ns: *interval_ns,
            without_stack: *without_stack,
            is_weighed: *is_weighed,
        };
        let mut children = HashMap::<(u32, u32), u32>::default();
        let mut places = vec![StackTree::ROOT; nodes.len()];
        left.nodes.extend(nodes.first().map(|root| Node { first_child: NONE, next: NONE, ..*root }));
        for (index, node) in nodes.iter().enumerate().skip(1) {
            let parent = places[node.parent as usize];
            let is_kept = !is_hidden(&frames[node.frame as usize]);
            places[index] = if is_kept { left.child(&mut children, parent, node.frame) } else { parent };
        }
        // Where all frames are hidden, only the mark of the missing callers is left: what was not its own time before is none of it.
        let is_mark = |node: &Node| matches!(frames[node.frame as usize].kind, FrameKind::Cut | FrameKind::Broken);
        for (place, node) in places.iter_mut().zip(nodes).skip(1) {
            if *place != StackTree::ROOT && is_mark(&left.nodes[*place as usize]) && !is_mark(node) {
                *place = StackTree::ROOT;
            }
        }
        left.link();
        left.newest.iter_mut().for_each(|(_, node)| *node = places[*node as usize]);
        let mut merged = HashMap::default();
        cells.iter().for_each(|cell| left.put(&mut merged, Cell { node: places[cell.node as usize], ..*cell }));
        left
    }

    /// The node of a frame below another, which is new or was there before.
    fn child(&mut self, children: &mut HashMap<(u32, u32), u32>, parent: u32, frame: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let place = *children.entry((parent, frame)).or_insert(next);
        if place == next {
            self.nodes.push(Node { parent, frame, first_child: NONE, next: NONE });
        }
        place
    }

    /// Lets every node know those below it.
    fn link(&mut self) {
        for index in (1..self.nodes.len()).rev() {
            let parent = self.nodes[index].parent as usize;
            self.nodes[index].next = std::mem::replace(&mut self.nodes[parent].first_child, index as u32);
        }
    }

    /// Adds a cell to the one of the same node and thread, where there is one.
    fn put(&mut self, merged: &mut HashMap<(u32, u32), u32>, cell: Cell) {
        let next = self.cells.len() as u32;
        match *merged.entry((cell.node, cell.thread)).or_insert(next) {
            place if place == next => self.cells.push(cell),
            place => self.cells[place as usize].count.add(cell.count),
        }
    }

    /// Other names for all frames.
    #[cfg(test)]
    pub(crate) fn rename(&mut self, rename: impl Fn(&str) -> String) {
        self.frames.iter_mut().for_each(|frame| frame.name = rename(&frame.name));
    }

    /// The newest sample of each thread that is distinguished: when it was taken, and its innermost frame. Those without a stack are left out.
    pub fn newest(&self) -> impl Iterator<Item = (ThreadId, i64, &ProfileFrame)> {
        let newest = self.threads.iter().zip(&self.newest).filter(|(thread, _)| **thread != ThreadId::OTHERS);
        newest.filter_map(|(thread, (at, node))| Some((*thread, *at, self.frame_of(*node)?)))
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// A frame by its index.
    pub fn frame_at(&self, index: u32) -> Option<&ProfileFrame> {
        self.frames.get(index as usize)
    }

    /// The frame of a node; `None` for the root and for nodes that are not there.
    pub fn frame_of(&self, node: u32) -> Option<&ProfileFrame> {
        let node = self.nodes.get(node as usize).filter(|_| node != StackTree::ROOT)?;
        self.frame_at(node.frame)
    }

    /// The node above; the root is above itself.
    pub fn parent(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(StackTree::ROOT, |node| node.parent)
    }

    /// The nodes below.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let step = |index: u32| (index != NONE).then_some(index);
        let first = self.nodes.get(node as usize).and_then(|node| step(node.first_child));
        std::iter::successors(first, move |last| step(self.nodes[*last as usize].next))
    }

    /// Counts the samples that a filter lets through.
    pub fn count(&self, filter: SampleFilter) -> Counts<'_> {
        Counts::new(self, filter)
    }
}

/// Whether a thread whose leaf is this method, and which is in native code, waits.
fn waits(namespace: &str, name: &str) -> bool {
    WAITS.iter().any(|(types, names)| types.contains(&namespace) && names.iter().any(|prefix| name.starts_with(prefix)))
}

/// Types, and how those of their methods begin in which a thread does nothing but wait.
const WAITS: &[(&[&str], &[&str])] = &[
    (&["System.Threading.Thread"], &["Sleep", "Join"]),
    (&["System.Threading.WaitHandle"], &["WaitOne", "WaitMultiple", "SignalAndWait", "WaitAny", "WaitAll"]),
    (&["System.Threading.Monitor"], &["Wait", "ObjWait", "Enter", "ReliableEnter", "TryEnter", "ReliableEnterTimeout"]),
    (&["System.Threading.Lock", "System.Threading.Condition"], &["Enter", "TryEnter", "Wait"]),
    (
        &["System.Threading.LowLevelLifoSemaphore", "System.Threading.LowLevelMonitor", "System.Threading.WaitSubsystem"],
        &["Wait", "Acquire"],
    ),
    (&["System.Threading.ManualResetEventSlim", "System.Threading.SemaphoreSlim", "System.Threading.CountdownEvent"], &["Wait"]),
    (&["System.Threading.SpinWait"], &["SpinOnce"]),
    // Calls into the system. Runtimes before .NET 5 have no frame for those, but for the method that calls.
    (
        &["Interop+Sys"],
        &["WaitForSocketEvents", "LowLevelMonitor_", "Poll", "Select", "Accept", "Receive", "Read", "WaitPid", "WaitIdAnyExited"],
    ),
    (&["System.ConsolePal"], &["Read"]),
    (&["System.Net.Sockets.SocketAsyncEngine"], &["EventLoop"]),
];
