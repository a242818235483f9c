//! The fields of what occurs: a row of an analysis, and an object of `--follow --json`.

use super::fields::{Field, Value};
use crate::analysis::{Collection, LEVELS, Layer, LogMessage, Occurrence, Outcome};
use crate::clr::payload::AllocationKind;
use crate::model::SafeText;

/// Returns the fields of an occurrence.
pub(super) fn fields(occurrence: &Occurrence) -> Vec<Field> {
    match occurrence {
        Occurrence::Collection(collection) => collection_fields(collection),
        Occurrence::Message(message) => message_fields(message),
        Occurrence::Exception(thrown) => vec![
            ("at_ns", at(thrown.at)),
            ("thread", Value::Count(thrown.thread.thread)),
            ("type", Value::text(&thrown.type_name)),
            ("message", Value::text(&thrown.message)),
            ("hresult", Value::text(&format!("{:#010x}", thrown.hresult))),
            ("rethrown", Value::Flag(thrown.rethrown)),
            ("frames", frames(&thrown.frames)),
        ],
        Occurrence::Allocation(sample) => vec![
            ("at_ns", at(sample.at)),
            ("thread", Value::Count(sample.thread.thread)),
            ("bytes", Value::Bytes(sample.bytes)),
            ("object_bytes", sample.object_bytes.map_or(Value::Missing, Value::Bytes)),
            ("heap", Value::text(heap(sample.kind))),
            ("type", Value::text(&sample.type_name)),
            ("frames", frames(&sample.frames)),
        ],
        Occurrence::LockWait(wait) => vec![
            ("at_ns", at(wait.end)),
            ("thread", Value::Count(wait.thread.thread)),
            ("wait_ns", Value::Nanoseconds(wait.wait_ns)),
            ("owner_thread", wait.owner.map_or(Value::Missing, Value::Count)),
            ("frames", frames(&wait.frames)),
        ],
        Occurrence::Activity(finished) => vec![
            ("at_ns", at(finished.end)),
            ("duration_ns", Value::Nanoseconds(finished.duration_ns)),
            ("direction", Value::text(finished.layer.direction())),
            ("operation", Value::text(&finished.operation)),
            ("subject", Value::text(&finished.subject)),
            ("route", known(&finished.route)),
            ("outcome", Value::text(&finished.outcome.to_string())),
            ("failed", failed(finished.layer, finished.outcome)),
        ],
        Occurrence::Event(event, stack) => vec![
            ("at_ns", at(event.at)),
            ("thread", Value::Count(event.thread.thread)),
            ("provider", Value::text(&event.kind.provider)),
            ("event", Value::text(&event.title())),
            ("id", Value::Count(event.kind.event_id.into())),
            ("fields", Value::Texts(event.payload.fields().map(|(name, value)| (SafeText::new(name), SafeText::new(value))).collect())),
            ("frames", frames(stack)),
        ],
    }
}

/// Returns whether an activity failed: unknown for a request without a status.
fn failed(layer: Layer, outcome: Outcome) -> Value {
    let is_request = !layer.direction().is_empty();
    if is_request && outcome == Outcome::Unknown { Value::Missing } else { Value::Flag(layer.is_failure(outcome)) }
}

/// Returns the abbreviation of a heap's name.
pub(super) fn heap(kind: AllocationKind) -> &'static str {
    match kind {
        AllocationKind::Small => "SOH",
        AllocationKind::Large => "LOH",
        AllocationKind::Pinned => "POH",
    }
}

fn frames(frames: &[String]) -> Value {
    if frames.is_empty() { Value::Missing } else { Value::Frames(frames.iter().map(|frame| SafeText::new(frame)).collect()) }
}

fn at(at: i64) -> Value {
    Value::Nanoseconds(at.max(0).unsigned_abs())
}

pub(super) fn collection_fields(collection: &Collection) -> Vec<Field> {
    let bytes = |known: Option<u64>| known.map_or(Value::Missing, Value::Bytes);
    vec![
        ("at_ns", at(collection.start)),
        ("generation", Value::Count(collection.generation.into())),
        ("pause_ns", collection.pause_ns.map_or(Value::Missing, Value::Nanoseconds)),
        ("before_bytes", bytes(collection.heap_before)),
        ("after_bytes", bytes(collection.heap_after)),
        ("promoted_bytes", bytes(collection.promoted)),
        ("type", Value::text(collection.kind.name())),
        ("reason", Value::text(collection.reason.name())),
    ]
}

fn known(text: &str) -> Value {
    if text.is_empty() { Value::Missing } else { Value::text(text) }
}

pub(super) fn message_fields(message: &LogMessage) -> Vec<Field> {
    vec![
        ("at_ns", at(message.at)),
        ("level", Value::text(LEVELS.get(message.level).copied().unwrap_or_default())),
        ("logger", Value::text(&message.logger)),
        ("message", Value::text(&message.text)),
        ("arguments", known(&message.arguments)),
        ("exception", known(&message.exception)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{AllocationSample, LockWait};
    use crate::nettrace::ThreadId;

    #[test]
    fn unknown_values_are_missing() {
        let wait = LockWait { end: -1, thread: ThreadId::of(7), wait_ns: 5, owner: None, frames: Vec::new() };
        let found = fields(&Occurrence::LockWait(wait));
        let expected = [Value::Nanoseconds(0), Value::Count(7), Value::Nanoseconds(5), Value::Missing, Value::Missing];
        assert_eq!(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), expected);

        let (kind, type_name) = (AllocationKind::Pinned, "byte[]".to_owned());
        let sample = AllocationSample { at: 1, thread: ThreadId::of(7), kind, bytes: 9, object_bytes: None, type_name, frames: Vec::new() };
        let found = fields(&Occurrence::Allocation(sample));
        let (heap, name) = (Value::text("POH"), Value::text("byte[]"));
        let expected = [Value::Nanoseconds(1), Value::Count(7), Value::Bytes(9), Value::Missing, heap, name, Value::Missing];
        assert_eq!(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), expected);
    }

    /// A request without a status may have been answered with any.
    #[test]
    fn request_without_a_status_is_not_reported_as_successful() {
        let all = [Layer::Server, Layer::Client, Layer::Part].map(|layer| failed(layer, Outcome::Unknown));
        assert_eq!(all, [Value::Missing, Value::Missing, Value::Flag(false)]);
        let known = [Outcome::Status(500), Outcome::Status(404), Outcome::Failed].map(|outcome| failed(Layer::Server, outcome));
        assert_eq!(known, [true, false, true].map(Value::Flag));
    }
}
