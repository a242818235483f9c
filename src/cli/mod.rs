//! Arguments, headless commands and exit codes.
//!
//! Every command uses the same engine as the dashboard (`net`, `session`) and only formats its values as text or JSON. Results go to stdout,
//! messages to stderr; exit codes are a contract.

mod analyses;
mod args;
mod awaited;
mod completions;
mod config;
mod control;
mod counters;
mod cpu;
mod dashboard;
mod diff;
mod doctor;
mod document;
mod dotnet_tools;
mod dump;
mod env;
mod exit;
mod export;
mod heap;
mod heap_diff;
mod host;
mod instead;
mod interrupt;
mod log_file;
mod manual;
mod options;
mod perfetto;
mod print;
mod profiles;
mod ps;
mod record;
mod report;
mod run;
mod salvage;
mod slow;
mod stacks;
mod stats;
mod stdout;
mod target;
mod terminal;
mod trace;
mod user_events;
mod when;

use std::cell::LazyCell;
use std::ffi::OsString;
use std::pin::Pin;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory, Parser};
use tokio::runtime::{Builder, Runtime};

use self::analyses::{Analysis, Request};
use self::args::perfetto::{Perfetto, PerfettoCommand};
use self::args::{Arguments, Command, Dashboard, Inspect, When};
use self::config::CommandLine;
use self::exit::{Exit, Failure};
use self::host::Host;
use crate::analysis::OccurrenceKind;
use crate::model::SafeText;
use crate::net::{limits, log};
use crate::session;

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let exit = run().unwrap_or_else(Failure::print);
    if let Some((path, error)) = log::write_error() {
        print::message(format_args!("the log {} is incomplete: {error}", SafeText::from_path(path)));
    }
    exit.into()
}

fn run() -> Result<Exit, Failure> {
    if completions::answer().map_err(anyhow::Error::from)? {
        return Ok(Exit::Done);
    }
    limits::adjust();
    let given: Vec<OsString> = std::env::args_os().collect();
    let translated = dotnet_tools::translate(&given).map_err(Failure::usage)?;
    translated.iter().flat_map(|translated| &translated.notes).for_each(print::message);
    let given = translated.map_or(given, |translated| translated.arguments);
    // `config` must work even if the configuration file is invalid.
    let is_config = given.get(command_at(&given)).is_some_and(|word| word == "config");
    let mut line = if is_config { CommandLine::without_file(given) } else { CommandLine::with_file(given) }?;
    // A valid command line can contain the option of another program.
    if line.parsed.is_err()
        && let Some(words) = instead::with_port_as_target(&line.words)
    {
        line = CommandLine::with_file(words)?;
    }
    let CommandLine { words, parsed } = line;
    let (Arguments { command, dashboard }, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => return refuse(error, &words),
        Err(error) => error.exit(),
    };
    if let Some(command) = &command {
        options::check(command, &matches)?;
    }
    if let Some(path) = dashboard.log.as_deref().filter(|_| options::is_logged(command.as_ref())) {
        let is_default = matches.value_source("log") == Some(ValueSource::DefaultValue);
        log_file::begin(path, is_default)?;
    }
    let Some(command) = command else { return dashboard::run(dashboard) };
    let options = &dashboard;
    let analyze = |request: Request<'_>| on_processes(options, async |host| analyses::run(host, &request).await);
    match command {
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Report(report) => report::run(&report, &options.settings.thresholds),
        Command::Diff(diff) => diff::run(&diff),
        Command::Export(arguments) => export::run(&arguments),
        Command::Perfetto(Perfetto { command: Some(PerfettoCommand::Serve(serve)), .. }) => {
            on_processes(options, async |host| perfetto::serve_processes(host, serve).await)
        }
        Command::Perfetto(Perfetto { command: None, output }) => runtime()?.block_on(perfetto::show_service(output.json)),
        Command::Open { files } => dashboard::open(&files, options),
        Command::Salvage(salvage) => on_processes(options, async |host| salvage::run(host, &salvage).await),
        Command::Counters(counters) => on_processes(options, async |host| counters::run(host, counters).await),
        Command::Cpu(cpu) => on_target(options, &cpu.target.target, &cpu.when, async |host| cpu::run(host, &cpu).await),
        Command::Stacks(arguments) => on_target(options, &arguments.target.target, &arguments.when, async |host| {
            interrupt::until_signal("interrupted", stacks::run(host, &arguments)).await
        }),
        Command::Gc(arguments) => analyze(Request::followable(Analysis::Gc, OccurrenceKind::Collections, &arguments)),
        Command::Exceptions(arguments) => analyze(Request::exceptions(&arguments)),
        Command::Allocations(arguments) => analyze(Request::allocations(&arguments)),
        Command::Contention(arguments) => analyze(Request::contention(&arguments)),
        Command::Jit(arguments) => analyze(Request::new(Analysis::Jit, &arguments)),
        Command::Http(arguments) => analyze(Request::followable(Analysis::Http, OccurrenceKind::Activities, &arguments)),
        Command::Logs(arguments) => analyze(Request::logs(&arguments)),
        Command::Events(arguments) => analyze(Request::events(&arguments)),
        Command::Slow(arguments) => {
            when::check(&arguments.when, args::recording(&arguments.source))?;
            on_target(options, &arguments.source, &arguments.when, async |host| slow::run(host, &arguments).await)
        }
        Command::Heap(heap) => {
            when::check(&heap.when, heap.file())?;
            on_target(options, &heap.source, &heap.when, async |host| heap::run(host, &heap).await)
        }
        Command::Profiles(output) => profiles::run(output.json),
        Command::Doctor(output) => on_processes(options, async |host| doctor::run(host, output.json).await),
        Command::Ps(output) => on_processes(options, async |host| ps::ps(host, output.json).await),
        Command::Info(Inspect { target, output }) => on_processes(options, async |host| ps::info(host, &target.target, output.json).await),
        Command::Env { target, reveal, output } => {
            on_processes(options, async |host| env::run(host, &target.target, reveal, output.json).await)
        }
        Command::Trace(trace) => on_target(options, &trace.target.target, &trace.when, async |host| trace::run(host, &trace).await),
        Command::Run(run) => complete(&runtime()?, Box::pin(run::run(run, &options.settings))),
        Command::Resume(target) => on_processes(options, async |host| control::resume(host, &target.target).await),
        Command::SetEnv { target, assignment, unset } => {
            on_processes(options, async |host| control::set_env(host, &target.target, assignment.as_deref(), unset.as_deref()).await)
        }
        Command::StartupHook { target, path } => {
            on_processes(options, async |host| control::startup_hook(host, &target.target, &path).await)
        }
        Command::Profiler(profiler) => on_processes(options, async |host| control::profiler(host, profiler).await),
        Command::Dump(dump) => on_target(options, &dump.target.target, &dump.when, async |host| {
            interrupt::until_signal("interrupted; the process may still be writing the dump", dump::dump(host, &dump)).await
        }),
        Command::Perfmap { target, switch, kind, output } => {
            on_processes(options, async |host| dump::perf_map(host, &target.target, switch, kind, output.json).await)
        }
        Command::Config => config::print(),
        Command::Completions { shell } => completions::script(shell),
        Command::Man => manual::page(),
        Command::ResumeOrphans { folder } => {
            runtime()?.block_on(session::resume_orphans(&folder)).map_err(anyhow::Error::from)?;
            Ok(Exit::Done)
        }
        Command::Sim { count, dir } => runtime()?.block_on(host::simulate(count, &dir)),
    }
}

