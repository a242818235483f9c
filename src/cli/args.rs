//! What the command line may say.

mod export;
pub(super) mod perfetto;
mod record;
mod salvage;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::ipc::Guid;
use crate::session::RESUME_ORPHANS;

pub(super) use export::Export;
pub(super) use record::{Events, Record, Run, Trace};
pub(super) use salvage::Salvage;

/// A terminal dashboard for .NET processes: see, inspect, trace, dump and perf-map them, without .NET, agent or restart.
#[derive(Debug, Parser)]
#[command(name = "dn-top", version, max_term_width = 100, subcommand_negates_reqs = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) dashboard: Dashboard,
}

/// Options of the dashboard, which opens when no command is given. Before a command each is honoured or refused: `options` decides.
#[derive(Debug, Args)]
pub(super) struct Dashboard {
    /// Show a small fleet of simulated runtimes instead of this machine's processes; before a command as well
    #[arg(long)]
    pub(super) demo: bool,
    /// Show the processes of `dn-top sim COUNT DIR`
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "demo")]
    pub(super) sim: Option<PathBuf>,
    /// Allow nothing that changes a process; before a command as well
    #[arg(long)]
    pub(super) readonly: bool,
    /// Serve a diagnostic port as well: list the runtimes that connect to it
    #[arg(long, value_name = "PATH")]
    pub(super) port: Option<PathBuf>,
    /// Time between two looks at the processes
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_refresh)]
    pub(super) refresh: Duration,
    /// Begin with this filter
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Colours of the dashboard
    #[arg(long, value_name = "NAME", default_value = "dark")]
    pub(super) theme: String,
    /// When to use colours; NO_COLOR in the environment means never
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(super) color: Color,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub(super) no_mouse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List every .NET process that can be seen, attachable or not, and why not; CPU% is that of 0.1 s
    Ps {
        #[command(flatten)]
        output: Output,
    },
    /// Show all facts of a process and what its runtime can do
    Info {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        output: Output,
    },
    /// Show the environment of a process; secret-looking values are masked
    Env {
        #[command(flatten)]
        target: Target,
        /// Show the values of secret-looking names as well
        #[arg(long)]
        reveal: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Record a trace until the duration, the size, Ctrl-C or the target's end
    Trace(Trace),
    /// Start a program, record it from its first instruction, and end with its code
    Run(Run),
    /// Let a process run that is suspended at start-up
    Resume {
        #[command(flatten)]
        target: Target,
    },
    /// Set or unset an environment variable of a process
    SetEnv {
        #[command(flatten)]
        target: Target,
        /// The variable and its new value
        #[arg(value_name = "NAME=VALUE", required_unless_present = "unset", conflicts_with = "unset")]
        assignment: Option<String>,
        /// The variable to unset
        #[arg(long, value_name = "NAME")]
        unset: Option<String>,
    },
    /// Have a process load a startup hook
    StartupHook {
        #[command(flatten)]
        target: Target,
        /// The hook's assembly, as the target sees paths
        path: PathBuf,
    },
    /// Have a runtime load a CLR profiler
    #[command(subcommand)]
    Profiler(Profiler),
    /// Show counters and meters as they are published, until the duration or Ctrl-C
    Counters(Counters),
    /// Show what every thread is doing at one moment, those with the same stack together
    Stacks {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        output: Output,
    },
    /// Show the live objects by type; forces a full collection
    Heap(Heap),
    /// Have the runtime write a core dump
    Dump(Dump),
    /// Turn perf maps on or off
    Perfmap {
        #[command(flatten)]
        target: Target,
        /// What to do
        #[arg(value_enum)]
        switch: Switch,
        /// Which files the runtime writes
        #[arg(long, value_enum, default_value = "perfmap")]
        kind: PerfMapKind,
        #[command(flatten)]
        output: Output,
    },
    /// List the trace profiles and what each turns on
    Profiles {
        #[command(flatten)]
        output: Output,
    },
    /// Show what is in a nettrace file
    Stats {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Show the methods of a nettrace file that threads spend their time in
    Report(Report),
    /// Write nettrace files in the format of another tool
    Export(Export),
    /// Show what Perfetto's tracing service has and records, or give it the events of .NET processes
    Perfetto(perfetto::Perfetto),
    /// Open the dashboard over nettrace files
    Open {
        /// The files; those that were cut off, too
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Make a whole, readable file out of one that was cut off, or out of the segments that a killed flight recorder left
    Salvage(Salvage),
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
    /// Resume what waits for the port in FOLDER once standard input has ended
    #[command(name = RESUME_ORPHANS, hide = true)]
    ResumeOrphans {
        /// Removed at the end
        folder: PathBuf,
    },
    /// Serve COUNT simulated runtimes below DIR until killed
    #[command(hide = true)]
    Sim {
        /// How many
        count: usize,
        /// Where their sockets and facts go
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct Output {
    /// Print one JSON document and nothing else on stdout
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Target {
    /// A pid, the name of an entry assembly, or the path of a diagnostic socket (PATH or PATH,connect)
    #[arg(value_name = "TARGET")]
    pub(super) target: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum Profiler {
    /// Load it into a process that runs
    Attach {
        #[command(flatten)]
        library: ProfilerLibrary,
        /// A file whose bytes the profiler is handed
        #[arg(long, value_name = "FILE")]
        data: Option<PathBuf>,
        /// How long the target may take to load it
        #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
        timeout: Duration,
    },
    /// Load it into a process that is suspended at start-up
    Startup {
        #[command(flatten)]
        library: ProfilerLibrary,
    },
}

#[derive(Debug, Args)]
pub(super) struct ProfilerLibrary {
    #[command(flatten)]
    pub(super) target: Target,
    /// The profiler's class: 8-4-4-4-12 hexadecimal digits
    #[arg(long, value_name = "GUID")]
    pub(super) guid: Guid,
    /// Its library, as the target sees paths
    #[arg(long, value_name = "PATH")]
    pub(super) path: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Dump {
    #[command(flatten)]
    pub(super) target: Target,
    /// Where the target is to write it, as the target sees paths [default: /tmp/NAME_PID_yyyymmdd_hhmmss.dmp]
    #[arg(short, value_name = "PATH")]
    pub(super) output_path: Option<String>,
    /// How much of the process
    #[arg(long = "type", value_enum, default_value = "full")]
    pub(super) kind: DumpKind,
    /// Have createdump write a crash report as well (.NET 6)
    #[arg(long)]
    pub(super) crash_report: bool,
    /// Have createdump log what it does on the target's console
    #[arg(long)]
    pub(super) diag: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct Counters {
    #[command(flatten)]
    pub(super) target: Target,
    /// Providers and meters, each with the counters that are wanted of it, or all
    #[arg(long, value_name = "NAME[COUNTER,..],NAME", default_value = "System.Runtime")]
    pub(super) counters: String,
    /// Time between two values
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_refresh)]
    pub(super) interval: Duration,
    /// Stop after this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) duration: Option<Duration>,
    /// How values are written; json is one object a line
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: CounterFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CounterFormat {
    Text,
    Csv,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct Heap {
    #[command(flatten)]
    pub(super) target: Target,
    /// How many types, at most 1000
    #[arg(short = 'n', value_name = "N", default_value = "20")]
    pub(super) count: usize,
    /// Write the objects and their references into this file as well: as dotnet-gcdump does, or for ui.perfetto.dev where its name ends in .perfetto-trace; made with mode 0600, never over another
    #[arg(short = 'o', value_name = "FILE")]
    pub(super) graph_file: Option<PathBuf>,
    /// Do not ask: the full collection that this forces is all right
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct Report {
    /// The file
    pub(super) file: PathBuf,
    /// How many methods
    #[arg(short = 'n', value_name = "N", default_value = "20")]
    pub(super) count: usize,
    /// Sort by the time in a method and in everything that it calls
    #[arg(long)]
    pub(super) inclusive: bool,
    /// Count threads that wait as well
    #[arg(long)]
    pub(super) waiting: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PerfMapKind {
    All,
    Jitdump,
    Perfmap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DumpKind {
    Mini,
    Heap,
    Triage,
    Full,
}

/// A refresh faster than 100 ms shows nothing new and only costs.
fn parse_refresh(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_millis(100) => Ok(time),
        Ok(_) => Err("the shortest time is 100ms".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_are_read() {
        let arguments = Arguments::parse_from([
            "dn-top",
            "trace",
            "web",
            "--duration",
            "1m 30s",
            "--max-size",
            "64MB",
            "--provider",
            "A:1",
            "--provider",
            "B",
        ]);
        let Some(Command::Trace(Trace { record: trace, .. })) = arguments.command else { panic!("not trace") };
        assert_eq!((trace.events.duration, trace.max_size), (Some(Duration::from_secs(90)), Some(64_000_000)));
        assert_eq!(trace.events.provider, ["A:1", "B"]);
        for wrong in [
            vec!["dn-top", "--refresh", "1ms"],
            vec!["dn-top", "trace"],
            vec!["dn-top", "perfmap", "1", "maybe"],
            vec!["dn-top", "trace", "1", "--max-size", "big"],
            vec!["dn-top", "run", "dotnet", "app.dll"],
            vec!["dn-top", "run", "--"],
            vec!["dn-top", "set-env", "1"],
            vec!["dn-top", "set-env", "1", "A=1", "--unset", "B"],
            vec!["dn-top", "profiler", "attach", "1", "--guid", "1234", "--path", "/p.so"],
        ] {
            assert!(Arguments::try_parse_from(&wrong).is_err(), "{wrong:?}");
        }
    }
}
