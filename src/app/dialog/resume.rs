//! The resume dialog.

use crate::model::Process;

use super::{Form, Purpose, Question, Subject};

const OPTIONS: &[(&str, &str)] =
    &[("this process", "the others stay suspended"), ("all suspended", "every attachable process that is suspended at startup")];

impl Form {
    /// Creates the form for a process suspended at startup; `waiting` processes are suspended in total.
    pub(in crate::app) fn resume(process: &Process, waiting: usize) -> Self {
        let question = Question::choice("Run", OPTIONS, 0);
        Self::new(Purpose::Resume(waiting), Some(Subject::of(process)), "Resume", &["No", "Yes"], Vec::new(), vec![question])
    }

    /// Returns whether this applies to all suspended processes.
    pub(in crate::app) fn resumes_all(&self) -> bool {
        self.chosen(0) == 1
    }
}

pub(super) fn effects(form: &Form, waiting: usize) -> Vec<String> {
    let what = match &form.subject {
        Some(subject) if !form.resumes_all() || waiting < 2 => format!("{} runs its first instructions.", subject.name),
        _ => format!("{waiting} processes run their first instructions."),
    };
    vec![what, "Set up variables, profilers and recordings before this.".to_owned()]
}
