//! Resolves a target on the command line to a process and a client for it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::awaited::port_path;
use super::exit::{Exit, Failure};
use super::host::Host;
use crate::ipc::{CommandCode, TargetPath};
use crate::model::{Contact, NativeAotGap, Process, RunState, Stopper, Trouble, has_own_root};
use crate::net::client::{Client, REPLY_TIMEOUT};
use crate::net::{Directory, ExchangeError, TargetError};
use crate::session::StartError;

/// Timeout for the process info of all processes: slightly longer than that of a client, so that an unresponsive process has timed out by then.
pub(super) const INFO_TIMEOUT: Duration = REPLY_TIMEOUT.saturating_add(Duration::from_millis(500));

/// Finds the target, attachable or not, and its client if it has a diagnostic socket. Waits for a program if the target is a port to serve.
pub(super) async fn find(host: &Host, directory: &mut Directory, target: &str) -> Result<(Process, Option<Client>), Failure> {
    if let Some(path) = port_path(target) {
        return host.await_program(directory, path).await;
    }
    let process = directory.resolve(target, INFO_TIMEOUT).await.map_err(target_error)?;
    let client = directory.clients().of(&process);
    Ok((process, client))
}

pub(super) fn target_error(error: TargetError) -> Failure {
    let exit = match error {
        TargetError::List(_) => Exit::Failed,
        TargetError::OtherUser { .. } => Exit::Denied,
        _ => Exit::NoTarget,
    };
    Failure::new(exit, error)
}

/// Finds the target and returns its client, if the process is attachable.
pub(super) async fn connect(host: &Host, target: &str) -> Result<(Process, Client), Failure> {
    let (process, client) = find(host, &mut host.directory()?, target).await?;
    let client = attachable_client(&process, client)?;
    Ok((process, client))
}

/// Returns the client of an attachable process, or the reason why it is not attachable.
fn attachable_client(process: &Process, client: Option<Client>) -> Result<Client, Failure> {
    let name = display_name(process);
    if !process.contact.is_attachable() {
        let reason = reason(process);
        let exit = match process.contact {
            Contact::Trouble { kind: Trouble::Denied | Trouble::Unverified, .. } => Exit::Denied,
            Contact::Trouble { kind: Trouble::Stale, .. } => Exit::NoTarget,
            _ => Exit::Failed,
        };
        return Err(Failure::new(exit, anyhow::anyhow!("{name}: {reason}")));
    }
    client.ok_or_else(|| anyhow::anyhow!("{name} serves no diagnostic socket").into())
}

/// Returns why a process cannot be reached. One that is stopped does not answer: that is certain, unlike other reasons for silence.
pub(super) fn reason(process: &Process) -> String {
    match (&process.contact, process.usage.stopper) {
        (Contact::Trouble { kind: Trouble::Slow | Trouble::Timeout, .. }, Some(stopper)) => {
            let continues = match stopper {
                Stopper::Signal => format!("`kill -CONT {}` continues it", process.key.pid),
                Stopper::Debugger(_) => "it continues when the debugger detaches".to_owned(),
            };
            format!("it was stopped by {} and does not answer: {continues}", stopper.describe())
        }
        (contact, _) => contact.reason().unwrap_or("it cannot be reached").to_owned(),
    }
}

/// Connects to a target specified as a preview of .NET Core 3.0, without sending anything in a protocol that it does not support.
pub(super) async fn connect_legacy(host: &Host, target: &str) -> Result<(Process, Client), Failure> {
    let mut directory = host.directory()?;
    let process = directory.locate(target).await.map_err(target_error)?;
    let client = attachable_client(&process, directory.clients().of(&process))?;
    Ok((process, client.legacy()))
}

/// Connects to the target, unless it is suspended at startup and will not be resumed: then it sends no events.
pub(super) async fn connect_running(host: &Host, target: &str) -> Result<(Process, Client), Failure> {
    let (process, client) = connect(host, target).await?;
    if process.run_state == RunState::Suspended && port_path(target).is_none() {
        let name = display_name(&process);
        return Err(anyhow::anyhow!("{name} is suspended at startup and sends no events until it is resumed (`dn-top resume`)").into());
    }
    Ok((process, client))
}

