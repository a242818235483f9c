//! Differences for traces that go to a tracing service live: the service assigns sequence ids and has the clocks, readers may lack earlier packets,
//! and the names of methods follow at the end.

use std::hash::{BuildHasher, Hash};
use std::io::Write;

use foldhash::fast::FixedState;

use super::super::stacks::Stacks;
use super::super::writer::Subject;
use super::allocations::Allocations;
use super::packets::Packets;
use super::state::Kind;
use super::tracks::Tracks;
use super::{Perfetto, truncated};
use crate::model::Counted;
use crate::perfetto::Message;
use crate::perfetto::field::{clock, event, interned, packet, symbols, track};

/// Number of names per packet.
const NAMES_PER_PACKET: usize = 200;
/// First id of the frames and stacks for late names: larger than any id of the stream.
const FIRST_NAME_ID: u64 = 1 << 40;

impl<W: Write> Perfetto<W> {
    /// Starts output for a service. `started` distinguishes the process from others with the same pid.
    pub(in crate::export::trace) fn live(out: W, subject: Subject, started: i64, label: &str) -> Self {
        let path = format!("code of process {}", subject.header.process_id);
        let mut packets = Packets::live(&subject.header, path);
        let mut tracks = Tracks::live(subject, started, label);
        tracks.process(0, &mut packets);
        let (path, labels) = (Vec::new(), Vec::new());
        Self { out, packets, tracks, calls: None, allocations: Allocations::default(), path, labels, was_restarted: false }
    }

    /// Restarts the sequence: everything that later packets reference is described again.
    pub(super) fn restart_sequence(&mut self, is_incomplete: bool) {
        self.was_restarted = true;
        self.packets.clear_state(|packet| {
            if is_incomplete {
                packet.uint(packet::PREVIOUS_PACKET_DROPPED, 1);
            }
        });
        self.tracks.forget();
        self.tracks.process(0, &mut self.packets);
    }

    /// Names the code whose methods were unknown when it was written.
    pub(super) fn write_late_names(&mut self, end: i64, stacks: &Stacks) {
        let Some(late) = self.packets.state.late.take() else { return };
        // Readers prepend a slash to the path of a mapping.
        let path = format!("/{}", late.path);
        let mut addresses: Vec<u64> = late.addresses.iter().copied().collect();
        addresses.sort_unstable();
        let was_restarted = self.was_restarted;
        if was_restarted {
            self.restart_sequence(false);
        }
        for (addresses, first) in addresses.chunks(NAMES_PER_PACKET).zip((FIRST_NAME_ID..).step_by(NAMES_PER_PACKET)) {
            if was_restarted {
                self.redefine_frames(&late.path, addresses, first, end);
            }
            self.packets.packet(0, None, |packet| {
                packet.message(packet::MODULE_SYMBOLS, |module| {
                    module.text(symbols::PATH, &path);
                    for address in addresses {
                        let Some(name) = stacks.method_at(*address) else { continue };
                        module.message(symbols::ADDRESS_SYMBOLS, |entry| {
                            entry.uint(symbols::ADDRESS, *address);
                            entry.message(symbols::LINES, |line| line.text(symbols::FUNCTION_NAME, truncated(&name)));
                        });
                    }
                });
            });
        }
    }

    /// Describes the frames again, as the stack of a self-explanatory event. Readers count a name without a frame as an error, and in a ring buffer
    /// the older packets with the frames are overwritten. `first` is the id of the stack and of its first frame.
    fn redefine_frames(&mut self, path: &str, addresses: &[u64], first: u64, at: i64) {
        let uuid = self.tracks.of_runtime(0, "Method names", 5, &mut self.packets);
        let state = &mut self.packets.state;
        let name = state.name(Kind::Event, &format!("{:#} of this trace", Counted(addresses.len() as u64, "code address")));
        let mapping = state.mapping(path);
        let mut pending = Message::new(&mut state.pending);
        for (address, id) in addresses.iter().zip(first..) {
            pending.message(interned::FRAMES, |entry| {
                entry.uint(interned::IID, id);
                entry.uint(interned::MAPPING_ID, mapping);
                entry.uint(interned::REL_PC, *address);
            });
        }
        pending.message(interned::CALLSTACKS, |entry| {
            entry.uint(interned::IID, first);
            (first..).take(addresses.len()).for_each(|id| entry.uint(interned::FRAME_IDS, id));
        });
        self.packets.track_event(at, |message| {
            message.uint(event::TYPE, event::INSTANT);
            message.uint(event::TRACK_UUID, uuid);
            message.uint(event::NAME_IID, name);
            message.uint(event::CALLSTACK_IID, first);
        });
    }
}

/// Returns packets that show `sentences` at a time in nanoseconds of the monotonic clock, on a track of dn-top itself, each as a `packet` field of
/// a `Trace`. They need a sequence of their own.
pub fn notices(at: u64, sentences: &[impl AsRef<str> + Hash]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let uuid = FixedState::with_seed(0).hash_one(("notices", at, sentences)) | 1;
    let mut trace = Message::new(&mut bytes);
    trace.message(packet::PACKET, |packet| {
        packet.uint(packet::SEQUENCE_FLAGS, packet::INCREMENTAL_STATE_CLEARED);
        packet.message(packet::TRACE_PACKET_DEFAULTS, |defaults| defaults.uint(packet::TIMESTAMP_CLOCK_ID, clock::MONOTONIC));
        packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(track::UUID, uuid);
            descriptor.text(track::NAME, "dn-top");
        });
    });
    for sentence in sentences {
        trace.message(packet::PACKET, |packet| {
            packet.uint(packet::TIMESTAMP, at);
            packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_INCREMENTAL_STATE);
            packet.message(packet::TRACK_EVENT, |message| {
                message.uint(event::TYPE, event::INSTANT);
                message.uint(event::TRACK_UUID, uuid);
                message.text(event::NAME, truncated(sentence.as_ref()));
            });
        });
    }
    bytes
}
