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
    let monitor = ConditionMonitor::new(client.clone(), process.runtime.as_ref(), condition.clone()).map_err(Failure::usage)?;
    print::message(format_args!("waiting until {condition} is true of {}; Ctrl-C cancels", display_name(process)));
    let value = value_when_met(monitor, |value| {
        let value = value.unwrap_or("not published yet");
        print::rewrite_line(format_args!("{}: {value}", condition.figure));
    });
    let value = value.await.map_err(|error| anyhow::anyhow!("{}: {condition}: {error}", display_name(process)));
    print::rewrite_line("");
    print::message(format_args!("{condition} is true: {}", value?));
    Ok(())
}

/// Rejects `--when` for a file.
pub(super) fn check_no_process(when: &When) -> Result<(), Failure> {
    if when.when.is_some() { Err(Failure::usage("--when waits for a figure of a process; this is a file")) } else { Ok(()) }
}

/// Waits until the condition of `--stop-when` is met; forever if there is none, or it can no longer be checked.
pub(super) async fn met(client: &Client, condition: Option<&Condition>) {
    let Some(condition) = condition else { return std::future::pending().await };
    // A process that was just started has not been asked for its version yet.
    let info = client.process_info().await.ok().flatten();
    let version = info.map(|info| info.runtime_version());
    let value = match ConditionMonitor::new(client.clone(), version.as_ref(), condition.clone()) {
        Ok(monitor) => value_when_met(monitor, |_| {}).await,
        Err(error) => Err(error.into()),
    };
    print::rewrite_line("");
    match value {
        Ok(value) => print::message(format_args!("{condition} is true: {value}")),
        Err(error) => {
            print::message(format_args!("{condition} is no longer checked, the recording continues: {error}"));
            std::future::pending().await
        }
    }
}

/// Shows each value until the condition is met. Returns the last one.
async fn value_when_met(mut monitor: ConditionMonitor, show: impl Fn(Option<&str>)) -> Result<String, ConditionError> {
    loop {
        let reading = monitor.next().await?;
        if reading.is_met {
            return Ok(reading.value.unwrap_or_default());
        }
        show(reading.value.as_deref());
    }
}
