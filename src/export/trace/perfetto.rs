//! Perfetto's trace format.
//!
//! Everything of a recording is on one packet sequence, with names, frames and stacks interned. Source: `docs/reference/synthetic-track-event.md`
//! and the messages of `protos/perfetto/trace` in google/perfetto, version 59.

mod allocations;
mod live;
mod packets;
mod state;
mod tracks;

use std::io::{self, Write};

use crate::nettrace::ThreadId;
use crate::perfetto::field::{event, packet, sample};

pub use self::live::notices;

use self::allocations::Allocations;
use self::packets::Packets;
use self::state::{Kind, truncated};
use self::tracks::Tracks;
use super::spans::{Calls, Edge};
use super::stacks::{FrameId, Stacks};
use super::writer::{Allocation, ArgumentValue, Counter, LivePackets, Sample, Subject, TrackEvent, Writer};

/// Size of the write buffer, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes a recording as a Perfetto trace.
pub(super) struct Perfetto<W> {
    out: W,
    packets: Packets,
    tracks: Tracks,
    /// The open calls, if samples are also written as slices.
    calls: Option<Calls>,
    allocations: Allocations,
    path: Vec<FrameId>,
    /// Ids of the names of an event's arguments; kept to reuse its memory.
    labels: Vec<u64>,
    /// Whether packets may lack the descriptions in earlier ones.
    was_restarted: bool,
}

impl<W: Write> Perfetto<W> {
    /// Starts the part of a trace with this index among the recordings. With `with_calls`, samples are also written as slices.
    pub(super) fn new(out: W, subject: Subject, number: u32, with_calls: bool) -> io::Result<Self> {
        let mut packets = Packets::new(&subject.header, number);
        if number == 0 {
            packets.clock_snapshot(subject.header.sync_utc);
        }
        let mut tracks = Tracks::new(subject);
        tracks.process(0, &mut packets);
        let calls = with_calls.then(Calls::default);
        let mut perfetto = Self {
            out,
            packets,
            tracks,
            calls,
            allocations: Allocations::default(),
            path: Vec::new(),
            labels: Vec::new(),
            was_restarted: false,
        };
        perfetto.write_out()?;
        Ok(perfetto)
    }

    /// Writes the begin or end of a call, on a track below that of the thread: other slices of the thread do not nest with calls.
    fn edge(&mut self, thread: ThreadId, at: i64, edge: Edge, stacks: &Stacks) -> io::Result<()> {
        let uuid = self.tracks.calls(thread, &mut self.packets);
        let name = match edge {
            Edge::Begin(frame) => Some(self.packets.state.name(Kind::Event, &stacks.name(frame))),
            Edge::End(_) => None,
        };
        self.packets.track_event(at, |message| {
            message.uint(event::TYPE, if name.is_some() { event::SLICE_BEGIN } else { event::SLICE_END });
            message.uint(event::TRACK_UUID, uuid);
            if let Some(name) = name {
                message.uint(event::NAME_IID, name);
            }
        });
        Ok(())
    }

    /// Writes pending allocations and ends all calls, before the stacks that they reference are reset.
    fn end_references(&mut self, stacks: &Stacks) -> io::Result<()> {
        let calls = self.calls.as_mut().map(std::mem::take).unwrap_or_default();
        calls.end(|thread, at, edge| self.edge(thread, at, edge, stacks))?;
        self.allocations.write(&self.tracks, &mut self.packets, stacks, &mut self.path);
        Ok(())
    }

    /// Writes the packets so far. Those for a tracing service are taken instead.
    fn write_out(&mut self) -> io::Result<()> {
        if !self.packets.is_live() {
            self.out.write_all(&self.packets.bytes)?;
            self.packets.bytes.clear();
        }
        Ok(())
    }

    fn flush_if_full(&mut self, stacks: &Stacks) -> io::Result<()> {
        if self.packets.state.is_full() {
            self.stacks_cleared(stacks)?;
        }
        if self.packets.bytes.len() >= BUFFER_BYTES { self.write_out() } else { Ok(()) }
    }
}

impl<W: Write> Writer for Perfetto<W> {
    fn thread(&mut self, thread: ThreadId, name: &str) -> io::Result<()> {
        self.tracks.thread(thread, name, &mut self.packets);
        Ok(())
    }

