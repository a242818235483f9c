//! Options of the commands that analyze a process or a file.

use std::path::{Path, PathBuf, is_separator};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Output, Selection, Target, When, parse_duration, parse_nanoseconds, parse_refresh, parse_time};
use crate::model::{FileKind, Span};
use crate::net::files;
use crate::session::{is_heap_file, trace_file};

#[derive(Debug, Args)]
pub(in crate::cli) struct Counters {
    #[command(flatten)]
    pub(in crate::cli) target: Target,
    /// Providers and meters, each with a list of counters, or all of them; `PREFIX*` and `*` select meters (.NET 9)
    #[arg(long, value_name = "NAME[COUNTER,..],NAME", default_value = "System.Runtime")]
    pub(in crate::cli) counters: String,
    /// Time between two values
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_refresh)]
    pub(in crate::cli) interval: Duration,
    /// Stop after this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(in crate::cli) duration: Option<Duration>,
    /// Maximum number of histograms that the runtime reports
    #[arg(long, value_name = "N", default_value = "10")]
    pub(in crate::cli) max_histograms: u32,
    /// Maximum number of time series, one for each combination of tags, that the runtime reports
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(in crate::cli) max_time_series: u32,
    /// Output file, created with mode 0600, never overwritten [default: standard output]
    #[arg(short, long = "output", value_name = "FILE")]
    pub(in crate::cli) output_file: Option<PathBuf>,
    /// Output format; json is one object per line
    #[arg(long, value_enum, ignore_case = true, default_value = "text")]
    pub(in crate::cli) format: CounterFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(in crate::cli) json: bool,
}

