//! Perfetto's trace format.
//!
//! Everything stands on one packet sequence, with names, frames and stacks interned. Source: `docs/reference/synthetic-track-event.md` and the messages of
//! `protos/perfetto/trace` in google/perfetto, version 59.

mod state;

use std::hash::{BuildHasher, Hash};
use std::io::{self, Write};

use foldhash::HashMap;
use foldhash::fast::FixedState;

use crate::nettrace::ThreadId;
use crate::perfetto::Message;
use crate::perfetto::field::{clock, event, packet, sample, track};

use self::state::{Kind, State, annotate, start_of};
use super::spans::{Edge, Spans};
use super::stacks::{FrameId, Stacks};
use super::writer::{Counter, Fact, Instant, Sample, Slice, Subject, Track, Writer};

/// Ids of packet sequences of traces that others recorded are lower, so that an export can be appended to one.
const FIRST_SEQUENCE: u64 = 0x4000_0001;
/// Bytes that are gathered before they are written.
const GATHERED: usize = 256 * 1024;
/// Most names that are interned; then the state begins anew.
const NAMES: usize = 1 << 16;

/// Writes a recording as a Perfetto trace.
pub(super) struct Perfetto<W> {
    out: W,
    bytes: Vec<u8>,
    subject: Subject,
    /// The packet sequence: each recording of a trace has its own.
    sequence: u64,
    /// The calls of each thread, where samples are to be slices as well.
    calls: Option<HashMap<ThreadId, Spans>>,
    /// Perfetto's time of the start of the session, nanoseconds.
    origin: i64,
    /// Tracks that are described.
    tracks: HashMap<u64, ()>,
    state: State,
    path: Vec<FrameId>,
}

impl<W: Write> Perfetto<W> {
    /// Begins the part of a trace that has this number among those of other recordings. Samples are slices as well where `with_calls` says so.
    pub(super) fn new(out: W, subject: Subject, number: u32, with_calls: bool) -> io::Result<Self> {
        let origin = subject.header.nanoseconds_between(0, subject.header.sync_ticks);
        let mut perfetto = Self {
            out,
            bytes: Vec::with_capacity(GATHERED + GATHERED / 4),
            subject,
            sequence: FIRST_SEQUENCE + u64::from(number),
            calls: with_calls.then(HashMap::default),
            origin,
            tracks: HashMap::default(),
            state: State::default(),
            path: Vec::new(),
        };
        perfetto.begin();
        if number == 0 {
            perfetto.clock_snapshot();
        }
        perfetto.process();
        perfetto.flush()?;
        Ok(perfetto)
    }

    /// Begins the sequence, or begins it anew: nothing is interned from here on.
    fn begin(&mut self) {
        let first = self.tracks.is_empty();
        self.state = State::default();
        self.packet(packet::INCREMENTAL_STATE_CLEARED, None, |packet| {
            if first {
                packet.uint(packet::FIRST_PACKET_ON_SEQUENCE, 1);
            }
            packet.message(packet::TRACE_PACKET_DEFAULTS, |defaults| defaults.uint(packet::TIMESTAMP_CLOCK_ID, clock::MONOTONIC));
        });
    }

