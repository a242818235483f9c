//! `run`: starts a program suspended, records it from its first instruction, and exits with its exit code.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::args;
use super::config::Settings;
use super::exit::{Exit, Failure};
use super::record::{RecordCommand, RecordResult, report_nothing, resumed};
use super::target::exchange_error;
use super::{interrupt, print};
use crate::model::StoppedBy;
use crate::net::interrupts::Interrupts;
use crate::session::{ChildOutput, Launch, LaunchEvent, Launched, Orphans, RUNTIME_START_TIMEOUT};

pub(super) async fn run(arguments: args::Run, settings: &Settings) -> Result<Exit, Failure> {
    let output = match (arguments.show_output, arguments.record.output.json) {
        (false, _) => ChildOutput::Discarded,
        (true, false) => ChildOutput::Inherited,
        (true, true) => ChildOutput::Stderr,
    };
    let record_command = RecordCommand::new(&arguments.record, settings)?;
    let mut interrupts = interrupt::listen()?;
    let mut launch = Launch::start(&arguments.command, output, Orphans::Resume).map_err(anyhow::Error::from)?;
    // A script finds one document, however the program ended.
    let nothing_recorded = |stopped_by, why: String| {
        print::message(&why);
        if arguments.record.output.json { report_nothing(stopped_by, &why) } else { Ok(()) }
    };
    let path = Path::new(arguments.command.first().map_or(OsStr::new(""), OsString::as_os_str));
    let program = format!("{} ({})", path.display(), launch.pid());

    let launched = loop {
        let event = tokio::select! {
            event = launch.next() => event,
            () = interrupts.next() => {
                launch.end().await;
                nothing_recorded(StoppedBy::Interrupt, format!("{program} was terminated, and nothing was recorded"))?;
                return Ok(Exit::Interrupted);
            }
        };
        match event {
            LaunchEvent::Connected(launched) => break launched,
            LaunchEvent::NoRuntime => print::message(format_args!(
                "{program} is not recorded: no .NET runtime connected within {} s. It is not a .NET program, or its diagnostics are \
                 switched off (DOTNET_EnableDiagnostics=0)",
                RUNTIME_START_TIMEOUT.as_secs()
            )),
            LaunchEvent::Exited(code) => {
                let others = others(&launch);
                let why = format!("{program} exited with {code}, and nothing was recorded: no .NET runtime connected{others}");
                nothing_recorded(StoppedBy::TargetExit, why)?;
                return Ok(Exit::Child(code));
            }
        }
    };
    let recorded = record(&record_command, &mut launch, launched, path, &mut interrupts).await;
    let result = match recorded {
        Ok(result) => result,
        Err(failure) => {
            // The program has not run yet, or its state is unknown.
            launch.end().await;
            return Err(failure);
        }
    };
    let has_exited = result.outcome.stopped_by == StoppedBy::TargetExit;
    // The program keeps running even if its recording could not be exported.
    let exit = result.exit().map_err(Failure::print);
    if !has_exited && !arguments.keep_running {
        launch.end().await;
        return Ok(exit.unwrap_or_else(|failed| failed));
    }
    if !has_exited {
        print::message(format_args!("{program} keeps running; dn-top exits with it"));
    }
    tokio::select! {
        code = launch.wait() => Ok(exit.map_or_else(|failed| failed, |_| Exit::Child(code))),
        () = interrupts.next() => {
            if arguments.keep_running {
                print::message(format_args!("{program} keeps running"));
            } else {
                launch.end().await;
            }
            Ok(Exit::Interrupted)
        }
    }
}

/// Records a runtime: from its first instruction if it is suspended at startup.
async fn record(
    record_command: &RecordCommand,
    launch: &mut Launch,
    launched: Launched,
    program: &Path,
    interrupts: &mut Interrupts,
) -> Result<RecordResult, Failure> {
    let (client, key) = (launched.client.clone(), launched.key);
    let name = launched.name(program).await.map_err(exchange_error)?;
    let recorder = record_command.begin(client, key, &name, launched.note().into_iter().collect(), interrupts).await?;
    let recorder = resumed(recorder, launched.resume().await).await?;
    launch.release();
    let from = if launched.missed.is_some() { "" } else { " from its start" };
    record_command.announce(&format!("process {} ({name}){from}", key.pid));
    record_command.follow(recorder, interrupts).await
}

fn others(launch: &Launch) -> String {
    match launch.others() {
        0 => String::new(),
        1 => "; a .NET program it started was not recorded".to_owned(),
        many => format!("; {many} .NET programs it started were not recorded"),
    }
}
