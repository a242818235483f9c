//! The dialogs of the heap: before a walk, and for the file of one.

use std::path::PathBuf;
use std::time::Duration;

use crate::app::Ticket;
use crate::model::{Age, Bytes, Process};

use super::{Field, Form, Purpose, Question, Subject};

/// Bytes of a heap that are walked in a second, by a cautious guess.
const WALK_RATE: u64 = 100_000_000;

/// The heap that a walk would be of.
#[derive(Debug)]
pub struct HeapWalkCost {
    /// Bytes of the GC heap, where the process is watched.
    heap: Option<u64>,
    /// Bytes of memory that the process uses.
    resident: u64,
    /// How long the last walk took.
    last: Option<Duration>,
}

impl Form {
    /// Asks before the heap of a process is walked.
    pub(in crate::app) fn heap_walk(process: &Process, heap: Option<u64>, last: Option<Duration>) -> Self {
        let subject = Subject { key: process.key, name: process.name.clone() };
        let cost = HeapWalkCost { heap, resident: process.usage.rss_bytes, last };
        Self::new(Some(subject), Purpose::HeapWalk(cost), Vec::new())
    }

    /// Asks for the file that a heap is to be written to, with this name proposed.
    pub(in crate::app) fn heap_file(file: &str, walk: Ticket) -> Self {
        let about = "a new file, with mode 0600; nothing is overwritten. One ending in .perfetto-trace is for ui.perfetto.dev";
        let mut form = Self::new(None, Purpose::HeapFile(walk), vec![Question::text("File", file, about)]);
        form.focus = Field::Question(0);
        form
    }

    /// The file, or why it cannot be that.
    pub(in crate::app) fn heap_file_request(&self) -> Result<PathBuf, (usize, String)> {
        let path = self.typed(0);
        if path.is_empty() || path.ends_with('/') { Err((0, "Enter a file name, too.".to_owned())) } else { Ok(path.into()) }
    }
}

impl HeapWalkCost {
    pub(super) fn effects(&self) -> Vec<String> {
        let seconds = |bytes: u64| Age(Duration::from_secs(1 + bytes / WALK_RATE));
        let (size, time) = match (self.heap, self.last) {
            (_, Some(took)) => (String::new(), format!("as long as the last time: {}", Age(took.max(Duration::from_secs(1))))),
            (Some(heap), None) => (format!(" It has {}.", Bytes(heap)), format!("about {}", seconds(heap))),
            (None, None) => {
                let resident = self.resident;
                (format!(" It has at most {}, the memory in use.", Bytes(resident)), format!("at most about {}", seconds(resident)))
            }
        };
        vec![
            format!("The runtime does a full, blocking GC and reports every object on its heap.{size}"),
            format!("The process is paused for that time ({time}) and answers no requests."),
        ]
    }
}
