//! How samples are looked at: as a list of methods, a call tree or a flame graph, of all threads or of one.

use super::flame::Flame;
use crate::analysis::{SampleCount, ThreadId};
use crate::model::{RecordingId, ThreadUse};

/// How samples are looked at.
#[derive(Debug, Default)]
pub struct Sampling {
    /// As what.
    pub shape: Shape,
    /// Whether samples of threads that wait count.
    pub waiting: bool,
    /// Whether methods are sorted by the time of all they call.
    pub by_total: bool,
    /// Where in the flame graph one is.
    pub(super) flame: Flame,
    /// The thread that was chosen, of a recording.
    pub(super) thread: Option<(RecordingId, ThreadId)>,
    /// What is shown again when a thread was chosen.
    before: Shape,
}

/// As what samples are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Methods.
    #[default]
    List,
    /// Who calls whom.
    Tree,
    /// The same in one picture.
    Flame,
    /// Threads, to choose one.
    Threads,
}

/// A thread to choose; `None` stands for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRow<'a> {
    /// Which one.
    pub thread: Option<ThreadId>,
    /// Its samples.
    pub samples: SampleCount,
    /// What /proc says of it.
    pub usage: Option<&'a ThreadUse>,
    /// Its name, as /proc or the stream has it; empty where neither does, not sanitised.
    pub name: &'a str,
}

impl Sampling {
    /// The time of the samples that count, nanoseconds: shares are shares of it.
    pub fn counted(&self, samples: SampleCount) -> u64 {
        if self.waiting { samples.all_ns() } else { samples.running_ns }
    }

    /// How many samples count.
    pub fn number(&self, samples: SampleCount) -> u64 {
        if self.waiting { samples.all() } else { samples.running }
    }

    /// List, tree, flame graph, and again.
    pub(super) fn next_shape(&mut self) {
        self.shape = match self.shape {
            Shape::List => Shape::Tree,
            Shape::Tree => Shape::Flame,
            Shape::Flame => Shape::List,
            Shape::Threads => self.before,
        };
    }

    /// Shows the threads, or again what was shown before.
    pub(super) fn toggle_threads(&mut self) {
        if self.shape == Shape::Threads {
            self.shape = self.before;
        } else {
            self.before = std::mem::replace(&mut self.shape, Shape::Threads);
        }
    }
}
