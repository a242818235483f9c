//! A reader that follows the output of a started program, or dn-top's own log.

use std::sync::Arc;

use super::text::{fold, wrap};
use super::{Job, Reader, Ticket};
use crate::analysis::Field;
use crate::model::SafeText;

#[derive(Debug)]
pub struct OutputView {
    /// The job that started the program; `None` for the log.
    pub ticket: Option<Ticket>,
    /// The shown lines; not updated while the text is scrolled up.
    pub lines: Arc<[SafeText]>,
    /// Search and scroll state; scrolling is relative to the end.
    pub reader: Reader,
}

impl OutputView {
    /// Shows the end of a program's output.
    pub(super) fn new(job: &Job) -> Self {
        Self { ticket: Some(job.ticket), lines: job.output_lines.clone(), reader: Reader::default() }
    }

    /// Shows the end of dn-top's log.
    pub(super) fn log() -> Self {
        Self { ticket: None, lines: Arc::default(), reader: Reader::default() }
    }

    /// Whether this shows the end of the log.
    pub(super) fn follows_log(&self) -> bool {
        self.ticket.is_none() && self.reader.scroll == 0
    }

    /// Returns all lines that match the search, in rows of the given width. The output of a program keeps its spaces.
    pub fn rows(&self, columns: u16) -> Vec<String> {
        let lines = self.lines.iter().filter(|line| self.reader.search.passes(&[Field::text("TEXT", line)]));
        let split = if self.ticket.is_none() { wrap } else { fold };
        lines.flat_map(|line| split(line, columns)).collect()
    }

    /// Shows new lines unless the text is scrolled up. Returns whether it did.
    pub(super) fn follow(&mut self, lines: &Arc<[SafeText]>) -> bool {
        let follows = self.reader.scroll == 0;
        if follows {
            self.lines = lines.clone();
        }
        follows
    }
}
