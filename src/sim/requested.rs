//! Options with which a simulated session was requested.

use crate::ipc::{EventFilter, FilteredProvider, Provider, Providers, StreamingSession};

/// The providers and the rundown of a session, from any version of the command.
#[derive(Debug, Clone)]
pub(super) struct Requested {
    providers: Vec<FilteredProvider>,
    pub(super) rundown: bool,
}

impl Requested {
    pub(super) fn all(providers: Providers, rundown: bool) -> Self {
        Self { providers: providers.iter().cloned().map(FilteredProvider::from).collect(), rundown }
    }

    pub(super) fn filtered(stream: StreamingSession) -> Self {
        Self { providers: stream.providers.iter().cloned().collect(), rundown: stream.rundown_keyword != 0 }
    }

    pub(super) fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().map(|filtered| &filtered.provider).find(|provider| provider.name().eq_ignore_ascii_case(name))
    }

    /// Whether the session receives an event.
    pub(super) fn wants(&self, provider: &str, keywords: u64, event: u32) -> bool {
        let matches = |filter: &EventFilter| filter.allows(event);
        self.providers.iter().any(|FilteredProvider { provider: requested, filter }| {
            requested.name().eq_ignore_ascii_case(provider) && (keywords == 0 || requested.keywords() & keywords != 0) && matches(filter)
        })
    }
}
