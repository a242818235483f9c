//! Slices that begin with one event and end with another.

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::clr::payload::{
    ContentionStart, ContentionStop, Fields, GcEnd, GcStart, GcType, JittingStarted, MethodBody, Payload, SuspendBegin,
};
use crate::nettrace::{Event, ThreadId};

use super::activities::Activities;
use super::output::Output;
use super::stacks::NodeId;
use super::writer::{ArgumentValue, Counter, Track, TrackEvent};

/// Maximum number of concurrent slices of a kind. Further ones are not shown.
const MAX_OPEN: usize = 4096;
/// Maximum nesting of compilations on a thread, as in the analysis of compilation.
const MAX_NESTED: usize = 32;

/// The open slices, in an order that does not depend on a hash seed where they are written in that order.
#[derive(Debug, Default)]
pub(super) struct OpenSlices {
    /// By suspending thread, which also restarts the threads.
    pauses: BTreeMap<ThreadId, Pause>,
    /// End of the latest pause of each process.
    paused: HashMap<u32, i64>,
    background: BTreeMap<(u32, u32), Background>,
    waits: BTreeMap<ThreadId, Wait>,
    /// Innermost last: compiling a method can trigger the compilation of others.
    compilations: HashMap<ThreadId, Vec<Compilation>>,
    activities: Activities,
    text: String,
}

#[derive(Debug, Default)]
struct Pause {
    since: i64,
    /// Time until all threads were suspended, nanoseconds.
    suspending: Option<i64>,
    for_gc: bool,
    collection: Option<GcStart>,
    promoted: Option<u64>,
}

#[derive(Debug)]
struct Background {
    since: i64,
    thread: ThreadId,
    start: GcStart,
}

#[derive(Debug)]
struct Wait {
    since: i64,
    start: ContentionStart,
    node: NodeId,
    flow: u64,
}

#[derive(Debug)]
struct Compilation {
    since: i64,
    method: u64,
    il_size: u32,
    name: String,
}

impl OpenSlices {
    /// Returns `None` if the payload is malformed.
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
            Kind::SuspendEnd => {
                if let Some(pause) = self.pauses.get_mut(&thread) {
                    pause.suspending = Some(at.saturating_sub(pause.since));
                }
            }
            Kind::RestartEnd => {
                if let Some(pause) = self.pauses.remove(&thread).filter(|pause| pause.for_gc) {
                    pause.show(thread, at, output);
                    let before = self.paused.insert(thread.process, at).unwrap_or(at);
                    let (pause_ns, between) = (at.saturating_sub(pause.since), at.saturating_sub(before));
                    if between > 0 {
                        let share = (pause_ns as f64 / between as f64).clamp(0.0, 1.0) * 100.0;
                        // A value applies until the next one: this one covers the time up to now.
                        output.counter(thread.process, &Counter::PauseShare, before, share);
                    }
                }
            }
            Kind::GcStart => {
                let start: GcStart = read(event, pointer_size)?;
                if let Some(pause) = self.pauses.get_mut(&thread) {
                    pause.collection = Some(start);
                }
                if start.kind == GcType::BACKGROUND {
                    open(&mut self.background, (thread.process, start.number), Background { since: at, thread, start });
                }
            }
            Kind::GcEnd => {
                let GcEnd { number, .. } = read(event, pointer_size)?;
                if let Some(background) = self.background.remove(&(thread.process, number)) {
                    background.show(at, output);
                }
            }
            Kind::ContentionStart => {
                let start: ContentionStart = read(event, pointer_size)?;
                // A thread waits for one lock at a time: the end of the previous wait was lost.
                if let Some(wait) = self.waits.remove(&thread) {
                    wait.show(thread, at, output);
                }
                open(&mut self.waits, thread, Wait { since: at, start, node, flow: flow_of(event.activity_id()) });
            }
            Kind::ContentionStop => {
                let _: ContentionStop = read(event, pointer_size)?;
                if let Some(wait) = self.waits.remove(&thread) {
                    wait.show(thread, at, output);
                }
            }
            Kind::JittingStarted => {
                let JittingStarted { method, il_size, namespace, name } = read(event, pointer_size)?;
                namespace.copy_prefix(&mut self.text, 500);
                let mut full = format!("JIT {}.", self.text);
                full.extend(name.chars().take(500));
                if self.compilations.len() < MAX_OPEN || self.compilations.contains_key(&thread) {
                    let nested = self.compilations.entry(thread).or_default();
                    if nested.len() >= MAX_NESTED {
                        nested.clear();
                    }
                    nested.push(Compilation { since: at, method, il_size, name: full });
                }
            }
            Kind::MethodLoad | Kind::MethodLoadVerbose => {
                let body: MethodBody = read(event, pointer_size)?;
                if let Some(nested) = self.compilations.get_mut(&thread)
                    && let Some(depth) = nested.iter().rposition(|compilation| compilation.method == body.method)
                {
                    // Compilations that began later on this thread and have not ended never will.
                    nested.drain(depth..).take(1).for_each(|compilation| compilation.show(thread, &body, at, output));
                }
            }
            Kind::ActivityStart | Kind::ActivityStop | Kind::ActivityFailure | Kind::ActivityDetail => {
                self.activities.feed(kind, event, at, output)
            }
            _ => {}
        }
        Some(())
    }

    /// Sets the promoted bytes of the collection that runs on a thread.
    pub(super) fn promoted(&mut self, thread: ThreadId, bytes: u64) {
        if let Some(pause) = self.pauses.get_mut(&thread) {
            pause.promoted = Some(bytes);
        }
    }

    /// Drops what a thread began, since the ends may be among its lost events.
    pub(super) fn lost(&mut self, thread: ThreadId) {
        self.pauses.remove(&thread);
        self.waits.remove(&thread);
        self.compilations.remove(&thread);
    }

    /// Invalidates the node ids of stacks, which are reassigned from here on.
    pub(super) fn forget_stacks(&mut self) {
        self.waits.values_mut().for_each(|wait| wait.node = 0);
    }

    /// Ends all open slices.
    pub(super) fn finish(self, end: i64, output: &mut Output<'_>) {
        for (thread, pause) in self.pauses.into_iter().filter(|(_, pause)| pause.for_gc) {
            pause.show(thread, end, output);
        }
        for background in self.background.values() {
            background.show(end, output);
        }
        for (thread, wait) in self.waits {
            wait.show(thread, end, output);
        }
        self.activities.finish(end, output);
    }
}

