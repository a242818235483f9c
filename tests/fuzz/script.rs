//! Well-formed event streams from arbitrary bytes.

use dn_top::clr::EventKind;
use dn_top::nettrace::{Decoder, Encoder, Event, Field, FieldType, Limits, Metadata, NewEvent, Sink, TraceHeader};

/// Providers with special handling, and one without.
pub(super) const PROVIDERS: [&str; 7] = [
    "Microsoft-Windows-DotNETRuntime",
    "Microsoft-Windows-DotNETRuntimeRundown",
    "Microsoft-DotNETCore-SampleProfiler",
    "Microsoft-DotNETCore-EventPipe",
    "System.Diagnostics.Metrics",
    "Microsoft-Extensions-Logging",
    "Shop",
];

/// Event names with special handling.
const NAMES: [&str; 12] = [
    "",
    "EventCounters",
    "CounterRateValuePublished",
    "UpDownCounterRateValuePublished",
    "GaugeValuePublished",
    "HistogramValuePublished",
    "BeginInstrumentReporting",
    "TimeSeriesLimitReached",
    "FormattedMessage",
    "MessageJson",
    "RequestStart",
    "RequestStop",
];

/// Fields used by analyses.
const FIELDS: [(&str, FieldType); 16] = [
    ("Name", FieldType::String),
    ("Mean", FieldType::Double),
    ("Increment", FieldType::Double),
    ("IntervalSec", FieldType::Single),
    ("Series", FieldType::String),
    ("DisplayRateTimeScale", FieldType::String),
    ("rate", FieldType::String),
    ("value", FieldType::String),
    ("meterName", FieldType::String),
    ("instrumentName", FieldType::String),
    ("tags", FieldType::String),
    ("quantiles", FieldType::String),
    ("count", FieldType::Int32),
    ("sum", FieldType::Double),
    ("LoggerName", FieldType::String),
    ("Level", FieldType::Int32),
];

/// Bytes of a step before the payload of the event.
const STEP: usize = 16;

/// Returns the stream described by a script. A step consists of: action; provider, event ID (2 bytes), version, name, fields (2); thread;
/// unit and time since the previous event (1 and 2); depth and start of the stack; length of the payload (2); and the payload.
pub(super) fn script(mut bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader::default());
    let mut records = std::collections::HashMap::new();
    let mut now = 0_i64;
    while let Some((step, rest)) = bytes.split_first_chunk::<STEP>() {
        let [what, provider, low, high, version, name, some, more, thread, unit, time, times, depth, first, short, long] = *step;
        let (payload, rest) = rest.split_at(usize::from(u16::from_le_bytes([short, long])).min(rest.len()));
        bytes = rest;
        let thread = u64::from(thread % 16);
        now = now.wrapping_add(i64::from(i16::from_le_bytes([time, times])).wrapping_shl(u32::from(unit % 64)));
        match what {
            0 => encoder.add_loss(thread, 1 + u32::from(version)),
            1 => encoder.sequence_point(now),
            _ => {}
        }
        let (provider, name) = (PROVIDERS[usize::from(provider) % PROVIDERS.len()], NAMES[usize::from(name) % NAMES.len()]);
        let chosen = u16::from_le_bytes([some, more]);
        let fields = FIELDS.iter().zip(0..).filter(|(_, bit)| chosen >> bit & 1 != 0);
        let fields = fields.map(|((name, kind), _)| Field { name: (*name).into(), kind: kind.clone() }).collect();
        let event_id = u32::from(u16::from_le_bytes([low, high]) % 512);
        let record = Metadata {
            provider: provider.into(),
            event_id,
            name: name.into(),
            version: u32::from(version % 6),
            opcode: Some(what % 4).filter(|opcode| *opcode < 3),
            fields,
            ..Metadata::default()
        };
        let metadata = *records.entry(format!("{record:?}")).or_insert_with(|| encoder.metadata(&record));
        let frames: Vec<u64> = (0..u64::from(depth % 8)).map(|frame| u64::from(first) + frame * 16).collect();
        let stack = encoder.stack(&frames);
        let event = NewEvent { metadata, timestamp: now, thread, capture_thread: thread, stack, payload, ..NewEvent::default() };
        encoder.event(&NewEvent { activity_id: [first % 4; 16], ..event });
    }
    encoder.end();
    encoder.take()
}

/// Converts a stream to a script, as a realistic seed.
#[derive(Default)]
pub(crate) struct ScriptRecorder {
    script: Vec<u8>,
    last: i64,
}

impl ScriptRecorder {
    /// Returns the script of a stream.
    pub(crate) fn script_of(stream: &[u8]) -> Vec<u8> {
        let (mut decoder, mut scribe) = (Decoder::new(Limits::default()), Self::default());
        // A prefix before malformed data is good enough.
        let _ = decoder.feed(stream, &mut scribe);
        decoder.finish(&mut scribe);
        scribe.script
    }
}

impl Sink for ScriptRecorder {
    fn event(&mut self, event: &Event<'_>) {
        let Metadata { provider, event_id, name, version, fields, .. } = event.metadata;
        let index = |of: &[&str], what: &str| of.iter().position(|one| *one == what).unwrap_or(of.len() - 1) as u8;
        // Only events with special handling, and small payloads.
        if EventKind::of(event.metadata) == EventKind::Other || event.payload.len() > 2000 {
            return;
        }
        let named = |field: &&(&str, FieldType)| fields.iter().any(|other| other.name == field.0);
        let chosen: u16 = FIELDS.iter().zip(0..).filter(|(field, _)| named(field)).map(|(_, bit)| 1 << bit).sum();
        let (id, fields, length) = ((*event_id as u16).to_le_bytes(), chosen.to_le_bytes(), (event.payload.len() as u16).to_le_bytes());
        let time = (event.timestamp().wrapping_sub(self.last) >> 10).clamp(0, 30_000) as i16;
        self.last = event.timestamp();
        let (time, depth) = (time.to_le_bytes(), event.stack().map_or(0, |_| 3));
        let provider = index(&PROVIDERS, provider);
        let name = if name.is_empty() { 0 } else { index(&NAMES, name) };
        self.script.extend([2, provider, id[0], id[1], *version as u8, name, fields[0], fields[1]]);
        self.script.extend([event.thread().thread as u8, 10, time[0], time[1], depth, event.stack_id() as u8, length[0], length[1]]);
        self.script.extend(event.payload);
    }
}
