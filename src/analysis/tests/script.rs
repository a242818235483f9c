//! Writes sessions, and plays them to all analyses.

use std::collections::HashMap;

use crate::analysis::{Live, Snapshot};
pub(super) use crate::clr::payload::tests::Bytes;
use crate::nettrace::{Decoder, Encoder, Field, FieldType, Limits, Metadata, NewEvent, Sink, TraceHeader};

pub(super) const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
pub(super) const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// Start of the session on the stream's clock.
const ORIGIN: i64 = 5_000_000_000;
pub(super) const MS: i64 = 1_000_000;

/// Writes a session.
pub(super) struct Script {
    encoder: Encoder,
    records: HashMap<(String, u32, u32, String), u32>,
    stack: Vec<u64>,
    activity: [u8; 16],
    /// Distinguishes metadata records with the same name.
    pub(super) shape: u32,
}

impl Script {
    pub(super) fn new() -> Self {
        let header = TraceHeader { sync_ticks: ORIGIN, ..TraceHeader::default() };
        Self { encoder: Encoder::new(header), records: HashMap::new(), stack: Vec::new(), activity: [0; 16], shape: 0 }
    }

    /// Sets the stack of the following events, leaf first.
    pub(super) fn stack(&mut self, frames: &[u64]) -> &mut Self {
        self.stack = frames.to_vec();
        self
    }

    /// Sets the activity of the following events.
    pub(super) fn activity(&mut self, id: u8) -> &mut Self {
        self.activity = [id; 16];
        self
    }

    /// Writes a runtime event.
    pub(super) fn runtime(&mut self, id: u32, version: u32, at: i64, thread: u64, payload: Bytes) -> &mut Self {
        self.event(Metadata { provider: RUNTIME.into(), event_id: id, version, ..Metadata::default() }, at, thread, thread, payload)
    }

    /// Writes an event described by its metadata.
    pub(super) fn described(&mut self, provider: &str, name: &str, fields: &[(&str, FieldType)], at: i64, payload: Bytes) -> &mut Self {
        let fields = fields.iter().map(|(name, kind)| Field { name: (*name).into(), kind: kind.clone() }).collect();
        let record = Metadata { provider: provider.into(), event_id: self.shape, name: name.into(), fields, ..Metadata::default() };
        self.event(record, at, 1, 1, payload)
    }

    pub(super) fn event(&mut self, record: Metadata, at: i64, thread: u64, capture_thread: u64, payload: Bytes) -> &mut Self {
        let key = (record.provider.clone(), record.event_id, record.version, record.name.clone());
        let Self { encoder, records, .. } = self;
        let metadata = *records.entry(key).or_insert_with(|| encoder.metadata(&record));
        let stack = self.encoder.stack(&self.stack);
        self.encoder.event(&NewEvent {
            metadata,
            timestamp: ORIGIN.saturating_add(at),
            thread,
            capture_thread,
            stack,
            activity_id: self.activity,
            payload: &payload.0,
            ..NewEvent::default()
        });
        self
    }

    /// Writes a method with its code range.
    pub(super) fn method(&mut self, start: u64, size: u32, namespace: &str, name: &str) -> &mut Self {
        let payload = Bytes::default().u64(start).u64(1).u64(start).u32(size).u32(start as u32).u32(0x208);
        let payload = payload.text(namespace).text(name).text("void  ()").u16(0).u64(0);
        let record = Metadata { provider: RUNDOWN.into(), event_id: 144, version: 2, ..Metadata::default() };
        self.event(record, 0, 1, 1, payload)
    }

    pub(super) fn lose(&mut self, capture_thread: u64, count: u32) -> &mut Self {
        self.encoder.add_loss(capture_thread, count);
        self
    }

    pub(super) fn sequence_point(&mut self, at: i64) -> &mut Self {
        self.encoder.sequence_point(ORIGIN + at);
        self
    }

    /// Plays everything written so far to all analyses.
    pub(super) fn play(&mut self) -> Live {
        let mut live = Live::default();
        self.play_to(&mut live);
        live
    }

    pub(super) fn play_to(&mut self, sink: &mut impl Sink) {
        self.encoder.end();
        let mut decoder = Decoder::new(Limits::default());
        decoder.feed(&self.encoder.take(), sink).unwrap();
        assert!(decoder.finish(sink).is_complete());
    }

    /// Returns the snapshot at the end, where every payload is valid.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let live = self.play();
        let snapshot = live.snapshot(live.newest());
        assert_eq!(snapshot.unreadable, 0);
        snapshot
    }
}
