//! `counters TARGET`: prints counters and meters as they are published.

mod print_out;

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use self::print_out::Printer;
use super::args::{self, CounterFormat};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::stdout::StdoutWriter;
use super::target::{connect_running, display_name, exchange_error, start_error};
use super::{interrupt, print};
use crate::ipc::BufferMb;
use crate::model::{Counted, Process, check_file_name};
use crate::net::files;
use crate::net::interrupts::Interrupts;
use crate::session::{CounterError, CounterEvent, CounterMonitor, CounterOptions, CounterSelection, OutputError, Unfinished};

/// Buffer size in the target; the same as dotnet-counters uses.
const BUFFER_MB: u32 = 10;

pub(super) async fn run(host: &Host, arguments: args::Counters) -> Result<Exit, Failure> {
    if let Some(path) = &arguments.output_file {
        check_file(path, arguments.format())?;
    }
    let selection = CounterSelection::parse(&arguments.counters).map_err(Failure::usage)?;
    let (process, client) = connect_running(host, &arguments.target.target).await?;
    let mut interrupts = interrupt::listen()?;
    let &args::Counters { interval, max_histograms, max_time_series, .. } = &arguments;
    let buffer = BufferMb::new(BUFFER_MB).map_err(Failure::usage)?;
    let options = CounterOptions { selection: selection.clone(), interval, max_histograms, max_time_series, buffer, collections: false };
    let mut monitor = CounterMonitor::new(client, process.runtime.as_ref(), options).map_err(Failure::usage)?;
    // The time until the runtime answers does not count toward the duration.
    tokio::select! {
        () = interrupts.next() => return Ok(Exit::Interrupted),
        opened = monitor.open() => opened.map_err(|error| monitor_error(&process, error))?,
    }
    host.resume_program().await.map_err(exchange_error)?;
    // Only now, so that no empty file is left behind without a session.
    let file = arguments.output_file.as_deref().map(create).transpose()?;
    let stdout = StdoutWriter::start()?;
    let printer = Printer::new(arguments.format(), file, &stdout, selection);
    let printed = print_all(monitor, printer, &process, &arguments, &mut interrupts).await;
    stdout.exit(printed, &mut interrupts).await
}

/// Prints values until the end of the process or of the time, the end of the output, or a signal, and ends the session.
async fn print_all(
    mut monitor: CounterMonitor,
    mut printer: Printer<'_>,
    process: &Process,
    arguments: &args::Counters,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    let deadline = arguments.duration.map(|duration| Instant::now() + duration);
    // The first values arrive after one interval; meters start at the next whole one.
    let first_value_deadline = Instant::now() + (arguments.interval * 3).max(Duration::from_secs(5));
    let stdout = printer.stdout;
    let over = tokio::select! {
        () = interrupts.next() => Ok(Exit::Interrupted),
        () = stdout.closed() => Ok(Exit::Done),
        over = follow(&mut monitor, &mut printer, process, deadline, first_value_deadline) => over,
    };
    let (last, ended) = tokio::select! {
        stopped = monitor.stop() => stopped,
        // The session ends with its connection.
        () = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let exit = over?;
    last.iter().try_for_each(|last| printer.print(last).map(drop))?;
    if printer.skipped > 0 {
        print::message(format_args!("the output was not read in time: {} missing", Counted(printer.skipped, "interval")));
    }
    match ended {
        _ if exit == Exit::Interrupted => {}
        Err(Unfinished::Closed) => print::message(format_args!("{} ended, or closed the session", display_name(process))),
        Err(why) => return Err(anyhow::anyhow!("{}: {why}", display_name(process)).into()),
        Ok(()) if !printer.any_printed => return Err(no_values_error(process, &arguments.counters, arguments.duration)),
        Ok(()) => {}
    }
    if let Some(path) = &arguments.output_file {
        print::message(format_args!("values written to {}", path.display()));
    }
    Ok(exit)
}

/// Prints values until the deadline, the exit of the target, or the closing of the output.
async fn follow(
    monitor: &mut CounterMonitor,
    printer: &mut Printer<'_>,
    process: &Process,
    deadline: Option<Instant>,
    first_value_deadline: Instant,
) -> Result<Exit, Failure> {
    let mut has_warned = false;
    loop {
        let event = tokio::select! {
            () = sleep_until(deadline.unwrap_or(first_value_deadline)), if deadline.is_some() => return Ok(Exit::Done),
            () = sleep_until(first_value_deadline), if !printer.any_printed && !has_warned => {
                has_warned = true;
                print::message(format_args!("{} has published no such counter yet", display_name(process)));
                continue;
            }
            event = monitor.next() => event.map_err(|error| monitor_error(process, error))?,
        };
        match event {
            CounterEvent::Values(counters) => {
                if !printer.print(&counters)? {
                    return Ok(Exit::Done);
                }
            }
            CounterEvent::OtherLimits(limits) => {
                let every = limits.refresh_interval;
                print::message(format_args!("another session collects the meters every {every} s with other limits: using these"));
                printer.begin();
            }
            CounterEvent::Ended => return Ok(Exit::Done),
        }
    }
}

/// Returns the error for a run that ended without any value.
fn no_values_error(process: &Process, counters: &str, duration: Option<Duration>) -> Failure {
    let within = duration.map(|duration| format!(" within {}", humantime::format_duration(duration))).unwrap_or_default();
    let all = format!("`dn-top counters {}` shows those of the runtime, `--counters NAME` those of a provider or meter", process.key.pid);
    anyhow::anyhow!("{} published no counters{within} that match {counters:?}: {all}", display_name(process)).into()
}

fn monitor_error(process: &Process, error: CounterError) -> Failure {
    match error {
        CounterError::Start(error) => start_error(error),
        error => anyhow::anyhow!("{}: {error}", display_name(process)).into(),
    }
}

/// Checks that the file is not named like one of another format: text is the default, but not what a `.csv` file contains.
fn check_file(path: &Path, format: CounterFormat) -> Result<(), Failure> {
    let extension = match format {
        CounterFormat::Text => "txt",
        CounterFormat::Csv => "csv",
        CounterFormat::Json => "json",
    };
    check_file_name(path, extension).map_err(|wrong| Failure::usage(format!("{wrong} (--format selects text, csv or json)")))
}

/// Creates the output file.
fn create(path: &Path) -> Result<File, Failure> {
    files::create(path).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            return Failure::failed(OutputError::Exists(path.to_owned()));
        }
        let exit = Exit::of_error(error.kind() == ErrorKind::PermissionDenied);
        Failure::new(exit, anyhow::anyhow!("cannot create {}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_fits_the_format() {
        for (name, format, is_allowed) in [
            ("a.csv", CounterFormat::Text, false),
            ("a.csv", CounterFormat::Csv, true),
            ("a.csv", CounterFormat::Json, false),
            ("a.json", CounterFormat::Json, true),
            ("a", CounterFormat::Text, true),
        ] {
            assert_eq!(check_file(Path::new(name), format).is_ok(), is_allowed, "{name} {format:?}");
        }
        let refused = check_file(Path::new("a.csv"), CounterFormat::Text).unwrap_err();
        assert!(
            refused.exit == Exit::Usage
                && refused.error.to_string().ends_with("use the extension .txt (--format selects text, csv or json)")
        );
    }
}
