//! The tracks of a recording: processes, threads, and the groups below them.

use std::hash::{BuildHasher, Hash};

use foldhash::HashSet;
use foldhash::fast::FixedState;

use crate::nettrace::ThreadId;
use crate::perfetto::Message;
use crate::perfetto::field::track;

use super::super::writer::{Counter, Subject, Track, TrackEvent};
use super::packets::Packets;
use super::state::truncated;

/// Maximum number of remembered tracks; beyond it tracks are described again, which does no harm.
const MAX_TRACKS: usize = 1 << 16;

/// Describes each track before the first packet that references it.
#[derive(Debug)]
pub(super) struct Tracks {
    pub(super) subject: Subject,
    /// Distinguishes processes with the same pid, unless the subject has a better value.
    incarnation: i64,
    /// Distinguishes tracks that each recording of a process has separately.
    recording: i64,
    /// Shown beside the process name, for which the kernel may have a better value.
    label: String,
    described: HashSet<u64>,
}

/// Returns the thread id for Perfetto: a positive 32-bit number.
pub(super) fn tid(thread: ThreadId) -> u64 {
    i32::try_from(thread.thread).map_or(0, |tid| tid as u64)
}

impl Tracks {
    pub(super) fn new(subject: Subject) -> Self {
        let recording = subject.header.sync_ticks;
        Self { incarnation: recording, recording, subject, label: String::new(), described: HashSet::default() }
    }

    /// Creates the tracks of a process with this start time.
    pub(super) fn live(subject: Subject, started: i64, label: &str) -> Self {
        Self { incarnation: started, label: label.to_owned(), ..Self::new(subject) }
    }

    /// Forgets all tracks, so that they are described again.
    pub(super) fn forget(&mut self) {
        self.described.clear();
    }

    /// Returns an id that is unique within the trace. It has 56 bits: a larger one would take two more bytes in each packet.
    fn uuid(&self, process: u32, what: impl Hash) -> u64 {
        let pid = if process == 0 { self.subject.header.process_id } else { process };
        let incarnation = self.subject.incarnations.get(&pid).unwrap_or(&self.incarnation);
        FixedState::with_seed(0).hash_one((pid, incarnation, what)) >> 8 | 1
    }

    fn of_thread(&self, what: &str, thread: ThreadId) -> u64 {
        let reuse_count = match thread.reuse_count {
            0 | u32::MAX => None,
            // Each recording counts the reuses of a thread id separately.
            reuse_count => Some((reuse_count, self.recording)),
        };
        self.uuid(thread.process, (what, thread.thread, reuse_count))
    }

    /// Marks a track as described, and returns whether it was new.
    fn is_new(&mut self, uuid: u64) -> bool {
        if self.described.len() >= MAX_TRACKS {
            self.described.clear();
        }
        self.described.insert(uuid)
    }

    /// Returns the track of a process, by the pid in thread ids; 0 if there is none.
    pub(super) fn process(&mut self, process: u32, packets: &mut Packets) -> u64 {
        let pid = if process == 0 { self.subject.header.process_id } else { process };
        if pid == 0 {
            return 0;
        }
        let uuid = self.uuid(pid, "process");
        // An earlier recording with this process may have a better name for it, or nothing that needs its track.
        let is_named = process != 0 && self.subject.incarnations.get(&pid).is_some_and(|first| *first != self.recording);
        if self.is_new(uuid) {
            let (Subject { command_line, runtime, processes, .. }, label) = (&self.subject, &self.label);
            let is_subject = process == 0;
            let name = match processes.get(&pid) {
                _ if is_subject => self.subject.name(),
                Some(name) if !is_named => name,
                _ => "",
            };
            let words = if is_subject { command_line.as_str() } else { "" };
            packets.descriptor(uuid, 0, |descriptor| {
                descriptor.message(track::PROCESS, |process| {
                    process.uint(track::PID, pid.into());
                    words
                        .split(' ')
                        .filter(|word| !word.is_empty())
                        .take(64)
                        .for_each(|word| process.text(track::CMDLINE, truncated(word)));
                    if !name.is_empty() {
                        process.text(track::PROCESS_NAME, truncated(name));
                    }
                    if is_subject {
                        if !label.is_empty() {
                            process.text(track::PROCESS_LABELS, truncated(label));
                        }
                        process.text(track::PROCESS_LABELS, format!(".NET {runtime}").trim_end());
                    }
                });
            });
        }
        uuid
    }

    /// Describes a thread, again if its name has become known.
    pub(super) fn thread(&mut self, thread: ThreadId, name: &str, packets: &mut Packets) {
        self.process(thread.process, packets);
        let (uuid, pid) = (self.of_thread("thread", thread), self.subject.pid(thread));
        if self.is_new(uuid) || !name.is_empty() {
            packets.descriptor(uuid, 0, |descriptor| {
                descriptor.message(track::THREAD, |descriptor| {
                    descriptor.uint(track::PID, pid.into());
                    descriptor.uint(track::TID, tid(thread));
                    if !name.is_empty() {
                        descriptor.text(track::THREAD_NAME, truncated(name));
                    }
                });
            });
        }
    }

