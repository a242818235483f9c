//! The first look at a recording: the names of its methods, and what it is of.

use foldhash::HashMap;

use crate::analysis::{Images, Live};
use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload, ProcessInfo, RuntimeInformation};
use crate::nettrace::{Event, Metadata, SequencePoint, Sink, TraceHeader};

use super::stacks::Stacks;
use super::walk::set;
use super::writer::Subject;

/// Characters of a command line.
const COMMAND_LINE: usize = 4096;

/// What has to be known of a recording before it is exported.
#[derive(Debug)]
pub struct Overview {
    symbols: Live,
    kinds: Vec<EventKind>,
    subject: Subject,
    images: Images,
}

impl Default for Overview {
    fn default() -> Self {
        Self { symbols: Live::only_symbols(), kinds: vec![EventKind::Other], subject: Subject::default(), images: Images::default() }
    }
}

impl Overview {
    /// What the stream has in common.
    pub fn header(&self) -> &TraceHeader {
        &self.subject.header
    }

    /// The processes that the stream names, where it is of several.
    pub(super) fn process_ids(&self) -> impl Iterator<Item = u32> {
        self.images.process_names().map(|(pid, _)| pid)
    }

    /// First addresses of the methods that are known, in their order.
    pub(super) fn method_starts(&self) -> impl Iterator<Item = u64> {
        self.symbols.symbols().starts()
    }

    /// The command line of the process, empty where it is not known.
    pub(super) fn command_line(&self) -> &str {
        &self.subject.command_line
    }

    /// Sets by what processes are distinguished from others of their number.
    pub(super) fn set_incarnations(&mut self, incarnations: HashMap<u32, i64>) {
        self.subject.incarnations = incarnations;
    }

    /// Whether there are samples of the kernel.
    pub(super) fn has_cpu_samples(&self) -> bool {
        self.kinds.contains(&EventKind::CpuSample)
    }

    /// The process, and no stacks yet of its methods.
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
        self.symbols.metadata(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        match self.kinds.get(event.metadata.index as usize) {
            Some(EventKind::ProcessInfo) => {
                if let Some(ProcessInfo { command_line, .. }) = self.read(event) {
                    set(&mut self.subject.command_line, command_line, COMMAND_LINE);
                }
            }
            Some(EventKind::RuntimeInformation) => {
                if let Some(RuntimeInformation { version: [major, minor, ..], .. }) = self.read(event) {
                    self.subject.runtime = format!("{major}.{minor}");
                }
            }
            Some(kind @ (EventKind::ProcessName | EventKind::ProcessMapping | EventKind::ProcessSymbol)) => {
                // One that makes no sense names nothing.
                let _ = self.images.feed(*kind, event);
            }
            Some(kind) if kind.locates_methods() => self.symbols.event(event),
            _ => {}
        }
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.symbols.sequence_point(point);
    }
}
