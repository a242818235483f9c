//! What a trace session is to be, and the oldest command that can request it.

use super::{Attempt, BufferMb, BufferMode, Command, Destination, FilteredProvider, FilteredStream, Loss, Provider, Providers};

/// What a session sends at its end, so that a reader can tell code addresses by their methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rundown {
    /// What every runtime understands: methods, modules, assemblies and more.
    #[default]
    Default,
    /// Nothing.
    None,
    /// A choice of its own (.NET 9 and later): keywords of the rundown provider.
    Keyword(u64),
    /// The same, and nothing where the runtime is too old to choose.
    Preferred(u64),
    /// The same, and the default, which holds more, where the runtime is too old to choose.
    AtLeast(u64),
}

impl Rundown {
    /// The keyword that the default stands for.
    pub const DEFAULT_KEYWORD: u64 = 0x8002_0139;

    /// The rundown provider's keywords; 0 for none.
    pub fn keyword(self) -> u64 {
        match self {
            Self::Default => Self::DEFAULT_KEYWORD,
            Self::None => 0,
            Self::Keyword(keyword) | Self::Preferred(keyword) | Self::AtLeast(keyword) => keyword,
        }
    }

    /// On or off, where these words are enough.
    fn as_flag(self) -> Option<bool> {
        match self.keyword() {
            0 => Some(false),
            Self::DEFAULT_KEYWORD => Some(true),
            _ => None,
        }
    }
}

/// A streaming trace session, whichever generation of the command a runtime supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// What is turned on. Filters by event id need .NET 10.
    pub providers: Providers<FilteredProvider>,
    /// The limit of what waits to be sent.
    pub buffer: BufferMb,
    /// What comes at the end. A choice of its own needs .NET 9.
    pub rundown: Rundown,
    /// Whether events carry their stacks. Without needs .NET 9.
    pub stacks: bool,
    /// What the target does when the buffer is full. Blocking needs .NET 11.
    pub mode: BufferMode,
}

/// Keyword of the runtime's provider that makes it collect when the session starts (GCHeapCollect).
pub const HEAP_COLLECT: u64 = 0x80_0000;
/// The provider of the runtime's samples.
const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";

impl SessionConfig {
    /// A session that every runtime understands: 256 MB, default rundown, stacks, events dropped when the buffer is full.
    pub fn new(providers: Providers) -> Self {
        Self {
            providers: providers.map(FilteredProvider::from),
            buffer: BufferMb::DEFAULT,
            rundown: Rundown::Default,
            stacks: true,
            mode: BufferMode::Drop,
        }
    }

    /// Whether the runtime collects first, and only then answers.
    pub fn collects(&self) -> bool {
        let collects =
            |provider: &Provider| provider.name() == "Microsoft-Windows-DotNETRuntime" && provider.keywords() & HEAP_COLLECT != 0;
        self.providers.iter().any(|filtered| collects(&filtered.provider))
    }

    /// Whether the runtime samples the stacks of its threads.
    pub fn samples(&self) -> bool {
        self.providers.iter().any(|filtered| filtered.provider.name() == SAMPLE_PROFILER)
    }

    /// The oldest command that expresses all of it, so that ordinary sessions work unchanged on every runtime. Newer runtimes keep the old commands.
    pub fn command(&self) -> Command {
        let filtered = self.providers.iter().any(|provider| !provider.filter.is_all());
        let (buffer, rundown_keyword, stacks) = (self.buffer, self.rundown.keyword(), self.stacks);
        let stream = || FilteredStream { buffer, rundown_keyword, stacks, providers: self.providers.clone() };
        let providers = || self.providers.clone().map(|filtered| filtered.provider);
        match (self.mode, filtered, self.rundown.as_flag(), stacks) {
            (BufferMode::Block, ..) => Command::CollectTracing6 { session: Destination::Stream((stream(), self.mode)) },
            (_, true, ..) => Command::CollectTracing5 { session: Destination::Stream(stream()) },
            (_, _, None, _) => Command::CollectTracing4 { buffer, rundown_keyword, stacks, providers: providers() },
            (_, _, Some(rundown), false) => Command::CollectTracing3 { buffer, rundown, stacks, providers: providers() },
            (_, _, Some(rundown), true) => Command::CollectTracing2 { buffer, rundown, providers: providers() },
        }
    }

    /// The commands to try: the oldest that expresses everything, then older ones that lose only what a session works without. Filters by event
    /// id, a rundown of its own and blocking are what a session is opened for: without them it would be another one.
    pub fn attempts(&self) -> Vec<Attempt> {
        let (mut config, mut losses, mut attempts) = (self.clone(), Vec::new(), Vec::new());
        loop {
            let command = config.command();
            attempts.push(Attempt { command: command.clone(), losses: losses.clone() });
            match command {
                Command::CollectTracing4 { .. } if matches!(config.rundown, Rundown::Preferred(_)) => {
                    config.rundown = Rundown::None;
                    losses.push(Loss::RundownOmitted);
                }
                Command::CollectTracing4 { .. } if matches!(config.rundown, Rundown::AtLeast(_)) => config.rundown = Rundown::Default,
                Command::CollectTracing3 { .. } => {
                    config.stacks = true;
                    losses.push(Loss::StacksIncluded);
                }
                Command::CollectTracing2 { buffer, rundown, providers } => {
                    losses.retain(|loss| *loss != Loss::RundownOmitted);
                    if !rundown {
                        losses.push(Loss::RundownIncluded);
                    }
                    attempts.push(Attempt { command: Command::CollectTracing { buffer, providers }, losses });
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
    fn the_lowest_generation_that_can_say_it() {
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
    fn every_older_command_says_what_it_loses() {
        use Loss::{RundownIncluded, RundownOmitted, StacksIncluded};
        let losses = |config: SessionConfig| config.attempts().into_iter().map(|attempt| attempt.losses).collect::<Vec<_>>();
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
            assert_eq!(losses(config.clone()), expected, "{config:?}");
        }
    }

    #[test]
    fn every_wish_reaches_the_command() {
        let buffer = BufferMb::new(16).unwrap();
        let asked = SessionConfig { buffer, rundown: Rundown::None, ..config() };
        let providers = Provider::new("P", 1, Level::Verbose).unwrap().into();
        assert_eq!(asked.command(), Command::CollectTracing2 { buffer, rundown: false, providers });

        let asked = SessionConfig { rundown: Rundown::Keyword(0x38), stacks: false, mode: BufferMode::Block, ..config() };
        let stream = FilteredStream { buffer: BufferMb::DEFAULT, rundown_keyword: 0x38, stacks: false, providers: asked.providers.clone() };
        assert_eq!(asked.command(), Command::CollectTracing6 { session: Destination::Stream((stream, BufferMode::Block)) });
    }
}