    fn sample(&mut self, sampled: &Sample, stacks: &Stacks) -> io::Result<()> {
        let pid = self.tracks.subject.pid(sampled.thread);
        let stack = self.packets.state.stack(sampled.node, sampled.is_native, stacks, &mut self.path);
        self.packets.packet(packet::NEEDS_INCREMENTAL_STATE, Some(sampled.at), |packet| {
            packet.message(packet::PERF_SAMPLE, |message| {
                message.uint(sample::PID, pid.into());
                message.uint(sample::TID, tracks::tid(sampled.thread));
                if let Some(stack) = stack {
                    message.uint(sample::CALLSTACK_IID, stack);
                }
                message.uint(sample::CPU_MODE, sample::USER);
            });
        });
        if let Some(mut calls) = self.calls.take() {
            calls.sample(sampled, stacks, |thread, at, edge| self.edge(thread, at, edge, stacks))?;
            self.calls = Some(calls);
        }
        self.flush_if_full(stacks)
    }

    fn event(&mut self, shown: &TrackEvent<'_>, stacks: &Stacks) -> io::Result<()> {
        let Self { packets, tracks, path, labels, .. } = self;
        let uuid = tracks.of_event(shown, packets);
        let state = &mut packets.state;
        let (name, category) = (state.name(Kind::Event, shown.name), state.label(Kind::Category, shown.category));
        labels.clear();
        // Most events have none, for which `extend` would take longer.
        for (name, _) in shown.arguments {
            labels.push(state.label(Kind::Annotation, name));
        }
        for (name, _) in shown.fields {
            labels.push(state.name(Kind::Annotation, name));
        }
        let stack = state.stack(shown.node, false, stacks, path);
        packets.track_event(shown.start, |message| {
            message.uint(event::TYPE, if shown.end.is_some() { event::SLICE_BEGIN } else { event::INSTANT });
            message.uint(event::TRACK_UUID, uuid);
            message.uint(event::NAME_IID, name);
            message.uint(event::CATEGORY_IIDS, category);
            let fields = shown.fields.iter().map(|(_, value)| ArgumentValue::Text(value));
            for (label, argument) in labels.iter().zip(shown.arguments.iter().map(|(_, argument)| *argument).chain(fields)) {
                message.message(event::DEBUG_ANNOTATIONS, |annotation| {
                    annotation.uint(event::ANNOTATION_NAME_IID, *label);
                    match argument {
                        ArgumentValue::Count(value) => annotation.uint(event::UINT_VALUE, value),
                        ArgumentValue::Number(value) => annotation.double(event::DOUBLE_VALUE, value),
                        ArgumentValue::Flag(value) => annotation.uint(event::BOOL_VALUE, u64::from(value)),
                        ArgumentValue::Text(value) => annotation.text(event::STRING_VALUE, truncated(value)),
                    }
                });
            }
            shown.flows.iter().filter(|flow| **flow != 0).for_each(|flow| message.fixed(event::FLOW_IDS, *flow));
            if let Some(stack) = stack {
                message.uint(event::CALLSTACK_IID, stack);
            }
        });
        if let Some(end) = shown.end {
            packets.track_event(end, |message| {
                message.uint(event::TYPE, event::SLICE_END);
                message.uint(event::TRACK_UUID, uuid);
            });
        }
        self.flush_if_full(stacks)
    }

    fn counter(&mut self, process: u32, counter: &Counter<'_>, at: i64, value: f64) -> io::Result<()> {
        let uuid = self.tracks.of_counter(process, counter, &mut self.packets);
        self.packets.track_event(at, |message| {
            message.uint(event::TYPE, event::COUNTER);
            message.uint(event::TRACK_UUID, uuid);
            message.double(event::DOUBLE_COUNTER_VALUE, value);
        });
        if self.packets.bytes.len() >= BUFFER_BYTES { self.write_out() } else { Ok(()) }
    }

    fn has_allocations(&self) -> bool {
        // Values are cumulative along a sequence, which restarts if a service may lose packets: live traces only contain the rate.
        !self.packets.is_live()
    }

    fn allocation(&mut self, allocation: &Allocation, stacks: &Stacks) -> io::Result<()> {
        if self.allocations.add(allocation) {
            self.allocations.write(&self.tracks, &mut self.packets, stacks, &mut self.path);
        }
        self.flush_if_full(stacks)
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.end_references(stacks)?;
        self.allocations = Allocations::default();
        self.packets.begin();
        Ok(())
    }

    fn take(&mut self) -> LivePackets {
        self.packets.take()
    }

    fn restart(&mut self, is_incomplete: bool) -> io::Result<()> {
        self.restart_sequence(is_incomplete);
        Ok(())
    }

    fn finish(&mut self, end: i64, stacks: &Stacks) -> io::Result<()> {
        self.end_references(stacks)?;
        self.write_late_names(end, stacks);
        self.write_out()?;
        self.out.flush()
    }
}
