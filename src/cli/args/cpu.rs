//! Options of `cpu`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Output, Target, When, parse_duration};
use crate::net::perf::Frequency;

#[derive(Debug, Args)]
pub(in crate::cli) struct Cpu {
    #[command(flatten)]
    pub(in crate::cli) target: Target,
    /// Sampling time, such as 30s [default: 5s; with --live until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(in crate::cli) duration: Option<Duration>,
    /// Print the hottest methods every second, and the profile of the whole time at the end; with --json, one object per line
    #[arg(long)]
    pub(in crate::cli) live: bool,
    /// Samples per second of CPU time of each thread, 1 to 999
    #[arg(long, value_name = "HERTZ", default_value = "999")]
    pub(in crate::cli) frequency: Frequency,
    /// Number of methods and functions
    #[arg(short = 'n', long = "top", value_name = "N", default_value = "20")]
    pub(in crate::cli) count: usize,
    /// Sort by total time: of the method and everything it calls
    #[arg(long)]
    pub(in crate::cli) inclusive: bool,
    /// Also write the samples and their names to this .nettrace file, which PerfView reads; created with mode 0600, never overwritten
    #[arg(short = 'o', long = "output", value_name = "FILE", conflicts_with = "times")]
    pub(in crate::cli) file: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) when: When,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}
