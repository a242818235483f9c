//! Detects a specific event in a stream.

use std::collections::VecDeque;
use std::time::Duration;

use super::event_text::{Described, describe};
use crate::clr::{Condition, Trigger};
use crate::nettrace::{ByMetadata, Event, Metadata, Sink, TraceHeader};

/// Detects the event of a [`Trigger`].
///
/// A text is searched for case-sensitively in the bytes of the payload: as UTF-16, which is how runtimes write text, and as UTF-8.
#[derive(Debug)]
pub struct EventTrigger {
    trigger: Option<Trigger>,
    needles: Option<[Vec<u8>; 2]>,
    header: TraceHeader,
    /// Timestamps of the latest occurrences, fewer than are required.
    latest: VecDeque<i64>,
    /// Whether events of a kind are examined, by metadata index.
    selected: ByMetadata<bool>,
    found: Option<Described>,
}

impl EventTrigger {
    /// Creates a detector for this event; with `None` it never triggers.
    pub fn new(trigger: Option<Trigger>) -> Self {
        let needles = match trigger.as_ref().map(Trigger::condition) {
            Some(Condition::Text(text)) => Some([text.encode_utf16().flat_map(u16::to_le_bytes).collect(), text.as_bytes().to_vec()]),
            _ => None,
        };
        let (latest, selected) = (VecDeque::new(), ByMetadata::default());
        Self { trigger, needles, header: TraceHeader::default(), latest, selected, found: None }
    }

    /// Returns whether the event has occurred, as often as required.
    pub fn is_triggered(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the fields of the occurrence that completed it.
    pub fn found(&self) -> Option<&Described> {
        self.found.as_ref()
    }

    fn matches(&self, event: &Event<'_>) -> bool {
        if let Some(Condition::Fields(expected)) = self.trigger.as_ref().map(Trigger::condition) {
            let described = describe(event, self.header.pointer_size);
            let has = |(name, value): &(String, String)| {
                described.fields().any(|(found, text)| found.eq_ignore_ascii_case(name) && is_value(text, value))
            };
            return expected.iter().all(has);
        }
        let holds = |needle: &Vec<u8>| event.payload.windows(needle.len()).any(|window| window == needle);
        self.needles.as_ref().is_none_or(|needles| needles.iter().any(holds))
    }

    /// Notes an occurrence, and returns whether there are as many as required, in the time required.
    fn is_last(&mut self, timestamp: i64) -> bool {
        let Some(repetition) = self.trigger.as_ref().map(Trigger::repetition) else { return false };
        self.latest.push_back(timestamp);
        if self.latest.len() < repetition.count as usize {
            return false;
        }
        let Some(first) = self.latest.pop_front() else { return false };
        // Negative between threads, whose events are not in order.
        let took = u64::try_from(self.header.nanoseconds_between(first, timestamp)).unwrap_or_default();
        repetition.within.is_none_or(|within| Duration::from_nanos(took) <= within)
    }
}

/// Returns whether a formatted field has this value: the same text, the same number in decimal or hexadecimal, or the name of the number.
fn is_value(text: &str, value: &str) -> bool {
    let parsed = |text: &str| text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    let named = text.strip_suffix(')').and_then(|text| text.split_once(" ("));
    // Only a number has a name in parentheses.
    let (number, word) = named.filter(|(number, _)| parsed(number).is_some()).unwrap_or((text, text));
    let is_same_number = parsed(number).is_some_and(|number| parsed(value) == Some(number));
    text == value || is_same_number || word.eq_ignore_ascii_case(value)
}

impl Sink for EventTrigger {
    fn trace(&mut self, header: &TraceHeader) {
        self.header = *header;
    }

