//! What an export is made of, whatever its format.

use std::io;

use foldhash::HashMap;

use crate::nettrace::{ThreadId, TraceHeader};

use super::stacks::{NodeId, Stacks};

/// A format. Moments are nanoseconds since the start of the session; text is as the stream has it, and not sanitised.
///
/// The order is that in which things end: a slice comes when it is over, so that those around it come behind it.
pub(super) trait Writer {
    /// A thread. Comes before everything that names it, and again where its name is found later.
    fn thread(&mut self, _thread: ThreadId, _name: &str) -> io::Result<()> {
        Ok(())
    }

    /// A sample. Those of a thread come in the order of time.
    fn sample(&mut self, _sample: &Sample, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Something that took time, or happened at a moment.
    fn event(&mut self, _event: &TrackEvent<'_>, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// A value of a counter of a process.
    fn counter(&mut self, _process: u32, _counter: &Counter<'_>, _at: i64, _value: f64) -> io::Result<()> {
        Ok(())
    }

    /// Memory that was allocated. These come in the order of time.
    fn allocation(&mut self, _allocation: &Allocation, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Numbers of nodes and frames are given again from here on.
    fn stacks_cleared(&mut self, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Hands over what is gathered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Describes everything again from here on: a reader may not have what was written before, and lacks a part of it with `is_incomplete`.
    fn restart(&mut self, _is_incomplete: bool) -> io::Result<()> {
        Ok(())
    }

    /// Nothing comes any more.
    fn finish(&mut self, end: i64, stacks: &Stacks) -> io::Result<()>;
}

/// The process that a recording is of.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// What the stream has in common.
    pub(super) header: TraceHeader,
    /// Its command line, empty where it is not known.
    pub(super) command_line: String,
    /// The version of its runtime, empty where it is not known.
    pub(super) runtime: String,
    /// Names of processes, where the stream is of several.
    pub(super) processes: HashMap<u32, String>,
    /// What distinguishes processes from others of their number; nothing for those that only this stream has.
    pub(super) incarnations: HashMap<u32, i64>,
}

impl Subject {
    /// Where a thread's process has its number: of its own in a stream of several processes.
    pub(super) fn pid(&self, thread: ThreadId) -> u32 {
        if thread.process == 0 { self.header.process_id } else { thread.process }
    }

    /// The program that the process runs: its assembly where `dotnet` runs one.
    pub(super) fn name(&self) -> &str {
        let file = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().len();
        let mut words = self.command_line.split(' ').filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let program = &first[first.len() - file(first)..];
        match words.next() {
            Some(assembly) if program == "dotnet" => {
                let name = &assembly[assembly.len() - file(assembly)..];
                name.strip_suffix(".dll").unwrap_or(name)
            }
            _ => program,
        }
    }
}

/// A sample of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) thread: ThreadId,
    pub(super) at: i64,
    /// The time before it that it stands for, nanoseconds.
    pub(super) duration: i64,
    pub(super) node: NodeId,
    /// Whether the thread was in native code, which its leaf called: waiting as a rule.
    pub(super) is_native: bool,
}

/// Something that took time, or happened at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackEvent<'a> {
    /// Where it happened. Of events that are not drawn in a thread, its process counts.
    pub(super) thread: ThreadId,
    pub(super) track: Track<'a>,
    pub(super) category: &'static str,
    pub(super) name: &'a str,
    pub(super) start: i64,
    /// `None` where it took no time.
    pub(super) end: Option<i64>,
    /// Where it began; 0 where that is not known.
    pub(super) node: NodeId,
    /// What it is connected with: everything else that has one of these; 0 is none.
    pub(super) flows: [u64; 2],
    pub(super) facts: &'a [(&'static str, Fact<'a>)],
}

impl<'a> TrackEvent<'a> {
    /// Something that took time in a thread.
    pub(super) fn slice(
        thread: ThreadId,
        category: &'static str,
        name: &'a str,
        start: i64,
        end: i64,
        facts: &'a [(&'static str, Fact<'a>)],
    ) -> Self {
        Self { thread, track: Track::Thread, category, name, start, end: Some(end), node: 0, flows: [0; 2], facts }
    }
}

/// Memory that was allocated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    pub(super) process: u32,
    pub(super) at: i64,
    pub(super) bytes: u64,
    pub(super) node: NodeId,
}

/// A fact of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fact<'a> {
    Count(u64),
    Number(f64),
    Flag(bool),
    Text(&'a str),
}

/// Where an event is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Track<'a> {
    /// That of the thread that it happened in.
    Thread,
    /// That of the capture thread whose events are missing: such gaps of two threads overlap, and slices of one track must not.
    LostEvents,
    /// What a tracing service did not take.
    LostPackets,
    GcPauses,
    BackgroundGc,
    ThreadPool,
    /// One of the lanes of an operation, such as the requests that a server handles: those that overlap have different ones.
    Operation {
        name: &'a str,
        lane: u32,
    },
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Counter<'a> {
    /// Bytes of a generation, of the large object heap (3) or of the pinned object heap (4).
    Heap(usize),
    /// Bytes a second.
    AllocationRate,
    /// Share of the time since the pause before that a pause took, per cent.
    PauseShare,
    /// Workers of the thread pool.
    Workers,
    /// One that the program publishes: provider or meter, name with tags, unit.
    Published { group: &'a str, name: &'a str, unit: &'a str },
}

impl Counter<'_> {
    /// Names of what the heap consists of.
    pub(super) const HEAPS: [&'static str; 5] = ["Gen 0", "Gen 1", "Gen 2", "Large object heap", "Pinned object heap"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_by_its_program() {
        let table = [
            ("dotnet /app/Orders.dll --urls http://*:80", "Orders"),
            ("/usr/bin/dotnet exec.dll", "exec"),
            ("/opt/tool --x", "tool"),
            ("dotnet", "dotnet"),
            ("", ""),
        ];
        for (line, name) in table {
            let subject = Subject { command_line: line.to_owned(), ..Subject::default() };
            assert_eq!(subject.name(), name, "{line}");
        }
    }
}
