//! The command line arguments.

mod analysis;
mod control;
mod cpu;
mod export;
pub(super) mod perfetto;
mod record;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use super::config::Settings;
use crate::app::{AutoWatch, Columns, Sort};
use crate::ipc::{DumpKind, PerfMapKind};
use crate::model::{Conditions, TraceFormat};
use crate::session::RESUME_ORPHANS;
use crate::ui::Theme;

pub(super) use analysis::{
    Analyze, Contention, CounterFormat, Counters, Diff, EventList, Followable, FollowableStacks, Frames, Heap, LogLevel, Logs, Report,
    Slow, Stats, recording,
};
pub(super) use control::{Dump, Profiler, ProfilerLibrary, Stacks, Switch};
pub(super) use cpu::Cpu;
pub(super) use export::{Export, Salvage};
pub(super) use record::{Events, Record, Run, Selection, Trace};

/// A terminal dashboard for .NET processes: see, inspect, trace, dump and perf-map them, without .NET, agent or restart.
#[derive(Debug, Parser)]
#[command(
    name = "dn-top",
    version,
    max_term_width = 100,
    after_help = "Command lines of dotnet-trace, dotnet-counters, dotnet-gcdump, dotnet-stack and dotnet-dump work with `dotnet-` replaced by `dn-top `, \
                  such as: dn-top trace collect -p 42 --duration 00:00:30"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) dashboard: Dashboard,
}

/// Options of the dashboard, which opens when no command is given. Before a command each is honored or refused: `options` decides.
#[derive(Debug, Args)]
pub(super) struct Dashboard {
    /// Show simulated runtimes instead of the processes of this machine; also before a command
    #[arg(long)]
    pub(super) demo: bool,
    /// Show the processes of `dn-top sim COUNT DIR`
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "demo")]
    pub(super) sim: Option<PathBuf>,
    /// Refuse everything that changes a process; also before a command
    #[arg(long)]
    pub(super) readonly: bool,
    /// Processes whose counters are watched from the start; with --readonly none by default
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(super) watch: Option<AutoWatch>,
    /// Also serve a diagnostic port, and list the runtimes that connect to it; those that are still suspended when dn-top is killed need `dn-top resume PATH,listen`
    #[arg(long, value_name = "PATH")]
    pub(super) port: Option<PathBuf>,
    /// Time between two refreshes of the process list
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_refresh)]
    pub(super) refresh: Duration,
    /// Log every request to a process, and the sessions and recordings, to a new file, or to one in a folder; also before a command
    #[arg(long, value_name = "FILE|DIR")]
    pub(super) log: Option<PathBuf>,
    /// Initial filter of the process list
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Columns of the process list, from the left, as far as there is room; name must be among them
    #[arg(long, value_name = "NAMES", default_value_t, value_parser = Columns::parse)]
    pub(super) columns: Columns,
    /// Sort column of the process list, and the direction if it is not the default: name:desc
    #[arg(long, value_name = "COLUMN[:asc|desc]", default_value = "cpu", value_parser = Sort::parse)]
    pub(super) sort: Sort,
    /// Color theme: auto (by the background), dark, light, neutral, high-contrast, mono, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = AUTO_THEME, value_parser = parse_theme)]
    pub(super) theme: String,
    /// When to use colors; NO_COLOR in the environment means never
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(super) color: Color,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
    /// Disable mouse support
    #[arg(long)]
    pub(super) no_mouse: bool,
    /// Do not change the title of the terminal
    #[arg(long)]
    pub(super) no_title: bool,
    /// Ring the terminal's bell when a recording or another job has finished
    #[arg(long)]
    pub(super) bell: bool,
    /// Settings of the configuration file that are not options.
    #[arg(skip)]
    pub(super) settings: Settings,
}

/// Queries the terminal for its background color.
pub(super) const AUTO_THEME: &str = "auto";

/// Accepts the name of a theme, or the path of a theme file, which is read later.
fn parse_theme(text: &str) -> Result<String, String> {
    let is_known = text == AUTO_THEME || Theme::NAMES.contains(&text) || text.ends_with(".toml");
    is_known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("expected {AUTO_THEME}, {} or a file that ends in .toml", Theme::NAMES.join(", ")))
}

