//! `resume`, `set-env`, `startup-hook` and `profiler`: commands that change a runtime.

use std::path::Path;

use super::args::{Profiler, ProfilerLibrary};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{check_supported, connect, display_name, exchange_error, target_path};
use crate::ipc::{ClientData, Command, EnvironmentName, EnvironmentValue};
use crate::model::{Process, RunState};
use crate::session::{ClientDataError, client_data};

pub(super) async fn resume(host: &Host, target: &str) -> Result<Exit, Failure> {
    let (process, client) = connect(host, target).await?;
    client.run(&Command::ResumeRuntime).await.map_err(exchange_error)?;
    let name = display_name(&process);
    let done = match process.run_state {
        RunState::Running => "was not suspended; nothing changed",
        RunState::Unknown => "was resumed, if it was suspended",
        RunState::Suspended => {
            client.await_start().await.map_err(exchange_error)?;
            "was resumed"
        }
    };
    print::message(format_args!("{name} {done}"));
    Ok(Exit::Done)
}

/// Sets a variable (`NAME=VALUE`) or unsets one.
pub(super) async fn set_env(host: &Host, target: &str, assignment: Option<&str>, unset: Option<&str>) -> Result<Exit, Failure> {
    let (name, value) = match (assignment, unset) {
        (Some(assignment), _) => {
            let usage = || Failure::usage(format!("'{}' has no '=': give NAME=VALUE, or --unset NAME", assignment.escape_debug()));
            let (name, value) = assignment.split_once('=').ok_or_else(usage)?;
            (name, Some(EnvironmentValue::new(value).map_err(Failure::usage)?))
        }
        (None, unset) => (unset.unwrap_or_default(), None),
    };
    let done = format!("{name} was {}", if value.is_some() { "set" } else { "unset" });
    let name = EnvironmentName::new(name).map_err(Failure::usage)?;
    let command = Command::SetEnvironmentVariable { name, value };
    change(
        host,
        target,
        |_| Ok(command),
        |process| match process.run_state {
            RunState::Suspended => done,
            RunState::Running | RunState::Unknown => format!("{done}; values the program has already read do not change"),
        },
    )
    .await
}

pub(super) async fn startup_hook(host: &Host, target: &str, path: &Path) -> Result<Exit, Failure> {
    let command = |process: &Process| Ok(Command::ApplyStartupHook { path: target_path(process, path)? });
    change(host, target, command, |process| match process.run_state {
        RunState::Suspended => "startup hook set; it runs when the process is resumed".to_owned(),
        // A program can be published without support for hooks; its runtime answers the same.
        RunState::Running | RunState::Unknown => {
            "startup hook accepted; a program built with StartupHookSupport=false ignores it".to_owned()
        }
    })
    .await
}

pub(super) async fn profiler(host: &Host, profiler: Profiler) -> Result<Exit, Failure> {
    match profiler {
        Profiler::Attach { library: ProfilerLibrary { target, guid, path }, data, timeout } => {
            let data = data.map_or_else(|| Ok(ClientData::default()), |file| read(&file))?;
            let timeout_ms = u32::try_from(timeout.as_millis()).map_err(|_| Failure::usage("--timeout is 49 days at most"))?;
            let command =
                |process: &Process| Ok(Command::AttachProfiler { timeout_ms, profiler: guid, path: target_path(process, &path)?, data });
            change(host, &target.target, command, |_| "profiler loaded".to_owned()).await
        }
        Profiler::Startup { library: ProfilerLibrary { target, guid, path } } => {
            let command = |process: &Process| {
                if process.run_state == RunState::Running {
                    // Runtimes answer with success and do nothing.
                    let why = "is not suspended at startup: attach the profiler instead (`dn-top profiler attach`)";
                    return Err(anyhow::anyhow!("{} {why}", display_name(process)).into());
                }
                Ok(Command::StartupProfiler { profiler: guid, path: target_path(process, &path)? })
            };
            change(host, &target.target, command, |_| "profiler set; it is loaded when the process is resumed".to_owned()).await
        }
    }
}

/// Sends a command and prints its result.
async fn change(
    host: &Host,
    target: &str,
    command: impl FnOnce(&Process) -> Result<Command, Failure>,
    done: impl FnOnce(&Process) -> String,
) -> Result<Exit, Failure> {
    let (mut process, client) = connect(host, target).await?;
    let command = command(&process)?;
    check_supported(&process, command.code())?;
    if !command.code().may_be_sent_while_suspended() {
        host.start_program(&mut process, &client).await?;
    }
    client.run(&command).await.map_err(exchange_error)?;
    print::message(format_args!("{}: {}", display_name(&process), done(&process)));
    Ok(Exit::Done)
}

fn read(file: &Path) -> Result<ClientData, Failure> {
    client_data(file).map_err(|error| {
        let exit = if matches!(error, ClientDataError::TooLong(_)) { Exit::Usage } else { Exit::Failed };
        Failure::new(exit, error)
    })
}