/// Converts the error of a session that was not opened.
pub(super) fn start_error(error: StartError) -> Failure {
    let exit = match &error {
        StartError::Output(error) => Exit::of_error(error.is_denied()),
        StartError::Service(error) => Exit::of_error(error.is_denied()),
        StartError::Exchange(error) => exit_code(error),
        StartError::Handle(_) => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// Describes a process in a message. A process specified by its socket has no name, and possibly no pid, until it has answered.
pub(super) fn display_name(process: &Process) -> String {
    match (process.key.pid, process.name.as_str(), &process.socket) {
        (0, _, Some(socket)) => format!("the process at {}", socket.display()),
        (pid, "", _) => format!("process {pid}"),
        (pid, name, _) => format!("process {pid} ({name})"),
    }
}

/// Converts the error of a failed exchange.
pub(super) fn exchange_error(error: ExchangeError) -> Failure {
    Failure::new(exit_code(&error), error)
}

/// Rejects commands that a NativeAOT program does not support: it would not answer for seconds, or only report a failure.
pub(super) fn check_supported(process: &Process, command: CommandCode) -> Result<(), Failure> {
    match NativeAotGap::of(command).filter(|_| process.native_aot) {
        Some(gap) => Err(unsupported(process, gap)),
        None => Ok(()),
    }
}

/// Connects to the target, which must run, unless it is a NativeAOT program, which lacks the feature.
pub(super) async fn connect_managed(host: &Host, target: &str, gap: NativeAotGap) -> Result<(Process, Client), Failure> {
    let (process, client) = connect_running(host, target).await?;
    if process.native_aot { Err(unsupported(&process, gap)) } else { Ok((process, client)) }
}

fn unsupported(process: &Process, gap: NativeAotGap) -> Failure {
    anyhow::anyhow!("{}: {}", display_name(process), gap.message(process.key.pid)).into()
}

pub(super) fn exit_code(error: &ExchangeError) -> Exit {
    Exit::of_error(matches!(error.trouble(), Some(Trouble::Denied | Trouble::Unverified)))
}

/// Returns a path for a request. A relative path refers to the current folder of dn-top, which may differ from that of the target.
pub(super) fn target_path(process: &Process, path: &Path) -> Result<TargetPath, Failure> {
    let absolute = if path.is_absolute() {
        path.to_owned()
    } else if has_own_root(process) {
        return Err(Failure::usage("the target has a file system of its own: give an absolute path as the target sees it"));
    } else {
        std::path::absolute(path).with_context(|| format!("{} cannot be made absolute", path.display()))?
    };
    // Runtimes receive UTF-16: another path would name another file.
    let text = absolute.to_str().ok_or_else(|| Failure::usage(format!("{} is not UTF-8, and cannot be sent", absolute.display())))?;
    TargetPath::new(text).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessKey;

    #[test]
    fn relative_path_becomes_absolute() {
        let process = Process::new(ProcessKey { pid: 7, started: 1 });
        let path = target_path(&process, Path::new("a.dmp")).unwrap();
        assert_eq!(Path::new(path.as_str()), std::env::current_dir().unwrap().join("a.dmp"));
        assert_eq!(
            target_path(&process, &std::env::temp_dir().join("a")).unwrap().as_str(),
            std::env::temp_dir().join("a").to_str().unwrap()
        );
    }

    #[cfg(unix)]
    #[test]
    fn path_that_is_not_utf8_is_rejected() {
        use std::os::unix::ffi::OsStrExt as _;
        let process = Process::new(ProcessKey { pid: 7, started: 1 });
        let failure = target_path(&process, Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff.dll"))).unwrap_err();
        assert_eq!((failure.exit, failure.error.to_string().as_str()), (Exit::Usage, "/tmp/\u{fffd}.dll is not UTF-8, and cannot be sent"));
    }
}
