//! Appending events of a later session of the same process to a finished stream: method names, which a runtime only writes at the end of a
//! session, for a recording without rundown.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashSet};
use thiserror::Error;

use super::recent::Writer;
use super::{Encoder, Event, Loss, Metadata, Sink, ThreadId, TraceHeader};

/// Threads whose sequence numbers are continued. If a thread beyond this limit writes method names, it appears to have lost events.
const MAX_THREADS: usize = 1 << 16;
/// Maximum number of distinct addresses to keep.
const MAX_ADDRESSES: usize = 1 << 16;

/// Reason why a stream cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AppendError {
    /// The stream has version 6, which runtimes do not write.
    #[error("files of version {0} are not written by runtimes")]
    Version(u32),
    /// All metadata IDs are in use.
    #[error("the stream has no metadata ids left")]
    NoIdsLeft,
    /// The later session has another clock, process or machine.
    #[error("the later session has a different process or clock")]
    Mismatch,
}

/// State of a stream, collected in order to continue it.
#[derive(Debug, Default)]
pub struct StreamTail {
    header: Option<TraceHeader>,
    newest: i64,
    /// The last sequence number of each capture thread.
    sequences: HashMap<u64, u32>,
    addresses: HashSet<u64>,
}

impl Sink for StreamTail {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = Some(*header);
        self.newest = header.sync_ticks;
    }

    fn event(&mut self, event: &Event<'_>) {
        self.newest = self.newest.max(event.timestamp());
        if let Some(last) = self.last_sequence(event.capture_thread()) {
            *last = event.sequence_number();
        }
        let room = MAX_ADDRESSES - self.addresses.len();
        self.addresses.extend(event.stack().into_iter().flat_map(|stack| stack.frames()).take(room));
    }

    /// Only matters if no event of the thread follows: its next number is then greater than that of its last event.
    fn loss(&mut self, loss: &Loss) {
        if let Some(last) = self.last_sequence(loss.capture_thread) {
            *last = last.wrapping_add(loss.count);
        }
    }
}

impl StreamTail {
    fn last_sequence(&mut self, of: ThreadId) -> Option<&mut u32> {
        let is_full = self.sequences.len() >= MAX_THREADS;
        match self.sequences.entry(of.thread) {
            Entry::Vacant(_) if is_full => None,
            entry => Some(entry.or_default()),
        }
    }

    /// Returns the distinct addresses in the stacks of the stream.
    pub fn addresses(&self) -> &HashSet<u64> {
        &self.addresses
    }

    /// Continues a stream of `bytes` bytes (without its end marker) and metadata IDs up to `largest_id`, with the events for which `wanted`
    /// returns true.
    ///
    /// # Errors
    /// [`AppendError::Version`] or [`AppendError::NoIdsLeft`] if the stream cannot be continued.
    pub fn append(self, bytes: u64, largest_id: u32, wanted: fn(&Metadata) -> bool) -> Result<StreamContinuation, AppendError> {
        let header = self.header.unwrap_or_default();
        if header.format_version >= 6 {
            return Err(AppendError::Version(header.format_version));
        }
        // A runtime has a few hundred kinds of events.
        let next = largest_id.checked_add(1).filter(|next| *next < u32::MAX / 2).ok_or(AppendError::NoIdsLeft)?;
        let mut encoder = Encoder::continuing(bytes, header.pointer_size, next, self.sequences);
        encoder.sequence_point(self.newest);
        Ok(StreamContinuation { header, writer: Writer::with(encoder), wanted, is_mismatch: false })
    }
}

/// Encodes the later session as the continuation of a stream.
#[derive(Debug)]
pub struct StreamContinuation {
    header: TraceHeader,
    writer: Writer,
    wanted: fn(&Metadata) -> bool,
    is_mismatch: bool,
}

impl StreamContinuation {
    /// Returns the bytes to append to the stream, including the end marker.
    ///
    /// # Errors
    /// [`AppendError::Mismatch`] if the session was not of the same process.
    pub fn finish(mut self) -> Result<Vec<u8>, AppendError> {
        self.writer.encoder.end();
        if self.is_mismatch { Err(AppendError::Mismatch) } else { Ok(self.writer.encoder.take()) }
    }
}