    /// Returns the track of a thread's sampled calls.
    pub(super) fn calls(&mut self, thread: ThreadId, packets: &mut Packets) -> u64 {
        let (parent, uuid) = (self.of_thread("thread", thread), self.of_thread("calls", thread));
        self.describe_once(uuid, parent, packets, |descriptor| descriptor.text(track::NAME, "Calls (sampled)"))
    }

    fn describe_once(&mut self, uuid: u64, parent: u64, packets: &mut Packets, fill: impl FnOnce(&mut Message<'_>)) -> u64 {
        if self.is_new(uuid) {
            packets.descriptor(uuid, parent, fill);
        }
        uuid
    }

    /// Returns a track that contains other tracks or slices, with its rank among its siblings.
    fn group(&mut self, name: &str, parent: u64, rank: u64, packets: &mut Packets) -> u64 {
        let of = if parent == 0 { self.recording } else { 0 };
        let uuid = FixedState::with_seed(0).hash_one(("group", parent, name, of)) >> 8 | 1;
        self.describe_once(uuid, parent, packets, |descriptor| {
            descriptor.text(track::NAME, truncated(name));
            descriptor.uint(track::CHILD_ORDERING, track::EXPLICIT);
            descriptor.uint(track::SIBLING_ORDER_RANK, rank);
        })
    }

    /// Returns a group for what does not belong to a single thread.
    pub(super) fn of_runtime(&mut self, process: u32, name: &str, rank: u64, packets: &mut Packets) -> u64 {
        let process = self.process(process, packets);
        let runtime = self.group(".NET", process, 0, packets);
        self.group(name, runtime, rank, packets)
    }

    fn of_collector(&mut self, process: u32, name: &str, rank: u64, packets: &mut Packets) -> u64 {
        let collector = self.of_runtime(process, "Garbage collection", 1, packets);
        if name.is_empty() { collector } else { self.group(name, collector, rank, packets) }
    }

    /// Returns the track of an event.
    pub(super) fn of_event(&mut self, event: &TrackEvent<'_>, packets: &mut Packets) -> u64 {
        let process = event.thread.process;
        match event.track {
            Track::Thread => self.of_thread("thread", event.thread),
            Track::LostEvents => {
                let lost = self.of_runtime(process, "Lost events", 0, packets);
                let uuid = self.uuid(process, ("lost", event.thread, self.recording));
                self.describe_once(uuid, lost, packets, |descriptor| descriptor.text(track::NAME, &format!("Thread {}", event.thread)))
            }
            Track::LostPackets => self.of_runtime(process, "Lost packets", 0, packets),
            Track::GcPauses => self.of_collector(process, "Pauses", 0, packets),
            Track::BackgroundGc => self.of_collector(process, "Background", 1, packets),
            Track::ThreadPool => {
                let pool = self.of_runtime(process, "Thread pool", 3, packets);
                self.group("Starvation", pool, 1, packets)
            }
            Track::Operation { name, lane } => {
                let operations = self.of_runtime(process, "Requests", 2, packets);
                let uuid = self.uuid(process, ("operation", name, lane, self.recording));
                // Sibling tracks with the same name are drawn as lanes of one track.
                self.describe_once(uuid, operations, packets, |descriptor| descriptor.text(track::NAME, truncated(name)))
            }
        }
    }

    /// Returns the track of a counter.
    pub(super) fn of_counter(&mut self, process: u32, counter: &Counter<'_>, packets: &mut Packets) -> u64 {
        let uuid = self.uuid(process, ("counter", counter));
        if self.described.contains(&uuid) {
            return uuid;
        }
        let (parent, name, unit) = match *counter {
            Counter::Heap(index) => (self.of_collector(process, "Heap", 2, packets), Counter::HEAPS[index.min(4)], "By"),
            Counter::AllocationRate => (self.of_collector(process, "", 0, packets), "Allocation rate", "B/s"),
            Counter::PauseShare => (self.of_collector(process, "", 0, packets), "Pause share", "%"),
            Counter::Workers => (self.of_runtime(process, "Thread pool", 3, packets), "Workers", ""),
            Counter::Published { group, name, unit } => {
                let counters = self.of_runtime(process, "Counters", 4, packets);
                (self.group(group, counters, 0, packets), name, unit)
            }
        };
        self.describe_once(uuid, parent, packets, |descriptor| {
            descriptor.text(track::NAME, truncated(name));
            descriptor.message(track::COUNTER, |counter| match unit {
                "By" | "B" => counter.uint(track::UNIT, track::SIZE_BYTES),
                "" => counter.uint(track::UNIT, track::COUNT),
                unit => counter.text(track::UNIT_NAME, truncated(unit)),
            });
        })
    }
}
