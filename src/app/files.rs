//! Recorded files that are open instead of this machine's processes, and which part of each is looked at.

use std::path::PathBuf;
use std::time::Duration;

use super::Ticket;
use crate::analysis::Timeline;
use crate::model::{Contact, FileKind, Process, ProcessKey, RecordingId, SafeText, Span, Stopwatch, TraceFile, Usage};

/// The time of a file is walked through in so many steps.
const STEPS: i64 = 50;
/// From this height of the details on, events over time have lines of their own.
const TALL: u16 = 14;

#[derive(Debug)]
pub struct OpenFile {
    pub key: ProcessKey,
    id: RecordingId,
    pub facts: TraceFile,
    /// Bytes read so far, while it is being read.
    pub progress: Option<u64>,
    /// Whether nothing of it may be missing, once that is known.
    pub complete: Option<bool>,
    /// The moment that its recording ended, once that is known, nanoseconds since the start of the session.
    pub end: Option<i64>,
    /// The moment up to which it is looked at; `None` for its end.
    pub cursor: Option<i64>,
    /// The other end of the part that is shown; `None` for its start.
    pub mark: Option<i64>,
    /// The part that was read last; `None` for all of it.
    pub(super) read: Option<Span>,
    /// Events over all of its time, once it was read.
    pub(super) events: Option<Timeline>,
    /// The read in progress; `None` where it has to be read again.
    pub(super) ticket: Option<Ticket>,
}

impl OpenFile {
    /// A file, and the number of what is shown of it.
    pub(super) fn new(id: RecordingId, facts: TraceFile) -> Self {
        // Several files may be of one process, which may still run: no process is started as late as that.
        let key = ProcessKey { pid: facts.process_id, started: u64::MAX - u64::from(id.0) };
        Self {
            key,
            id,
            facts,
            progress: Some(0),
            complete: None,
            end: None,
            cursor: None,
            mark: None,
            read: None,
            events: None,
            ticket: None,
        }
    }

    pub(super) fn process(&self) -> Process {
        let path = &self.facts.path;
        Process {
            name: SafeText::new(&self.facts.name()),
            command_line: SafeText::new(&path.to_string_lossy()),
            started_unix_ms: self.facts.start_unix_ms,
            usage: Usage { rss_bytes: self.facts.bytes, ..Usage::default() },
            contact: Contact::Ok,
            ..Process::new(self.key)
        }
    }

    /// The number of what is shown of it.
    pub(super) fn recording(&self) -> RecordingId {
        self.id
    }

    pub(super) fn path(&self) -> PathBuf {
        self.facts.path.clone()
    }

    /// The part that is shown; `None` for all of it.
    pub fn span(&self) -> Option<Span> {
        let end = self.end?;
        match (self.mark, self.cursor) {
            (None, None) => None,
            (mark, cursor) => {
                // What came before time began belongs to its beginning.
                let (mark, cursor) = (mark.unwrap_or(i64::MIN), cursor.unwrap_or(end));
                Some((mark.min(cursor), mark.max(cursor)))
            }
        }
    }

    /// A part of it in words; empty before its end is known.
    pub fn range(&self, span: Option<Span>) -> String {
        self.end.map_or_else(String::new, |end| range(span, end))
    }

    /// Lines of the details about the part that is shown: one of text, and where there is room one of events over time and one of the range.
    pub fn range_lines(&self, height: u16) -> u16 {
        if self.facts.kind == FileKind::Heap {
            return 0;
        }
        if height >= TALL && self.events.is_some() { 3 } else { height.min(1) }
    }

    /// Events in each of so many equal parts of its time; none before it was read.
    pub fn events_by_part(&self, parts: usize) -> Vec<f64> {
        let (Some(end), Some(events)) = (self.end.filter(|end| *end > 0), &self.events) else { return Vec::new() };
        let (step_ns, steps) = events.whole();
        // Events before a moment: within a step they are taken for evenly spread.
        let mut sums = vec![0.0];
        sums.extend(steps.iter().scan(0.0, |sum, step| {
            *sum += step;
            Some(*sum)
        }));
        let before = |part: usize| {
            let at = end as f64 * part as f64 / parts as f64 / step_ns as f64;
            // The last step may end behind the file.
            let step = if part == parts { steps.len() } else { (at as usize).min(steps.len()) };
            sums[step] + steps.get(step).map_or(0.0, |events| events * at.fract())
        };
        (0..parts).map(|part| before(part + 1) - before(part)).collect()
    }

    /// How it stands, in a word.
    pub fn word(&self) -> &'static str {
        match (self.progress, self.complete) {
            (Some(_), _) => "reading",
            (None, Some(true)) => "whole",
            (None, Some(false)) => "incomplete",
            (None, None) => "unreadable",
        }
    }

    /// Moves the cursor by so many steps.
    pub(super) fn step(&mut self, steps: i64) {
        let Some(end) = self.end.filter(|end| *end > 0) else { return };
        let at = self.cursor.unwrap_or(end) + (end / STEPS).max(1) * steps;
        self.cursor = (at < end).then_some(at.max(0));
        self.ticket = None;
    }

    /// Begins the part at the cursor; where it does already, at the start.
    pub(super) fn set_mark(&mut self) {
        let at = self.cursor.or(self.end);
        self.mark = if self.mark == at { None } else { at };
        self.ticket = None;
    }

    pub(super) fn forget_span(&mut self) {
        if self.mark.is_some() || self.cursor.is_some() {
            (self.mark, self.cursor, self.ticket) = (None, None, None);
        }
    }
}

/// A part of a file that ends at this moment, in words; `None` for all of it.
pub(super) fn range(span: Option<Span>, end: i64) -> String {
    let clock = |at: i64| {
        let at = Duration::from_nanos(u64::try_from(at).unwrap_or(0));
        format!("{}.{}", Stopwatch(at), at.subsec_millis() / 100)
    };
    match span {
        None => format!("whole file, {}", clock(end)),
        Some((from, to)) => format!("{} to {} of {}", clock(from), clock(to), clock(end)),
    }
}
