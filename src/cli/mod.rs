//! Arguments, headless commands and exit codes.
//!
//! Every command runs on the same engine as the dashboard (`net`, `session`) and only turns its values into text or JSON. Results go to stdout,
//! words for a person to stderr; exit codes are a contract.

mod args;
mod control;
mod counters;
mod dashboard;
mod document;
mod dump;
mod env;
mod exit;
mod gcdump;
mod heap;
mod manual;
mod open;
mod print;
mod profiles;
mod ps;
mod record;
mod report;
mod run;
mod salvage;
mod sim;
mod stacks;
mod stats;
mod target;
mod trace;
mod user_events;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use self::args::{Arguments, Command};
use self::exit::{Exit, Failure};

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(exit) => exit.into(),
        Err(Failure { exit, error }) => {
            print::say(format_args!("{error:#}"));
            exit.into()
        }
    }
}

fn run(arguments: Arguments) -> Result<Exit, Failure> {
    let Some(command) = arguments.command else { return dashboard::run(arguments.dashboard) };
    match command {
        Command::Stats { file, output } => stats::run(&file, output.json),
        Command::Report(report) => report::run(&report),
        Command::Open { files } => open::run(&files, &arguments.dashboard),
        Command::Salvage { files, output } => salvage::run(&files, &output),
        Command::Counters(counters) => runtime()?.block_on(counters::run(counters)),
        Command::Stacks { target, output } => runtime()?.block_on(stacks::run(&target.target, output.json)),
        Command::Heap(heap) => runtime()?.block_on(heap::run(&heap)),
        Command::Profiles { output } => profiles::run(output.json),
        Command::Ps { output } => runtime()?.block_on(ps::ps(output.json)),
        Command::Info { target, output } => runtime()?.block_on(ps::info(&target.target, output.json)),
        Command::Env { target, reveal, output } => runtime()?.block_on(env::run(&target.target, reveal, output.json)),
        Command::Trace(trace) => runtime()?.block_on(trace::run(trace)),
        Command::Run(run) => runtime()?.block_on(run::run(run)),
        Command::Resume { target } => runtime()?.block_on(control::resume(&target.target)),
        Command::SetEnv { target, assignment, unset } => {
            runtime()?.block_on(control::set_env(&target.target, assignment.as_deref(), unset.as_deref()))
        }
        Command::StartupHook { target, path } => runtime()?.block_on(control::startup_hook(&target.target, &path)),
        Command::Profiler(profiler) => runtime()?.block_on(control::profiler(profiler)),
        Command::Dump(dump) => runtime()?.block_on(dump::dump(dump)),
        Command::Perfmap { target, switch, kind, output } => runtime()?.block_on(dump::perf_map(&target.target, switch, kind, output.json)),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man => manual::page(),
        Command::Sim { count, dir } => runtime()?.block_on(sim::run(count, &dir)),
    }
}

/// Two threads for tasks beside the one that is called on, so that one goes on while the other looks at the processes. What reads a stream or the
/// disk at length has threads of its own.
fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().context("the task pool cannot be started")
}
