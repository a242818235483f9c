//! `trace`: records a process.

use super::awaited::port_path;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::record::{RecordCommand, resumed};
use super::target::{connect, connect_legacy, display_name};
use super::{args, interrupt, user_events, when};
use crate::ipc::Command;
use crate::model::RunState;

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
    let is_awaited = port_path(target).is_some();
    if is_awaited && arguments.legacy {
        return Err(Failure::usage("PATH,listen waits for a program of .NET 5 or later: --legacy does not apply"));
    }
    let (mut process, client) = if arguments.legacy { connect_legacy(host, target).await? } else { connect(host, target).await? };
    when::wait(host, &mut process, &client, &arguments.when).await?;
    let mut interrupts = interrupt::listen()?;
    let recorder = record_command.begin(client.clone(), process.key, &process.name, Vec::new(), &mut interrupts).await?;
    let is_running = process.run_state == RunState::Running;
    let result = match arguments.resume && !is_running && !is_awaited {
        true => client.run(&Command::ResumeRuntime).await,
        false => host.resume_program().await,
    };
    let recorder = resumed(recorder, result).await?;
    // A runtime also connects to the port when it has been running for long, such as in a repetition.
    let from = if is_awaited && !is_running { " from its start" } else { "" };
    record_command.announce(&format!("{}{from}", display_name(&process)));
    record_command.follow(recorder, &mut interrupts).await?.exit_or_interrupted()
}
