//! What a program writes that was started here, or the log of dn-top itself, as a text to read that follows it.

use std::sync::Arc;

use super::jobs::Job;
use super::text::fold;
use super::{Reader, Ticket};
use crate::analysis::Field;
use crate::model::SafeText;

#[derive(Debug)]
pub struct OutputView {
    /// The command that started the program; `None` for the log.
    pub ticket: Option<Ticket>,
    /// The lines that are shown; they do not change while the text is scrolled up.
    pub lines: Arc<[SafeText]>,
    /// How it is looked at; it is scrolled from its end.
    pub reader: Reader,
}

impl OutputView {
    /// Looks at what a program wrote, from its end.
    pub(super) fn new(job: &Job) -> Self {
        Self { ticket: Some(job.ticket), lines: job.wrote.clone(), reader: Reader::default() }
    }

    /// Looks at the log of dn-top, from its end.
    pub(super) fn log() -> Self {
        Self { ticket: None, lines: Arc::default(), reader: Reader::default() }
    }

    /// Whether it is the log, and shows its end.
    pub(super) fn follows_log(&self) -> bool {
        self.ticket.is_none() && self.reader.scroll == 0
    }

    /// All lines that are searched for, folded to so many columns.
    pub fn rows(&self, columns: u16) -> Vec<String> {
        let lines = self.lines.iter().filter(|line| self.reader.search.passes(&[Field::text("TEXT", line)]));
        lines.flat_map(|line| fold(line, columns)).collect()
    }

    /// Shows new lines, unless the text is scrolled up.
    pub(super) fn follow(&mut self, lines: &Arc<[SafeText]>) -> bool {
        let follows = self.reader.scroll == 0;
        if follows {
            self.lines = lines.clone();
        }
        follows
    }
}
