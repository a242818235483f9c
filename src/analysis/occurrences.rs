//! What occurs in a process, one by one, for output that follows it.

use std::sync::Arc;

use crate::sorting::CompactSort;

use super::{AllocationSample, Collection, FinishedActivity, LockWait, LogMessage, SingleEvent, ThrownException};

/// What to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceKind {
    /// Garbage collections that have ended.
    Collections,
    /// Exceptions that were thrown.
    Exceptions,
    /// Samples of allocations, if they are kept.
    Allocations,
    /// Waits for locks that have ended, if they are kept.
    LockWaits,
    /// Requests and other activities that have ended.
    Activities,
    /// Log messages.
    Messages,
    /// Events of any kind.
    Events,
}

/// Something that has occurred.
#[derive(Debug, Clone, PartialEq)]
pub enum Occurrence {
    /// A garbage collection.
    Collection(Collection),
    /// An exception.
    Exception(ThrownException),
    /// A sample of allocations.
    Allocation(AllocationSample),
    /// A wait for a lock.
    LockWait(LockWait),
    /// A request or another activity.
    Activity(FinishedActivity),
    /// A log message.
    Message(LogMessage),
    /// An event, with the methods or addresses of its stack, leaf first. Not sanitized.
    Event(Arc<SingleEvent>, Vec<String>),
}

impl Occurrence {
    /// Returns its time, in nanoseconds since the start of the session: the start of a garbage collection, the end of a wait or an activity.
    pub fn at(&self) -> i64 {
        match self {
            Self::Collection(collection) => collection.start,
            Self::Exception(thrown) => thrown.at,
            Self::Allocation(sample) => sample.at,
            Self::LockWait(wait) => wait.end,
            Self::Activity(finished) => finished.end,
            Self::Message(message) => message.at,
            Self::Event(event, _) => event.at,
        }
    }

    /// Returns the methods or addresses of its stack, leaf first; empty if it has none, or they were not looked up. Not sanitized.
    pub fn frames(&self) -> &[String] {
        match self {
            Self::Exception(thrown) => &thrown.frames,
            Self::Allocation(sample) => &sample.frames,
            Self::LockWait(wait) => &wait.frames,
            Self::Event(_, frames) => frames,
            Self::Collection(_) | Self::Activity(_) | Self::Message(_) => &[],
        }
    }
}

/// The occurrences since the previous ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewOccurrences {
    /// By time. The next ones can be older: threads write separate blocks.
    pub occurrences: Vec<Occurrence>,
    /// Number of those missing between them, because only the latest are kept.
    pub missed: u64,
}

impl NewOccurrences {
    /// Takes the occurrences with numbers above `seen`, and advances it. `None` stands for one that is not of interest.
    pub(super) fn take(seen: &mut u64, numbered: impl IntoIterator<Item = (u64, Option<Occurrence>)>) -> Self {
        let mut new = Self::default();
        for (number, occurrence) in numbered {
            new.missed += number - (*seen + 1);
            *seen = number;
            new.occurrences.extend(occurrence);
        }
        new.occurrences.compact_sort_by_key(Occurrence::at);
        new
    }
}
