//! Allocations by stack, as a heap profile.
//!
//! A reader takes the difference between two dumps for a stack: both contain the totals since the start of the sequence.

use foldhash::HashMap;

use crate::clr::payload::BYTES_PER_ALLOCATION_EVENT;
use crate::perfetto::field::{packet, profile};

use super::super::stacks::{FrameId, NodeId, Stacks};
use super::super::writer::Allocation;
use super::packets::Packets;
use super::tracks::Tracks;

/// Interval between dumps, nanoseconds.
const DUMP_INTERVAL: i64 = 1_000_000_000;
/// Upper bound for a single allocation, in bytes.
const MAX_ALLOCATION: u64 = 1 << 47;
/// Upper bound for the number of stacks in a sequence.
const MAX_STACKS: u64 = 1 << 16;
const ALLOCATION_HEAP: &str = "dotnet.alloc";

/// Totals by process and stack.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    sums: HashMap<(u32, NodeId), Sum>,
    /// Keys of the totals that changed since the previous dump.
    changed: Vec<(u32, NodeId)>,
    /// Number of dumps written.
    index: u64,
    /// Time of the previous dump, or of the first allocation.
    since: Option<i64>,
    newest: i64,
}

#[derive(Debug, Default)]
struct Sum {
    bytes: u64,
    count: u64,
    has_changed: bool,
}

impl Allocations {
    /// Adds an allocation, and returns whether a dump is due.
    pub(super) fn add(&mut self, allocation: &Allocation) -> bool {
        let Allocation { process, at, bytes, node } = *allocation;
        let sum = self.sums.entry((process, node)).or_default();
        // Perfetto's values are signed, and are summed over all stacks.
        sum.bytes = sum.bytes.saturating_add(bytes.min(MAX_ALLOCATION)).min(i64::MAX as u64 / MAX_STACKS);
        sum.count += 1;
        if !std::mem::replace(&mut sum.has_changed, true) {
            self.changed.push((process, node));
        }
        self.newest = self.newest.max(at);
        at.saturating_sub(*self.since.get_or_insert(at)) >= DUMP_INTERVAL
    }

    /// Writes the totals that changed since the previous dump.
    pub(super) fn write(&mut self, tracks: &Tracks, packets: &mut Packets, stacks: &Stacks, path: &mut Vec<FrameId>) {
        self.since = Some(self.newest);
        self.changed.sort_unstable();
        let (at, sums) = (packets.time(self.newest), &mut self.sums);
        for of_process in self.changed.chunk_by(|(one, _), (other, _)| one == other) {
            let pid = match of_process[0].0 {
                0 => tracks.subject.header.process_id,
                pid => pid,
            };
            let samples: Vec<_> = of_process
                .iter()
                .filter_map(|key| {
                    let sum = sums.get_mut(key)?;
                    sum.has_changed = false;
                    // Allocations without a stack are left out.
                    Some((packets.state.stack(key.1, false, stacks, path)?, sum.bytes, sum.count))
                })
                .collect();
            let index = self.index;
            self.index += 1;
            packets.packet(packet::NEEDS_INCREMENTAL_STATE, Some(self.newest), |packet| {
                packet.message(packet::PROFILE_PACKET, |dump| {
                    dump.uint(profile::INDEX, index);
                    dump.message(profile::PROCESS_DUMPS, |process| {
                        process.uint(profile::PID, pid.into());
                        process.text(profile::HEAP_NAME, ALLOCATION_HEAP);
                        process.uint(profile::SAMPLING_INTERVAL_BYTES, BYTES_PER_ALLOCATION_EVENT.into());
                        process.uint(profile::TIMESTAMP, at);
                        for (stack, bytes, count) in &samples {
                            process.message(profile::SAMPLES, |sample| {
                                sample.uint(profile::CALLSTACK_ID, *stack);
                                sample.uint(profile::SELF_ALLOCATED, *bytes);
                                sample.uint(profile::ALLOC_COUNT, *count);
                                sample.uint(profile::SAMPLE_TIMESTAMP, at);
                            });
                        }
                    });
                });
            });
        }
        self.changed.clear();
    }
}
