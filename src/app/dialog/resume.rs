//! The resume dialog.

use crate::model::{Process, SafeText};

use super::{Form, Purpose, Question, Subject};

/// The target of the resume dialog.
#[derive(Debug)]
pub struct Resume {
    name: SafeText,
    /// Number of suspended processes, including this one.
    waiting: usize,
}

const OPTIONS: &[(&str, &str)] =
    &[("this process", "the others stay suspended"), ("all suspended", "every attachable process that is suspended at startup")];

impl Form {
    /// Creates the form for a process suspended at startup; `waiting` processes are suspended in total.
    pub(in crate::app) fn resume(process: &Process, waiting: usize) -> Self {
        Self::new(
            Some(Subject::of(process)),
            Purpose::Resume(Resume { name: process.name.clone(), waiting }),
            vec![Question::choice("Run", OPTIONS, 0)],
        )
    }

    /// Returns whether this applies to all suspended processes.
    pub(in crate::app) fn resumes_all(&self) -> bool {
        self.chosen(0) == 1
    }
}

impl Resume {
    pub(super) fn effects(&self, form: &Form) -> Vec<String> {
        let what = if form.resumes_all() && self.waiting > 1 {
            format!("{} processes run their first instructions.", self.waiting)
        } else {
            format!("{} runs its first instructions.", self.name)
        };
        vec![what, "Set up variables, profilers and recordings before this.".to_owned()]
    }
}
