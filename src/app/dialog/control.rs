//! Dialogs for changes to a runtime: environment variables, startup hooks, profilers.

use std::path::PathBuf;

use crate::ipc::{ClientData, Command, CommandCode, EnvironmentName, EnvironmentValue};
use crate::model::{Process, RunState};

use super::dump::target_path;
use super::{Form, Purpose, Question, Subject};

listed! {
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    SetVariable => "set variable",
    UnsetVariable => "unset variable",
    StartupHook => "startup hook",
    /// Loads a profiler into a running process.
    AttachProfiler => "profiler",
    /// Loads a profiler into a process suspended at startup.
    StartupProfiler => "profiler at start",
}
pub fn title(self) -> &'static str;
}

impl Change {
    pub fn code(self) -> CommandCode {
        match self {
            Self::SetVariable | Self::UnsetVariable => CommandCode::SetEnvironmentVariable,
            Self::StartupHook => CommandCode::ApplyStartupHook,
            Self::AttachProfiler => CommandCode::AttachProfiler,
            Self::StartupProfiler => CommandCode::StartupProfiler,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRequest {
    /// The command to send; client data for a profiler is not loaded yet.
    pub command: Command,
    /// File with the profiler's client data, as a path in our own file system.
    pub data: Option<PathBuf>,
    /// Description that is safe to log: contains no variable values.
    pub what: String,
}

const ABOUT_PATH: &str = "absolute path in the target's file system";

impl Form {
    /// Creates the form for changing a process.
    pub(in crate::app) fn control(process: &Process, change: Change) -> Self {
        let variable = || Question::text("Name", "", "the variable");
        let path = || Question::text("Path", "", ABOUT_PATH);
        let class = || Question::text("Class", "", "the profiler's GUID, 8-4-4-4-12 hexadecimal digits");
        let (title, questions) = match change {
            Change::SetVariable => {
                let value = Question::text("Value", "", "its new value; leading and trailing blanks count");
                ("Set a variable", vec![variable(), value])
            }
            Change::UnsetVariable => ("Unset a variable", vec![variable()]),
            Change::StartupHook => ("Startup hook", vec![path()]),
            Change::AttachProfiler => {
                let data = Question::text("Data", "", "a file here that is passed to the profiler; none if empty");
                let timeout = Question::text("Timeout", "10s", "how long the target may take to load it");
                ("Attach a profiler", vec![class(), path(), data, timeout])
            }
            Change::StartupProfiler => ("Startup profiler", vec![class(), path()]),
        };
        Self::new(Purpose::Control(change), Some(Subject::of(process)), title, &["No", "Yes"], effects(process, change), questions)
    }

    /// Returns the requested change, or the invalid field and the reason.
    pub(in crate::app) fn control_request(&self, change: Change) -> Result<ControlRequest, (usize, String)> {
        let name = || EnvironmentName::new(self.typed(0)).map_err(|invalid| (0, format!("Invalid variable name: {invalid}.")));
        let path = |question: usize| target_path(self.typed(question)).map_err(|problem| (question, problem));
        let class = || self.typed(0).parse().map_err(|_| (0, "Give the class as 8-4-4-4-12 hexadecimal digits.".to_owned()));
        let (command, what) = match change {
            Change::SetVariable => {
                let value = EnvironmentValue::new(self.untrimmed(1)).map_err(|invalid| (1, format!("Invalid value: {invalid}.")))?;
                (Command::SetEnvironmentVariable { name: name()?, value: Some(value) }, self.typed(0))
            }
            Change::UnsetVariable => (Command::SetEnvironmentVariable { name: name()?, value: None }, self.typed(0)),
            Change::StartupHook => (Command::ApplyStartupHook { path: path(0)? }, self.typed(0)),
            Change::StartupProfiler => (Command::StartupProfiler { profiler: class()?, path: path(1)? }, self.typed(1)),
            Change::AttachProfiler => {
                let (profiler, path) = (class()?, path(1)?);
                let timeout = humantime::parse_duration(self.typed(3)).ok().and_then(|timeout| u32::try_from(timeout.as_millis()).ok());
                let timeout_ms = timeout.ok_or_else(|| (3, "Give a time such as 10s.".to_owned()))?;
                (Command::AttachProfiler { timeout_ms, profiler, path, data: ClientData::default() }, self.typed(1))
            }
        };
        // Only the form for a profiler asks for a file.
        let file = self.typed(2);
        Ok(ControlRequest { command, data: (!file.is_empty()).then(|| file.into()), what: what.to_owned() })
    }
}

fn effects(Process { name, run_state, .. }: &Process, change: Change) -> Vec<String> {
    let is_suspended = *run_state == RunState::Suspended;
    let when = if is_suspended { "when it is resumed" } else { "now" };
    match change {
        Change::SetVariable | Change::UnsetVariable if is_suspended => {
            vec![format!("{name} and its runtime see this when it is resumed, as if it had been started with it.")]
        }
        Change::SetVariable | Change::UnsetVariable => vec![
            format!("{name} is running: values it has already read do not change. Processes it starts from now on inherit the new value."),
            "It stays when dn-top quits.".to_owned(),
        ],
        Change::StartupHook => vec![
            format!("{name} loads this assembly and runs its StartupHook.Initialize() {when}, with all the rights of the process."),
            "An exception in it ends the process (.NET 9 and newer), and what it loads is never unloaded.".to_owned(),
        ],
        Change::AttachProfiler | Change::StartupProfiler => {
            let load = format!(
                "{name} loads this native library into itself {when}, with all the rights of the process. A faulty one crashes it."
            );
            let only = "Only one profiler can be loaded, and many cannot be unloaded.".to_owned();
            if change == Change::AttachProfiler { vec![load, only] } else { vec![load] }
        }
    }
}