/// Names the values of enums that are defined elsewhere.
macro_rules! value_enums {
    ($($type:ty: $values:expr, $value:ident => $named:expr;)+) => {
        $(impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &$values
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let $value = *self;
                Some($named)
            }
        })+
    };
}

value_enums! {
    DumpKind: DumpKind::ALL, kind => PossibleValue::new(kind.name());
    PerfMapKind: PerfMapKind::ALL, kind => PossibleValue::new(kind.name());
    TraceFormat: TraceFormat::ALL, format => PossibleValue::new(format.name()).help(format.about());
    AutoWatch: [AutoWatch::Selected, AutoWatch::Never, AutoWatch::All], watch => PossibleValue::new(match watch {
        AutoWatch::Selected => "selected",
        AutoWatch::Never => "never",
        AutoWatch::All => "all",
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List all visible .NET processes, with the reason where one cannot be attached to; CPU% is measured over 0.1 s
    Ps(Output),
    /// Show details and capabilities of a process
    Info(Inspect),
    /// Show the environment of a process; values that look like secrets are masked
    Env {
        #[command(flatten)]
        target: Target,
        /// Also show the values that look like secrets
        #[arg(long)]
        reveal: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Record a trace until the duration, the size, Ctrl-C or the exit of the target
    Trace(Trace),
    /// Start a program, record it from its first instruction, and exit with its exit code
    Run(Run),
    /// Resume a process suspended at startup
    Resume(Target),
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
    /// Load a startup hook into a process
    StartupHook {
        #[command(flatten)]
        target: Target,
        /// Assembly of the hook, as a path in the target
        path: PathBuf,
    },
    /// Load a CLR profiler into a process
    #[command(subcommand)]
    Profiler(Profiler),
    /// Show counters and meters until the duration or Ctrl-C
    Counters(Counters),
    /// Show the top methods and functions by CPU time: managed, native and kernel code, sampled by the kernel
    Cpu(Cpu),
    /// Show the managed stack of every thread, equal stacks grouped
    Stacks(Stacks),
    /// Show the live objects of a process or of a .gcdump file by type; of a process it forces a full GC
    Heap(Heap),
    /// Show why a process is slow, or was while a nettrace file was recorded: the possible causes, the worst first
    Slow(Slow),
    /// Show the garbage collections of a nettrace file or a process; with --follow, each as it occurs
    Gc(Followable),
    /// Show the exceptions of a nettrace file or a process by type; with --follow, each as it occurs
    Exceptions(FollowableStacks),
    /// Show the allocations of a nettrace file or a process by type, and the methods that allocate; with --follow, samples as they occur
    Allocations(FollowableStacks),
    /// Show the lock contention of a nettrace file or a process by waiting method; with --follow, each wait as it ends
    Contention(Contention),
    /// Show the slowest JIT compilations of a nettrace file or a process
    Jit(Analyze),
    /// Show the requests and other operations of a nettrace file or a process; with --follow, each as it occurs
    Http(Followable),
    /// Show the latest log messages of a nettrace file or a process; with --follow, each as it occurs
    Logs(Logs),
    /// Show the most frequent events of a nettrace file or a process; with --follow, each as it occurs
    Events(EventList),
    /// Write a core dump
    Dump(Dump),
    /// Enable or disable perf maps
    Perfmap {
        #[command(flatten)]
        target: Target,
        /// Enable or disable
        #[arg(value_enum)]
        switch: Switch,
        /// Kind of files
        #[arg(long, value_enum, default_value = "perfmap")]
        kind: PerfMapKind,
        #[command(flatten)]
        output: Output,
    },
    /// List the trace profiles and the providers of each
    Profiles(Output),
    /// Show the contents of a nettrace file
    Stats(Stats),
    /// Show the top methods of a nettrace file
    Report(Report),
    /// Compare two recordings: GC, methods, allocations, exceptions, contention, requests, counters; or two heaps
    Diff(Diff),
    /// Convert nettrace files to other formats
    Export(Export),
    /// Show the state of Perfetto's tracing service, or serve events of .NET processes to it
    Perfetto(perfetto::Perfetto),
    /// Open nettrace and .gcdump files in the dashboard
    Open {
        /// The files; truncated ones as well
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Repair a truncated nettrace file, or join the segments of a killed flight recorder
    Salvage(Salvage),
    /// Check what is visible and possible on this machine, with advice for what is not
    Doctor(Output),
    /// Print a configuration file with every default, commented out
    Config,
    /// Print shell completions
    Completions {
        /// The shell; its script runs the dn-top in PATH
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
    /// Resume the runtimes suspended on the port in FOLDER once standard input has ended
    #[command(name = RESUME_ORPHANS, hide = true)]
    ResumeOrphans {
        /// Removed at the end
        folder: PathBuf,
    },
    /// Serve COUNT simulated runtimes below DIR until killed
    #[command(hide = true)]
    Sim {
        /// Number of runtimes
        count: usize,
        /// Directory of their sockets
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
    /// A pid, the name of an entry assembly, or the path of a diagnostic socket (PATH or PATH,connect); PATH,listen serves a port and waits for the first program that starts with DOTNET_DiagnosticPorts=PATH
    #[arg(value_name = "TARGET")]
    pub(super) target: String,
}

#[derive(Debug, Args)]
pub(super) struct When {
    /// Wait until this is true: NAME>VALUE (or <, >=, <=), for TIME if it must last, such as "cpu>80 for 10s" or memory>2GB; NAME is cpu (percent of a core), memory, threads, open-files or a counter; or until an event occurs: exception, exception:TEXT or PROVIDER/EVENT, with "N times in TIME" if once is not enough; any of several: "cpu>80 or memory>2GB"
    #[arg(long, value_name = "CONDITION", value_parser = Conditions::parse)]
    pub(super) when: Option<Conditions>,
    /// Wait until the target exists
    #[arg(long)]
    pub(super) wait: bool,
    /// Do it N times, each time once the condition is met again
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub(super) times: u32,
    /// Pause between two times
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    pub(super) pause: Duration,
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    #[command(flatten)]
    pub(super) target: Target,
    #[command(flatten)]
    pub(super) output: Output,
}

/// A longer time overflows the clock when it is added to the current time.
const MAX_TIME: Duration = Duration::from_secs(100 * 365 * 86_400);

fn parse_time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|_| "expected a time with its unit, such as 30s, 5m or 1h30m")?;
    if time <= MAX_TIME { Ok(time) } else { Err("the longest time is 100 years".to_owned()) }
}

/// Parses how long to observe a process.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let time = parse_time(text)?;
    if time.is_zero() { Err("nothing can be observed in no time".to_owned()) } else { Ok(time) }
}

/// Parses a time since the start of a recording.
fn parse_nanoseconds(text: &str) -> Result<i64, String> {
    parse_time(text).map(|time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

/// Refreshing faster than 100 ms adds cost but no information.
fn parse_refresh(text: &str) -> Result<Duration, String> {
    let time = parse_time(text)?;
    if time >= Duration::from_millis(100) { Ok(time) } else { Err("the shortest time is 100ms".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_definition_is_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_are_parsed() {
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
        assert_eq!(trace.events.selection.provider, ["A:1", "B"]);
        for wrong in [
            vec!["dn-top", "--refresh", "1ms"],
            vec!["dn-top", "trace"],
            vec!["dn-top", "perfmap", "1", "maybe"],
            vec!["dn-top", "trace", "1", "--max-size", "big"],
            vec!["dn-top", "trace", "1", "--duration", "101 years"],
            vec!["dn-top", "cpu", "1", "--duration", "0s"],
            vec!["dn-top", "slow", "1", "--duration", "0"],
            vec!["dn-top", "gc", "1", "--duration", "0"],
            vec!["dn-top", "counters", "1", "--interval", "18446744073709551615s"],
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
