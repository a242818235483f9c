//! The dialogs that confirm a heap walk and choose a file for its result.

use std::time::Duration;

use crate::app::Ticket;
use crate::model::{Age, Bytes, Process};

use super::{Form, Purpose, Question, Subject};

/// Conservative estimate of the heap walk rate, in bytes per second.
const WALK_RATE: u64 = 100_000_000;

impl Form {
    /// Creates the form that confirms a heap walk. The duration is estimated from the duration of the last walk, the size of the GC heap in bytes
    /// (known if the process is watched), or the resident memory.
    pub(in crate::app) fn heap_walk(process: &Process, heap: Option<u64>, last: Option<Duration>) -> Self {
        let seconds = |bytes: u64| Age(Duration::from_secs(1 + bytes / WALK_RATE));
        let (size, time) = match (heap, last) {
            (_, Some(took)) => (String::new(), format!("as long as the last time: {}", Age(took.max(Duration::from_secs(1))))),
            (Some(heap), None) => (format!(" It has {}.", Bytes(heap)), format!("about {}", seconds(heap))),
            (None, None) => {
                let resident = process.usage.rss_bytes;
                (format!(" It has at most {}, the memory in use.", Bytes(resident)), format!("at most about {}", seconds(resident)))
            }
        };
        let effects = vec![
            format!("The runtime does a full, blocking GC and reports every object on its heap.{size}"),
            format!("The process is paused for that time ({time}) and answers no requests."),
        ];
        let subject = Some(Subject::of(process));
        Self::new(Purpose::HeapWalk, subject, "Walk the heap", &["No", "Yes, walk it"], effects, Vec::new())
    }

    /// Creates the form for writing a heap to a file, proposing the path `file`.
    pub(in crate::app) fn heap_file(file: &str, walk: Ticket) -> Self {
        let about = "a new file, with mode 0600; nothing is overwritten. One ending in .perfetto-trace is for ui.perfetto.dev";
        let effects = vec!["Every object of the last walk, its type and its references go into the file, but no values.".to_owned()];
        let question = Question::text("File", file, about);
        Self::new(Purpose::HeapFile(walk), None, "Write the heap", &["Cancel", "Write"], effects, vec![question])
    }
}
