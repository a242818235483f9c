//! What to analyze, as the command line selects it.

use std::time::Duration;

use super::{Analysis, check_duration};
use crate::analysis::{Live, LiveEventFilter, LogFilter, OccurrenceKind};
use crate::cli::args::{self, LogLevel};
use crate::cli::exit::Failure;
use crate::clr::{LOGGING_PROVIDER, SelectError, provider_name, select};
use crate::ipc::{Rundown, SessionConfig};

/// The events that name the methods compiled while stacks are followed. A lower level has none since .NET 5 (seen on 8, 9 and 10).
const COMPILED_METHODS: &str = "Microsoft-Windows-DotNETRuntime:loader+jit+ngen:verbose";

/// The default of the shortest wait for a lock that is shown: some programs have thousands of shorter ones per second.
const MIN_WAIT: Duration = Duration::from_millis(10);

/// An analysis with its options.
pub(in crate::cli) struct Request<'a> {
    pub(super) analysis: Analysis,
    pub(super) arguments: &'a args::Analyze,
    /// What to show one by one, instead of the result.
    pub(super) follow: Option<OccurrenceKind>,
    /// Whether the stack of each is shown.
    pub(super) stacks: bool,
    /// The shortest wait for a lock that is shown.
    min_wait: Duration,
    logs: LogFilter,
    level: Option<LogLevel>,
    selection: Option<&'a args::Selection>,
    events: LiveEventFilter,
}

impl<'a> Request<'a> {
    pub(in crate::cli) fn new(analysis: Analysis, arguments: &'a args::Analyze) -> Self {
        Self {
            analysis,
            arguments,
            follow: None,
            stacks: false,
            min_wait: Duration::ZERO,
            logs: LogFilter::default(),
            level: None,
            selection: None,
            events: LiveEventFilter::default(),
        }
    }

    pub(in crate::cli) fn followable(analysis: Analysis, kind: OccurrenceKind, arguments: &'a args::Followable) -> Self {
        Self { follow: arguments.follow.then_some(kind), ..Self::new(analysis, &arguments.analyze) }
    }

    fn followable_stacks(analysis: Analysis, kind: OccurrenceKind, arguments: &'a args::FollowableStacks) -> Self {
        Self { stacks: arguments.stacks, ..Self::followable(analysis, kind, &arguments.followable) }
    }

    pub(in crate::cli) fn exceptions(arguments: &'a args::FollowableStacks) -> Self {
        Self::followable_stacks(Analysis::Exceptions, OccurrenceKind::Exceptions, arguments)
    }

    pub(in crate::cli) fn allocations(arguments: &'a args::FollowableStacks) -> Self {
        Self::followable_stacks(Analysis::Allocations, OccurrenceKind::Allocations, arguments)
    }

    pub(in crate::cli) fn contention(arguments: &'a args::Contention) -> Self {
        let min_wait = arguments.min_wait.unwrap_or(MIN_WAIT);
        Self { min_wait, ..Self::followable_stacks(Analysis::Contention, OccurrenceKind::LockWaits, &arguments.followable) }
    }

    pub(in crate::cli) fn logs(arguments: &'a args::Logs) -> Self {
        // Another session can enable more messages of a process, which are then in all sessions.
        let of_process = args::recording(&arguments.followable.analyze.source).is_none().then_some(LogLevel::Info);
        let level = arguments.level.or(of_process).map_or(0, |level| level as usize);
        let logs = LogFilter { level, categories: arguments.category.clone() };
        Self { logs, level: arguments.level, ..Self::followable(Analysis::Logs, OccurrenceKind::Messages, &arguments.followable) }
    }

    pub(in crate::cli) fn events(arguments: &'a args::EventList) -> Self {
        let args::Selection { profile, provider, clr_events } = &arguments.selection;
        let is_selected = !profile.is_empty() || !provider.is_empty() || clr_events.is_some();
        let selection = is_selected.then_some(&arguments.selection);
        let events = LiveEventFilter::new(arguments.filter.as_deref().unwrap_or_default());
        Self { selection, events, ..Self::followable_stacks(Analysis::Events, OccurrenceKind::Events, &arguments.followable) }
    }

