//! A stream as packets for a tracing service, while it comes.

use std::cell::RefCell;
use std::hash::Hash;
use std::io::{self, Write};
use std::rc::Rc;

use super::output::{Output, Part};
use super::perfetto::{Perfetto, live};
use super::stacks::Stacks;
use super::walk::Walk;
use super::writer::Subject;
use crate::analysis::{Images, Live, Symbols};
use crate::clr::EventKind;
use crate::nettrace::{Event, Loss, Metadata, SequencePoint, Sink, Thread, TraceHeader};

/// The process that a stream is of, as it was when the stream was opened.
#[derive(Debug, Clone, Default)]
pub struct LiveProcess {
    /// Its number where the service is, which need not be that of its own pid namespace.
    pub pid: u32,
    /// When it was started, by any clock: another process of the number has another time.
    pub started: u64,
    /// The program, for people.
    pub name: String,
    /// Its command line.
    pub command_line: String,
    /// The version of its runtime.
    pub runtime: String,
}

/// Turns a stream into packets as it comes. Give it the stream, and [`take`](Self::take) the packets from time to time.
///
/// Methods are named at the end, when the runtime has described them; until then stacks have addresses.
pub struct LiveTrace {
    process: LiveProcess,
    packets: Packets,
    walk: Option<Walk<'static>>,
    /// Threads that were named before the stream began.
    early: Vec<Thread>,
    symbols: Live,
    kinds: Vec<EventKind>,
    /// The time of the newest event whose packets were taken.
    taken: i64,
}

/// Where the packets are gathered.
#[derive(Debug, Clone, Default)]
struct Packets(Rc<RefCell<Vec<u8>>>);

impl Write for Packets {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Packets that show sentences at a moment, nanoseconds of the monotonic clock, each as a `packet` field of a `Trace`. They need a sequence of their own.
pub fn notices(at: u64, sentences: &[impl AsRef<str> + Hash]) -> Vec<u8> {
    live::notices(at, sentences)
}

impl LiveTrace {
    /// Nothing has come yet.
    pub fn new(process: LiveProcess) -> Self {
        Self {
            process,
            packets: Packets::default(),
            walk: None,
            early: Vec::new(),
            symbols: Live::only_symbols(),
            kinds: vec![EventKind::Other],
            taken: 0,
        }
    }

    /// The packets of what has come since the last time, each as a `packet` field of a `Trace`.
    pub fn take(&mut self) -> Vec<u8> {
        if let Some(walk) = &mut self.walk {
            walk.flush();
        }
        self.packets.0.take()
    }

    /// The packets that were taken last have arrived.
    pub fn arrived(&mut self) {
        self.taken = self.newest();
    }

    /// Describes everything again: what was described before may be overwritten. `lost` packets did not arrive, all since those that did last.
    pub fn restart(&mut self, lost: u64) {
        if let Some(walk) = &mut self.walk {
            walk.restart((lost > 0).then_some((self.taken, lost)));
        }
    }

    fn newest(&self) -> i64 {
        self.walk.as_ref().map_or(0, Walk::newest)
    }

    /// Ends what is open, names the methods, and gives the last packets. `trouble` is the reason why the stream did not end properly.
    pub fn finish(mut self, trouble: Option<&str>) -> Vec<u8> {
        let symbols = self.symbols.into_symbols();
        if let Some(mut walk) = self.walk.take() {
            if let Some(trouble) = trouble {
                walk.note_loss(trouble, walk.newest(), &[]);
            }
            walk.set_symbols(symbols);
            // Writing into memory does not fail.
            let _ = walk.finish();
        }
        self.packets.0.take()
    }
}

impl Sink for LiveTrace {
    fn trace(&mut self, header: &TraceHeader) {
        let LiveProcess { pid, started, name, command_line, runtime } = self.process.clone();
        // In its own namespace the process may have another number.
        let header = TraceHeader { process_id: pid, ..*header };
        let subject = Subject { header, command_line, runtime, ..Subject::default() };
        let writer = Perfetto::live(self.packets.clone(), subject, started as i64, &name);
        let stacks = Stacks::new(Symbols::default(), Images::default());
        let mut walk = Walk::new(Output::new(Box::new(writer), stacks, Part::default(), pid), false, false);
        walk.trace(&header);
        self.early.drain(..).for_each(|thread| walk.thread(&thread));
        self.walk = Some(walk);
        Sink::trace(&mut self.symbols, &header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(EventKind::of(metadata));
        self.symbols.metadata(metadata);
        if let Some(walk) = &mut self.walk {
            walk.metadata(metadata);
        }
    }

    fn needs_order(&self, metadata: &Metadata) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.needs_order(metadata))
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if let Some(walk) = &mut self.walk {
            walk.event(event);
        }
        if self.kinds.get(event.metadata.index as usize).is_some_and(|kind| kind.locates_methods()) {
            self.symbols.event(event);
        }
    }

    fn ordered_event(&mut self, event: &Event<'_>) {
        if let Some(walk) = &mut self.walk {
            walk.ordered_event(event);
        }
    }

    fn thread(&mut self, thread: &Thread) {
        match &mut self.walk {
            Some(walk) => walk.thread(thread),
            None => self.early.push(thread.clone()),
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if let Some(walk) = &mut self.walk {
            walk.loss(loss);
        }
    }

    fn ordered_loss(&mut self, loss: &Loss) {
        if let Some(walk) = &mut self.walk {
            walk.ordered_loss(loss);
        }
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        if let Some(walk) = &mut self.walk {
            walk.sequence_point(point);
        }
        self.symbols.sequence_point(point);
    }
}
