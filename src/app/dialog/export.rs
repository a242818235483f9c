//! The dialog that exports a recording.

use std::path::{Path, PathBuf};

use crate::app::Now;
use crate::model::{Span, TraceFormat, export_stem};

use super::{Form, Purpose, Question, Subject};

#[derive(Debug)]
pub struct Export {
    source: PathBuf,
    /// Nanoseconds since the start of the session; `None` for all of it.
    span: Option<Span>,
    /// The source is still being recorded.
    grows: bool,
    /// The path of the export without its extension.
    stem: String,
    /// The last proposed path.
    proposed: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct ExportRequest {
    pub(in crate::app) source: PathBuf,
    pub(in crate::app) destination: PathBuf,
    pub(in crate::app) format: TraceFormat,
    pub(in crate::app) span: Option<Span>,
}

/// Every format with its description.
const OPTIONS: [(&str, &str); TraceFormat::ALL.len()] = {
    let mut options = [("", ""); TraceFormat::ALL.len()];
    let mut at = 0;
    while at < options.len() {
        options[at] = (TraceFormat::ALL[at].name(), TraceFormat::ALL[at].about());
        at += 1;
    }
    options
};

/// Question indices.
const FORMAT: usize = 0;
const PATH: usize = 1;

impl Form {
    /// Creates the form for exporting a recording. A recording in progress is exported up to the current point.
    pub(in crate::app) fn export(subject: Subject, source: PathBuf, span: Option<Span>, grows: bool, now: Now) -> Self {
        let stem = export_stem(&source);
        // A recording in progress can be exported again later.
        let stem = if grows { format!("{stem}_{}", now.file_stamp()) } else { stem };
        let proposed = proposal(&stem, TraceFormat::ALL[0]);
        let questions = vec![
            Question::choice("Format", &OPTIONS, 0),
            Question::text("File", &proposed, "a new file, with mode 0600; nothing is overwritten"),
        ];
        Self::new(Some(subject), Purpose::Export(Export { source, span, grows, stem, proposed }), questions).at_first_field()
    }

    /// Updates the proposed path to match the format, unless the user typed another.
    pub(super) fn propose_path(&mut self) {
        let (typed, format) = (self.typed(PATH).to_owned(), TraceFormat::ALL[self.chosen(FORMAT)]);
        if let Purpose::Export(export) = &mut self.purpose
            && typed == export.proposed
        {
            export.proposed = proposal(&export.stem, format);
            let next = export.proposed.clone();
            self.questions[PATH] = Question::text(self.questions[PATH].label, next, self.questions[PATH].about);
        }
    }

    /// Returns the requested export, or the invalid field and the reason.
    pub(in crate::app) fn export_request(&self) -> Result<ExportRequest, (usize, String)> {
        let Purpose::Export(export) = &self.purpose else { return Err((PATH, "There is nothing to export.".to_owned())) };
        let path = self.typed(PATH);
        if path.is_empty() || path.ends_with('/') {
            return Err((PATH, "Enter a file name, too.".to_owned()));
        }
        let format = TraceFormat::ALL[self.chosen(FORMAT)];
        if !format.has_parts() && export.span.is_some() {
            return Err((FORMAT, "This format exports a whole file, not a part of it.".to_owned()));
        }
        let (source, destination) = (export.source.clone(), Path::new(path).to_owned());
        Ok(ExportRequest { source, destination, format, span: export.span })
    }
}

fn proposal(stem: &str, format: TraceFormat) -> String {
    format!("{stem}.{}", format.extension())
}

impl Export {
    pub(super) fn effects(&self) -> Vec<String> {
        let what = match (self.span, self.grows) {
            (Some(_), _) => "Only the selected range of the file is exported.",
            (None, true) => {
                "What has been recorded so far is exported. The recording continues. Method names are recorded at its end: until then code is shown by address."
            }
            (None, false) => "All of the recording is exported; it stays as it is.",
        };
        vec![what.to_owned()]
    }
}
