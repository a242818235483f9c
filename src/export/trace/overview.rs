//! The first pass over a recording: names of methods, and facts about the process.

use crate::analysis::{Images, Live};
use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload, ProcessInfo, RuntimeInformation};
use crate::nettrace::{ByMetadata, Event, Metadata, SequencePoint, Sink, TraceHeader};

use super::own_events::is_own;
use super::stacks::Stacks;
use super::writer::Subject;

/// Maximum length of a command line, in characters.
const MAX_COMMAND_LINE: usize = 4096;

/// Facts about a recording that its export needs.
#[derive(Debug)]
pub struct Overview {
    pub(super) symbols: Live,
    kinds: ByMetadata<EventKind>,
    is_own: ByMetadata<bool>,
    /// Number of events of the program's own providers.
    pub(super) own_events: u64,
    pub(super) subject: Subject,
    pub(super) images: Images,
    /// Whether there are kernel samples, in this recording or in another file that is exported as well. They make those of the runtime redundant,
    /// which are then left out.
    pub has_cpu_samples: bool,
}

impl Default for Overview {
    fn default() -> Self {
        Self {
            symbols: Live::symbols_only(),
            kinds: ByMetadata::default(),
            is_own: ByMetadata::default(),
            own_events: 0,
            subject: Subject::default(),
            images: Images::default(),
            has_cpu_samples: false,
        }
    }
}

impl Overview {
    /// Returns the header of the stream.
    pub fn header(&self) -> &TraceHeader {
        &self.subject.header
    }

    /// Returns the facts about the process, and an empty set of stacks with its methods.
    pub(super) fn into_parts(mut self) -> (Subject, Stacks) {
        self.subject.processes = self.images.process_names().map(|(pid, name)| (pid, name.to_owned())).collect();
        (self.subject, Stacks::new(self.symbols.into_symbols(), self.images))
    }

    fn read<'a, P: Payload<'a>>(&self, event: &Event<'a>) -> Option<P> {
        P::read(Fields::of(event, self.subject.header.pointer_size))
    }
}

impl Sink for Overview {
    fn trace(&mut self, header: &TraceHeader) {
        self.subject.header = *header;
        Sink::trace(&mut self.symbols, header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(EventKind::of(metadata));
        self.is_own.push(is_own(metadata));
        self.symbols.metadata(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        match self.kinds.of(event.metadata) {
            EventKind::ProcessInfo => {
                if let Some(ProcessInfo { command_line, .. }) = self.read(event) {
                    command_line.copy_prefix(&mut self.subject.command_line, MAX_COMMAND_LINE);
                }
            }
            EventKind::RuntimeInformation => {
                if let Some(RuntimeInformation { version: [major, minor, ..], .. }) = self.read(event) {
                    self.subject.runtime = format!("{major}.{minor}");
                }
            }
            EventKind::CpuSample => self.has_cpu_samples = true,
            EventKind::Other => self.own_events += u64::from(self.is_own.of(event.metadata)),
            kind @ (EventKind::ProcessName | EventKind::ProcessMapping | EventKind::ProcessSymbol) => {
                // Malformed events are ignored.
                let _ = self.images.feed(kind, event);
            }
            kind if kind.locates_methods() => self.symbols.event(event),
            _ => {}
        }
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.symbols.sequence_point(point);
    }
}
