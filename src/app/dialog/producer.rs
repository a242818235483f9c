//! The dialog that starts serving Perfetto's tracing service, and the one that shows its status and stops it.

use super::{Form, Purpose, Question};
use crate::app::Producer;
use crate::model::TraceOptions;

const TARGETS: usize = 0;
const PROFILES: usize = 1;

impl Form {
    /// Creates the form for serving Perfetto's tracing service.
    pub(in crate::app) fn producer(profiles: &[String]) -> Self {
        let questions = vec![
            Question::text("Processes", "", "PIDs or names, comma-separated; if empty, all processes"),
            Question::text("Profiles", profiles.join(","), "comma-separated; for sessions without legacy_config"),
        ];
        let effects = vec![
            "Sessions of Perfetto's tracing service that name the data source dotnet record these processes.".to_owned(),
            "Each opens a session in each process, until it ends or dn-top quits.".to_owned(),
            "Processes are never blocked: data that the service does not take in time is dropped and counted.".to_owned(),
        ];
        Self::new(Purpose::Producer, None, "Serve Perfetto's tracing service", &["Cancel", "Serve"], effects, questions)
    }

    /// Creates the form that shows the status of the running producer.
    pub(in crate::app) fn running_producer(producer: &Producer) -> Self {
        let (title, buttons) = ("Serving Perfetto's tracing service", &["Keep serving", "Stop"]);
        Self::new(Purpose::StopProducer, None, title, buttons, producer.sentences(), Vec::new())
    }

    /// Returns the PIDs or names of the processes to serve (empty for all) and the profiles, or the invalid field and the reason.
    pub(in crate::app) fn producer_request(&self) -> Result<(Vec<String>, Vec<String>), (usize, String)> {
        let targets = self.typed(TARGETS).split(',').map(str::trim).filter(|target| !target.is_empty()).map(str::to_owned).collect();
        let profiles = self.typed_profiles(PROFILES);
        TraceOptions::of_profiles(&profiles).select().map_err(|reason| (PROFILES, reason))?;
        Ok((targets, profiles))
    }
}
