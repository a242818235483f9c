//! The JSON of Chrome's tracing, which Perfetto, speedscope and other tools read.
//!
//! Source: the document "Trace Event Format". Times are microseconds since the start of the session.

use std::io::{self, Write};

use foldhash::HashMap;

use crate::nettrace::ThreadId;

use super::json::write_string;
use super::spans::{Calls, Edge};
use super::stacks::Stacks;
use super::writer::{ArgumentValue, Counter, Sample, Subject, Track, TrackEvent, Writer};

/// First thread id of tracks that do not belong to a thread. Thread ids end at 2^22.
const FIRST_TRACK: u64 = 1 << 30;

/// Writes a recording as one JSON object.
pub(super) struct Chromium<W> {
    out: W,
    subject: Subject,
    is_first: bool,
    calls: Calls,
    tracks: HashMap<(u64, String), u64>,
    /// Number of slices on threads.
    slices: u64,
}

impl<W: Write> Chromium<W> {
    pub(super) fn new(mut out: W, subject: Subject) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        let pid = subject.header.process_id;
        let mut chromium = Self { out, subject, is_first: true, calls: Calls::default(), tracks: HashMap::default(), slices: 0 };
        // The trace processor rejects files with an empty name, and files without events.
        let name = Some(chromium.subject.command_line.clone()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| format!("process {pid}"));
        chromium.metadata("process_name", pid.into(), 0, &name)?;
        Ok(chromium)
    }

    /// Begins an event; its object remains open.
    fn begin(&mut self, phase: char, name: &str, pid: u64, tid: u64) -> io::Result<()> {
        let comma = if std::mem::replace(&mut self.is_first, false) { "" } else { ",\n" };
        write!(self.out, "{comma}{{\"ph\":\"{phase}\",\"pid\":{pid},\"tid\":{tid},\"name\":")?;
        write_string(&mut self.out, name)
    }

    fn metadata(&mut self, what: &str, pid: u64, tid: u64, name: &str) -> io::Result<()> {
        self.begin('M', what, pid, tid)?;
        self.out.write_all(b",\"args\":{\"name\":")?;
        write_string(&mut self.out, name)?;
        self.out.write_all(b"}}")
    }

    fn time(&mut self, name: &str, ns: i64) -> io::Result<()> {
        let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
        write!(self.out, ",\"{name}\":{sign}{}.{:03}", ns / 1000, ns % 1000)
    }

    fn arguments(&mut self, arguments: &[(&str, ArgumentValue<'_>)], fields: &[(&str, &str)]) -> io::Result<()> {
        self.out.write_all(b",\"args\":{")?;
        let fields = fields.iter().map(|(name, value)| (*name, ArgumentValue::Text(value)));
        for (index, (name, argument)) in arguments.iter().copied().chain(fields).enumerate() {
            self.out.write_all(if index == 0 { b"" } else { b"," })?;
            write_string(&mut self.out, name)?;
            self.out.write_all(b":")?;
            match argument {
                ArgumentValue::Count(value) => write!(self.out, "{value}")?,
                ArgumentValue::Number(value) if value.is_finite() => write!(self.out, "{value}")?,
                ArgumentValue::Number(_) => self.out.write_all(b"null")?,
                ArgumentValue::Flag(value) => write!(self.out, "{value}")?,
                ArgumentValue::Text(value) => write_string(&mut self.out, value)?,
            }
        }
        self.out.write_all(b"}}")
    }

    /// Returns the process and thread ids under which a track is shown.
    fn track_ids(&mut self, thread: ThreadId, track: Track<'_>) -> io::Result<(u64, u64)> {
        let pid = self.subject.pid(thread).into();
        let name = match track {
            Track::Thread if matches!(thread.reuse_count, 0 | u32::MAX) => return Ok((pid, thread.thread)),
            // An earlier thread had the same id.
            Track::Thread => format!("Thread {thread}"),
            Track::LostEvents => format!("Lost events of thread {thread}"),
            Track::LostPackets => "Lost packets".to_owned(),
            Track::GcPauses => "GC pauses".to_owned(),
            Track::BackgroundGc => "Background GC".to_owned(),
            Track::ThreadPool => "Thread pool".to_owned(),
            Track::Operation { name, lane } => format!("{name} #{lane}"),
        };
        let (key, next) = ((pid, name), FIRST_TRACK + self.tracks.len() as u64);
        if let Some(known) = self.tracks.get(&key) {
            return Ok((pid, *known));
        }
        self.metadata("thread_name", pid, next, &key.1)?;
        self.tracks.insert(key, next);
        Ok((pid, next))
    }

    fn edge(&mut self, thread: ThreadId, at: i64, edge: Edge, stacks: &Stacks) -> io::Result<()> {
        let (phase, frame) = match edge {
            Edge::Begin(frame) => ('B', frame),
            Edge::End(frame) => ('E', frame),
        };
        let (pid, tid) = self.track_ids(thread, Track::Thread)?;
        self.begin(phase, &stacks.name(frame), pid, tid)?;
        self.out.write_all(b",\"cat\":\"sample\"")?;
        self.time("ts", at)?;
        self.out.write_all(b"}")
    }

    /// Ends the open calls of all threads.
    fn end_calls(&mut self, stacks: &Stacks) -> io::Result<()> {
        std::mem::take(&mut self.calls).end(|thread, at, edge| self.edge(thread, at, edge, stacks))
    }
}

impl<W: Write> Writer for Chromium<W> {
    fn thread(&mut self, thread: ThreadId, name: &str) -> io::Result<()> {
        if name.is_empty() {
            return Ok(());
        }
        let (pid, tid) = self.track_ids(thread, Track::Thread)?;
        self.metadata("thread_name", pid, tid, name)
    }

    fn sample(&mut self, sample: &Sample, stacks: &Stacks) -> io::Result<()> {
        let mut calls = std::mem::take(&mut self.calls);
        let written = calls.sample(sample, stacks, |thread, at, edge| self.edge(thread, at, edge, stacks));
        self.calls = calls;
        written
    }

    fn event(&mut self, event: &TrackEvent<'_>, _stacks: &Stacks) -> io::Result<()> {
        let TrackEvent { thread, track, category, name, start, end, arguments, fields, .. } = *event;
        match end {
            Some(end) if track == Track::Thread => {
                // Asynchronous: the thread's calls do not nest with it, since samples show their start and end only approximately.
                self.slices += 1;
                let (pid, tid) = self.track_ids(thread, track)?;
                for (phase, at, arguments) in [('b', start, arguments), ('e', end, &[][..])] {
                    self.begin(phase, name, pid, tid)?;
                    write!(self.out, ",\"cat\":\"{category}\",\"id\":{}", self.slices)?;
                    self.time("ts", at)?;
                    self.arguments(arguments, &[])?;
                }
                Ok(())
            }
            end => {
                let (pid, tid) = self.track_ids(thread, track)?;
                self.begin(if end.is_some() { 'X' } else { 'i' }, name, pid, tid)?;
                write!(self.out, ",\"cat\":\"{category}\"")?;
                self.time("ts", start)?;
                match end {
                    Some(end) => self.time("dur", end.saturating_sub(start))?,
                    None => self.out.write_all(b",\"s\":\"t\"")?,
                }
                self.arguments(arguments, fields)
            }
        }
    }

    fn counter(&mut self, process: u32, counter: &Counter<'_>, at: i64, value: f64) -> io::Result<()> {
        let pid = self.subject.pid(ThreadId { process, ..ThreadId::default() }).into();
        let name = match *counter {
            Counter::Heap(index) => format!("Heap: {}", Counter::HEAPS[index.min(4)]),
            Counter::AllocationRate => "Allocation rate (B/s)".to_owned(),
            Counter::PauseShare => "GC pause share (%)".to_owned(),
            Counter::Workers => "Thread pool workers".to_owned(),
            Counter::Published { group, name, unit: "" } => format!("{group}: {name}"),
            Counter::Published { group, name, unit } => format!("{group}: {name} ({unit})"),
        };
        self.begin('C', &name, pid, 0)?;
        self.time("ts", at)?;
        self.arguments(&[("value", ArgumentValue::Number(value))], &[])
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.end_calls(stacks)
    }

    fn finish(&mut self, _end: i64, stacks: &Stacks) -> io::Result<()> {
        self.end_calls(stacks)?;
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}
