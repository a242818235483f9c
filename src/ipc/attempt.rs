//! The commands that can carry a request, and the settings that each of them cannot express.

use std::fmt;

use super::{Command, CommandCode};

/// One way to send a request. Attempts are made in order, each after the previous one failed with
/// [`Hresult::UNKNOWN_COMMAND`](super::Hresult::UNKNOWN_COMMAND).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The command to send.
    pub command: Command,
    /// Requested settings that this command cannot express.
    pub losses: Vec<Loss>,
}

impl Attempt {
    pub(super) fn exact(command: Command) -> Self {
        Self { command, losses: Vec::new() }
    }
}

/// A setting that an older command has no field for, and that is not essential to the session. Its `Display` is a sentence for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Events include stacks although not requested.
    StacksIncluded,
    /// No rundown although one was preferred.
    RundownOmitted,
    /// The default rundown is included although not requested.
    RundownIncluded,
}

impl Loss {
    /// Returns the first command that supports the setting.
    pub fn command(self) -> CommandCode {
        match self {
            Self::StacksIncluded => CommandCode::CollectTracing3,
            Self::RundownOmitted => CommandCode::CollectTracing4,
            Self::RundownIncluded => CommandCode::CollectTracing2,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::StacksIncluded => "events carry their stacks, which makes them larger and costs the target more",
            Self::RundownOmitted => "the file gets no rundown",
            Self::RundownIncluded => "the file gets the whole rundown",
        };
        let command = self.command();
        write!(f, "{what}: {} {}", command.purpose(), command.needs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_say_what_happens_and_what_it_takes() {
        for (loss, text) in [
            (
                Loss::StacksIncluded,
                "events carry their stacks, which makes them larger and costs the target more: recording without stacks needs .NET 9",
            ),
            (Loss::RundownOmitted, "the file gets no rundown: a choice of the rundown needs .NET 9"),
            (Loss::RundownIncluded, "the file gets the whole rundown: recording without rundown needs .NET Core 3.0"),
        ] {
            assert_eq!(loss.to_string(), text);
        }
    }
}
