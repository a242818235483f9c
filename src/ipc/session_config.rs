//! Trace session settings, and the oldest command that supports them.

use super::{Attempt, BufferMb, BufferMode, Command, Destination, Downgrade, FilteredProvider, Provider, Providers, StreamingSession};

/// Rundown events at the end of a session, needed to resolve code addresses to methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rundown {
    /// Supported by every runtime: methods, modules, assemblies and more.
    #[default]
    Default,
    /// No rundown.
    None,
    /// Selected keywords of the rundown provider (.NET 9 and later).
    Keyword(u64),
    /// Selected keywords, or no rundown if the runtime is too old to select them.
    Preferred(u64),
    /// Selected keywords, or the default, which includes more, if the runtime is too old to select them.
    AtLeast(u64),
}

impl Rundown {
    /// Keywords of the default rundown.
    pub const DEFAULT_KEYWORD: u64 = 0x8002_0139;

    /// Returns the keywords of the rundown provider; 0 for none.
    pub fn keyword(self) -> u64 {
        match self {
            Self::Default => Self::DEFAULT_KEYWORD,
            Self::None => 0,
            Self::Keyword(keyword) | Self::Preferred(keyword) | Self::AtLeast(keyword) => keyword,
        }
    }

    /// Returns whether the rundown is on or off, if a boolean can express it.
    fn as_flag(self) -> Option<bool> {
        match self.keyword() {
            0 => Some(false),
            Self::DEFAULT_KEYWORD => Some(true),
            _ => None,
        }
    }
}

/// A streaming trace session, independent of the command version that a runtime supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// Providers to enable. Event ID filters need .NET 10.
    pub providers: Providers<FilteredProvider>,
    /// Maximum size of the event buffer.
    pub buffer: BufferMb,
    /// Rundown at the end. Selected keywords need .NET 9.
    pub rundown: Rundown,
    /// Whether events include stacks. Omitting them needs .NET 9.
    pub stacks: bool,
    /// Behavior of the target when the buffer is full. Blocking needs .NET 11.
    pub mode: BufferMode,
}

/// Runtime keyword that triggers a garbage collection when the session starts (GCHeapCollect).
pub const GC_HEAP_COLLECT_KEYWORD: u64 = 0x80_0000;
/// Provider of the runtime's sampling profiler.
const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";

impl SessionConfig {
    /// Creates a session that every runtime supports: 256 MB, default rundown, stacks, events dropped when the buffer is full.
    pub fn new(providers: Providers) -> Self {
        Self {
            providers: providers.map(FilteredProvider::from),
            buffer: BufferMb::DEFAULT,
            rundown: Rundown::Default,
            stacks: true,
            mode: BufferMode::Drop,
        }
    }

    /// Returns whether starting the session triggers a garbage collection, which delays the reply.
    pub fn triggers_gc(&self) -> bool {
        let triggers_gc = |provider: &Provider| {
            provider.name() == "Microsoft-Windows-DotNETRuntime" && provider.keywords() & GC_HEAP_COLLECT_KEYWORD != 0
        };
        self.providers.iter().any(|filtered| triggers_gc(&filtered.provider))
    }

    /// Returns whether the session enables the runtime's sampling profiler.
    pub fn has_sample_profiler(&self) -> bool {
        self.providers.iter().any(|filtered| filtered.provider.name() == SAMPLE_PROFILER)
    }

    /// Returns the oldest command that expresses all settings, so that ordinary sessions work on every runtime. Newer runtimes keep the old
    /// commands.
    pub fn command(&self) -> Command {
        let filtered = self.providers.iter().any(|provider| !provider.filter.is_all());
        let (buffer, rundown_keyword, stacks) = (self.buffer, self.rundown.keyword(), self.stacks);
        let stream = || StreamingSession { buffer, rundown_keyword, stacks, providers: self.providers.clone() };
        let providers = || self.providers.clone().map(|filtered| filtered.provider);
        match (self.mode, filtered, self.rundown.as_flag(), stacks) {
            (BufferMode::Block, ..) => Command::CollectTracing6 { session: Destination::Stream((stream(), self.mode)) },
            (_, true, ..) => Command::CollectTracing5 { session: Destination::Stream(stream()) },
            (_, _, None, _) => Command::CollectTracing4 { buffer, rundown_keyword, stacks, providers: providers() },
            (_, _, Some(rundown), false) => Command::CollectTracing3 { buffer, rundown, stacks, providers: providers() },
            (_, _, Some(rundown), true) => Command::CollectTracing2 { buffer, rundown, providers: providers() },
        }
    }