    /// What the clocks said at the start. How long the machine was suspended is not known: the clock of the time since boot gets the same time.
    fn clock_snapshot(&mut self) {
        let monotonic = self.origin.max(0) as u64;
        let calendar = self.subject.header.sync_utc.map(|time| time.unix_ms().max(0) as u64 * 1_000_000);
        let clocks = [clock::MONOTONIC, clock::MONOTONIC_COARSE, clock::BOOTTIME].map(|id| (id, monotonic));
        self.packet(0, None, |packet| {
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, timestamp) in clocks.into_iter().chain(calendar.map(|time| (clock::REALTIME, time))) {
                    snapshot.message(clock::CLOCKS, |entry| {
                        entry.uint(clock::CLOCK_ID, id);
                        entry.uint(clock::TIMESTAMP, timestamp);
                    });
                }
                snapshot.uint(clock::PRIMARY_TRACE_CLOCK, clock::BOOTTIME);
            });
        });
    }

    fn process(&mut self) {
        let Subject { header, command_line, runtime } = &self.subject;
        if header.process_id == 0 {
            return;
        }
        let (uuid, pid) = (self.uuid(("process", header.process_id)), header.process_id);
        let mut arguments: Vec<String> = command_line.split(' ').map(|argument| start_of(argument).to_owned()).collect();
        arguments.truncate(64);
        let (name, label) = (self.subject.name().to_owned(), format!(".NET {runtime}"));
        self.track(uuid, 0, |descriptor| {
            descriptor.message(track::PROCESS, |process| {
                process.uint(track::PID, pid.into());
                arguments.iter().for_each(|argument| process.text(track::CMDLINE, argument));
                process.text(track::PROCESS_NAME, start_of(&name));
                process.text(track::PROCESS_LABELS, label.trim_end());
            });
        });
    }

    /// An id for what nothing else in the trace is.
    fn uuid(&self, what: impl Hash) -> u64 {
        let header = &self.subject.header;
        FixedState::with_seed(0).hash_one((header.process_id, header.sync_ticks, what)) | 1
    }

    fn thread_uuid(&self, thread: ThreadId) -> u64 {
        self.uuid(("thread", thread))
    }

    /// Where the thread's process has its number: of its own in a stream of several processes.
    fn pid(&self, thread: ThreadId) -> u64 {
        u64::from(if thread.process == 0 { self.subject.header.process_id } else { thread.process })
    }

    /// Describes a track once.
    fn track(&mut self, uuid: u64, parent: u64, fill: impl FnOnce(&mut Message<'_>)) -> u64 {
        if self.tracks.insert(uuid, ()).is_none() {
            self.packet(0, None, |packet| {
                packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                    descriptor.uint(track::UUID, uuid);
                    if parent != 0 {
                        descriptor.uint(track::PARENT_UUID, parent);
                    }
                    fill(descriptor);
                });
            });
        }
        uuid
    }

    /// A track that holds others, or slices, at a place among those beside it.
    fn group(&mut self, name: &str, parent: u64, rank: u64) -> u64 {
        let uuid = self.uuid(("group", parent, name));
        self.track(uuid, parent, |descriptor| {
            descriptor.text(track::NAME, start_of(name));
            descriptor.uint(track::CHILD_ORDERING, track::EXPLICIT);
            descriptor.uint(track::SIBLING_ORDER_RANK, rank);
        })
    }

    /// Everything of the runtime that is not of one thread.
    fn runtime(&mut self) -> u64 {
        let process = if self.subject.header.process_id == 0 { 0 } else { self.uuid(("process", self.subject.header.process_id)) };
        self.group(".NET", process, 0)
    }

    fn slice_track(&mut self, on: Track<'_>) -> u64 {
        match on {
            Track::Thread(thread) => self.thread_uuid(thread),
            Track::LostEvents => {
                let runtime = self.runtime();
                self.group("Lost events", runtime, 0)
            }
            Track::GcPauses => {
                let collection = self.collection();
                self.group("Pauses", collection, 0)
            }
            Track::BackgroundGc => {
                let collection = self.collection();
                self.group("Background", collection, 1)
            }
            Track::Operation { name, lane } => {
                let runtime = self.runtime();
                let operations = self.group("Requests", runtime, 2);
                let uuid = self.uuid(("operation", name, lane));
                // Tracks of one name beside each other are drawn as lanes of one.
                self.track(uuid, operations, |descriptor| descriptor.text(track::NAME, start_of(name)))
            }
        }
    }

    fn collection(&mut self) -> u64 {
        let runtime = self.runtime();
        self.group("Garbage collection", runtime, 1)
    }

    fn counter_track(&mut self, counter: &Counter<'_>) -> u64 {
        let uuid = self.uuid(("counter", counter));
        if self.tracks.contains_key(&uuid) {
            return uuid;
        }
        let (parent, name, unit) = match *counter {
            Counter::Heap(index) => {
                let collection = self.collection();
                (self.group("Heap", collection, 2), Counter::HEAPS[index.min(4)], "By")
            }
            Counter::AllocationRate => (self.collection(), "Allocation rate", "B/s"),
            Counter::Workers => {
                let runtime = self.runtime();
                (self.group("Thread pool", runtime, 3), "Workers", "")
            }
            Counter::Published { group, name, unit } => {
                let runtime = self.runtime();
                let counters = self.group("Counters", runtime, 4);
                (self.group(group, counters, 0), name, unit)
            }
        };
        self.track(uuid, parent, |descriptor| {
            descriptor.text(track::NAME, start_of(name));
            descriptor.message(track::COUNTER, |counter| match unit {
                "By" | "B" => counter.uint(track::UNIT, track::SIZE_BYTES),
                "" => counter.uint(track::UNIT, track::COUNT),
                unit => counter.text(track::UNIT_NAME, start_of(unit)),
            });
        })
    }

    /// Appends a packet, which defines first what it refers to.
    fn packet(&mut self, flags: u64, at: Option<i64>, fill: impl FnOnce(&mut Message<'_>)) {
        let Self { bytes, state, origin, sequence, .. } = self;
        Message::new(bytes).message(packet::PACKET, |packet| {
            if let Some(at) = at {
                packet.uint(packet::TIMESTAMP, origin.saturating_add(at).max(0) as u64);
            }
            packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, *sequence);
            if flags != 0 {
                packet.uint(packet::SEQUENCE_FLAGS, flags);
            }
            if !state.pending.is_empty() {
                packet.bytes(packet::INTERNED_DATA, &state.pending);
                state.pending.clear();
            }
            fill(packet);
        });
    }

    fn track_event(&mut self, at: i64, fill: impl FnOnce(&mut Message<'_>)) {
        self.packet(packet::NEEDS_INCREMENTAL_STATE, Some(at), |packet| packet.message(packet::TRACK_EVENT, fill));
    }

    /// Interns what there is to say, and gives it by the numbers of its names.
    fn facts<'f>(&mut self, facts: &[(&'static str, Fact<'f>)]) -> Vec<(u64, Fact<'f>)> {
        facts.iter().map(|(name, fact)| (self.state.name(Kind::Annotation, name), *fact)).collect()
    }

    /// A call of a thread begins or ends, on a track below that of the thread: other slices of the thread are not nested with calls.
    fn edge(&mut self, thread: ThreadId, at: i64, edge: Edge, stacks: &Stacks) {
        let (parent, uuid) = (self.thread_uuid(thread), self.uuid(("calls", thread)));
        self.track(uuid, parent, |descriptor| descriptor.text(track::NAME, "Calls (sampled)"));
        let name = match edge {
            Edge::Begin(frame) => Some(self.state.name(Kind::Event, &stacks.name(frame))),
            Edge::End(_) => None,
        };
        self.track_event(at, |message| {
            message.uint(event::TYPE, if name.is_some() { event::SLICE_BEGIN } else { event::SLICE_END });
            message.uint(event::TRACK_UUID, uuid);
            if let Some(name) = name {
                message.uint(event::NAME_IID, name);
            }
        });
    }

    fn end_calls(&mut self, stacks: &Stacks) {
        for (thread, mut spans) in self.calls.as_mut().map(std::mem::take).unwrap_or_default() {
            // Nothing is written here that could fail.
            let _ = spans.end(|at, edge| {
                self.edge(thread, at, edge, stacks);
                Ok(())
            });
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    fn flush_some(&mut self) -> io::Result<()> {
        if self.state.names.len() >= NAMES {
            self.begin();
        }
        if self.bytes.len() >= GATHERED { self.flush() } else { Ok(()) }
    }
}

impl<W: Write> Writer for Perfetto<W> {
    fn thread(&mut self, thread: ThreadId, name: &str) -> io::Result<()> {
        let (uuid, pid) = (self.thread_uuid(thread), self.pid(thread));
        self.track(uuid, 0, |descriptor| {
            descriptor.message(track::THREAD, |descriptor| {
                descriptor.uint(track::PID, pid);
                descriptor.uint(track::TID, thread.thread);
                if !name.is_empty() {
                    descriptor.text(track::THREAD_NAME, start_of(name));
                }
            });
        });
        Ok(())
    }

    fn sample(&mut self, sampled: &Sample, stacks: &Stacks) -> io::Result<()> {
        let pid = self.pid(sampled.thread);
        let stack = self.state.stack(sampled.node, sampled.is_native, stacks, &mut self.path);
        self.packet(packet::NEEDS_INCREMENTAL_STATE, Some(sampled.at), |packet| {
            packet.message(packet::PERF_SAMPLE, |message| {
                message.uint(sample::PID, pid);
                message.uint(sample::TID, sampled.thread.thread);
                if let Some(stack) = stack {
                    message.uint(sample::CALLSTACK_IID, stack);
                }
                message.uint(sample::CPU_MODE, sample::USER);
            });
        });
        if let Some(calls) = &mut self.calls {
            let mut spans = calls.remove(&sampled.thread).unwrap_or_default();
            spans.sample(sampled.at, sampled.duration, sampled.node, stacks, |at, edge| {
                self.edge(sampled.thread, at, edge, stacks);
                Ok(())
            })?;
            if let Some(calls) = &mut self.calls {
                calls.insert(sampled.thread, spans);
            }
        }
        self.flush_some()
    }

    fn slice(&mut self, slice: &Slice<'_>, stacks: &Stacks) -> io::Result<()> {
        let uuid = self.slice_track(slice.track);
        let (name, category) = (self.state.name(Kind::Event, slice.name), self.state.name(Kind::Category, slice.category));
        let facts = self.facts(slice.facts);
        let stack = self.state.stack(slice.node, false, stacks, &mut self.path);
        self.track_event(slice.start, |message| {
            message.uint(event::TYPE, event::SLICE_BEGIN);
            message.uint(event::TRACK_UUID, uuid);
            message.uint(event::NAME_IID, name);
            message.uint(event::CATEGORY_IIDS, category);
            annotate(message, &facts);
            if let Some(stack) = stack {
                message.uint(event::CALLSTACK_IID, stack);
            }
        });
        self.track_event(slice.end, |message| {
            message.uint(event::TYPE, event::SLICE_END);
            message.uint(event::TRACK_UUID, uuid);
        });
        self.flush_some()
    }

    fn instant(&mut self, instant: &Instant<'_>, stacks: &Stacks) -> io::Result<()> {
        let uuid = self.thread_uuid(instant.thread);
        let (name, category) = (self.state.name(Kind::Event, instant.name), self.state.name(Kind::Category, instant.category));
        let facts = self.facts(instant.facts);
        let stack = self.state.stack(instant.node, false, stacks, &mut self.path);
        self.track_event(instant.at, |message| {
            message.uint(event::TYPE, event::INSTANT);
            message.uint(event::TRACK_UUID, uuid);
            message.uint(event::NAME_IID, name);
            message.uint(event::CATEGORY_IIDS, category);
            annotate(message, &facts);
            if let Some(stack) = stack {
                message.uint(event::CALLSTACK_IID, stack);
            }
        });
        self.flush_some()
    }

    fn counter(&mut self, counter: &Counter<'_>, at: i64, value: f64) -> io::Result<()> {
        let uuid = self.counter_track(counter);
        self.track_event(at, |message| {
            message.uint(event::TYPE, event::COUNTER);
            message.uint(event::TRACK_UUID, uuid);
            message.double(event::DOUBLE_COUNTER_VALUE, value);
        });
        self.flush_some()
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.end_calls(stacks);
        self.begin();
        Ok(())
    }

    fn finish(&mut self, _end: i64, stacks: &Stacks) -> io::Result<()> {
        self.end_calls(stacks);
        self.flush()?;
        self.out.flush()
    }
}
