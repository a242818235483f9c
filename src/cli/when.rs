//! `--when`: waits for a condition on a figure of a process.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;

use super::args::When;
use super::exit::Failure;
use super::print;
use super::target::display_name;
use crate::model::Process;
use crate::net::client::Client;
use crate::session::{ConditionError, wait_for_condition};

/// The first values arrive after a second; a name may be wrong if there is none for this long.
const FIRST_VALUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until the condition of `--when`, if any, is met. A signal ends the program.
pub(super) async fn wait(process: &Process, client: &Client, when: &When) -> Result<(), Failure> {
    let Some(condition) = &when.when else { return Ok(()) };
    print::message(format_args!("waiting until {condition} is true of {}; Ctrl-C cancels", display_name(process)));
    let has_value = Cell::new(false);
    let show = |value: Option<&str>| {
        has_value.set(value.is_some());
        print::rewrite_line(format_args!("{}: {}", condition.figure, value.unwrap_or("not published yet")));
    };
    let mut met = pin!(wait_for_condition(client.clone(), process.runtime.as_ref(), condition, show));
    let value = tokio::select! {
        value = &mut met => value,
        () = sleep(FIRST_VALUE_TIMEOUT) => {
            if !has_value.get() {
                print::rewrite_line("");
                let (name, figure) = (display_name(process), &condition.figure);
                print::message(format_args!("{name} has not published {figure} yet; `dn-top counters` lists what it publishes"));
            }
            met.await
        }
    };
    print::rewrite_line("");
    let value = value.map_err(|error| match error {
        ConditionError::Request(error) => Failure::usage(error),
        error => anyhow::anyhow!("{}: {condition}: {error}", display_name(process)).into(),
    })?;
    print::message(format_args!("{condition} is true: {value}"));
    Ok(())
}

/// Rejects `--when` for a file.
pub(super) fn check_no_process(when: &When) -> Result<(), Failure> {
    if when.when.is_some() { Err(Failure::usage("--when waits for a figure of a process; this is a file")) } else { Ok(()) }
}
