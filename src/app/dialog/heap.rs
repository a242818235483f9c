//! The dialogs that confirm a heap walk and choose a file for its result.

use std::path::PathBuf;
use std::time::Duration;

use crate::app::Ticket;
use crate::model::{Age, Bytes, Process};

use super::{Form, Purpose, Question, Subject};

/// Conservative estimate of the heap walk rate, in bytes per second.
const WALK_RATE: u64 = 100_000_000;

/// Basis for estimating the duration of a heap walk.
#[derive(Debug)]
pub struct HeapWalkCost {
    /// Size of the GC heap in bytes, if the process is watched.
    heap: Option<u64>,
    /// Resident memory in bytes.
    resident: u64,
    /// Duration of the last walk.
    last: Option<Duration>,
}

impl Form {
    /// Creates the form that confirms a heap walk.
    pub(in crate::app) fn heap_walk(process: &Process, heap: Option<u64>, last: Option<Duration>) -> Self {
        let cost = HeapWalkCost { heap, resident: process.usage.rss_bytes, last };
        Self::new(Some(Subject::of(process)), Purpose::HeapWalk(cost), Vec::new())
    }

    /// Creates the form for writing a heap to a file, proposing the path `file`.
    pub(in crate::app) fn heap_file(file: &str, walk: Ticket) -> Self {
        let about = "a new file, with mode 0600; nothing is overwritten. One ending in .perfetto-trace is for ui.perfetto.dev";
        Self::new(None, Purpose::HeapFile(walk), vec![Question::text("File", file, about)]).at_first_field()
    }

    /// Returns the path, or the invalid field and the reason.
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
