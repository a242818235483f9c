//! `trace`: records a process, or the first program that connects to a diagnostic port.

use std::path::Path;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::{self, interrupted};
use super::record::{RecordCommand, resumed};
use super::target::{connect, connect_legacy, display_name, exchange_error};
use super::{args, print, user_events, when};
use crate::ipc::Command;
use crate::model::{RunState, SafeText};
use crate::session::RuntimePort;

/// `trace`: records until the duration, the size, Ctrl-C or the exit of the target.
pub(super) async fn run(host: &Host, arguments: &args::Trace) -> Result<Exit, Failure> {
    if !arguments.user_events.is_empty() {
        return user_events::run(host, arguments).await;
    }
    if arguments.when.times > 1 && arguments.record.output_file.is_some() {
        return Err(Failure::usage("--times writes several files: omit --output"));
    }
    let record_command = RecordCommand::new(&arguments.record, &host.settings)?;
    let target = &arguments.target.target;
    if let Some(path) = target.strip_suffix(",listen") {
        if arguments.legacy || arguments.when.when.is_some() {
            return Err(Failure::usage("PATH,listen waits for the start of a program: --when and --legacy do not apply"));
        }
        return listen(host, Path::new(path), &record_command).await;
    }
    let (process, client) = if arguments.legacy { connect_legacy(host, target).await? } else { connect(host, target).await? };
    when::wait(&process, &client, &arguments.when).await?;
    let mut interrupts = interrupt::listen()?;
    let mut recorder = record_command.begin(client.clone(), process.key, &process.name, Vec::new(), &mut interrupts).await?;
    if arguments.resume && process.run_state != RunState::Running {
        recorder = resumed(recorder, client.run(&Command::ResumeRuntime).await).await?;
    }
    record_command.announce(&display_name(&process));
    record_command.follow(recorder, &mut interrupts).await?.exit_or_interrupted()
}

/// Records the first runtime that connects to a diagnostic port, from its first instruction if it is suspended at startup.
async fn listen(host: &Host, path: &Path, record_command: &RecordCommand) -> Result<Exit, Failure> {
    let mut interrupts = interrupt::listen()?;
    let mut port = RuntimePort::serve(path, &host.sources).map_err(anyhow::Error::from)?;
    let shown = SafeText::from_path(port.name());
    print::message(format_args!("waiting for a program to start with DOTNET_DiagnosticPorts={shown} in its environment; Ctrl-C cancels"));
    let launched = tokio::select! {
        launched = port.first() => launched,
        () = interrupts.next() => return Err(interrupted("interrupted: no program has connected")),
    };
    let begun = async {
        let name = launched.name(Path::new("program")).await.map_err(exchange_error)?;
        let recorder = record_command.begin(launched.client.clone(), launched.key, &name, Vec::new(), &mut interrupts).await?;
        Ok((recorder, name))
    };
    let (recorder, name) = match begun.await {
        Ok(begun) => begun,
        Err(failure) => {
            // It would wait forever. The failure is more important than one of the resume.
            drop(launched.resume().await);
            return Err(failure);
        }
    };
    // A runtime also connects to the port when it has been running for long, such as in a repetition.
    let located = host.directory()?.locate(&launched.key.pid.to_string()).await;
    let from = if located.is_ok_and(|process| process.run_state == RunState::Running) { "" } else { " from its start" };
    let recorder = resumed(recorder, launched.resume().await).await?;
    record_command.announce(&format!("process {} ({name}){from}", launched.key.pid));
    record_command.follow(recorder, &mut interrupts).await?.exit_or_interrupted()
}
