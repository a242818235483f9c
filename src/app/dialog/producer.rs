//! The dialog that starts serving Perfetto's tracing service, shows its status, and stops it.

use super::{Form, Purpose, Question};
use crate::app::Producer;
use crate::model::TraceOptions;

#[derive(Debug)]
pub enum ProducerForm {
    Begin,
    /// Already serving; the status, one sentence each.
    Running(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct ProducerRequest {
    /// PIDs or names; empty for all processes.
    pub(in crate::app) targets: Vec<String>,
    pub(in crate::app) profiles: Vec<String>,
}

const TARGETS: usize = 0;
const PROFILES: usize = 1;

impl Form {
    /// Creates the form for serving Perfetto's tracing service.
    pub(in crate::app) fn producer(profiles: &[String]) -> Self {
        let questions = vec![
            Question::text("Processes", "", "PIDs or names, comma-separated; if empty, all processes"),
            Question::text("Profiles", profiles.join(","), "comma-separated; for sessions without legacy_config"),
        ];
        Self::new(None, Purpose::Producer(ProducerForm::Begin), questions).at_first_field()
    }

    /// Creates the form that shows the status of the running producer.
    pub(in crate::app) fn running_producer(producer: &Producer) -> Self {
        Self::new(None, Purpose::Producer(ProducerForm::Running(producer.sentences())), Vec::new())
    }

    /// Updates the status, if the dialog shows it.
    pub(in crate::app) fn show_producer(&mut self, sentences: Vec<String>) {
        if let Purpose::Producer(ProducerForm::Running(shown)) = &mut self.purpose {
            *shown = sentences;
        }
    }

    /// Returns the requested configuration, or the invalid field and the reason.
    pub(in crate::app) fn producer_request(&self) -> Result<ProducerRequest, (usize, String)> {
        let list = |question| {
            let parts = self.typed(question).split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        let (targets, profiles) = (list(TARGETS), list(PROFILES));
        TraceOptions::of_profiles(&profiles).select().map_err(|reason| (PROFILES, reason))?;
        Ok(ProducerRequest { targets, profiles })
    }
}

impl ProducerForm {
    pub(super) fn effects(&self) -> Vec<String> {
        match self {
            Self::Begin => vec![
                "Sessions of Perfetto's tracing service that name the data source dotnet record these processes.".to_owned(),
                "Each opens a session in each process, until it ends or dn-top quits.".to_owned(),
                "Processes are never blocked: data that the service does not take in time is dropped and counted.".to_owned(),
            ],
            Self::Running(sentences) => sentences.clone(),
        }
    }

    pub(super) fn title(&self) -> &'static str {
        match self {
            Self::Begin => "Serve Perfetto's tracing service",
            Self::Running(_) => "Serving Perfetto's tracing service",
        }
    }

    pub(super) fn buttons(&self) -> &'static [&'static str] {
        match self {
            Self::Begin => &["Cancel", "Serve"],
            Self::Running(_) => &["Keep serving", "Stop"],
        }
    }
}