/// Prints the error in the arguments and, if the target is missing, the possible targets.
fn refuse(mut error: clap::Error, given: &[OsString]) -> Result<Exit, Failure> {
    let hint = instead::hint(&error, given);
    if hint.is_some() {
        // The parser's suggestions only take similar spelling into account.
        for kind in [ContextKind::Suggested, ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
    }
    let words = error.render().to_string();
    print::message(words.trim_start_matches("error: ").trim_end());
    hint.iter().for_each(print::message);
    if lacks_target(&error) {
        on_processes(&options_before_command(given.iter().skip(1).cloned())?, ps::candidates)?;
    }
    Ok(Exit::Usage)
}

fn lacks_target(error: &clap::Error) -> bool {
    // The usage, which the error contains as well, has the target in any case.
    let missing = error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::MissingRequiredArgument);
    missing.is_some_and(|missing| missing.to_string().contains("TARGET>"))
}

/// Parses the options of the dashboard before the command, without the rest of the command line.
fn options_before_command(words: impl Iterator<Item = OsString>) -> Result<Dashboard, Failure> {
    let command = Arguments::command();
    let before = words.take_while(|word| command.find_subcommand(word).is_none());
    let parsed = Arguments::try_parse_from([OsString::from("dn-top")].into_iter().chain(before));
    Ok(parsed.map_err(anyhow::Error::from)?.dashboard)
}

/// Returns the index of the command, after the program name and the options before the command.
fn command_at(given: &[OsString]) -> usize {
    let command = LazyCell::new(Arguments::command);
    let has_value = |word: &str| {
        let of_word = |option: &&Arg| option.get_long().is_some_and(|name| word.strip_prefix("--") == Some(name));
        command.get_arguments().find(of_word).is_some_and(|option| option.get_action().takes_values())
    };
    let mut at = 1;
    while let Some(word) = given.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with("--")) {
        at += if has_value(word) { 2 } else { 1 };
    }
    at
}

/// Runs a command on the processes selected by the options before it.
fn on_processes(options: &Dashboard, command: impl AsyncFnOnce(&Host) -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    let runtime = runtime()?;
    let _inside = runtime.enter();
    let host = Host::new(options)?;
    complete(
        &runtime,
        Box::pin(async {
            let result = command(&host).await;
            host.release_program().await;
            result
        }),
    )
}

/// Runs a command on a target, once it exists and as often as requested.
fn on_target(
    options: &Dashboard,
    target: &str,
    when: &When,
    command: impl AsyncFn(&Host) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    on_processes(options, async |host| when::repeat(host, target, when, || Box::pin(command(host))).await)
}

/// A command under way. One type for all commands makes the binary smaller.
type RunningCommand<'a> = Pin<Box<dyn Future<Output = Result<Exit, Failure>> + 'a>>;

/// Runs a command to its end, and waits until the program can exit.
fn complete(runtime: &Runtime, command: RunningCommand<'_>) -> Result<Exit, Failure> {
    runtime.block_on(async {
        let result = command.await;
        interrupt::before_exit().await;
        result
    })
}

/// Creates the async runtime. It has two worker threads, so that the dashboard handles keys on one while the other scans the processes. Long reads
/// of streams or files run on threads of their own.
fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().context("cannot start the async runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_listed_only_if_the_target_is_missing() {
        for (line, expected) in [
            ("dn-top stacks", true),
            ("dn-top gc", true),
            ("dn-top set-env", true),
            ("dn-top set-env 42", false),
            ("dn-top perfmap 42", false),
            ("dn-top profiler startup 42 --path /p.so", false),
            ("dn-top stats", false),
            ("dn-top stacks --unknown", false),
        ] {
            let error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(lacks_target(&error), expected, "{line}");
        }
    }
}
