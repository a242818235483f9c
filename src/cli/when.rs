//! Unattended captures: waits for the process (`--wait`) and for a condition (`--when`), and repeats the command (`--times`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::args::When;
use super::awaited::port_path;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::until_signal;
use super::target::{INFO_TIMEOUT, display_name};
use super::{RunningCommand, print, target};
use crate::model::Process;
use crate::net::TargetError;
use crate::net::client::Client;
use crate::session::{ConditionError, ConditionUpdate, ConditionWait};

/// Time between two searches for a process.
const SEARCH_INTERVAL: Duration = Duration::from_millis(250);
/// Number of searches in which a process may be found that does not answer yet.
const STARTUP_TRIES: u32 = 20;

/// The message of a signal while a condition is awaited.
const INTERRUPTED: &str = "interrupted before the condition was met";

/// Runs a command on a target as often as requested, once the target exists.
pub(super) async fn repeat<'a>(host: &Host, target: &str, when: &When, command: impl Fn() -> RunningCommand<'a>) -> Result<Exit, Failure> {
    for round in 1..=when.times {
        // A port is there to wait.
        if when.wait && port_path(target).is_none() {
            until_signal("interrupted: there is no such process yet", wait_for_process(host, target)).await?;
        }
        let exit = command().await?;
        if exit != Exit::Done || round == when.times {
            return Ok(exit);
        }
        let pause = humantime::format_duration(when.pause);
        print::message(format_args!("{round} of {}; pausing for {pause}; Ctrl-C ends", when.times));
        until_signal("interrupted in the pause", async {
            sleep(when.pause).await;
            Ok(())
        })
        .await?;
    }
    Ok(Exit::Done)
}

/// Waits until a process exists that the target denotes.
async fn wait_for_process(host: &Host, target: &str) -> Result<(), Failure> {
    let mut directory = host.directory()?;
    let mut is_announced = false;
    let mut tries_left = STARTUP_TRIES;
    loop {
        match directory.resolve(target, INFO_TIMEOUT).await {
            // Its socket appears a moment after the process.
            Ok(process) if !process.contact.is_attachable() && tries_left > 0 => tries_left -= 1,
            Err(TargetError::NoName(_) | TargetError::NoSocket(_)) => {}
            // The command reports the reason if it cannot be used.
            _ => return Ok(()),
        }
        if !std::mem::replace(&mut is_announced, true) {
            print::message(format_args!("waiting for {target}; Ctrl-C cancels"));
        }
        sleep(SEARCH_INTERVAL).await;
    }
}

/// Waits until the condition of `--when`, if any, is met. A program that was awaited is resumed before.
pub(super) async fn wait(host: &Host, process: &mut Process, client: &Client, when: &When) -> Result<(), Failure> {
    let Some(conditions) = &when.when else { return Ok(()) };
    let name = display_name(process);
    let failure = |error| match error {
        ConditionError::Request(error) => Failure::usage(error),
        ConditionError::Provider(error) => Failure::usage(error),
        ConditionError::Start(error) => target::start_error(error),
        error => anyhow::anyhow!("{name}: {conditions}: {error}").into(),
    };
    // Events count from the first instruction of the program.
    let start = async { ConditionWait::start(client.clone(), conditions).await.map_err(failure) };
    let wait = until_signal(INTERRUPTED, start).await?;
    host.start_program(process, client).await?;
    print::message(format_args!("waiting for {conditions} of {name}; Ctrl-C cancels"));
    let values: RefCell<BTreeMap<String, String>> = RefCell::default();
    let show = |update: ConditionUpdate<'_>| match update {
        ConditionUpdate::Value(figure, value) => {
            let mut values = values.borrow_mut();
            values.insert(figure.to_string(), value.to_owned());
            let values: Vec<_> = values.iter().map(|(figure, value)| format!("{figure}: {value}")).collect();
            print::rewrite_line(values.join(", "));
        }
        ConditionUpdate::Unpublished(figure) => {
            print::message(format_args!("{name} has not published {figure} yet; `dn-top counters` lists what it publishes"));
        }
        ConditionUpdate::SilentProvider(hint) => print::message(hint),
    };
    let met = until_signal(INTERRUPTED, async { wait.met(process.runtime.as_ref(), &show).await.map_err(failure) }).await;
    print::rewrite_line("");
    print::message(met?);
    Ok(())
}

/// The same for a command that needs a program that runs: one that was awaited is resumed in any case.
pub(super) async fn wait_running(host: &Host, process: &mut Process, client: &Client, when: &When) -> Result<(), Failure> {
    wait(host, process, client, when).await?;
    host.start_program(process, client).await
}

/// Rejects the options of a process for a file.
pub(super) fn check(when: &When, file: Option<&Path>) -> Result<(), Failure> {
    let is_given = when.when.is_some() || when.wait || when.times > 1;
    if is_given && file.is_some() { Err(Failure::usage("--when, --wait and --times are for a process; this is a file")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Conditions;

    #[test]
    fn options_of_a_process_are_refused_for_a_file() {
        let none = || When { when: None, wait: false, times: 1, pause: Duration::ZERO };
        let file = Some(Path::new("a.nettrace"));
        assert!(check(&none(), file).is_ok());
        for given in [When { when: Conditions::parse("cpu>80").ok(), ..none() }, When { wait: true, ..none() }, When { times: 2, ..none() }]
        {
            assert!(check(&given, None).is_ok() && check(&given, file).is_err(), "{given:?}");
        }
    }
}
