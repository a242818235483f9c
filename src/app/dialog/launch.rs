//! The dialog that starts a program and records it from its first instruction.

use std::path::PathBuf;

use crate::clr::DEFAULT_PROFILES;
use crate::model::TraceOptions;

use super::words::{shell_words, words};
use super::{Form, Purpose, Question};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct ProgramRequest {
    pub(in crate::app) words: Vec<String>,
    pub(in crate::app) options: TraceOptions,
    pub(in crate::app) output: Option<PathBuf>,
}

const COMMAND: usize = 0;
/// The question for profile names.
pub(super) const PROFILES: usize = 1;
const OUTPUT: usize = 2;

impl Form {
    /// Creates the form for starting a program.
    pub(in crate::app) fn launch(profiles: &[String]) -> Self {
        let profiles = if profiles.is_empty() { DEFAULT_PROFILES.join(" ") } else { profiles.join(" ") };
        let questions = vec![
            Question::text("Command", "", "a program and its arguments; quotes as in a shell, nothing is expanded"),
            Question::text("Profiles", profiles, "what is recorded, from its first instruction on"),
            Question::text("Output", "", "a new file for its output; if empty, one in this folder"),
        ];
        Self::new(None, Purpose::Launch, questions).at_first_field()
    }

    /// Returns the requested program, or the invalid field and the reason.
    pub(in crate::app) fn launch_request(&self) -> Result<ProgramRequest, (usize, String)> {
        let words_of = shell_words(self.typed(COMMAND)).ok_or_else(|| (COMMAND, "A quote is not closed.".to_owned()))?;
        if words_of.is_empty() {
            return Err((COMMAND, "Give a program, such as dotnet app.dll.".to_owned()));
        }
        let options = TraceOptions { profiles: words(&self.typed(PROFILES).replace(',', " ")), ..TraceOptions::default() };
        options.select().map_err(|problem| (PROFILES, problem))?;
        let output = self.typed(OUTPUT);
        Ok(ProgramRequest { words: words_of, options, output: (!output.is_empty()).then(|| output.into()) })
    }
}

pub(super) fn effects() -> Vec<String> {
    vec![
        "It starts suspended; its recording begins, then it runs. .NET programs that it starts run at once.".to_owned(),
        "Its output goes to the file, and the newest lines are shown. It gets no input from this terminal.".to_owned(),
        "It continues when dn-top quits.".to_owned(),
    ]
}
