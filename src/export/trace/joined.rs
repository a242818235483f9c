//! Merges a recording and the CPU samples beside it into one stream of format 6, in time order, with everything that belongs to each event.

use std::fmt;
use std::io::{self, Write};

use crate::analysis::MissingFrames;
use crate::clr::EventKind;
use crate::model::Counted;
use crate::nettrace::{ByMetadata, CollectorEncoder, Event, Loss, Metadata, Sink, Thread, ThreadId, TraceHeader};

use super::{Finished, Pass};

/// Maximum number of losses of a batch that are kept apart.
const MAX_LOSSES: usize = 4096;

/// A stream of CPU samples and their descriptions, in time order.
pub trait SampleStream {
    /// Returns the header of the stream.
    fn header(&self) -> &TraceHeader;

    /// Fills an empty batch with the next events. Returns `false` after the last.
    fn refill(&mut self, batch: &mut Batch) -> bool;

    /// Whether the stream ended regularly. Only valid after the last batch.
    fn is_complete(&self) -> bool;
}

/// Some events of a stream. Implements [`Sink`].
#[derive(Debug, Default)]
pub struct Batch {
    /// New kinds of events, in the order of their indexes.
    kinds: Vec<Metadata>,
    events: Vec<Entry>,
    frames: Vec<u64>,
    payloads: Vec<u8>,
    /// Threads that lost events, and the number of events.
    losses: Vec<(ThreadId, u32)>,
}

/// An event, with the ends of its frames and its payload.
#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: u32,
    thread: ThreadId,
    timestamp: i64,
    missing: Option<MissingFrames>,
    frames: usize,
    payload: usize,
}

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JoinCounts {
    /// Events of the recording.
    pub events: u64,
    /// CPU samples from beside the recording.
    pub samples: u64,
    /// Lost events and samples. Their sequence numbers are skipped in the stream.
    pub lost: u64,
    /// Whether the samples are truncated.
    pub samples_cut: bool,
}

impl fmt::Display for JoinCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, samples, lost, samples_cut, .. } = self;
        write!(f, "wrote {}", Counted(*events, "event"))?;
        // Samples that are already in the recording are events of it.
        if *samples > 0 {
            write!(f, " and {}", Counted(*samples, "CPU sample"))?;
        }
        if *lost > 0 {
            write!(f, "; the recording lost {}", Counted(*lost, "event"))?;
        }
        if *samples_cut { f.write_str("; the file of the CPU samples ends early") } else { Ok(()) }
    }
}

/// Writer of the merged stream.
pub(super) struct Join<'w> {
    encoder: CollectorEncoder,
    out: Box<dyn Write + 'w>,
    error: Option<io::Error>,
    is_v6: bool,
    process: u32,
    /// Ids in the merged stream.
    kinds: ByMetadata<u32>,
    samples: Option<Box<dyn SampleStream + 'w>>,
    batch: Batch,
    /// Number of events of the batch already written.
    written: usize,
    /// By metadata index of the sample stream: the id, and whether it is a sample.
    sample_kinds: Vec<(u32, bool)>,
    /// Pid of the sampled process in the sample stream.
    sampled: Option<u32>,
    joined: JoinCounts,
}

impl Batch {
    /// Whether the batch contains no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn clear(&mut self) {
        self.kinds.clear();
        self.events.clear();
        self.frames.clear();
        self.payloads.clear();
        self.losses.clear();
    }

    fn frames(&self, at: usize) -> &[u64] {
        let start = at.checked_sub(1).map_or(0, |before| self.events[before].frames);
        &self.frames[start..self.events[at].frames]
    }

    fn payload(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.events[before].payload);
        &self.payloads[start..self.events[at].payload]
    }
}

impl Sink for Batch {
    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(metadata.clone());
    }

    fn needs_order(&self, _metadata: &Metadata) -> bool {
        true
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        self.frames.extend(event.stack().into_iter().flat_map(|stack| stack.frames()));
        self.payloads.extend_from_slice(event.payload);
        let (frames, payload) = (self.frames.len(), self.payloads.len());
        let (kind, thread, timestamp) = (event.metadata.index, event.thread(), event.timestamp());
        let missing = event.labels().find_map(MissingFrames::from_label);
        self.events.push(Entry { kind, thread, timestamp, missing, frames, payload });
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        let is_full = self.losses.len() >= MAX_LOSSES;
        match self.losses.last_mut().filter(|_| is_full) {
            // The exact thread matters less than the total.
            Some((_, count)) => *count = count.saturating_add(loss.count),
            None => self.losses.push((loss.capture_thread, loss.count)),
        }
    }
}

