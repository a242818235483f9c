//! What is shown of the open file, compared with another recorded file or another range.

use std::sync::Arc;

use super::{Answer, State};
use crate::analysis::{ComparedFigure, Section, Subject};
use crate::model::{RecordingAnalysis, SafeText};

/// A range of a recorded file that is compared.
#[derive(Debug, Clone)]
pub struct ComparedRange {
    pub range: String,
    /// Whether nothing of the file may be missing.
    pub complete: bool,
    pub analysis: Arc<RecordingAnalysis>,
}

/// A comparison of what is shown with a range that was chosen before.
#[derive(Debug)]
pub struct Comparison {
    pub name: SafeText,
    /// Its range, once it was read.
    pub chosen: Answer<ComparedRange>,
    /// The size of the file, bytes.
    pub(super) bytes: u64,
    /// How much of it was read so far, bytes.
    pub(super) read: u64,
    /// Whether the chosen range is "after" instead of "before".
    pub swapped: bool,
    /// The only subject that is shown; `None` for all.
    pub subject: Option<Subject>,
    sections: Vec<Section>,
    /// What the sections compare with the chosen range.
    shown: Option<Arc<RecordingAnalysis>>,
}

impl Comparison {
    pub(super) fn new(name: SafeText, chosen: Answer<ComparedRange>) -> Self {
        Self { name, chosen, bytes: 0, read: 0, swapped: false, subject: None, sections: Vec::new(), shown: None }
    }

    /// What was compared; empty where that would be a range with itself.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The figures of the subject that is shown, or of all.
    pub(super) fn figures(&self) -> impl Iterator<Item = (Subject, &ComparedFigure)> {
        let shown = self.sections.iter().filter(|section| self.subject.is_none_or(|subject| section.subject == subject));
        shown.flat_map(|section| section.figures.iter().map(|figure| (section.subject, figure)))
    }

    /// Exchanges before and after.
    pub(super) fn swap(&mut self) {
        self.swapped = !self.swapped;
        self.shown = None;
    }

    /// Shows only the next subject of which there are figures, or all behind the last.
    pub(super) fn next_subject(&mut self) {
        let at = self.subject.and_then(|subject| self.sections.iter().position(|section| section.subject == subject));
        self.subject = self.sections.get(at.map_or(0, |at| at + 1)).map(|section| section.subject);
    }

    /// Compares again where something else is shown than was compared.
    pub(super) fn refresh(&mut self, shown: Option<&Arc<RecordingAnalysis>>) {
        let (Some(chosen), Some(shown)) = (self.chosen.get(), shown) else {
            (self.sections, self.shown) = (Vec::new(), None);
            return;
        };
        if self.shown.as_ref().is_some_and(|compared| Arc::ptr_eq(compared, shown)) {
            return;
        }
        self.sections = match (Arc::ptr_eq(&chosen.analysis, shown), self.swapped) {
            (true, _) => Vec::new(),
            (false, false) => chosen.analysis.compare(shown),
            (false, true) => shown.compare(&chosen.analysis),
        };
        self.shown = Some(Arc::clone(shown));
        let sections = &self.sections;
        self.subject = self.subject.filter(|subject| sections.iter().any(|section| section.subject == *subject));
    }
}

impl State {
    /// What is shown of the open file, and the file's name.
    pub(super) fn shown_range(&self) -> Option<(SafeText, ComparedRange)> {
        let file = self.open_file()?;
        let analysis = self.shown_recording()?.value.analysis.clone()?;
        let shown = ComparedRange { range: file.range(file.read), complete: file.complete == Some(true), analysis };
        Some((file.process().name, shown))
    }
}
