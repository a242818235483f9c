//! What begins with one event and ends with another.

use foldhash::HashMap;

use crate::analysis::add_texts;
use crate::clr::EventKind;
use crate::clr::payload::{
    ContentionStart, ContentionStop, Fields, GcEnd, GcReason, GcStart, GcType, JittingStarted, MethodBody, Payload, SuspendBegin,
};
use crate::nettrace::{Event, ThreadId};

use super::stacks::NodeId;
use super::walk::{Output, set};
use super::writer::{Fact, Slice, Track};

/// Most of a kind that go on at the same time. What begins then is not shown.
const OPEN: usize = 4096;
/// Most operations that are told apart.
const OPERATIONS: usize = 512;
/// Most lanes of an operation.
const LANES: usize = 256;

/// What has begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Began {
    /// Threads are stopped and started again by one thread.
    pauses: HashMap<ThreadId, Pause>,
    background: HashMap<(u32, u32), (i64, GcStart)>,
    waits: HashMap<ThreadId, Wait>,
    compilations: HashMap<ThreadId, Compilation>,
    operations: Vec<Operation>,
    /// By index of the metadata record.
    by_metadata: HashMap<u32, Option<u32>>,
    activities: HashMap<(u32, [u8; 16]), Activity>,
    text: String,
}

#[derive(Debug, Default)]
struct Pause {
    since: i64,
    for_gc: bool,
    collection: Option<GcStart>,
    promoted: Option<u64>,
}

#[derive(Debug)]
struct Wait {
    since: i64,
    start: ContentionStart,
    node: NodeId,
}

#[derive(Debug)]
struct Compilation {
    since: i64,
    method: u64,
    il_size: u32,
    name: String,
}

#[derive(Debug)]
struct Operation {
    provider: String,
    name: String,
    /// Which lanes are in use.
    lanes: Vec<bool>,
}

#[derive(Debug)]
struct Activity {
    since: i64,
    lane: u32,
    subject: String,
}

impl Began {
    /// `None` where the payload makes no sense.
    pub(super) fn feed(
        &mut self,
        kind: EventKind,
        event: &Event<'_>,
        at: i64,
        pointer_size: u8,
        node: NodeId,
        output: &mut Output<'_>,
    ) -> Option<()> {
        use EventKind as Kind;
        let thread = event.thread();
        match kind {
            Kind::SuspendBegin => {
                let begin: SuspendBegin = read(event, pointer_size)?;
                open(&mut self.pauses, thread, Pause { since: at, for_gc: begin.is_for_gc(), ..Pause::default() });
            }
            Kind::RestartEnd => {
                if let Some(pause) = self.pauses.remove(&thread).filter(|pause| pause.for_gc) {
                    pause.show(at, output);
                }
            }
            Kind::GcStart => {
                let start: GcStart = read(event, pointer_size)?;
                if let Some(pause) = self.pauses.get_mut(&thread) {
                    pause.collection = Some(start);
                }
                if start.kind == GcType::BACKGROUND {
                    open(&mut self.background, (thread.process, start.number), (at, start));
                }
            }
            Kind::GcEnd => {
                let GcEnd { number, .. } = read(event, pointer_size)?;
                if let Some((since, start)) = self.background.remove(&(thread.process, number)) {
                    show_background(since, start, at, output);
                }
            }
            Kind::ContentionStart => {
                let start: ContentionStart = read(event, pointer_size)?;
                // A thread waits for one lock at a time: the end of one before was lost.
                if let Some(wait) = self.waits.remove(&thread) {
                    wait.show(thread, at, output);
                }
                open(&mut self.waits, thread, Wait { since: at, start, node });
            }
            Kind::ContentionStop => {
                let _: ContentionStop = read(event, pointer_size)?;
                if let Some(wait) = self.waits.remove(&thread) {
                    wait.show(thread, at, output);
                }
            }
            Kind::JittingStarted => {
                let JittingStarted { method, il_size, namespace, name } = read(event, pointer_size)?;
                set(&mut self.text, namespace, 500);
                let mut full = format!("JIT {}.", self.text);
                full.extend(name.chars().take(500));
                open(&mut self.compilations, thread, Compilation { since: at, method, il_size, name: full });
            }
            Kind::MethodLoad | Kind::MethodLoadVerbose => {
                let body: MethodBody = read(event, pointer_size)?;
                if let Some(compilation) = self.compilations.remove(&thread).filter(|compilation| compilation.method == body.method) {
                    compilation.show(thread, &body, at, output);
                }
            }
            Kind::ActivityStart => self.start(event, at)?,
            Kind::ActivityStop => self.stop(event, at, output)?,
            _ => {}
        }
        Some(())
    }

    /// What survived the collection of a thread.
    pub(super) fn promoted(&mut self, thread: ThreadId, bytes: u64) {
        if let Some(pause) = self.pauses.get_mut(&thread) {
            pause.promoted = Some(bytes);
        }
    }

    /// A thread lost events: the ends of what it began may be among them.
    pub(super) fn lost(&mut self, thread: ThreadId) {
        self.pauses.remove(&thread);
        self.waits.remove(&thread);
        self.compilations.remove(&thread);
    }

    /// Numbers of nodes mean others from here on.
    pub(super) fn forget_stacks(&mut self) {
        self.waits.values_mut().for_each(|wait| wait.node = 0);
    }

