//! Events of the program's own providers, which are shown as they were recorded.

use crate::analysis::Described;
use crate::clr::{EventKind, known_provider};
use crate::nettrace::{ByMetadata, Event, Metadata};

use super::output::Output;
use super::writer::{ArgumentValue, TrackEvent};

/// Maximum number of fields of an event.
const MAX_FIELDS: usize = 16;

/// Whether an event is shown as it was recorded: it is not interpreted, and its provider is not .NET's.
pub(super) fn is_own(metadata: &Metadata) -> bool {
    let provider = &metadata.provider;
    EventKind::of(metadata) == EventKind::Other && known_provider(provider).is_none() && !EventKind::only_describes(provider)
}

/// Shows these events on their threads.
#[derive(Default)]
pub(super) struct OwnEvents {
    /// Names of the events that are shown.
    names: ByMetadata<Option<String>>,
    described: Described,
}

impl OwnEvents {
    /// Adds the next metadata record of the stream.
    pub(super) fn metadata(&mut self, metadata: &Metadata) {
        let name = || if metadata.name.is_empty() { format!("Event {}", metadata.event_id) } else { metadata.name.clone() };
        self.names.push(is_own(metadata).then(name));
    }

    /// Adds an event to the output, if it is one of them. `at`: nanoseconds since the start of the session.
    pub(super) fn add(&mut self, event: &Event<'_>, at: i64, pointer_size: u8, output: &mut Output<'_>) {
        let Some(Some(name)) = self.names.get(event.metadata) else { return };
        self.described.read(event, pointer_size);
        let mut fields = [("", ""); MAX_FIELDS];
        let count = fields.iter_mut().zip(self.described.fields()).map(|(place, field)| *place = field).count();
        let arguments = [("provider", ArgumentValue::Text(&event.metadata.provider))];
        let node = output.stacks.add(event);
        let shown = TrackEvent::instant(event, at, "event", name, &arguments);
        output.event(TrackEvent { node, fields: &fields[..count], ..shown });
    }
}