    fn metadata(&mut self, metadata: &Metadata) {
        let Metadata { provider, event_id, name, .. } = metadata;
        self.selected.push(self.trigger.as_ref().is_some_and(|trigger| trigger.matches_event(provider, *event_id, name)));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if self.selected.of(event.metadata) && self.found.is_none() && self.matches(event) && self.is_last(event.timestamp()) {
            self.found = Some(describe(event, self.header.pointer_size));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, Field, FieldType, Limits, NewEvent};
    use crate::wire::Put;

    /// Returns whether the event occurs in this stream.
    fn triggers(trigger: Option<&str>, bytes: &[u8]) -> bool {
        let mut trigger = EventTrigger::new(trigger.map(|trigger| Trigger::parse(trigger).unwrap()));
        Decoder::new(Limits::default()).feed(bytes, &mut trigger).unwrap();
        trigger.is_triggered()
    }

    #[test]
    fn trigger_matches_field_values() {
        let runtime = "Microsoft-Windows-DotNETRuntime";
        let mut encoder = Encoder::new(TraceHeader { ticks_per_second: 1_000, ..TraceHeader::default() });
        let id = encoder.metadata(&Metadata { provider: runtime.to_owned(), event_id: 1, version: 2, ..Metadata::default() });
        for (count, depth) in [(7_u32, 0_u32), (8, 2)] {
            let mut payload = Vec::new();
            // Induced.
            [count, depth, 1, 0].into_iter().for_each(|word| payload.put_u32(word));
            encoder.event(&NewEvent { metadata: id, thread: 1, capture_thread: 1, sorted: true, payload: &payload, ..NewEvent::default() });
        }
        let fields = vec![Field { name: "Message".to_owned(), kind: FieldType::String }];
        let metadata = encoder.metadata(&Metadata { provider: "P".to_owned(), event_id: 9, fields, ..Metadata::default() });
        let mut payload = Vec::new();
        payload.put_utf16z("Retry (timeout)");
        encoder.event(&NewEvent { metadata, thread: 1, capture_thread: 1, sorted: true, payload: &payload, ..NewEvent::default() });
        encoder.end();
        let bytes = encoder.take();
        for (fields, expected) in [("Message=Retry (timeout)", true), ("Message=timeout", false)] {
            assert_eq!(triggers(Some(&format!("P/9[{fields}]")), &bytes), expected, "{fields}");
        }
        for (fields, expected) in [
            ("Depth=2", true),
            ("depth=0x2,Reason=induced", true),
            ("Depth=2,Count=7", false),
            ("Depth=1", false),
            ("Depth=", false),
            ("Other=2", false),
            ("Reason=1", true),
        ] {
            assert_eq!(triggers(Some(&format!("{runtime}/GCStart[{fields}]")), &bytes), expected, "{fields}");
        }
    }

    /// Later ones are those of the stop.
    #[test]
    fn the_first_occurrence_is_described() {
        let mut encoder = Encoder::new(TraceHeader::default());
        let fields = vec![Field { name: "Number".to_owned(), kind: FieldType::Int32 }];
        let metadata = encoder.metadata(&Metadata { provider: "P".to_owned(), event_id: 7, fields, ..Metadata::default() });
        for number in [41_u32, 42] {
            encoder.event(&NewEvent { metadata, payload: &number.to_le_bytes(), ..NewEvent::default() });
        }
        encoder.end();
        let mut trigger = EventTrigger::new(Some(Trigger::parse("P/7").unwrap()));
        Decoder::new(Limits::default()).feed(&encoder.take(), &mut trigger).unwrap();
        let found: Vec<_> = trigger.found.iter().flat_map(|found| found.fields()).collect();
        assert_eq!(found, [("Number", "41")]);
    }

    #[test]
    fn event_must_occur_several_times_in_a_time() {
        let mut encoder = Encoder::new(TraceHeader { ticks_per_second: 1_000, ..TraceHeader::default() });
        let id = encoder.metadata(&Metadata { provider: "P".to_owned(), event_id: 7, ..Metadata::default() });
        // Milliseconds: two bursts of three; in the second, the events of two threads are not in order.
        for timestamp in [0, 1_000, 2_000, 60_000, 60_900, 60_300] {
            encoder.event(&NewEvent { metadata: id, timestamp, thread: 1, capture_thread: 1, ..NewEvent::default() });
        }
        encoder.end();
        let bytes = encoder.take();
        for (times, expected) in [
            ("3 times in 1s", true),
            ("3 times in 299ms", false),
            ("2 times in 900ms", true),
            ("4 times in 2s", false),
            ("4 times in 1m", true),
            ("6 times", true),
            ("7 times", false),
        ] {
            assert_eq!(triggers(Some(&format!("P/7 {times}")), &bytes), expected, "{times}");
        }
    }

    #[test]
    fn trigger_matches_event_and_payload_text() {
        let utf16: Vec<u8> = "a TimeoutException".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let table = [
            ("P/7", true),
            ("P/8", false),
            ("P/Boom", true),
            ("P/7:Timeout", true),
            ("P/7:timeout", false),
            ("P/7:in UTF-8", true),
            ("P/7:nothing like it", false),
            ("Q/7", false),
        ];
        let header = TraceHeader { ticks_per_second: 1_000, ..TraceHeader::default() };
        let mut encoder = Encoder::new(header);
        let kind = Metadata { provider: "P".to_owned(), event_id: 7, name: "Boom".to_owned(), ..Metadata::default() };
        let id = encoder.metadata(&kind);
        for payload in [&[0][..], &utf16, b"in UTF-8"] {
            encoder.event(&NewEvent { metadata: id, thread: 1, capture_thread: 1, sorted: true, payload, ..NewEvent::default() });
        }
        encoder.end();
        let bytes = encoder.take();
        for (trigger, expected) in table {
            assert_eq!(triggers(Some(trigger), &bytes), expected, "{trigger}");
        }
        assert!(!triggers(None, &bytes));
    }
}