fn read<'a, P: Payload<'a>>(event: &Event<'a>, pointer_size: u8) -> Option<P> {
    P::read(Fields::of(event, pointer_size))
}

fn open<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    if map.len() < MAX_OPEN || map.contains_key(&key) {
        map.insert(key, value);
    }
}

/// Returns the flow id that connects events with this activity id; 0 without an activity.
pub(super) fn flow_of(activity: [u8; 16]) -> u64 {
    let id = u128::from_le_bytes(activity);
    // Activity ids of one process differ in few bits, at any position.
    let mixed = (id as u64 ^ (id >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if id == 0 { 0 } else { mixed.rotate_left(32) | 1 }
}

impl Pause {
    fn show(&self, thread: ThreadId, end: i64, output: &mut Output<'_>) {
        let mut arguments = Vec::new();
        let name = match self.collection {
            Some(GcStart { number, generation, reason, kind }) => {
                arguments.extend([
                    ("number", ArgumentValue::Count(number.into())),
                    ("generation", ArgumentValue::Count(generation.into())),
                    ("reason", ArgumentValue::Text(reason.name())),
                    ("type", ArgumentValue::Text(kind.name())),
                ]);
                format!("Gen {generation} GC")
            }
            None => "GC pause".to_owned(),
        };
        arguments.extend(self.suspending.map(|ns| ("suspending (ms)", ArgumentValue::Number(ns as f64 / 1e6))));
        arguments.extend(self.promoted.map(|bytes| ("promoted bytes", ArgumentValue::Count(bytes))));
        output.event(TrackEvent { track: Track::GcPauses, ..TrackEvent::slice(thread, "gc", &name, self.since, end, &arguments) });
    }
}

impl Background {
    fn show(&self, end: i64, output: &mut Output<'_>) {
        let arguments =
            [("number", ArgumentValue::Count(self.start.number.into())), ("reason", ArgumentValue::Text(self.start.reason.name()))];
        let slice = TrackEvent::slice(self.thread, "gc", "Background GC", self.since, end, &arguments);
        output.event(TrackEvent { track: Track::BackgroundGc, ..slice });
    }
}

impl Wait {
    fn show(&self, thread: ThreadId, end: i64, output: &mut Output<'_>) {
        let Self { since, start, node, flow } = *self;
        let reported = [
            start.lock.map(|lock| ("lock", ArgumentValue::Count(lock))),
            start.owner.map(|owner| ("owner thread", ArgumentValue::Count(owner))),
        ];
        let (mut arguments, mut known) = ([("", ArgumentValue::Count(0)); 2], 0);
        for argument in reported.into_iter().flatten() {
            arguments[known] = argument;
            known += 1;
        }
        let name = if start.native { "Runtime lock wait" } else { "Lock wait" };
        let slice = TrackEvent::slice(thread, "lock", name, since, end, &arguments[..known]);
        output.event(TrackEvent { node, flows: [flow, 0], ..slice });
    }
}

impl Compilation {
    fn show(&self, thread: ThreadId, body: &MethodBody, end: i64, output: &mut Output<'_>) {
        let arguments = [
            ("tier", ArgumentValue::Text(body.tier().name())),
            ("IL bytes", ArgumentValue::Count(self.il_size.into())),
            ("code bytes", ArgumentValue::Count(body.size.into())),
        ];
        output.event(TrackEvent::slice(thread, "jit", &self.name, self.since, end, &arguments));
    }
}
