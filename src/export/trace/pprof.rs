//! The profile format of pprof, uncompressed: its tools accept both.
//!
//! Source: `proto/profile.proto` in google/pprof. Every sample has two values, its count and its duration in nanoseconds, and its thread as a
//! label.

use std::io::{self, Write};

use foldhash::HashMap;

use crate::nettrace::ThreadId;
use crate::perfetto::Message;

use super::stacks::{FrameId, NodeId, Stacks};
use super::writer::{Sample, Subject, Writer};

/// Maximum number of combinations of thread and stack in memory before they are written.
const MAX_COUNTS: usize = 1 << 15;

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
}

/// Counts samples by thread and stack, and writes them at the end.
pub(super) struct Pprof<W> {
    out: W,
    /// Start of the exported part, in nanoseconds since the start of the session.
    start: i64,
    subject: Subject,
    bytes: Vec<u8>,
    counts: HashMap<(ThreadId, NodeId), (u64, i64)>,
    /// Number of strings written.
    strings: u64,
    /// Offset of the current frame ids, after those before the last reset.
    first_frame: u64,
    /// By frame: whether it is written.
    frames: Vec<bool>,
    threads: HashMap<ThreadId, u64>,
}

impl<W: Write> Pprof<W> {
    pub(super) fn new(out: W, subject: Subject, start: i64, is_cpu_time: bool) -> Self {
        let mut pprof = Self {
            out,
            start,
            subject,
            bytes: Vec::new(),
            counts: HashMap::default(),
            strings: 0,
            first_frame: 1,
            frames: Vec::new(),
            threads: HashMap::default(),
        };
        // By index. The time is named as by other profilers.
        for text in ["", "samples", "count", if is_cpu_time { "cpu" } else { "thread_time" }, "nanoseconds", "thread", "managed code"] {
            pprof.string(text);
        }
        let mut message = Message::new(&mut pprof.bytes);
        for (kind, unit) in [(1, 2), (3, 4)] {
            message.message(profile::SAMPLE_TYPE, |value| {
                value.uint(1, kind);
                value.uint(2, unit);
            });
        }
        message.message(profile::MAPPING, |mapping| {
            mapping.uint(1, 1);
            mapping.uint(5, 6);
            // Function names are included: nothing needs to be symbolized.
            mapping.uint(7, 1);
        });
        pprof
    }

    fn string(&mut self, text: &str) -> u64 {
        Message::new(&mut self.bytes).text(profile::STRING_TABLE, text);
        self.strings += 1;
        self.strings - 1
    }

    fn location(&mut self, frame: FrameId, stacks: &Stacks) -> u64 {
        let (id, index) = (self.first_frame + u64::from(frame), frame as usize);
        if self.frames.len() <= index {
            self.frames.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.frames[index], true) {
            let name = self.string(&stacks.name(frame));
            let file = self.string(stacks.module(frame));
            let mut message = Message::new(&mut self.bytes);
            message.message(profile::FUNCTION, |function| {
                function.uint(1, id);
                function.uint(2, name);
                // No system name: if it equals the name, readers consider it mangled.
                function.uint(4, file);
            });
            message.message(profile::LOCATION, |location| {
                location.uint(1, id);
                location.uint(2, 1);
                location.message(4, |line| line.uint(1, id));
            });
        }
        id
    }

    fn write(&mut self, stacks: &Stacks) -> io::Result<()> {
        let mut counts: Vec<_> = self.counts.drain().collect();
        counts.sort_unstable();
        let mut path = Vec::new();
        for ((thread, node), (count, nanoseconds)) in counts {
            stacks.path(node, &mut path);
            let locations: Vec<u64> = path.iter().rev().map(|frame| self.location(*frame, stacks)).collect();
            let name = match self.threads.get(&thread) {
                Some(known) => *known,
                None => {
                    let name = self.string(&thread.to_string());
                    self.threads.insert(thread, name);
                    name
                }
            };
            Message::new(&mut self.bytes).message(profile::SAMPLE, |sample| {
                sample.packed(1, locations.into_iter());
                sample.packed(2, [count, nanoseconds.max(0) as u64].into_iter());
                sample.message(3, |label| {
                    label.uint(1, 5);
                    label.uint(2, name);
                });
            });
            if self.bytes.len() > 1 << 18 {
                self.out.write_all(&self.bytes)?;
                self.bytes.clear();
            }
        }
        Ok(())
    }
}

impl<W: Write> Writer for Pprof<W> {
    fn sample(&mut self, sample: &Sample, stacks: &Stacks) -> io::Result<()> {
        if self.counts.len() >= MAX_COUNTS {
            self.write(stacks)?;
        }
        let (count, nanoseconds) = self.counts.entry((sample.thread, sample.node)).or_default();
        *count += 1;
        *nanoseconds = nanoseconds.saturating_add(sample.duration);
        Ok(())
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.write(stacks)?;
        self.first_frame += u64::from(stacks.frame_count());
        self.frames.clear();
        self.threads.clear();
        Ok(())
    }

    fn finish(&mut self, end: i64, stacks: &Stacks) -> io::Result<()> {
        self.write(stacks)?;
        let started = self.subject.header.sync_utc.map_or(0, |time| time.unix_ms().saturating_mul(1_000_000));
        let mut message = Message::new(&mut self.bytes);
        message.int(profile::TIME_NANOS, started.saturating_add(self.start));
        message.int(profile::DURATION_NANOS, end.saturating_sub(self.start).max(0));
        self.out.write_all(&self.bytes)?;
        self.out.flush()
    }
}
