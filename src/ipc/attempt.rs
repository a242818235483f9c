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
    pub downgrades: Vec<Downgrade>,
}

impl Attempt {
    pub(super) fn exact(command: Command) -> Self {
        Self { command, downgrades: Vec::new() }
    }
}

listed! {
/// A setting that an older command has no field for, and that is not essential to the session. Its `Display` is a sentence for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Downgrade {
    /// Events include stacks although not requested.
    StacksIncluded => (CommandCode::CollectTracing3, "events include stacks, which makes them larger and adds overhead"),
    /// No rundown although one was preferred.
    RundownOmitted => (CommandCode::CollectTracing4, "the file has no rundown"),
    /// The default rundown is included although not requested.
    RundownIncluded => (CommandCode::CollectTracing2, "the file has the full rundown"),
}
/// Returns the first command that supports the setting, and what happens instead.
fn row(self) -> (CommandCode, &'static str);
}

impl fmt::Display for Downgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, what) = self.row();
        write!(f, "{what}: {} {}", command.purpose(), command.needs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downgrade_texts_name_effect_and_required_version() {
        for (downgrade, text) in [
            (
                Downgrade::StacksIncluded,
                "events include stacks, which makes them larger and adds overhead: recording without stacks needs .NET 9",
            ),
            (Downgrade::RundownOmitted, "the file has no rundown: selecting the rundown needs .NET 9"),
            (Downgrade::RundownIncluded, "the file has the full rundown: recording without rundown needs .NET Core 3.0"),
        ] {
            assert_eq!(downgrade.to_string(), text);
        }
    }
}
