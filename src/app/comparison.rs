//! Comparison of the shown range of the open file with another recorded file or another range.

use std::sync::Arc;

use super::{Answer, State};
use crate::analysis::{ComparedFigure, Section, Subject};
use crate::model::{RecordingAnalysis, SafeText};

/// A range of a recorded file to compare.
#[derive(Debug, Clone)]
pub struct ComparedRange {
    pub range: String,
    /// Whether the file is known to be complete.
    pub complete: bool,
    pub analysis: Arc<RecordingAnalysis>,
}

/// A comparison of the shown range with a previously chosen one.
#[derive(Debug)]
pub struct Comparison {
    pub name: SafeText,
    /// The chosen range, once it has been read.
    pub chosen: Answer<ComparedRange>,
    /// Size of the file, bytes.
    pub(super) bytes: u64,
    /// Bytes of the file read so far.
    pub(super) read: u64,
    /// Whether the chosen range is "after" instead of "before".
    pub swapped: bool,
    /// The only subject shown; `None` for all.
    pub subject: Option<Subject>,
    sections: Vec<Section>,
    /// The analysis that the sections compare with the chosen range.
    shown: Option<Arc<RecordingAnalysis>>,
}

impl Comparison {
    pub(super) fn new(name: SafeText, chosen: Answer<ComparedRange>) -> Self {
        Self { name, chosen, bytes: 0, read: 0, swapped: false, subject: None, sections: Vec::new(), shown: None }
    }

    /// Returns the compared sections; empty if both ranges are the same.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the figures of the shown subject, or of all.
    pub(super) fn figures(&self) -> impl Iterator<Item = (Subject, &ComparedFigure)> {
        let shown = self.sections.iter().filter(|section| self.subject.is_none_or(|subject| section.subject == subject));
        shown.flat_map(|section| section.figures.iter().map(|figure| (section.subject, figure)))
    }

    /// Swaps before and after.
    pub(super) fn swap(&mut self) {
        self.swapped = !self.swapped;
        self.shown = None;
    }

    /// Shows only the next subject that has figures, or all after the last.
    pub(super) fn next_subject(&mut self) {
        let at = self.subject.and_then(|subject| self.sections.iter().position(|section| section.subject == subject));
        self.subject = self.sections.get(at.map_or(0, |at| at + 1)).map(|section| section.subject);
    }

    /// Compares again if the shown analysis has changed.
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
    /// Returns the shown range of the open file, and the file's name.
    pub(super) fn shown_range(&self) -> Option<(SafeText, ComparedRange)> {
        let file = self.open_file()?;
        let analysis = self.shown_recording()?.value.analysis.clone()?;
        let shown = ComparedRange { range: file.range(file.read), complete: file.complete == Some(true), analysis };
        Some((file.process().name, shown))
    }
}
