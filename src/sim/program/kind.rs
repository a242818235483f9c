//! The kinds of events that a simulated program sends.

use crate::clr::{EVENT_PIPE_PROVIDER, RUNDOWN_PROVIDER, RUNTIME_PROVIDER, SAMPLE_PROFILER};
use crate::nettrace::{Field, FieldType, Metadata};
use crate::wire::Put;

/// Stands for the provider of the program.
const OWN_PROVIDER: &str = "";
const COLLECTIONS: u64 = 0x1;
const TYPES: u64 = 0x8_0000;
const HEAP_DUMP: u64 = 0x10_0000;
const JIT: u64 = 0x10;
const CONTENTION: u64 = 0x4000;
const EXCEPTION: u64 = 0x8000;
/// EventSource sets these bits for all its events.
const EVENT_SOURCE: u64 = 0xf000_0000_0000;

listed! {
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    SuspendBegin => (RUNTIME_PROVIDER, 9, 1, 4, COLLECTIONS),
    SuspendEnd => (RUNTIME_PROVIDER, 8, 1, 4, COLLECTIONS),
    GcStart => (RUNTIME_PROVIDER, 1, 2, 4, COLLECTIONS),
    GcEnd => (RUNTIME_PROVIDER, 2, 1, 4, COLLECTIONS),
    HeapStats => (RUNTIME_PROVIDER, 4, 2, 4, COLLECTIONS),
    RestartBegin => (RUNTIME_PROVIDER, 7, 1, 4, COLLECTIONS),
    RestartEnd => (RUNTIME_PROVIDER, 3, 1, 4, COLLECTIONS),
    HeapTypes => (RUNTIME_PROVIDER, 15, 0, 4, TYPES),
    HeapRoots => (RUNTIME_PROVIDER, 16, 0, 4, HEAP_DUMP),
    HeapStaticVariables => (RUNTIME_PROVIDER, 38, 0, 4, HEAP_DUMP),
    HeapNodes => (RUNTIME_PROVIDER, 18, 0, 4, HEAP_DUMP),
    HeapEdges => (RUNTIME_PROVIDER, 19, 0, 4, HEAP_DUMP),
    Exception => (RUNTIME_PROVIDER, 80, 1, 2, EXCEPTION),
    ContentionStart => (RUNTIME_PROVIDER, 81, 1, 4, CONTENTION),
    ContentionStop => (RUNTIME_PROVIDER, 91, 1, 4, CONTENTION),
    MethodLoad => (RUNTIME_PROVIDER, 143, 2, 4, JIT),
    Sample => (SAMPLE_PROFILER, 0, 0, 4, 0),
    Custom => (OWN_PROVIDER, 1, 0, 4, EVENT_SOURCE),
    Counter => ("System.Runtime", 4, 0, 0, EVENT_SOURCE),
    CounterSum => ("System.Runtime", 5, 0, 0, EVENT_SOURCE),
    ProcessInfo => (EVENT_PIPE_PROVIDER, 1, 1, 0, 0),
    MethodRundown => (RUNDOWN_PROVIDER, 144, 2, 4, JIT),
    ModuleRundown => (RUNDOWN_PROVIDER, 154, 2, 4, 0x8),
    RundownComplete => (RUNDOWN_PROVIDER, 146, 1, 4, 0),
}
/// Provider, ID, version, level and keywords.
fn row(self) -> (&'static str, u32, u32, u32, u64);
}

impl Kind {
    /// Whether it is sent regardless of the session's providers.
    pub(super) fn is_always_sent(self) -> bool {
        matches!(self, Self::ProcessInfo | Self::MethodRundown | Self::ModuleRundown | Self::RundownComplete)
    }

    /// Returns its metadata. The runtime's own events have neither names nor fields on the wire.
    pub(super) fn metadata(self, own_provider: &str) -> Metadata {
        use FieldType::{Double, Int32, Single, String};
        let (provider, event_id, version, level, keywords) = self.row();
        let provider = if provider == OWN_PROVIDER { own_provider } else { provider };
        let (name, fields) = match self {
            Self::Custom => ("Item", fields([("id", Int32), ("name", String), ("value", Double)])),
            // An EventCounter that reports a mean, and one that reports an increment.
            Self::Counter => (
                "EventCounters",
                self_describing([
                    ("Name", String),
                    ("DisplayName", String),
                    ("Mean", Double),
                    ("StandardDeviation", Double),
                    ("Count", Int32),
                    ("Min", Double),
                    ("Max", Double),
                    ("IntervalSec", Single),
                    ("Series", String),
                    ("CounterType", String),
                    ("Metadata", String),
                    ("DisplayUnits", String),
                ]),
            ),
            Self::CounterSum => (
                "EventCounters",
                self_describing([
                    ("Name", String),
                    ("DisplayName", String),
                    ("DisplayRateTimeScale", String),
                    ("Increment", Double),
                    ("IntervalSec", Single),
                    ("Metadata", String),
                    ("Series", String),
                    ("CounterType", String),
                    ("DisplayUnits", String),
                ]),
            ),
            Self::ProcessInfo => ("ProcessInfo", fields(["CommandLine", "OSInformation", "ArchInformation"].map(|name| (name, String)))),
            _ => ("", Vec::new()),
        };
        let (provider, name) = (provider.to_owned(), name.to_owned());
        Metadata { provider, event_id, name, keywords, version, level, fields, ..Metadata::default() }
    }
}

fn fields<const N: usize>(fields: [(&str, FieldType); N]) -> Vec<Field> {
    fields.map(|(name, kind)| Field { name: name.to_owned(), kind }).into()
}

/// Wraps fields as EventSource does for self-describing events.
fn self_describing<const N: usize>(wrapped: [(&str, FieldType); N]) -> Vec<Field> {
    let payload = fields([("Payload", FieldType::Object(fields(wrapped)))]);
    fields([("", FieldType::Object(payload))])
}

pub(super) fn sum_payload(name: &str, display: &str, unit: &str, increment: f64) -> Vec<u8> {
    let mut payload = Vec::new();
    for text in [name, display, "00:00:01"] {
        payload.put_utf16z(text);
    }
    payload.put_f64(increment);
    payload.put(&1.0_f32.to_le_bytes());
    for text in ["", "Interval=1000", "Sum", unit] {
        payload.put_utf16z(text);
    }
    payload
}

pub(super) fn counter_payload(name: &str, display: &str, unit: &str, mean: f64) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_utf16z(name);
    payload.put_utf16z(display);
    payload.put_f64(mean);
    payload.put_f64(0.0);
    payload.put_i32(1);
    payload.put_f64(mean);
    payload.put_f64(mean);
    payload.put(&1.0_f32.to_le_bytes());
    for text in ["Interval=1000", "Mean", "", unit] {
        payload.put_utf16z(text);
    }
    payload
}

/// Payload of `GCHeapStats` version 2 for a heap of this many bytes after a collection.
pub(super) fn heap_stats(heap: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    let (gen0, gen1, large) = (256_000, 1_200_000, heap / 5);
    let gen2 = heap.saturating_sub(gen0 + gen1 + large);
    for (size, promoted) in [(gen0, 40_000), (gen1, 300_000), (gen2, 9_000_000), (large, 0)] {
        payload.put_u64(size);
        payload.put_u64(promoted);
    }
    // Bytes and number of objects that wait for their finalizers: none are run.
    for waiting in [0_u64; 2] {
        payload.put_u64(waiting);
    }
    for small in [17_u32, 4, 230] {
        payload.put_u32(small);
    }
    payload.put_u16(0);
    payload.put_u64(8_192);
    payload.put_u64(0);
    payload
}
