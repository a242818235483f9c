//! Folded stacks: one line per stack, `thread;caller;callee COUNT`, which every flame graph tool reads.

use std::io::{self, Write};

use foldhash::HashMap;

use crate::nettrace::ThreadId;

use super::stacks::{NodeId, Stacks};
use super::writer::{Sample, Writer};

/// Maximum number of combinations of thread and stack in memory. Beyond it counts are written early, so a stack may appear on several lines.
const MAX_COUNTS: usize = 1 << 15;

/// Counts samples by thread and stack, and writes them at the end.
pub(super) struct Folded<W> {
    pub(super) out: W,
    counts: HashMap<(ThreadId, NodeId), u64>,
}

impl<W: Write> Folded<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, counts: HashMap::default() }
    }

    fn write(&mut self, stacks: &Stacks) -> io::Result<()> {
        let mut counts: Vec<_> = self.counts.drain().collect();
        counts.sort_unstable();
        let mut path = Vec::new();
        for ((thread, node), count) in counts {
            write!(self.out, "thread {thread}")?;
            stacks.path(node, &mut path);
            for frame in &path {
                // Separators must not occur within a name.
                let name = stacks.name(*frame).replace(|c: char| c == ';' || c.is_control(), "_");
                write!(self.out, ";{name}")?;
            }
            writeln!(self.out, " {count}")?;
        }
        Ok(())
    }
}

impl<W: Write> Writer for Folded<W> {
    fn sample(&mut self, sample: &Sample, stacks: &Stacks) -> io::Result<()> {
        if self.counts.len() >= MAX_COUNTS {
            self.write(stacks)?;
        }
        *self.counts.entry((sample.thread, sample.node)).or_default() += 1;
        Ok(())
    }

    fn stacks_cleared(&mut self, stacks: &Stacks) -> io::Result<()> {
        self.write(stacks)
    }

    fn finish(&mut self, _end: i64, stacks: &Stacks) -> io::Result<()> {
        self.write(stacks)?;
        self.out.flush()
    }
}
