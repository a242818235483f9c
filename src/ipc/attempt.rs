//! The commands that can carry a request, and what of the request each of them cannot carry.

use std::fmt;

use super::{Command, CommandCode};

/// One way to make a request. A list of them is tried in order, each after the one before was answered with
/// [`Hresult::UNKNOWN_COMMAND`](super::Hresult::UNKNOWN_COMMAND).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The command.
    pub command: Command,
    /// What was requested and this command cannot express.
    pub losses: Vec<Loss>,
}

impl Attempt {
    pub(super) fn exact(command: Command) -> Self {
        Self { command, losses: Vec::new() }
    }
}

/// A setting that an older command has no field for, and that a session works without. Displayed as a sentence for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Events carry their stacks although they were not requested.
    StacksIncluded,
    /// No rundown is sent although some of it was preferred.
    RundownOmitted,
    /// The default rundown is sent although it was not requested.
    RundownIncluded,
}

impl Loss {
    /// The first command that has the field.
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
