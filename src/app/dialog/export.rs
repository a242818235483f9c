//! The dialog that exports a recording.

use std::path::PathBuf;

use tui_input::Input;

use crate::app::Now;
use crate::model::{Span, TraceFormat, check_file_name, export_stem};

use super::{Form, Purpose, Question, Reply, Subject};

#[derive(Debug)]
pub struct Export {
    source: PathBuf,
    /// Nanoseconds since the start of the session; `None` for all of it.
    span: Option<Span>,
    /// The path of the export without its extension.
    stem: String,
    /// The last proposed path.
    proposed: String,
}

/// A recorded file to export, or the part recorded so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRequest {
    pub source: PathBuf,
    pub destination: PathBuf,
    pub format: TraceFormat,
    /// The range to export; `None` for the whole file.
    pub span: Option<Span>,
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
        let effect = match (span, grows) {
            (Some(_), _) => "Only the selected range of the file is exported.",
            (None, true) => {
                "What has been recorded so far is exported. The recording continues. Method names are recorded at its end: until then code is shown by address."
            }
            (None, false) => "All of the recording is exported; it stays as it is.",
        };
        let purpose = Purpose::Export(Export { source, span, stem, proposed });
        Self::new(purpose, Some(subject), "Export", &["Cancel", "Export"], vec![effect.to_owned()], questions)
    }

    /// Updates the proposed path to match the format, unless the user typed another.
    pub(super) fn propose_path(&mut self) {
        let (typed, format) = (self.typed(PATH).to_owned(), TraceFormat::ALL[self.chosen(FORMAT)]);
        if let Purpose::Export(export) = &mut self.purpose
            && typed == export.proposed
        {
            export.proposed = proposal(&export.stem, format);
            self.questions[PATH].reply = Reply::Text(Input::new(export.proposed.clone()));
        }
    }

    /// Returns the requested export, or the invalid field and the reason.
    pub(in crate::app) fn export_request(&self) -> Result<ExportRequest, (usize, String)> {
        let Purpose::Export(export) = &self.purpose else { return Err((PATH, "There is nothing to export.".to_owned())) };
        let destination = self.new_file(PATH)?;
        let format = TraceFormat::ALL[self.chosen(FORMAT)];
        if !format.has_parts() && export.span.is_some() {
            return Err((FORMAT, "This format exports a whole file, not a part of it.".to_owned()));
        }
        check_file_name(&destination, format.extension()).map_err(|wrong| (PATH, format!("{wrong}.")))?;
        Ok(ExportRequest { source: export.source.clone(), destination, format, span: export.span })
    }
}

fn proposal(stem: &str, format: TraceFormat) -> String {
    format!("{stem}.{}", format.extension())
}
