//! The packets of a recording.

use crate::nettrace::{TraceHeader, UtcTime};
use crate::perfetto::Message;
use crate::perfetto::field::{clock, packet, track};

use super::super::writer::LivePackets;
use super::state::State;

/// First id of our packet sequences. Those of other traces are lower, so that an export can be appended to one.
const FIRST_SEQUENCE: u32 = 0x4000_0001;
/// Distance between the sequences of one recording, which leaves room for those of others.
const STRIDE: u32 = 1 << 16;

/// Appends packets to a buffer, each preceded by the definitions that it references.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) bytes: Vec<u8>,
    /// Number of packets since the last [`take`](Self::take).
    count: u64,
    pub(super) state: State,
    /// Id of the packet sequence: each recording of a trace has its own, and a new one after each reset of its state. 0 if a tracing service
    /// assigns it.
    sequence: u32,
    /// Start of the session in Perfetto's time, nanoseconds.
    origin: i64,
}

impl Packets {
    /// Starts the part of a trace with this index among the recordings.
    pub(super) fn new(header: &TraceHeader, number: u32) -> Self {
        let sequence = FIRST_SEQUENCE.wrapping_add(number % STRIDE).wrapping_sub(STRIDE);
        let origin = header.nanoseconds_between(0, header.sync_ticks);
        let mut packets = Self { bytes: Vec::new(), count: 0, state: State::default(), sequence, origin };
        packets.begin();
        packets
    }

    /// Starts packets for a tracing service, which assigns sequence ids itself. Code is described by `path`, and its methods are named at the end.
    pub(super) fn live(header: &TraceHeader, path: String) -> Self {
        let origin = header.nanoseconds_between(0, header.sync_ticks);
        let mut packets = Self { bytes: Vec::new(), count: 0, state: State::with_late_names(path), sequence: 0, origin };
        packets.clear_state(|packet| packet.uint(packet::FIRST_PACKET_ON_SEQUENCE, 1));
        packets
    }

    /// Starts a new sequence, with nothing interned and no allocations counted.
    pub(super) fn begin(&mut self) {
        if self.sequence == 0 {
            return self.clear_state(|_| {});
        }
        let next = self.sequence.wrapping_add(STRIDE);
        self.sequence = if next < FIRST_SEQUENCE { next.wrapping_add(FIRST_SEQUENCE) } else { next };
        self.clear_state(|packet| packet.uint(packet::FIRST_PACKET_ON_SEQUENCE, 1));
    }

    /// Resets the interned state of the sequence.
    pub(super) fn clear_state(&mut self, fill: impl FnOnce(&mut Message<'_>)) {
        self.state.clear();
        self.packet(packet::INCREMENTAL_STATE_CLEARED, None, |packet| {
            fill(packet);
            packet.message(packet::TRACE_PACKET_DEFAULTS, |defaults| defaults.uint(packet::TIMESTAMP_CLOCK_ID, clock::MONOTONIC));
        });
    }

    /// Writes the clocks at the start. The time that the machine was suspended is unknown: the boot time clock is set to the same time.
    pub(super) fn clock_snapshot(&mut self, calendar: Option<UtcTime>) {
        let monotonic = self.time(0);
        let calendar = calendar.map(|time| time.unix_ms().max(0) as u64 * 1_000_000);
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

    /// Takes all packets.
    pub(super) fn take(&mut self) -> LivePackets {
        // The next packets usually take as much space.
        let next = Vec::with_capacity(self.bytes.len());
        LivePackets { bytes: std::mem::replace(&mut self.bytes, next), count: std::mem::take(&mut self.count) }
    }

    /// Whether the packets are for a tracing service.
    pub(super) fn is_live(&self) -> bool {
        self.sequence == 0
    }

    /// Converts a time to Perfetto's time, nanoseconds.
    pub(super) fn time(&self, at: i64) -> u64 {
        self.origin.saturating_add(at).max(0) as u64
    }

    /// Appends a packet.
    pub(super) fn packet(&mut self, flags: u64, at: Option<i64>, fill: impl FnOnce(&mut Message<'_>)) {
        let at = at.map(|at| self.time(at));
        self.count += 1;
        let Self { bytes, state, sequence, .. } = self;
        Message::new(bytes).message(packet::PACKET, |packet| {
            if let Some(at) = at {
                packet.uint(packet::TIMESTAMP, at);
            }
            if *sequence != 0 {
                packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, (*sequence).into());
            }
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

    /// Appends a packet with a track event.
    pub(super) fn track_event(&mut self, at: i64, fill: impl FnOnce(&mut Message<'_>)) {
        self.packet(packet::NEEDS_INCREMENTAL_STATE, Some(at), |packet| packet.message(packet::TRACK_EVENT, fill));
    }

    /// Appends a packet that describes a track.
    pub(super) fn descriptor(&mut self, uuid: u64, parent: u64, fill: impl FnOnce(&mut Message<'_>)) {
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
}
