//! The dialog that starts a program and records it from its first instruction.

use std::path::PathBuf;

use crate::app::Now;
use crate::clr::DEFAULT_PROFILES;
use crate::model::{TraceOptions, file_stem};

use super::words::shell_words;
use super::{Form, Purpose, Question};

/// A program to start and record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRequest {
    pub words: Vec<String>,
    pub options: TraceOptions,
    /// A new file for the program's output.
    pub output: PathBuf,
}

impl ProgramRequest {
    /// Returns the name of the program without its folder.
    pub(in crate::app) fn name(&self) -> &str {
        self.words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default()
    }
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
            Question::text("Command", "", "program and arguments; quotes as in a shell, no expansion"),
            Question::text("Profiles", profiles, "what is recorded, from its first instruction on"),
            Question::text("Output", "", "a new file for its output; if empty, one in this folder"),
        ];
        let effects = vec![
            "It starts suspended; its recording begins, then it runs. .NET programs that it starts run at once.".to_owned(),
            "Its output goes to the file, and the newest lines are shown. It gets no input from this terminal.".to_owned(),
            "It continues when dn-top quits.".to_owned(),
        ];
        Self::new(Purpose::Launch, None, "Run a program", &["Cancel", "Run"], effects, questions)
    }

    /// Returns the requested program, or the invalid field and the reason.
    pub(in crate::app) fn launch_request(&self, now: Now) -> Result<ProgramRequest, (usize, String)> {
        let words = shell_words(self.typed(COMMAND)).ok_or_else(|| (COMMAND, "A quote is not closed.".to_owned()))?;
        if words.is_empty() {
            return Err((COMMAND, "Give a program, such as dotnet app.dll.".to_owned()));
        }
        let options = TraceOptions::of_profiles(&self.typed_profiles(PROFILES));
        options.select().map_err(|problem| (PROFILES, problem))?;
        let mut program = ProgramRequest { words, options, output: self.typed(OUTPUT).into() };
        if self.typed(OUTPUT).is_empty() {
            program.output = format!("{}_{}.out", file_stem(program.name()), now.file_stamp()).into();
        }
        Ok(program)
    }
}