impl<'w> Join<'w> {
    /// Starts the stream for a recording with this header.
    pub(super) fn new(header: &TraceHeader, out: Box<dyn Write + 'w>, samples: Option<Box<dyn SampleStream + 'w>>) -> Self {
        // Readers use this interval as the weight of a kernel sample; for runtime samples they measure it.
        let sampling_interval_ns = samples.as_ref().map_or(header.sampling_interval_ns, |samples| samples.header().sampling_interval_ns);
        Self {
            encoder: CollectorEncoder::new(&TraceHeader { sampling_interval_ns, ..*header }),
            out,
            error: None,
            is_v6: header.format_version == 6,
            process: header.process_id,
            kinds: ByMetadata::default(),
            samples,
            batch: Batch::default(),
            written: 0,
            sample_kinds: vec![(0, false)],
            sampled: None,
            joined: JoinCounts::default(),
        }
    }

    /// Returns the process of a thread, and the thread.
    fn in_process(&self, thread: ThreadId) -> (u32, u64) {
        (thread.process_or(self.process), thread.thread)
    }

    fn add_loss(&mut self, of: ThreadId, count: u32) {
        self.encoder.add_loss(self.in_process(of), count);
        self.joined.lost += u64::from(count);
    }

    /// Writes all samples up to `until`.
    fn write_samples(&mut self, until: i64) {
        loop {
            while let Some(entry) = self.batch.events.get(self.written).copied() {
                if entry.timestamp > until {
                    return;
                }
                self.write_sample(entry);
                self.written += 1;
            }
            self.batch.clear();
            self.written = 0;
            let Some(samples) = &mut self.samples else { return };
            let has_more = samples.refill(&mut self.batch);
            if !has_more {
                self.joined.samples_cut = !samples.is_complete();
                self.samples = None;
            }
            for (thread, count) in std::mem::take(&mut self.batch.losses) {
                self.add_loss(thread, count);
            }
            if !has_more {
                return;
            }
            for kind in &self.batch.kinds {
                self.sample_kinds.push((self.encoder.metadata(kind, true), EventKind::of(kind) == EventKind::CpuSample));
            }
        }
    }

    fn write_sample(&mut self, Entry { kind, thread, timestamp, missing, .. }: Entry) {
        let (kind, is_sample) = self.sample_kinds.get(kind as usize).copied().unwrap_or_default();
        // In a container, the runtime and the kernel have different pids for the process.
        let of = *self.sampled.get_or_insert(thread.process);
        let process = if thread.process == of && self.process != 0 { self.process } else { thread.process };
        let (frames, payload) = (self.batch.frames(self.written), self.batch.payload(self.written));
        let label = missing.map(|missing| (MissingFrames::LABEL, missing.label_value()));
        self.encoder.event(kind, (process, thread.thread), timestamp, frames, label, payload);
        // The others describe mappings, functions and thread times.
        self.joined.samples += u64::from(is_sample);
        self.write_if_full();
    }

    /// Passes encoded bytes on once there are enough.
    fn write_if_full(&mut self) {
        if !self.encoder.is_long() {
            return;
        }
        // Encoder and readers keep stacks in memory up to a sequence point.
        self.encoder.sequence_point();
        let bytes = self.encoder.take();
        self.put(&bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
    }
}

impl Pass for Join<'_> {
    fn finish(mut self: Box<Self>) -> io::Result<Finished> {
        self.write_samples(i64::MAX);
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.write_all(&self.encoder.finish())?;
        self.out.flush()?;
        Ok(Finished::Joined(self.joined))
    }
}

impl Sink for Join<'_> {
    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(self.encoder.metadata(metadata, self.is_v6));
    }

    fn needs_order(&self, _metadata: &Metadata) -> bool {
        true
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        self.write_samples(event.timestamp());
        let kind = self.kinds.of(event.metadata);
        let count = if self.encoder.copy(kind, self.process, event) { &mut self.joined.events } else { &mut self.joined.lost };
        *count += 1;
        self.write_if_full();
    }

    fn thread(&mut self, thread: &Thread) {
        if !thread.name.is_empty() {
            self.encoder.name_thread(self.in_process(thread.id), &thread.name);
        }
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.add_loss(loss.capture_thread, loss.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_nothing_are_not_mentioned() {
        let counts = |events, samples, lost| JoinCounts { events, samples, lost, ..JoinCounts::default() }.to_string();
        assert_eq!(counts(5, 0, 0), "wrote 5 events");
        assert_eq!(counts(5, 1, 2), "wrote 5 events and 1 CPU sample; the recording lost 2 events");
    }
}
