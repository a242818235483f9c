//! Options of the commands that act on a process.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{Output, Target, When, parse_time};
use crate::ipc::{DumpKind, Guid};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Profiler {
    /// Load it into a running process
    Attach {
        #[command(flatten)]
        library: ProfilerLibrary,
        /// File with client data for the profiler
        #[arg(long, value_name = "FILE")]
        data: Option<PathBuf>,
        /// Timeout for loading it
        #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
        timeout: Duration,
    },
    /// Load it into a process suspended at startup
    Startup {
        #[command(flatten)]
        library: ProfilerLibrary,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ProfilerLibrary {
    #[command(flatten)]
    pub(in crate::cli) target: Target,
    /// CLSID of the profiler: 8-4-4-4-12 hexadecimal digits
    #[arg(long, value_name = "GUID")]
    pub(in crate::cli) guid: Guid,
    /// Library of the profiler, as a path in the target
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) path: PathBuf,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Stacks {
    #[command(flatten)]
    pub(in crate::cli) target: Target,
    #[command(flatten)]
    pub(in crate::cli) when: When,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Dump {
    #[command(flatten)]
    pub(in crate::cli) target: Target,
    /// Output file, or a folder for a file of the default name, as a path in the target [default: /tmp/NAME_PID_yyyymmdd_hhmmss.dmp]
    #[arg(short, long = "output", value_name = "FILE|DIR")]
    pub(in crate::cli) output_path: Option<PathBuf>,
    /// Kind of dump
    #[arg(long = "type", value_enum, ignore_case = true, default_value = "heap")]
    pub(in crate::cli) kind: DumpKind,
    /// Also write a crash report (.NET 6)
    #[arg(long)]
    pub(in crate::cli) crash_report: bool,
    /// Enable the diagnostic log of createdump, on the console of the target
    #[arg(long)]
    pub(in crate::cli) diag: bool,
    #[command(flatten)]
    pub(in crate::cli) when: When,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Switch {
    On,
    Off,
}