    /// Returns an error if an option only applies to processes.
    pub(super) fn check_file(&self) -> Result<(), Failure> {
        let file = &self.arguments.source;
        check_duration(self.arguments.duration, file)?;
        if self.follow.is_some() {
            return Err(Failure::usage(format!("--follow shows what occurs in a process, and {file} is a file")));
        }
        match self.selection {
            Some(_) => Err(Failure::usage(format!("--profile, --provider and --clr-events select what is recorded, and {file} is a file"))),
            None => Ok(()),
        }
    }

    /// Returns the session that records the events.
    pub(super) fn config(&self) -> Result<SessionConfig, SelectError> {
        const NONE: [&str; 0] = [];
        let selected = match (self.selection, self.analysis) {
            (Some(args::Selection { profile, provider, clr_events }), _) => select(profile, provider, clr_events.as_deref())?,
            (None, Analysis::Logs) => select(&NONE, &[log_provider(self.level.unwrap_or(LogLevel::Info), &self.logs.categories)], None)?,
            // Of the events that are shown, these would be most.
            (None, analysis) if self.stacks && analysis != Analysis::Events => select(&[analysis.profile()], &[COMPILED_METHODS], None)?,
            (None, analysis) => select(&[analysis.profile()], &NONE, None)?,
        };
        let mut config = selected.config;
        if self.follow.is_some() || self.analysis == Analysis::Logs {
            (config.stacks, config.rundown) = (self.stacks, Rundown::None);
        }
        Ok(config)
    }

    /// Returns the names of the providers that are selected one by one.
    pub(super) fn specified_providers(&self) -> impl Iterator<Item = &str> {
        self.selection.into_iter().flat_map(|selection| &selection.provider).map(|spec| provider_name(spec))
    }

    /// Applies the filters.
    pub(super) fn filtered(&self, live: Live) -> Live {
        let min_wait_ns = u64::try_from(self.min_wait.as_nanos()).unwrap_or(u64::MAX);
        let mut live = match self.follow {
            Some(OccurrenceKind::Events) => live.with_recent_events(),
            Some(OccurrenceKind::Allocations) => live.with_allocations(),
            Some(OccurrenceKind::LockWaits) => live.with_lock_waits(min_wait_ns),
            _ => live,
        };
        live.set_event_filter(self.events.clone());
        live.set_log_filter(self.logs.clone());
        live
    }
}

/// Returns the specification of the provider of log messages, as in profile `logs`. Categories and the lowest level need a filter; all other
/// categories are then disabled, so that the process only formats messages that are shown (source: dotnet/runtime,
/// `LoggingEventSource.cs`, `FilterSpecs`).
fn log_provider(lowest: LogLevel, categories: &[String]) -> String {
    let (level, name) = match lowest {
        LogLevel::Trace => (5, "Trace"),
        LogLevel::Debug => (5, "Debug"),
        LogLevel::Info => (4, "Information"),
        LogLevel::Warn => (3, "Warning"),
        LogLevel::Error => (2, "Error"),
        LogLevel::Critical => (1, "Critical"),
    };
    let mut filter: Vec<_> = categories.iter().map(|category| format!("{category}:{name}")).collect();
    // Without a filter, the level of events that includes trace messages only selects those from debug on.
    if filter.is_empty() && lowest == LogLevel::Trace {
        filter.push(format!("*:{name}"));
    }
    let arguments = if filter.is_empty() { String::new() } else { format!(":FilterSpecs=\"{}\"", filter.join(";")) };
    format!("{LOGGING_PROVIDER}:jsonmessage:{level}{arguments}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_selects_messages_by_level_and_category() {
        let config = |level, categories: &[&str]| {
            let categories: Vec<_> = categories.iter().map(|name| (*name).to_owned()).collect();
            select(&[""; 0], &[log_provider(level, &categories)], None).unwrap().config
        };
        let usual = select(&["logs"], &[""; 0], None).unwrap().config;
        assert_eq!(config(LogLevel::Info, &[]).providers, usual.providers);
        let arguments =
            |level, categories| config(level, categories).providers.iter().next().unwrap().provider.arguments().map(str::to_owned);
        for (level, categories, expected) in [
            (LogLevel::Debug, &[][..], None),
            (LogLevel::Trace, &[], Some("FilterSpecs=*:Trace")),
            (LogLevel::Warn, &["A.B"], Some("FilterSpecs=A.B:Warning")),
            (LogLevel::Debug, &["A", "B"], Some("FilterSpecs=\"A:Debug;B:Debug\"")),
        ] {
            assert_eq!(arguments(level, categories).as_deref(), expected, "{level:?} {categories:?}");
        }
    }
}
