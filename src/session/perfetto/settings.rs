//! Settings of a recording: from the command line, unless the configuration of a recording overrides them.

use crate::clr::{Selection, select};
use crate::ipc::BufferMb;

/// Size of the event buffer in each process, in MB. The runtime allocates it as needed.
const BUFFER_MB: u32 = 64;

/// What to record, and in which processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Pids, names or sockets; empty for all attachable processes.
    pub targets: Vec<String>,
    /// Profile names.
    pub profiles: Vec<String>,
    /// Providers, as `NAME:KEYWORDS:LEVEL:ARGUMENTS`.
    pub providers: Vec<String>,
    /// Keywords of the runtime's own provider.
    pub clr_events: Option<String>,
}

impl Settings {
    /// Returns the settings with overrides from the text of a configuration (`legacy_config`), which consists of the words
    /// `targets=NAME,NAME`, `profiles=NAME,NAME`, `provider=SPEC` (repeatable) and `clr-events=NAME+NAME`.
    ///
    /// # Errors
    /// An error message.
    pub fn with(&self, text: &str) -> Result<Self, String> {
        let mut overridden = Self::default();
        for word in text.split_whitespace() {
            let list = |value: &str| value.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            match word.split_once('=') {
                Some(("targets", value)) => overridden.targets.extend(list(value)),
                Some(("profiles", value)) => overridden.profiles.extend(list(value)),
                Some(("provider", value)) => overridden.providers.push(value.to_owned()),
                Some(("clr-events", value)) => overridden.clr_events = Some(value.to_owned()),
                _ => return Err(format!("'{}' is not one of targets=, profiles=, provider= and clr-events=", word.escape_debug())),
            }
        }
        if overridden.targets.is_empty() {
            overridden.targets.clone_from(&self.targets);
        }
        if overridden.profiles.is_empty() && overridden.providers.is_empty() && overridden.clr_events.is_none() {
            (overridden.profiles, overridden.providers, overridden.clr_events) =
                (self.profiles.clone(), self.providers.clone(), self.clr_events.clone());
        }
        Ok(overridden)
    }

    /// Returns the session to open in each process.
    ///
    /// # Errors
    /// An error message.
    pub fn select(&self) -> Result<Selection, String> {
        let mut selected = select(&self.profiles, &self.providers, self.clr_events.as_deref()).map_err(|error| error.to_string())?;
        // Kernel samples are not sent to the tracing service.
        selected.config = selected.fallback.take().unwrap_or(selected.config);
        selected.config.buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
        Ok(selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_overrides_the_named_settings() {
        let settings = Settings { targets: vec!["Shop".to_owned()], profiles: vec!["gc-collect".to_owned()], ..Settings::default() };
        assert_eq!(settings.with(""), Ok(settings.clone()));
        let overridden = settings.with("targets=1,2 clr-events=gc+exception").unwrap();
        assert_eq!(overridden.targets, ["1", "2"]);
        assert_eq!((overridden.profiles.len(), overridden.clr_events.as_deref()), (0, Some("gc+exception")));
        let overridden = settings.with("profiles=contention\nprovider=A:1:4").unwrap();
        assert_eq!(
            (overridden.targets, overridden.profiles, overridden.providers),
            (vec!["Shop".to_owned()], vec!["contention".to_owned()], vec!["A:1:4".to_owned()])
        );
        assert!(settings.with("profile=x").unwrap_err().contains("profile=x"));
        assert!(settings.with("profiles=none").unwrap().select().unwrap_err().contains("'none'"));
    }
}
