//! Options of `export` and `salvage`, which convert and repair recorded files.

use std::path::PathBuf;

use clap::Args;

use super::{Output, parse_nanoseconds};
use crate::model::TraceFormat;

#[derive(Debug, Args)]
pub(in crate::cli) struct Salvage {
    /// The truncated file, or all segments, in any order; they are not changed
    #[arg(required = true, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Output file, created with mode 0600, never overwritten
    #[arg(short, long, value_name = "OUT")]
    pub(in crate::cli) output: PathBuf,
    /// Append method names from the recorded process, if it still runs
    #[arg(long)]
    pub(in crate::cli) names: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Export {
    /// The recording, also a truncated one, with the CPU samples beside it; several become one trace with --format perfetto
    #[arg(required = true, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum, ignore_case = true)]
    pub(in crate::cli) format: TraceFormat,
    /// Also show samples as nested calls on the timeline (perfetto)
    #[arg(long)]
    pub(in crate::cli) slices: bool,
    /// Add flows from the thread that schedules a task to the one that runs it (perfetto)
    #[arg(long)]
    pub(in crate::cli) flows: bool,
    /// Show the events of the program's own providers even if there are more than 50,000 (perfetto, chromium)
    #[arg(long)]
    pub(in crate::cli) all_events: bool,
    /// Output file, created with mode 0600, never overwritten; - for standard output [default: next to the first FILE, with the extension of the format]
    #[arg(short = 'o', long = "output", value_name = "OUT")]
    pub(in crate::cli) output_path: Option<PathBuf>,
    /// Skip everything before this time since the start of the recording
    #[arg(long, value_name = "TIME", value_parser = parse_nanoseconds)]
    pub(in crate::cli) from: Option<i64>,
    /// Skip everything after this time since the start of the recording
    #[arg(long, value_name = "TIME", value_parser = parse_nanoseconds)]
    pub(in crate::cli) to: Option<i64>,
    /// Only this thread, by its operating system id; can be repeated
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) thread: Vec<u64>,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}