    /// Ends everything that has begun.
    pub(super) fn finish(mut self, end: i64, output: &mut Output<'_>) {
        for (_, pause) in self.pauses.drain().filter(|(_, pause)| pause.for_gc) {
            pause.show(end, output);
        }
        for (_, (since, start)) in self.background.drain() {
            show_background(since, start, end, output);
        }
        for (thread, wait) in self.waits.drain() {
            wait.show(thread, end, output);
        }
        let operations = &self.operations;
        for ((operation, _), activity) in self.activities.drain() {
            activity.show(&operations[operation as usize], end, true, output);
        }
    }

    fn operation(&mut self, event: &Event<'_>) -> Option<u32> {
        let metadata = event.metadata;
        if let Some(known) = self.by_metadata.get(&metadata.index) {
            return *known;
        }
        let name = metadata.name.strip_suffix("Start").or_else(|| metadata.name.strip_suffix("Stop")).unwrap_or(&metadata.name);
        let found = self.operations.iter().position(|known| known.provider == metadata.provider && known.name == name);
        let index = match found {
            None if self.operations.len() >= OPERATIONS => None,
            None => {
                self.operations.push(Operation { provider: metadata.provider.clone(), name: name.to_owned(), lanes: Vec::new() });
                Some(self.operations.len() as u32 - 1)
            }
            Some(index) => Some(index as u32),
        };
        // As many records as a stream can have.
        self.by_metadata.insert(metadata.index, index);
        index
    }

    fn start(&mut self, event: &Event<'_>, at: i64) -> Option<()> {
        let (operation, id) = (self.operation(event)?, event.activity_id());
        if id == [0; 16] || self.activities.len() >= OPEN || self.activities.contains_key(&(operation, id)) {
            return Some(());
        }
        let lanes = &mut self.operations[operation as usize].lanes;
        let lane = lanes.iter().position(|used| !used).unwrap_or(lanes.len());
        if lane >= LANES {
            return Some(());
        }
        if lane == lanes.len() {
            lanes.push(true);
        }
        lanes[lane] = true;
        let mut subject = String::new();
        add_texts(&mut subject, event.values(), 0);
        self.activities.insert((operation, id), Activity { since: at, lane: lane as u32, subject });
        Some(())
    }

    fn stop(&mut self, event: &Event<'_>, at: i64, output: &mut Output<'_>) -> Option<()> {
        let (operation, id) = (self.operation(event)?, event.activity_id());
        let activity = self.activities.remove(&(operation, id))?;
        let operation = &mut self.operations[operation as usize];
        operation.lanes[activity.lane as usize] = false;
        activity.show(operation, at, false, output);
        Some(())
    }
}

fn read<'a, P: Payload<'a>>(event: &Event<'a>, pointer_size: u8) -> Option<P> {
    P::read(Fields::of(event, pointer_size))
}

fn open<K: Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() < OPEN || map.contains_key(&key) {
        map.insert(key, value);
    }
}

impl Pause {
    fn show(&self, end: i64, output: &mut Output<'_>) {
        let mut facts = Vec::new();
        let name = match self.collection {
            Some(GcStart { number, generation, reason: GcReason(reason), kind }) => {
                facts.extend([
                    ("number", Fact::Count(number.into())),
                    ("generation", Fact::Count(generation.into())),
                    ("reason", Fact::Text(GcReason(reason).name())),
                    ("type", Fact::Text(kind.name())),
                ]);
                format!("Gen {generation} GC")
            }
            None => "GC pause".to_owned(),
        };
        facts.extend(self.promoted.map(|bytes| ("promoted bytes", Fact::Count(bytes))));
        output.slice(slice(Track::GcPauses, "gc", &name, self.since, end, &facts));
    }
}

fn show_background(since: i64, start: GcStart, end: i64, output: &mut Output<'_>) {
    let facts = [("number", Fact::Count(start.number.into())), ("reason", Fact::Text(start.reason.name()))];
    output.slice(slice(Track::BackgroundGc, "gc", "Background GC", since, end, &facts));
}

impl Wait {
    fn show(&self, thread: ThreadId, end: i64, output: &mut Output<'_>) {
        let Self { since, start, node } = *self;
        let mut facts = Vec::new();
        facts.extend(start.lock.map(|lock| ("lock", Fact::Count(lock))));
        facts.extend(start.owner.map(|owner| ("owner thread", Fact::Count(owner))));
        let name = if start.native { "Runtime lock wait" } else { "Lock wait" };
        output.slice(Slice { node, ..slice(Track::Thread(thread), "lock", name, since, end, &facts) });
    }
}

impl Compilation {
    fn show(&self, thread: ThreadId, body: &MethodBody, end: i64, output: &mut Output<'_>) {
        let facts = [
            ("tier", Fact::Text(body.tier().name())),
            ("IL bytes", Fact::Count(self.il_size.into())),
            ("code bytes", Fact::Count(body.size.into())),
        ];
        output.slice(slice(Track::Thread(thread), "jit", &self.name, self.since, end, &facts));
    }
}

impl Activity {
    fn show(&self, operation: &Operation, end: i64, is_unfinished: bool, output: &mut Output<'_>) {
        let title = format!("{} {}", operation.provider, operation.name);
        let name = if self.subject.is_empty() { &title } else { &self.subject };
        let facts = [("unfinished", Fact::Flag(true))];
        let facts = if is_unfinished { &facts[..] } else { &[] };
        let track = Track::Operation { name: &title, lane: self.lane };
        output.slice(slice(track, "activity", name, self.since, end, facts));
    }
}

fn slice<'a>(
    track: Track<'a>,
    category: &'static str,
    name: &'a str,
    start: i64,
    end: i64,
    facts: &'a [(&'static str, Fact<'a>)],
) -> Slice<'a> {
    Slice { track, category, name, start, end, node: 0, facts }
}
