//! `--when` and `--stop-when`: conditions on figures of a process.

use super::args::When;
use super::exit::Failure;
use super::print;
use super::target::display_name;
use crate::model::{Condition, Process};
use crate::net::client::Client;
use crate::session::{ConditionError, ConditionMonitor};

/// Waits until the condition of `--when`, if any, is met. A signal ends the program.
pub(super) async fn wait(process: &Process, client: &Client, when: &When) -> Result<(), Failure> {
    let Some(condition) = &when.when else { return Ok(()) };
    print::message(format_args!("waiting until {condition} is true of {}; Ctrl-C cancels", display_name(process)));
    let met = watch(process, client, condition).await;
    print::rewrite_line("");
    print::message(format_args!("{condition} is true: {}", met?));
    Ok(())
}

/// Rejects `--when` for a file.
pub(super) fn check_no_process(when: &When) -> Result<(), Failure> {
    if when.when.is_some() { Err(Failure::usage("--when waits for a figure of a process; this is a file")) } else { Ok(()) }
}

/// Shows the figure until the condition is met. Returns its value.
async fn watch(process: &Process, client: &Client, condition: &Condition) -> Result<String, Failure> {
    let failure = |error| anyhow::anyhow!("{}: {condition}: {error}", display_name(process));
    let mut monitor = ConditionMonitor::new(client.clone(), process.runtime.as_ref(), condition.clone()).map_err(Failure::usage)?;
    loop {
        let reading = monitor.next().await.map_err(failure)?;
        let value = reading.value.unwrap_or_else(|| "not published yet".to_owned());
        if reading.is_met {
            return Ok(value);
        }
        print::rewrite_line(format_args!("{}: {value}", condition.figure));
    }
}

/// Waits until the condition of `--stop-when` is met; forever if there is none, or it can no longer be checked.
pub(super) async fn met(client: &Client, condition: Option<&Condition>) {
    let Some(condition) = condition else { return std::future::pending().await };
    let value = await_met(client, condition).await;
    print::rewrite_line("");
    match value {
        Ok(value) => print::message(format_args!("{condition} is true: {value}")),
        Err(error) => {
            print::message(format_args!("{condition} is no longer checked, the recording continues: {error}"));
            std::future::pending().await
        }
    }
}

async fn await_met(client: &Client, condition: &Condition) -> Result<String, ConditionError> {
    // A process that was just started has not been asked yet.
    let info = client.process_info().await.ok().flatten();
    let version = info.map(|info| info.runtime_version());
    let mut monitor = ConditionMonitor::new(client.clone(), version.as_ref(), condition.clone())?;
    loop {
        let reading = monitor.next().await?;
        if reading.is_met {
            return Ok(reading.value.unwrap_or_default());
        }
    }
}
