//! Waiting for one event.

use crate::clr::Trigger;
use crate::nettrace::{Event, Metadata, Sink};

/// Notices when the event comes that is waited for.
///
/// A text is looked for as it is, in the bytes of the payload: as UTF-16, which is how runtimes write text, and as UTF-8. The layouts of the
/// runtime's own payloads are not in the stream, so that this holds for every event.
#[derive(Debug)]
pub struct Watch {
    trigger: Option<Trigger>,
    needles: Option<[Vec<u8>; 2]>,
    /// By metadata index: whether events of this kind are looked at.
    wanted: Vec<bool>,
    came: bool,
}

impl Watch {
    /// Waits for this event, or for none.
    pub fn new(trigger: Option<Trigger>) -> Self {
        let text = trigger.as_ref().and_then(Trigger::text);
        let needles = text.map(|text| [text.encode_utf16().flat_map(u16::to_le_bytes).collect(), text.as_bytes().to_vec()]);
        Self { trigger, needles, wanted: vec![false], came: false }
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.came
    }
}

impl Sink for Watch {
    fn metadata(&mut self, metadata: &Metadata) {
        let Metadata { provider, event_id, name, .. } = metadata;
        self.wanted.push(self.trigger.as_ref().is_some_and(|trigger| trigger.is_kind(provider, *event_id, name)));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if self.wanted.get(event.metadata.index as usize) == Some(&true) {
            let holds = |needle: &Vec<u8>| event.payload.windows(needle.len()).any(|window| window == needle);
            self.came |= self.needles.as_ref().is_none_or(|needles| needles.iter().any(holds));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, Limits, NewEvent, TraceHeader};

    #[test]
    fn the_event_and_its_text() {
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
            let mut watch = Watch::new(Some(Trigger::parse(trigger).unwrap()));
            Decoder::new(Limits::default()).feed(&bytes, &mut watch).unwrap();
            assert_eq!(watch.has_come(), expected, "{trigger}");
        }
        let mut nothing = Watch::new(None);
        Decoder::new(Limits::default()).feed(&bytes, &mut nothing).unwrap();
        assert!(!nothing.has_come());
    }
}
