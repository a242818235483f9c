//! What an export is made of, whatever its format.

use std::io;

use crate::nettrace::{ThreadId, TraceHeader};

use super::stacks::{NodeId, Stacks};

/// A format. Moments are nanoseconds since the start of the session; text is as the stream has it, and not sanitised.
///
/// The order is that in which things end: a slice comes when it is over, so that those around it come behind it.
pub(super) trait Writer {
    /// A thread of which there is something to say. Comes before everything that names it.
    fn thread(&mut self, _thread: ThreadId, _name: &str) -> io::Result<()> {
        Ok(())
    }

    /// A sample of the sampling profiler. Those of a thread come in the order of time.
    fn sample(&mut self, _sample: &Sample, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Something that took time.
    fn slice(&mut self, _slice: &Slice<'_>, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Something that happened at a moment.
    fn instant(&mut self, _instant: &Instant<'_>, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// A value of a counter.
    fn counter(&mut self, _counter: &Counter<'_>, _at: i64, _value: f64) -> io::Result<()> {
        Ok(())
    }

    /// Numbers of nodes and frames are given again from here on.
    fn stacks_cleared(&mut self, _stacks: &Stacks) -> io::Result<()> {
        Ok(())
    }

    /// Nothing comes any more.
    fn finish(&mut self, end: i64, stacks: &Stacks) -> io::Result<()>;
}

/// The process that a recording is of.
#[derive(Debug, Clone, Default)]
pub(super) struct Subject {
    /// What the stream has in common.
    pub(super) header: TraceHeader,
    /// Its command line, empty where it is not told.
    pub(super) command_line: String,
    /// The version of its runtime, empty where it is not told.
    pub(super) runtime: String,
}

impl Subject {
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

/// Something that took time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) track: Track<'a>,
    pub(super) category: &'static str,
    pub(super) name: &'a str,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Where it began; 0 where that is not known.
    pub(super) node: NodeId,
    pub(super) facts: &'a [(&'static str, Fact<'a>)],
}

/// Something that happened at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instant<'a> {
    pub(super) thread: ThreadId,
    pub(super) category: &'static str,
    pub(super) name: &'a str,
    pub(super) at: i64,
    /// Where; 0 where that is not known.
    pub(super) node: NodeId,
    pub(super) facts: &'a [(&'static str, Fact<'a>)],
}

/// What there is to say of a slice or an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fact<'a> {
    Count(u64),
    Number(f64),
    Flag(bool),
    Text(&'a str),
}

/// Where a slice is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Track<'a> {
    Thread(ThreadId),
    LostEvents,
    GcPauses,
    BackgroundGc,
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
