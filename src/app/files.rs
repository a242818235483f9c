//! Recorded files that are open instead of this machine's processes, and which part of each is looked at.

use std::path::PathBuf;

use super::Ticket;
use crate::model::{Contact, Process, ProcessKey, RecordingId, SafeText, Span, TraceFile, Usage};

/// The time of a file is walked through in so many steps.
const STEPS: i64 = 50;

/// An open file.
#[derive(Debug)]
pub struct OpenFile {
    /// Its row.
    pub key: ProcessKey,
    /// What it says of itself.
    pub facts: TraceFile,
    /// Bytes read so far, while it is being read.
    pub progress: Option<u64>,
    /// Whether nothing of it may be missing, once that is known.
    pub complete: Option<bool>,
    /// The moment that its recording ended, once that is known, nanoseconds since the start of the session.
    pub end: Option<i64>,
    /// The moment up to which it is looked at; `None` for its end.
    pub cursor: Option<i64>,
    /// The other end of the part that is looked at; `None` for its start.
    pub mark: Option<i64>,
    /// The read in progress; `None` where it has to be read again.
    pub(super) ticket: Option<Ticket>,
}

impl OpenFile {
    /// The `index`th file.
    pub(super) fn new(index: usize, facts: TraceFile) -> Self {
        // Several files may be of one process: the row is told from others by its place.
        let key = ProcessKey { pid: facts.process_id, started: index as u64 };
        Self { key, facts, progress: Some(0), complete: None, end: None, cursor: None, mark: None, ticket: None }
    }

    /// Its row.
    pub(super) fn process(&self) -> Process {
        let path = &self.facts.path;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Process {
            name: SafeText::new(&name),
            command_line: SafeText::new(&path.to_string_lossy()),
            started_unix_ms: self.facts.start_unix_ms,
            usage: Usage { rss_bytes: self.facts.bytes, ..Usage::default() },
            contact: Contact::Ok,
            ..Process::new(self.key)
        }
    }

    /// The number of what is shown of it.
    pub(super) fn recording(&self) -> RecordingId {
        RecordingId(self.key.started as u32 + 1)
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.facts.path.clone()
    }

    /// The part that is looked at; `None` for all of it.
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

    /// Looks at all of it.
    pub(super) fn forget_span(&mut self) {
        if self.mark.is_some() || self.cursor.is_some() {
            (self.mark, self.cursor, self.ticket) = (None, None, None);
        }
    }
}
