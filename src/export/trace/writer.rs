//! The interface of export formats, and its data types.

use std::io;

use foldhash::HashMap;

use crate::analysis::module_name;
use crate::nettrace::{Event, ThreadId, TraceHeader};

use super::open_slices::flow_of;
use super::stacks::{NodeId, Stacks};

/// An export format. Times are nanoseconds since the start of the session; text is unsanitized, as in the stream.
///
/// Calls are in the order of end times: a slice is written when it is over, so enclosing slices follow it.
pub(super) trait Writer {
    /// Writes a thread. Called before everything that references it, and again if its name is found later.
    fn thread(&mut self, _thread: ThreadId, _name: &str) -> io::Result<()> {
        Ok(())
    }

    /// Writes a sample. Samples of a thread are in time order.
    fn sample(&mut self, _sample: &Sample, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Writes a slice or an instant event.
    fn event(&mut self, _event: &TrackEvent<'_>, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Writes a value of a process counter.
    fn counter(&mut self, _process: u32, _counter: &Counter<'_>, _at: i64, _value: f64) -> io::Result<()> {
        Ok(())
    }

    /// Whether the format contains allocations.
    fn has_allocations(&self) -> bool {
        false
    }

    /// Writes an allocation. Allocations are in time order.
    fn allocation(&mut self, _allocation: &Allocation, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Node and frame ids may be reassigned from here on, and open calls end.
    fn stacks_cleared(&mut self, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Takes the packets written so far, if they are for a tracing service.
    fn take(&mut self) -> LivePackets {
        LivePackets::default()
    }

    /// Describes everything again, for readers that may lack earlier packets; `is_incomplete` if some were lost.
    fn restart(&mut self, _is_incomplete: bool) -> io::Result<()> {
        Ok(())
    }

    /// Finishes the output.
    fn finish(&mut self, end: i64, stacks: &Stacks) -> io::Result<()>;
}

/// Packets for a tracing service.
#[derive(Debug, Default)]
pub struct LivePackets {
    /// Each packet as a `packet` field of a `Trace`.
    pub bytes: Vec<u8>,
    /// Number of packets.
    pub count: u64,
}

/// The process of a recording.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// Header of the stream.
    pub(super) header: TraceHeader,
    /// Command line; empty if unknown.
    pub(super) command_line: String,
    /// Version of the runtime; empty if unknown.
    pub(super) runtime: String,
    /// Names of processes, if the stream has several.
    pub(super) processes: HashMap<u32, String>,
    /// Values that distinguish processes with the same pid; none for processes that only occur in this stream.
    pub(super) incarnations: HashMap<u32, i64>,
}

impl Subject {
    /// Returns the pid of a thread's process.
    pub(super) fn pid(&self, thread: ThreadId) -> u32 {
        thread.process_or(self.header.process_id)
    }

    /// Returns the name of the program, or of the assembly if it is run by `dotnet`.
    pub(super) fn name(&self) -> &str {
        let mut names = self.command_line.split(' ').filter(|word| !word.is_empty()).map(module_name);
        let program = names.next().unwrap_or_default();
        names.next().filter(|_| program == "dotnet").unwrap_or(program)
    }
}

/// A sample of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) thread: ThreadId,
    pub(super) at: i64,
    /// The time before it that the sample represents, nanoseconds.
    pub(super) duration: i64,
    pub(super) node: NodeId,
    /// Whether the thread was in native code called by its leaf frame: usually it is waiting.
    pub(super) is_native: bool,
}

/// A slice, or an instant event.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackEvent<'a> {
    /// The thread of the event. If the event is not drawn on a thread, only its process matters.
    pub(super) thread: ThreadId,
    pub(super) track: Track<'a>,
    pub(super) category: &'static str,
    pub(super) name: &'a str,
    pub(super) start: i64,
    /// `None` for an instant event.
    pub(super) end: Option<i64>,
    /// Stack at the start; 0 if unknown.
    pub(super) node: NodeId,
    /// Flow ids: events that share one are connected; 0 for none.
    pub(super) flows: [u64; 2],
    pub(super) arguments: &'a [(&'static str, ArgumentValue<'a>)],
    /// Fields of an event that is shown as it was recorded, by their names in the stream.
    pub(super) fields: &'a [(&'a str, &'a str)],
}

impl<'a> TrackEvent<'a> {
    /// Creates an instant event on the thread of an event of the recording.
    pub(super) fn instant(
        event: &Event<'_>,
        at: i64,
        category: &'static str,
        name: &'a str,
        arguments: &'a [(&'static str, ArgumentValue<'a>)],
    ) -> Self {
        let (thread, flows) = (event.thread(), [flow_of(event.activity_id()), 0]);
        Self { thread, track: Track::Thread, category, name, start: at, end: None, node: 0, flows, arguments, fields: &[] }
    }

    /// Creates a slice on a thread.
    pub(super) fn slice(
        thread: ThreadId,
        category: &'static str,
        name: &'a str,
        start: i64,
        end: i64,
        arguments: &'a [(&'static str, ArgumentValue<'a>)],
    ) -> Self {
        Self { thread, track: Track::Thread, category, name, start, end: Some(end), node: 0, flows: [0; 2], arguments, fields: &[] }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    pub(super) process: u32,
    pub(super) at: i64,
    pub(super) bytes: u64,
    pub(super) node: NodeId,
}

/// The value of an event's argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ArgumentValue<'a> {
    Count(u64),
    Number(f64),
    Flag(bool),
    Text(&'a str),
}

/// The track of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Track<'a> {
    /// The track of the event's thread.
    Thread,
    /// One track per capture thread with missing events: the gaps of two threads may overlap, slices of one track must not.
    LostEvents,
    /// Packets that a tracing service did not accept.
    LostPackets,
    GcPauses,
    BackgroundGc,
    ThreadPool,
    /// A lane of an operation, such as the requests that a server handles: overlapping ones are on different lanes.
    Operation {
        name: &'a str,
        lane: u32,
    },
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Counter<'a> {
    /// Size in bytes of a generation, of the large object heap (3) or of the pinned object heap (4).
    Heap(usize),
    /// Bytes per second.
    AllocationRate,
    /// Duration of a pause as a share of the time since the previous pause, percent.
    PauseShare,
    /// Worker threads of the thread pool.
    Workers,
    /// A published counter: provider or meter, name with tags, unit of the values.
    Published { group: &'a str, name: &'a str, unit: &'a str },
}

impl Counter<'_> {
    /// Names of the parts of the heap.
    pub(super) const HEAPS: [&'static str; 5] = ["Gen 0", "Gen 1", "Gen 2", "Large object heap", "Pinned object heap"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_named_after_its_program() {
        let table = [
            ("dotnet /app/Orders.dll --urls http://*:80", "Orders"),
            ("/usr/bin/dotnet exec.dll", "exec"),
            ("/opt/tool --x", "tool"),
            (r"C:\dotnet\dotnet.exe C:\app\Orders.dll", "Orders"),
            (r"C:\tools\tool.exe /x", "tool"),
            ("dotnet", "dotnet"),
            ("", ""),
        ];
        for (line, name) in table {
            let subject = Subject { command_line: line.to_owned(), ..Subject::default() };
            assert_eq!(subject.name(), name, "{line}");
        }
    }
}
