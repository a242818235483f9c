//! The file format of speedscope, with one profile per thread.
//!
//! Source: `file-format-spec.ts` in jlfwong/speedscope. Profiles are "evented" (calls begin and end), so that time without samples of a thread
//! stays empty. Events of threads are interleaved, but each profile must be contiguous: so events are buffered by thread in a scratch file.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

use foldhash::HashMap;

use crate::nettrace::ThreadId;

use super::json::write_string;
use super::spans::{Calls, Edge};
use super::stacks::{FrameId, Stacks};
use super::writer::{Sample, Subject, Writer};

/// Size of a record in the scratch file, in bytes: a time, and a frame with a flag for its end.
const RECORD_BYTES: usize = 12;
/// Size of a thread's buffer, in bytes.
const BUFFER_BYTES: usize = RECORD_BYTES * 340;
/// Flag of a frame: the call ends.
const END_FLAG: u32 = 1 << 31;
/// Maximum number of distinct frames, which are in memory until the end; one more stands for all others.
const MAX_FRAMES: usize = 1 << 20;
const OTHER_CODE: &str = "(other code)";

/// A private temporary file.
pub trait Scratch: Read + Write + Seek {}

impl<T: Read + Write + Seek> Scratch for T {}

/// Writes a recording as one JSON object.
pub(super) struct Speedscope<'w, W> {
    out: W,
    scratch: Box<dyn Scratch + 'w>,
    subject: Subject,
    calls: Calls,
    threads: HashMap<ThreadId, Thread>,
    /// Name and module of frames, by id in the output.
    frames: Vec<Rc<(String, String)>>,
    frame_ids: HashMap<Rc<(String, String)>, u32>,
    max_frames: usize,
    /// By frame: its id in the output plus one; 0 if it has none yet.
    output_ids: Vec<u32>,
}

#[derive(Debug, Default)]
struct Thread {
    name: String,
    buffer: Vec<u8>,
    /// Offsets and lengths of the chunks in the scratch file.
    chunks: Vec<(u64, usize)>,
    first: Option<i64>,
    last: i64,
}

impl Thread {
    fn flush_buffer(&mut self, scratch: &mut dyn Scratch) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let at = scratch.seek(SeekFrom::End(0))?;
        scratch.write_all(&self.buffer)?;
        self.chunks.push((at, self.buffer.len()));
        self.buffer.clear();
        Ok(())
    }
}

impl<'w, W: Write> Speedscope<'w, W> {
    pub(super) fn new(out: W, scratch: Box<dyn Scratch + 'w>, subject: Subject) -> Self {
        Self {
            out,
            scratch,
            subject,
            calls: Calls::default(),
            threads: HashMap::default(),
            frames: Vec::new(),
            frame_ids: HashMap::default(),
            max_frames: MAX_FRAMES,
            output_ids: Vec::new(),
        }
    }

    /// Adds the begin or end of a call to the buffer of a thread.
    fn edge(&mut self, thread: ThreadId, at: i64, edge: Edge, stacks: &Stacks) -> io::Result<()> {
        let frame = match edge {
            Edge::Begin(frame) => self.frame(frame, stacks),
            Edge::End(frame) => self.frame(frame, stacks) | END_FLAG,
        };
        let thread = self.threads.entry(thread).or_default();
        thread.buffer.extend_from_slice(&at.to_le_bytes());
        thread.buffer.extend_from_slice(&frame.to_le_bytes());
        thread.first.get_or_insert(at);
        thread.last = at;
        if thread.buffer.len() >= BUFFER_BYTES { thread.flush_buffer(&mut *self.scratch) } else { Ok(()) }
    }

    fn frame(&mut self, frame: FrameId, stacks: &Stacks) -> u32 {
        let index = frame as usize;
        if self.output_ids.len() <= index {
            self.output_ids.resize(index + 1, 0);
        }
        if self.output_ids[index] == 0 {
            let mut name = Rc::new((stacks.name(frame), stacks.module(frame).to_owned()));
            if self.frames.len() >= self.max_frames && !self.frame_ids.contains_key(&name) {
                name = Rc::new((OTHER_CODE.to_owned(), String::new()));
            }
            let next = self.frames.len() as u32;
            let id = *self.frame_ids.entry(name.clone()).or_insert(next);
            if id == next {
                self.frames.push(name);
            }
            self.output_ids[index] = id + 1;
        }
        self.output_ids[index] - 1
    }

    fn end_calls(&mut self, stacks: &Stacks) -> io::Result<()> {
        std::mem::take(&mut self.calls).end(|thread, at, edge| self.edge(thread, at, edge, stacks))?;
        for thread in self.threads.values_mut() {
            thread.flush_buffer(&mut *self.scratch)?;
            thread.buffer = Vec::new();
        }
        self.output_ids.clear();
        Ok(())
    }