impl Sink for StreamContinuation {
    fn trace(&mut self, later: &TraceHeader) {
        let of = |header: &TraceHeader| (header.process_id, header.pointer_size, header.ticks_per_second);
        self.is_mismatch = of(later) != of(&self.header) || later.sync_ticks < self.header.sync_ticks;
    }

    fn event(&mut self, event: &Event<'_>) {
        if (self.wanted)(event.metadata) {
            self.writer.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Decoder, Limits, LossKind, NewEvent};
    use super::*;

    #[derive(Debug, Default)]
    struct Seen {
        events: Vec<(String, i64, Vec<u64>)>,
        losses: Vec<(u32, LossKind)>,
    }

    impl Sink for Seen {
        fn event(&mut self, event: &Event<'_>) {
            let frames = event.stack().map_or(Vec::new(), |stack| stack.frames().collect());
            self.events.push((event.metadata.name.clone(), event.timestamp(), frames));
        }

        fn loss(&mut self, loss: &Loss) {
            self.losses.push((loss.count, loss.kind));
        }
    }

    /// A stream with an event per name; `lost` more are lost after them.
    fn stream(header: TraceHeader, at: i64, names: &[&str], lost: u32) -> Vec<u8> {
        let mut encoder = Encoder::new(header);
        for (name, number) in names.iter().zip(0..) {
            let metadata = encoder.metadata(&Metadata { name: (*name).into(), ..Metadata::default() });
            let stack = encoder.stack(&[0x1000 + number]);
            encoder.event(&NewEvent { metadata, timestamp: at, thread: 1, capture_thread: 1, stack, ..NewEvent::default() });
        }
        encoder.add_loss(1, lost);
        encoder.sequence_point(at);
        encoder.end();
        encoder.take()
    }

    fn read<S: Sink>(bytes: &[u8], sink: &mut S) -> u32 {
        let mut decoder = Decoder::new(Limits::default());
        decoder.feed(bytes, sink).unwrap();
        assert!(decoder.finish(sink).is_complete());
        decoder.largest_metadata_id()
    }

    #[test]
    fn selected_events_are_appended_to_a_stream() {
        let header = TraceHeader { process_id: 7, ..TraceHeader::default() };
        let mut first = stream(header, 10, &["a", "b"], 3);
        let mut tail = StreamTail::default();
        let largest = read(&first, &mut tail);
        assert_eq!((largest, tail.addresses()), (2, &HashSet::from_iter([0x1000, 0x1001])));
        // Without its end marker.
        first.pop();
        let mut appended = tail.append(first.len() as u64, largest, |metadata| metadata.name != "skipped").unwrap();
        read(&stream(TraceHeader { sync_ticks: 5, ..header }, 20, &["skipped", "names", "a"], 0), &mut appended);
        first.extend(appended.finish().unwrap());
        let mut seen = Seen::default();
        read(&first, &mut seen);
        let expected = [("a", 10, 0x1000), ("b", 10, 0x1001), ("names", 20, 0x1001), ("a", 20, 0x1002)];
        assert_eq!(seen.events, expected.map(|(name, at, frame)| (name.to_owned(), at, vec![frame])));
        assert_eq!(seen.losses, [(3, LossKind::Tail)], "no event of the thread was lost later");
    }

    #[test]
    fn streams_of_another_process_are_not_appended() {
        let header = TraceHeader { process_id: 7, ..TraceHeader::default() };
        for other in [
            TraceHeader { process_id: 8, ..header },
            TraceHeader { ticks_per_second: header.ticks_per_second + 1, ..header },
            TraceHeader { sync_ticks: -1, ..header },
        ] {
            let mut tail = StreamTail::default();
            let largest = read(&stream(header, 10, &["a"], 0), &mut tail);
            let mut appended = tail.append(0, largest, |_| true).unwrap();
            read(&stream(other, 20, &["names"], 0), &mut appended);
            assert_eq!(appended.finish(), Err(AppendError::Mismatch));
        }
        for largest in [u32::MAX / 2 - 1, u32::MAX] {
            assert!(matches!(StreamTail::default().append(0, largest, |_| true), Err(AppendError::NoIdsLeft)));
        }
        let v6 = StreamTail { header: Some(TraceHeader { format_version: 6, ..header }), ..StreamTail::default() };
        assert!(matches!(v6.append(0, 1, |_| true), Err(AppendError::Version(6))));
    }
}