impl Counters {
    pub(in crate::cli) fn format(&self) -> CounterFormat {
        if self.json { CounterFormat::Json } else { self.format }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum CounterFormat {
    Text,
    Csv,
    Json,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Heap {
    /// A .gcdump file of dn-top, dotnet-gcdump or PerfView, or a process: a pid, the name of an entry assembly, the path of a diagnostic socket, or PATH,listen (see `dn-top trace --help`)
    #[arg(value_name = "FILE|TARGET")]
    pub(in crate::cli) source: String,
    /// Number of types, at most 1000
    #[arg(short = 'n', value_name = "N", default_value = "20")]
    pub(in crate::cli) count: usize,
    /// Also show what would be freed with the objects of each type, at least, and sort by it
    #[arg(long)]
    pub(in crate::cli) retained: bool,
    /// Also show what keeps objects of this type alive: the paths from roots to most of their bytes. Its full name, or the end of it
    #[arg(long, value_name = "TYPE")]
    pub(in crate::cli) paths: Option<String>,
    /// Also write the object graph to this file: a .gcdump, or a trace for ui.perfetto.dev if its name ends in .perfetto-trace or .pftrace; created with mode 0600, never overwritten
    #[arg(short = 'o', long = "output", value_name = "FILE", conflicts_with = "times")]
    pub(in crate::cli) graph_file: Option<PathBuf>,
    /// Also write the object graph to NAME_PID_yyyymmdd_hhmmss.gcdump
    #[arg(long, conflicts_with = "graph_file")]
    pub(in crate::cli) gcdump: bool,
    /// Give up when no data arrives from a process for this time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(in crate::cli) timeout: Option<Duration>,
    /// Do not ask before the full GC
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    #[command(flatten)]
    pub(in crate::cli) when: When,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

impl Heap {
    /// Returns the file, unless the source is a process. A file of another kind only counts if it is given by a path: the folder of a program
    /// contains a file with the process name. A missing file counts if its name is that of a heap file.
    pub(in crate::cli) fn file(&self) -> Option<&Path> {
        let path = Path::new(&self.source);
        let is_file = |path: &Path| path.is_file() && (self.source.contains(is_separator) || is_heap_file(path));
        let is_heap = |path: &&Path| FileKind::of(path) == FileKind::Heap || is_file(path);
        Some(path).filter(|_| self.source.parse::<u32>().is_err()).filter(is_heap)
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Analyze {
    /// A nettrace file, or a process: a pid, the name of an entry assembly, the path of a diagnostic socket, or PATH,listen (see `dn-top trace --help`)
    #[arg(value_name = "FILE|TARGET")]
    pub(in crate::cli) source: String,
    /// Only this part of a file, such as 10s..20s, ..30s or 1m.. since its start
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    pub(in crate::cli) range: Option<Span>,
    /// How long to record a process [default: 10s, or with --follow until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(in crate::cli) duration: Option<Duration>,
    /// Number of rows
    #[arg(short = 'n', value_name = "N", default_value = "20")]
    pub(in crate::cli) count: usize,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

/// An analysis whose subjects can also be shown one by one.
#[derive(Debug, Args)]
pub(in crate::cli) struct Followable {
    #[command(flatten)]
    pub(in crate::cli) analyze: Analyze,
    /// Show each one as it occurs in the process, until Ctrl-C or its exit; with --json one object per line
    #[arg(short, long, conflicts_with_all = ["range", "count"])]
    pub(in crate::cli) follow: bool,
}

/// The same, if the events of the subjects have stacks.
#[derive(Debug, Args)]
pub(in crate::cli) struct FollowableStacks {
    #[command(flatten)]
    pub(in crate::cli) followable: Followable,
    /// With --follow, also show the stack of each. To name the methods, the runtime lists all that are compiled, which costs the process some CPU time
    // As for the filter of events.
    #[arg(long, requires = "follow", conflicts_with_all = ["range", "count"])]
    pub(in crate::cli) stacks: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Contention {
    #[command(flatten)]
    pub(in crate::cli) followable: FollowableStacks,
    /// Only follow waits of at least this time [default: 10ms]
    #[arg(long, value_name = "TIME", requires = "follow", conflicts_with_all = ["range", "count"], value_parser = parse_time)]
    pub(in crate::cli) min_wait: Option<Duration>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Logs {
    #[command(flatten)]
    pub(in crate::cli) followable: Followable,
    /// Lowest level of the messages [default: info, or all that are in the file]
    #[arg(long, value_enum, ignore_case = true)]
    pub(in crate::cli) level: Option<LogLevel>,
    /// Only messages of loggers whose categories begin with this, such as Microsoft.AspNetCore; may be repeated
    #[arg(long, value_name = "PREFIX", value_parser = parse_category)]
    pub(in crate::cli) category: Vec<String>,
}

/// Log levels, in the order of [`LEVELS`](crate::analysis::LEVELS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LogLevel {
    Trace,
    Debug,
    #[value(alias = "information")]
    Info,
    #[value(alias = "warning")]
    Warn,
    Error,
    Critical,
}

/// Parses the beginning of a logger category. What would end it in a filter of the runtime is refused.
fn parse_category(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('*').unwrap_or(text);
    let is_name = !name.is_empty() && !name.contains([':', ';', '=', '"', '*', '\\']) && !name.contains(char::is_control);
    if is_name { Ok(name.to_owned()) } else { Err("expected the beginning of a category, such as Microsoft.AspNetCore".to_owned()) }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct EventList {
    #[command(flatten)]
    pub(in crate::cli) followable: FollowableStacks,
    #[command(flatten)]
    pub(in crate::cli) selection: Selection,
    /// Only follow events whose names or providers contain all of these words; !WORD excludes events
    // Without these conflicts, it would be ignored together with them: they exclude --follow, which then is not required.
    #[arg(long, value_name = "WORDS", requires = "follow", conflicts_with_all = ["range", "count"])]
    pub(in crate::cli) filter: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Slow {
    /// A nettrace file, preferably of profile slow, or a process: a pid, the name of an entry assembly, the path of a diagnostic socket, or PATH,listen (see `dn-top trace --help`)
    #[arg(value_name = "FILE|TARGET")]
    pub(in crate::cli) source: String,
    /// Only this part of a file, such as 10s..20s, ..30s or 1m.. since its start
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    pub(in crate::cli) range: Option<Span>,
    /// How long to record a process [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(in crate::cli) duration: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) when: When,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

/// Returns the recording that `source` names, unless it is a process. A file named like a process does not count if it has other contents, see
/// [`Heap::file`]. A missing file does, if it has the extension of a recording; so does a pipe that is given by a path.
pub(in crate::cli) fn recording(source: &str) -> Option<&Path> {
    let path = Path::new(source);
    let is_named = source.ends_with(".nettrace") || source.contains(".nettrace.partial");
    let is_path = source.contains(is_separator);
    let is_recording = || is_path && files::is_pipe(path) || path.is_file() && (is_path || trace_file(path).is_ok());
    (source.parse::<u32>().is_err() && (is_named || is_recording())).then_some(path)
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Stats {
    /// The file
    pub(in crate::cli) file: PathBuf,
    /// Only count events in this part of the file, such as 10s..20s, ..30s or 1m.. since its start; bytes, stacks and problems are those of the whole file
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    pub(in crate::cli) range: Option<Span>,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Report {
    /// The file
    pub(in crate::cli) file: PathBuf,
    /// Only this part of the file, such as 10s..20s, ..30s or 1m.. since its start
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range, conflicts_with = "off_cpu")]
    pub(in crate::cli) range: Option<Span>,
    /// Number of methods
    #[arg(short = 'n', value_name = "N", default_value = "20")]
    pub(in crate::cli) count: usize,
    /// Sort by inclusive time
    #[arg(long)]
    pub(in crate::cli) inclusive: bool,
    /// Include waiting threads
    #[arg(long)]
    pub(in crate::cli) waiting: bool,
    /// Native functions, including the runtime's; if hidden, their CPU time is attributed to the calling method
    #[arg(long, value_enum, value_name = "show|hide", hide_possible_values = true, default_value = "show")]
    pub(in crate::cli) native: Frames,
    /// Kernel functions; if hidden, their CPU time is attributed to the calling code
    #[arg(long, value_enum, value_name = "show|hide", hide_possible_values = true, default_value = "show")]
    pub(in crate::cli) kernel: Frames,
    /// Also show what threads wait for
    #[arg(long)]
    pub(in crate::cli) off_cpu: bool,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

/// Whether frames of a kind are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Frames {
    Show,
    Hide,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Diff {
    /// The first nettrace or .gcdump file
    pub(in crate::cli) before: PathBuf,
    /// The second nettrace or .gcdump file [default: the first, with --before-range or --after-range]
    pub(in crate::cli) after: Option<PathBuf>,
    /// Part of the first file, such as 10s..20s, ..30s or 1m..
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    pub(in crate::cli) before_range: Option<Span>,
    /// Part of the second file
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    pub(in crate::cli) after_range: Option<Span>,
    /// Number of figures of each kind
    #[arg(short = 'n', value_name = "N", default_value = "10")]
    pub(in crate::cli) count: usize,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

/// Parses a part of a recording.
fn parse_range(text: &str) -> Result<Span, String> {
    let (from, to) = text.split_once("..").ok_or("expected two times with .. between them, such as 10s..20s")?;
    let time = |text: &str, default| match text {
        "" => Ok(default),
        text => parse_nanoseconds(text).map_err(|error| format!("{text}: {error}")),
    };
    let range = (time(from, 0)?, time(to, i64::MAX)?);
    if range.0 >= range.1 { Err("the range is empty".to_owned()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn ranges_are_parsed() {
        const SECOND: i64 = 1_000_000_000;
        assert_eq!(parse_range("10s..1m"), Ok((10 * SECOND, 60 * SECOND)));
        assert_eq!(parse_range("..5s"), Ok((0, 5 * SECOND)));
        assert_eq!(parse_range("5s.."), Ok((5 * SECOND, i64::MAX)));
        for wrong in ["", "5s", "x..y", "5..6", "5s..5s", "6s..5s", "..0s", "..101 years"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        heap: Heap,
    }

    /// A publish folder contains the executable, which has the name of the process, beside the assembly. The working directory of unit tests is the
    /// folder of the package.
    #[test]
    fn file_with_other_contents_is_taken_for_a_heap_file_only_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let is_file = |name: &str| {
            let path = folder.path().join(name);
            Line::parse_from(["heap", path.to_str().unwrap()]).heap.file().is_some()
        };
        assert!(Line::parse_from(["heap", "LICENSE"]).heap.file().is_none());
        std::fs::write(folder.path().join("MyApp"), b"\x7fELF").unwrap();
        std::fs::write(
            folder.path().join("dump"),
            b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x0a\0\0\0\x08\0\0\0\x0a\0\0\0GCHeapDump\x06",
        )
        .unwrap();
        assert_eq!(["MyApp", "dump", "missing.gcdump", "missing"].map(is_file), [true, true, true, false]);
    }

    /// The working directory of unit tests is the folder of the package.
    #[test]
    fn file_with_other_contents_is_taken_for_a_recording_only_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let mut encoder = crate::nettrace::Encoder::new(crate::nettrace::TraceHeader::default());
        encoder.end();
        let [kept, missing] = ["kept", "missing"].map(|name| folder.path().join(name));
        std::fs::write(&kept, encoder.take()).unwrap();
        for (source, is_recording) in [
            ("LICENSE", false),
            ("./LICENSE", true),
            ("src", false),
            ("4242", false),
            ("missing.nettrace", true),
            ("missing.nettrace.partial.0001", true),
            (kept.to_str().unwrap(), true),
            (missing.to_str().unwrap(), false),
        ] {
            assert_eq!(recording(source).is_some(), is_recording, "{source}");
        }
    }
}