    fn profile(&mut self, id: ThreadId, thread: &Thread) -> io::Result<()> {
        self.out.write_all(b"{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":")?;
        let name = if thread.name.is_empty() { format!("Thread {id}") } else { format!("Thread {id} {}", thread.name) };
        write_string(&mut self.out, &name)?;
        write!(self.out, ",\"startValue\":{},\"endValue\":{},\"events\":[", thread.first.unwrap_or(0), thread.last)?;
        let mut bytes = vec![0; BUFFER_BYTES];
        let mut is_first = true;
        for (at, length) in &thread.chunks {
            self.scratch.seek(SeekFrom::Start(*at))?;
            let chunk = &mut bytes[..*length];
            self.scratch.read_exact(chunk)?;
            for record in chunk.chunks_exact(RECORD_BYTES) {
                let (at, frame) = record.split_at(8);
                let at = i64::from_le_bytes(at.try_into().unwrap_or_default());
                let frame = u32::from_le_bytes(frame.try_into().unwrap_or_default());
                let comma = if std::mem::replace(&mut is_first, false) { "" } else { "," };
                let kind = if frame & END_FLAG == 0 { 'O' } else { 'C' };
                write!(self.out, "{comma}\n{{\"type\":\"{kind}\",\"frame\":{},\"at\":{at}}}", frame & !END_FLAG)?;
            }
        }
        self.out.write_all(b"]}")
    }
}

impl<W: Write> Writer for Speedscope<'_, W> {
    fn thread(&mut self, thread: ThreadId, name: &str) -> io::Result<()> {
        self.threads.entry(thread).or_default().name = name.to_owned();
        Ok(())
    }

    fn sample(&mut self, sample: &Sample, stacks: &Stacks) -> io::Result<()> {
        let mut calls = std::mem::take(&mut self.calls);
        let written = calls.sample(sample, stacks, |thread, at, edge| self.edge(thread, at, edge, stacks));
        self.calls = calls;
        written
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.end_calls(stacks)
    }

    fn finish(&mut self, _end: i64, stacks: &Stacks) -> io::Result<()> {
        self.end_calls(stacks)?;
        self.out.write_all(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"dn-top\",\"name\":")?;
        write_string(&mut self.out, &self.subject.command_line)?;
        self.out.write_all(b",\"activeProfileIndex\":0,\"profiles\":[")?;
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().filter(|(_, thread)| thread.first.is_some()).collect();
        threads.sort_unstable_by_key(|(id, _)| *id);
        if threads.is_empty() {
            // Speedscope rejects a file without profiles.
            threads.push((ThreadId::default(), Thread { name: "(no samples)".to_owned(), ..Thread::default() }));
        }
        for (index, (id, thread)) in threads.into_iter().enumerate() {
            self.out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
            self.profile(id, &thread)?;
        }
        self.out.write_all(b"],\"shared\":{\"frames\":[")?;
        for (index, frame) in self.frames.iter().enumerate() {
            let (name, module) = &**frame;
            self.out.write_all(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" })?;
            write_string(&mut self.out, name)?;
            if !module.is_empty() {
                self.out.write_all(b",\"file\":")?;
                write_string(&mut self.out, module)?;
            }
            self.out.write_all(b"}")?;
        }
        self.out.write_all(b"]}}\n")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::analysis::{Images, Symbols};
    use crate::nettrace::{Decoder, Encoder, Event, Limits, Metadata, NewEvent, Sink, TraceHeader};

    struct Samples<'a>(Speedscope<'a, &'a mut Vec<u8>>, Stacks);

    impl Sink for Samples<'_> {
        fn event(&mut self, event: &Event<'_>) {
            let (thread, at, node) = (event.thread(), event.timestamp(), self.1.add(event));
            self.0.sample(&Sample { thread, at, duration: 1, node, is_native: false }, &self.1).unwrap();
        }
    }

    #[test]
    fn one_frame_stands_for_those_beyond_the_limit() {
        let mut encoder = Encoder::new(TraceHeader::default());
        let metadata = encoder.metadata(&Metadata::default());
        for (address, timestamp) in [1, 2, 3, 4, 1].into_iter().zip(1..) {
            let stack = encoder.stack(&[address]);
            encoder.event(&NewEvent { metadata, timestamp, stack, ..NewEvent::default() });
        }
        encoder.end();
        let mut out = Vec::new();
        let mut speedscope = Speedscope::new(&mut out, Box::new(Cursor::new(Vec::new())), Subject::default());
        speedscope.max_frames = 2;
        let mut samples = Samples(speedscope, Stacks::new(Symbols::default(), Images::default()));
        Decoder::new(Limits::default()).feed(&encoder.take(), &mut samples).unwrap();
        samples.0.finish(5, &samples.1).unwrap();
        drop(samples);
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let names: Vec<_> = json["shared"]["frames"].as_array().unwrap().iter().map(|frame| frame["name"].clone()).collect();
        assert_eq!(names, ["0x1", "0x2", OTHER_CODE]);
        let begun = json["profiles"][0]["events"].as_array().unwrap().iter().filter(|event| event["type"] == "O");
        assert_eq!(begun.map(|event| event["frame"].clone()).collect::<Vec<_>>(), [0, 1, 2, 2, 0]);
    }
}
