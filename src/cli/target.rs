//! From a word on the command line to a process that can be talked to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::exit::{Exit, Failure};
use super::host::Host;
use crate::ipc::{CommandCode, Hresult};
use crate::model::{Contact, NativeAotGap, Process, RunState, Trouble, is_elsewhere};
use crate::net::client::{ANSWER_LIMIT, Client};
use crate::net::{ExchangeError, TargetError};
use crate::session::StartError;

/// How long a command waits for the process info of all: a little longer than a client does, so that a silent process has timed out by then.
pub(super) const PATIENCE: Duration = ANSWER_LIMIT.saturating_add(Duration::from_millis(500));

/// A process, and the way to it where there is one.
pub(super) struct Found {
    pub(super) process: Process,
    pub(super) client: Option<Client>,
}

/// The process that is meant, attachable or not.
pub(super) async fn find(host: &Host, target: &str) -> Result<Found, Failure> {
    let mut directory = host.directory()?;
    let process = directory.resolve(target, PATIENCE).await.map_err(|error| match error {
        TargetError::List(_) => Failure::failed(error),
        TargetError::OtherUser { .. } => Failure::new(Exit::Denied, error),
        _ => Failure::new(Exit::NoTarget, error),
    })?;
    let client = directory.clients().of(&process);
    Ok(Found { process, client })
}

/// The process that is meant, if it can be talked to.
pub(super) async fn connect(host: &Host, target: &str) -> Result<(Process, Client), Failure> {
    let Found { process, client } = find(host, target).await?;
    let client = checked(&process, client)?;
    Ok((process, client))
}

/// The way to a process, if there is one that may be gone.
fn checked(process: &Process, client: Option<Client>) -> Result<Client, Failure> {
    let name = called(process);
    if !process.contact.is_attachable() {
        let reason = process.contact.reason().unwrap_or("it cannot be reached");
        let exit = match process.contact {
            Contact::Trouble { kind: Trouble::Denied | Trouble::Unverified, .. } => Exit::Denied,
            Contact::Trouble { kind: Trouble::Stale, .. } => Exit::NoTarget,
            _ => Exit::Failed,
        };
        return Err(Failure::new(exit, anyhow::anyhow!("{name}: {reason}")));
    }
    client.ok_or_else(|| anyhow::anyhow!("{name} serves no diagnostic socket").into())
}

/// A process that is given as a preview of .NET Core 3.0, which is sent nothing in a protocol that it does not speak.
pub(super) async fn connect_legacy(host: &Host, target: &str) -> Result<(Process, Client), Failure> {
    let mut directory = host.directory()?;
    let process = directory.locate(target).await.map_err(|error| Failure::new(Exit::NoTarget, error))?;
    let client = checked(&process, directory.clients().of(&process))?;
    Ok((process, client.legacy()))
}

/// The process that is meant, if its program runs: one that is suspended at startup sends nothing.
pub(super) async fn connect_running(host: &Host, target: &str) -> Result<(Process, Client), Failure> {
    let (process, client) = connect(host, target).await?;
    if process.run_state == RunState::Suspended {
        let name = called(&process);
        return Err(anyhow::anyhow!("{name} is suspended at startup and sends no events until it is resumed (`dn-top resume`)").into());
    }
    Ok((process, client))
}

/// How a command ends whose session was not opened.
pub(super) fn not_started(error: StartError) -> Failure {
    let exit = match &error {
        StartError::Output(error) if error.is_denied() => Exit::Denied,
        StartError::Service(error) if error.is_denied() => Exit::Denied,
        StartError::Exchange(error) => exit_of(error),
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// A process in a sentence. One that was given by its socket, and has not answered, has no name; or not even a pid.
pub(super) fn called(process: &Process) -> String {
    match (process.key.pid, process.name.as_str(), &process.socket) {
        (0, _, Some(socket)) => format!("the process at {}", socket.display()),
        (pid, "", _) => format!("process {pid}"),
        (pid, name, _) => format!("process {pid} ({name})"),
    }
}

/// How a command ends whose exchange failed.
pub(super) fn refused(error: ExchangeError) -> Failure {
    Failure::new(exit_of(&error), error)
}

/// Refuses what a NativeAOT program cannot do, whatever it would answer: seconds of silence, or that it failed.
pub(super) fn possible(process: &Process, command: CommandCode) -> Result<(), Failure> {
    match NativeAotGap::of(command).filter(|_| process.native_aot) {
        Some(gap) => Err(impossible(process, gap)),
        None => Ok(()),
    }
}

/// The process that is meant, if its program runs and a command can be had of it that NativeAOT programs have nothing for.
pub(super) async fn connect_managed(host: &Host, target: &str, gap: NativeAotGap) -> Result<(Process, Client), Failure> {
    let found = connect_running(host, target).await?;
    if found.0.native_aot { Err(impossible(&found.0, gap)) } else { Ok(found) }
}

fn impossible(process: &Process, gap: NativeAotGap) -> Failure {
    anyhow::anyhow!("{}: {}", called(process), gap.words(process.key.pid)).into()
}

/// How a command ends that the runtime of a process did not execute; one that it does not have is named in plain words.
pub(super) fn declined(process: &Process, error: ExchangeError) -> Failure {
    let code = error.command;
    match error.hresult() {
        Some(hresult @ Hresult::UNKNOWN_COMMAND) => {
            let why = format!("{} {}; the runtime answered {hresult} to {}", code.purpose(), code.needs(), code.name());
            anyhow::anyhow!("{}: {why}", called(process)).into()
        }
        _ => refused(error),
    }
}

pub(super) fn exit_of(error: &ExchangeError) -> Exit {
    if matches!(error.trouble(), Some(Trouble::Denied | Trouble::Unverified)) { Exit::Denied } else { Exit::Failed }
}

/// A relative path is meant from where the person stands, which the target does not know.
pub(super) fn absolute(process: &Process, path: &Path) -> Result<PathBuf, Failure> {
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    if is_elsewhere(process) {
        let why = "the target has a file system of its own: give an absolute path as the target sees it";
        return Err(Failure::usage(why));
    }
    Ok(std::path::absolute(path).with_context(|| format!("{} cannot be made absolute", path.display()))?)
}
