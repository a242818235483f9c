//! Recordings converted to format 6 of nettrace.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::nettrace::{Event, Loss, ThreadId};

/// All events, regardless of their order, and the number of lost ones.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    events: BTreeMap<(String, u32, String), (u64, u64)>,
    lost: u64,
    newest: i64,
    late: u64,
    /// The process of all threads.
    process: u32,
}

impl Sink for Content {
    fn trace(&mut self, header: &TraceHeader) {
        self.process = header.process_id;
    }

    fn needs_order(&self, _metadata: &Metadata) -> bool {
        true
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        let Metadata { provider, event_id, name, keywords, version, level, opcode, .. } = event.metadata;
        let (count, sum) = self.events.entry((provider.clone(), *event_id, name.clone())).or_default();
        let mut hash = DefaultHasher::new();
        let stack: Vec<_> = event.stack().into_iter().flat_map(|stack| stack.frames()).collect();
        (keywords, version, level, opcode, event.timestamp(), event.processor(), event.payload, stack).hash(&mut hash);
        let thread = |id: ThreadId| (id.process, id.thread);
        (thread(event.thread()), thread(event.capture_thread()), event.activity_id(), event.related_activity_id()).hash(&mut hash);
        (*count, *sum) = (*count + 1, sum.wrapping_add(hash.finish()));
        self.late += u64::from(event.timestamp() < self.newest);
        self.newest = self.newest.max(event.timestamp());
    }

    fn loss(&mut self, loss: &Loss) {
        self.lost += u64::from(loss.count);
    }
}

#[test]
fn format_6_export_preserves_every_event() {
    for name in ["net31-heavy", "net9-heavy-drops", "net9-heavy-norundown", "v6-record-trace-oncpu-offcpu"] {
        let bytes = captured(name);
        let joined = export(&bytes, TraceFormat::Nettrace);
        assert_eq!(joined[12], 6);
        let [before, after, again] = [&bytes, &joined, &export(&joined, TraceFormat::Nettrace)].map(|bytes| {
            let mut content = Content::default();
            read(bytes, &mut content);
            content
        });
        assert!(before.events.len() > 3 && before == after, "{name}: {before:#?} {after:#?}");
        assert!(after == again, "{name}");
    }
}

#[test]
fn format_6_export_preserves_field_values() {
    let mut values = [Vec::new(), Vec::new()];
    struct Fields<'a>(&'a mut Vec<String>);
    impl Sink for Fields<'_> {
        fn event(&mut self, event: &Event<'_>) {
            let mut fields = event.values();
            let read = fields.by_ref().map(|(field, value)| format!("{}={value:?}", field.name).replace("v6: true", "v6: false"));
            self.0.push(format!("{} {}", event.metadata.name, read.collect::<Vec<_>>().join(" ")));
        }
    }
    let bytes = captured("net9-heavy-norundown");
    let joined = export(&bytes, TraceFormat::Nettrace);
    for (bytes, values) in [&bytes, &joined].into_iter().zip(&mut values) {
        read(bytes, &mut Fields(values));
        values.sort_unstable();
    }
    assert!(values[0].len() > 100 && values[0] == values[1]);
}
