//! Converts a live stream into packets for a tracing service.

use std::io;

use super::output::{Output, Part};
use super::own_events::OwnEvents;
use super::perfetto::Perfetto;
use super::stacks::Stacks;
use super::walk::Walk;
use super::writer::{LivePackets, Subject};
use crate::analysis::{Images, Live, Symbols};
use crate::nettrace::{Event, Loss, Metadata, SequencePoint, Sink, Thread, TraceHeader};

/// The process of a stream, as of the opening of the stream.
#[derive(Debug, Clone, Default)]
pub struct LiveProcess {
    /// Pid in the namespace of the service, which may differ from its own.
    pub pid: u32,
    /// Start time, by any clock: distinguishes processes with the same pid.
    pub started: u64,
    /// Display name of the program.
    pub name: String,
    /// Command line.
    pub command_line: String,
    /// Version of the runtime.
    pub runtime: String,
}

/// Converts a live stream into packets. Feed it the stream, and [`take`](Self::take) the packets regularly.
///
/// Methods are named at the end, after the rundown; until then stacks contain addresses.
pub struct LiveTrace {
    process: LiveProcess,
    walk: Option<Walk<'static>>,
    /// Threads named before the start of the stream.
    early_threads: Vec<Thread>,
    symbols: Live,
    /// Time of the newest event whose packets were delivered.
    delivered_until: i64,
}

impl LiveTrace {
    /// Creates an empty trace.
    pub fn new(process: LiveProcess) -> Self {
        Self { process, walk: None, early_threads: Vec::new(), symbols: Live::symbols_only(), delivered_until: 0 }
    }

    /// Returns the packets since the previous call.
    pub fn take(&mut self) -> LivePackets {
        self.walk.as_mut().map(Walk::take).unwrap_or_default()
    }

    /// Acknowledges the delivery of the packets returned last.
    pub fn acknowledge(&mut self) {
        self.delivered_until = self.newest();
    }

    /// Describes everything again, since earlier descriptions may have been overwritten. `lost` packets were not delivered, all after the last
    /// delivered ones.
    pub fn restart(&mut self, lost: u64) {
        if let Some(walk) = &mut self.walk {
            walk.restart((lost > 0).then_some((self.delivered_until, lost)));
        }
    }

    fn newest(&self) -> i64 {
        self.walk.as_ref().map_or(0, Walk::newest)
    }

    /// Ends all open slices, names the methods, and returns the last packets. `trouble` is the reason if the stream did not end regularly.
    pub fn finish(self, trouble: Option<&str>) -> LivePackets {
        let Some(mut walk) = self.walk else { return LivePackets::default() };
        if let Some(trouble) = trouble {
            walk.note_loss(trouble, walk.newest(), &[]);
        }
        walk.set_symbols(self.symbols.into_symbols());
        // Writing to memory cannot fail.
        let _ = walk.end();
        walk.take()
    }
}

impl Sink for LiveTrace {
    fn trace(&mut self, header: &TraceHeader) {
        let LiveProcess { pid, started, name, command_line, runtime } = self.process.clone();
        // The pid in the process's own namespace may differ.
        let header = TraceHeader { process_id: pid, ..*header };
        let subject = Subject { header, command_line, runtime, ..Subject::default() };
        let writer = Perfetto::live(io::sink(), subject, started as i64, &name);
        let stacks = Stacks::new(Symbols::default(), Images::default());
        let mut walk = Walk::new(Output::new(Box::new(writer), stacks, Part::default(), pid), false, false, Some(OwnEvents::default()));
        walk.trace(&header);
        self.early_threads.drain(..).for_each(|thread| walk.thread(&thread));
        self.walk = Some(walk);
        Sink::trace(&mut self.symbols, &header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.symbols.metadata(metadata);
        self.walk.iter_mut().for_each(|walk| walk.metadata(metadata));
    }

    fn needs_order(&self, metadata: &Metadata) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.needs_order(metadata))
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let Some(walk) = &mut self.walk else { return };
        walk.event(event);
        if walk.kind(event.metadata).locates_methods() {
            self.symbols.event(event);
        }
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        self.walk.iter_mut().for_each(|walk| walk.ordered_event(event));
    }

    fn thread(&mut self, thread: &Thread) {
        match &mut self.walk {
            Some(walk) => walk.thread(thread),
            None => self.early_threads.push(thread.clone()),
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.walk.iter_mut().for_each(|walk| walk.loss(loss));
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        self.walk.iter_mut().for_each(|walk| walk.ordered_loss(loss));
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.walk.iter_mut().for_each(|walk| walk.sequence_point(point));
        self.symbols.sequence_point(point);
    }
}
