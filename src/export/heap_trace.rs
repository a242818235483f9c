//! A heap as a Perfetto trace, for its heap explorer.
//!
//! Source: `protos/perfetto/trace/profiling/heap_graph.proto` in google/perfetto, version 59. Its root types are those of Java; each .NET root is
//! mapped to the most similar one. Nothing but the graph is kept in memory: addresses serve as object ids.

use std::io::Write;

use crate::perfetto::Message;
use crate::perfetto::field::{clock, heap, packet, track};

use super::gcdump::{DumpInfo, GraphError};
use super::graph::{HeapGraph, Root};

/// The packet sequence of the heap.
const SEQUENCE_ID: u64 = 0x4000_0001;
/// Arbitrary id that no other track has.
const PROCESS_TRACK_UUID: u64 = 1;
/// Size of a packet in bytes, unless a single object has more references.
const MAX_PACKET_BYTES: usize = 400 << 10;

impl HeapGraph {
    /// Writes the trace. The graph must be complete: if the walk was aborted or lost events, references may lead anywhere.
    ///
    /// # Errors
    /// The trace cannot be written, or the graph exceeded its memory limit.
    pub fn write_trace(&self, facts: &DumpInfo, out: &mut impl Write) -> Result<(), GraphError> {
        if self.is_full() {
            return Err(GraphError::TooLarge);
        }
        let at = facts.collected_unix_ms.max(0) as u64 * 1_000_000;
        let mut parts = PacketWriter { out, pid: facts.process_id.into(), at, pending_fields: Vec::new(), packet: Vec::new(), index: 0 };
        parts.begin(&facts.process_name)?;
        for (number, kind) in (1..).zip(&self.types) {
            parts.add(heap::TYPES, |entry| {
                entry.uint(heap::TYPE_ID, number);
                entry.text(heap::CLASS_NAME, if kind.name.is_empty() { "(unknown type)" } else { &kind.name });
            })?;
        }
        let dependents = self.sorted_dependents();
        for (address, node, targets) in self.objects(&dependents) {
            parts.add(heap::OBJECTS, |object| {
                object.uint(heap::OBJECT_ID, address);
                object.uint(heap::OBJECT_TYPE_ID, u64::from(node.kind) + 1);
                object.uint(heap::SELF_SIZE, node.size.into());
                // The walk does not report field names, but there must be one per reference.
                object.packed(heap::REFERENCE_FIELD_ID, targets.clone().map(|_| 0));
                object.packed(heap::REFERENCE_OBJECT_ID, targets);
            })?;
        }
        let roots = self.roots.iter().map(|(object, root)| (*object, root_type(*root)));
        let statics = self.statics.iter().map(|found| (found.object, heap::ROOT_STICKY_CLASS));
        for (object, kind) in roots.chain(statics) {
            parts.add(heap::ROOTS, |root| {
                root.packed(heap::ROOT_OBJECT_IDS, std::iter::once(object));
                root.uint(heap::ROOT_TYPE, kind);
            })?;
        }
        parts.put(false)?;
        Ok(out.flush()?)
    }
}

fn root_type(root: Root) -> u64 {
    match root {
        Root::Local => heap::ROOT_JAVA_FRAME,
        Root::Finalizer => heap::ROOT_FINALIZING,
        Root::Pinned | Root::Strong => heap::ROOT_JNI_GLOBAL,
        Root::Reference | Root::Other => heap::ROOT_UNKNOWN,
    }
}

/// Writer of the heap's packets, which form one heap graph.
struct PacketWriter<'a, W> {
    out: &'a mut W,
    pid: u64,
    at: u64,
    /// Fields of the next packet.
    pending_fields: Vec<u8>,
    packet: Vec<u8>,
    index: u64,
}

impl<W: Write> PacketWriter<'_, W> {
    /// Writes the start of the trace. The boot time is unknown: all clocks are set to the wall clock time.
    fn begin(&mut self, name: &str) -> Result<(), GraphError> {
        let Self { pid, at, packet, .. } = self;
        Message::new(packet).message(packet::PACKET, |packet| {
            packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
            packet.uint(packet::SEQUENCE_FLAGS, packet::INCREMENTAL_STATE_CLEARED);
            packet.uint(packet::FIRST_PACKET_ON_SEQUENCE, 1);
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for id in [clock::REALTIME, clock::MONOTONIC, clock::BOOTTIME] {
                    snapshot.message(clock::CLOCKS, |entry| {
                        entry.uint(clock::CLOCK_ID, id);
                        entry.uint(clock::TIMESTAMP, *at);
                    });
                }
                snapshot.uint(clock::PRIMARY_TRACE_CLOCK, clock::BOOTTIME);
            });
        });
        Message::new(packet).message(packet::PACKET, |packet| {
            packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, PROCESS_TRACK_UUID);
                descriptor.message(track::PROCESS, |process| {
                    process.uint(track::PID, *pid);
                    process.text(track::PROCESS_NAME, name);
                });
            });
        });
        self.write()
    }

    fn write(&mut self) -> Result<(), GraphError> {
        self.out.write_all(&self.packet)?;
        self.packet.clear();
        Ok(())
    }

    fn add(&mut self, field: u32, fill: impl FnOnce(&mut Message<'_>)) -> Result<(), GraphError> {
        Message::new(&mut self.pending_fields).message(field, fill);
        if self.pending_fields.len() >= MAX_PACKET_BYTES { self.put(true) } else { Ok(()) }
    }

    /// Writes the collected fields as a packet. `continues` means that more packets follow.
    fn put(&mut self, continues: bool) -> Result<(), GraphError> {
        let Self { pid, at, pending_fields, packet, index, .. } = self;
        Message::new(packet).message(packet::PACKET, |packet| {
            packet.uint(packet::TIMESTAMP, *at);
            packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
            packet.message(packet::HEAP_GRAPH, |graph| {
                graph.uint(heap::PID, *pid);
                graph.fields(pending_fields);
                graph.uint(heap::CONTINUED, continues.into());
                graph.uint(heap::INDEX, *index);
            });
        });
        pending_fields.clear();
        *index += 1;
        self.write()
    }
}