    /// Returns the commands to try: the oldest that expresses all settings, then older ones that only lose nonessential settings. Event ID
    /// filters, a selected rundown and blocking are essential: without them it would be a different session.
    pub fn attempts(&self) -> Vec<Attempt> {
        let (mut config, mut downgrades, mut attempts) = (self.clone(), Vec::new(), Vec::new());
        loop {
            let command = config.command();
            attempts.push(Attempt { command: command.clone(), downgrades: downgrades.clone() });
            match command {
                Command::CollectTracing4 { .. } if matches!(config.rundown, Rundown::Preferred(_)) => {
                    config.rundown = Rundown::None;
                    downgrades.push(Downgrade::RundownOmitted);
                }
                Command::CollectTracing4 { .. } if matches!(config.rundown, Rundown::AtLeast(_)) => config.rundown = Rundown::Default,
                Command::CollectTracing3 { .. } => {
                    config.stacks = true;
                    downgrades.push(Downgrade::StacksIncluded);
                }
                Command::CollectTracing2 { buffer, rundown, providers } => {
                    downgrades.retain(|downgrade| *downgrade != Downgrade::RundownOmitted);
                    if !rundown {
                        downgrades.push(Downgrade::RundownIncluded);
                    }
                    attempts.push(Attempt { command: Command::CollectTracing { buffer, providers }, downgrades });
                    return attempts;
                }
                _ => return attempts,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::CommandCode::{CollectTracing, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6};
    use crate::ipc::{CommandCode, EventFilter, Level, Provider};

    fn config() -> SessionConfig {
        SessionConfig::new(Provider::new("P", 1, Level::Verbose).unwrap().into())
    }

    fn codes(config: &SessionConfig) -> Vec<CommandCode> {
        config.attempts().iter().map(|attempt| attempt.command.code()).collect()
    }

    #[test]
    fn only_the_keyword_of_the_runtime_triggers_a_gc() {
        let triggers = |name, keywords| SessionConfig::new(Provider::new(name, keywords, Level::Verbose).unwrap().into()).triggers_gc();
        let runtime = "Microsoft-Windows-DotNETRuntime";
        assert_eq!([triggers(runtime, u64::MAX), triggers(runtime, 1), triggers("P", u64::MAX)], [true, false, false]);
    }

    #[test]
    fn lowest_sufficient_command_is_chosen() {
        let filtered = |filter| {
            let mut config = config();
            config.providers[0].filter = filter;
            config
        };
        let table = [
            (config(), &[CollectTracing2, CollectTracing][..]),
            (SessionConfig { rundown: Rundown::None, ..config() }, &[CollectTracing2, CollectTracing]),
            (SessionConfig { rundown: Rundown::Keyword(0), ..config() }, &[CollectTracing2, CollectTracing]),
            (SessionConfig { rundown: Rundown::Keyword(0x8002_0139), ..config() }, &[CollectTracing2, CollectTracing]),
            (SessionConfig { stacks: false, ..config() }, &[CollectTracing3, CollectTracing2, CollectTracing]),
            (SessionConfig { stacks: false, rundown: Rundown::None, ..config() }, &[CollectTracing3, CollectTracing2, CollectTracing]),
            (SessionConfig { rundown: Rundown::Keyword(0x38), ..config() }, &[CollectTracing4]),
            (SessionConfig { rundown: Rundown::Keyword(0x38), stacks: false, ..config() }, &[CollectTracing4]),
            (SessionConfig { rundown: Rundown::Preferred(1), ..config() }, &[CollectTracing4, CollectTracing2, CollectTracing]),
            (
                SessionConfig { rundown: Rundown::Preferred(1), stacks: false, ..config() },
                &[CollectTracing4, CollectTracing3, CollectTracing2, CollectTracing],
            ),
            (SessionConfig { rundown: Rundown::AtLeast(0x38), ..config() }, &[CollectTracing4, CollectTracing2, CollectTracing]),
            (SessionConfig { rundown: Rundown::Preferred(0x8002_0139), ..config() }, &[CollectTracing2, CollectTracing]),
            (filtered(EventFilter::except(vec![])), &[CollectTracing2, CollectTracing]),
            (filtered(EventFilter::only(vec![1])), &[CollectTracing5]),
            (SessionConfig { stacks: false, ..filtered(EventFilter::except(vec![1])) }, &[CollectTracing5]),
            (SessionConfig { mode: BufferMode::Block, ..config() }, &[CollectTracing6]),
            (SessionConfig { mode: BufferMode::Block, ..filtered(EventFilter::only(vec![])) }, &[CollectTracing6]),
        ];
        for (config, expected) in table {
            assert_eq!(codes(&config), expected, "{config:?}");
            assert_eq!(config.command().code(), expected[0]);
        }
    }

    #[test]
    fn older_commands_list_their_downgrades() {
        use Downgrade::{RundownIncluded, RundownOmitted, StacksIncluded};
        let downgrades = |config: SessionConfig| config.attempts().into_iter().map(|attempt| attempt.downgrades).collect::<Vec<_>>();
        let bare = SessionConfig { stacks: false, rundown: Rundown::None, ..config() };
        for (config, expected) in [
            (config(), vec![vec![], vec![]]),
            (SessionConfig { stacks: false, ..config() }, vec![vec![], vec![StacksIncluded], vec![StacksIncluded]]),
            (SessionConfig { rundown: Rundown::AtLeast(0x38), ..config() }, vec![vec![], vec![], vec![]]),
            (bare.clone(), vec![vec![], vec![StacksIncluded], vec![StacksIncluded, RundownIncluded]]),
            (
                SessionConfig { rundown: Rundown::Preferred(1), ..bare },
                vec![vec![], vec![RundownOmitted], vec![RundownOmitted, StacksIncluded], vec![StacksIncluded, RundownIncluded]],
            ),
        ] {
            assert_eq!(downgrades(config.clone()), expected, "{config:?}");
        }
    }

    #[test]
    fn all_options_are_passed_to_the_command() {
        let buffer = BufferMb::new(16).unwrap();
        let requested = SessionConfig { buffer, rundown: Rundown::None, ..config() };
        let providers = Provider::new("P", 1, Level::Verbose).unwrap().into();
        assert_eq!(requested.command(), Command::CollectTracing2 { buffer, rundown: false, providers });

        let requested = SessionConfig { rundown: Rundown::Keyword(0x38), stacks: false, mode: BufferMode::Block, ..config() };
        let stream =
            StreamingSession { buffer: BufferMb::DEFAULT, rundown_keyword: 0x38, stacks: false, providers: requested.providers.clone() };
        assert_eq!(requested.command(), Command::CollectTracing6 { session: Destination::Stream((stream, BufferMode::Block)) });
    }
}
