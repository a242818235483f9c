//! `--when`: waits for a condition on a figure of a process.

use super::args::When;
use super::exit::Failure;
use super::print;
use super::target::display_name;
use crate::model::Process;
use crate::net::client::Client;
use crate::session::{ConditionError, wait_for_condition};

/// Waits until the condition of `--when`, if any, is met. A signal ends the program.
pub(super) async fn wait(process: &Process, client: &Client, when: &When) -> Result<(), Failure> {
    let Some(condition) = &when.when else { return Ok(()) };
    let (name, figure) = (display_name(process), &condition.figure);
    print::message(format_args!("waiting until {condition} is true of {name}; Ctrl-C cancels"));
    let show = |value: Option<&str>| match value {
        Some(value) => print::rewrite_line(format_args!("{figure}: {value}")),
        None => print::message(format_args!("{name} has not published {figure} yet; `dn-top counters` lists what it publishes")),
    };
    let value = wait_for_condition(client.clone(), process.runtime.as_ref(), condition, show).await;
    print::rewrite_line("");
    let value = value.map_err(|error| match error {
        ConditionError::Request(error) => Failure::usage(error),
        error => anyhow::anyhow!("{name}: {condition}: {error}").into(),
    })?;
    print::message(format_args!("{condition} is true: {value}"));
    Ok(())
}

/// Rejects `--when` for a file.
pub(super) fn check_no_process(when: &When) -> Result<(), Failure> {
    if when.when.is_some() { Err(Failure::usage("--when waits for a figure of a process; this is a file")) } else { Ok(()) }
}
