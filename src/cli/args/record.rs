//! Options that select what is recorded.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Output, Target, When, parse_time};
use crate::clr::Trigger;
use crate::model::{Conditions, TraceFormat, parse_keep, parse_size};
use crate::nettrace::RetentionLimits;

#[derive(Debug, Args)]
pub(in crate::cli) struct Trace {
    #[command(flatten)]
    pub(in crate::cli) target: Target,
    /// Write the events to this user_events tracepoint of the kernel instead of a file; with ids, only these events (root, Linux 6.4, .NET 10)
    #[arg(
        long,
        value_name = "NAME[=ID,ID]",
        conflicts_with_all = ["when", "output_file", "export", "max_size", "buffer_mb", "rundown", "no_stacks", "stop_on", "stop_when", "flight", "block", "kernel", "separate"],
    )]
    pub(in crate::cli) user_events: Vec<String>,
    /// Use the protocol of .NET Core 3.0 previews 4 and 5, which no other runtime understands
    #[arg(long, conflicts_with_all = ["user_events", "kernel", "when", "stop_when"])]
    pub(in crate::cli) legacy: bool,
    /// Resume the process if it is suspended at startup, once the session is open
    #[arg(long, conflicts_with = "user_events")]
    pub(in crate::cli) resume: bool,
    #[command(flatten)]
    pub(in crate::cli) when: When,
    #[command(flatten)]
    pub(in crate::cli) record: Record,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Run {
    #[command(flatten)]
    pub(in crate::cli) record: Record,
    /// Show the output of the program
    #[arg(long)]
    pub(in crate::cli) show_output: bool,
    /// Keep the program running when the recording ends first
    #[arg(long)]
    pub(in crate::cli) keep_running: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(in crate::cli) command: Vec<OsString>,
}

/// Which events to record.
#[derive(Debug, Args)]
pub(in crate::cli) struct Selection {
    /// A trace profile; `dn-top profiles` lists them
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) profile: Vec<String>,
    /// A provider to enable; if a profile has it as well, the keywords of both and the higher level are recorded
    #[arg(long, value_name = "NAME[:KEYWORDS[:LEVEL[:ARGS]]]")]
    pub(in crate::cli) provider: Vec<String>,
    /// Keywords of the runtime's own provider, and a level, such as gc+exception or gc:verbose
    #[arg(long, value_name = "NAME+NAME[:LEVEL]")]
    pub(in crate::cli) clr_events: Option<String>,
}

/// Which events to record, and for how long.
#[derive(Debug, Args)]
pub(in crate::cli) struct Events {
    #[command(flatten)]
    pub(in crate::cli) selection: Selection,
    /// Stop after this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(in crate::cli) duration: Option<Duration>,
}

/// What to record, and until when.
#[derive(Debug, Args)]
pub(in crate::cli) struct Record {
    /// Output file, created with mode 0600, never overwritten [default: NAME_PID_yyyymmdd_hhmmss.nettrace, or .perfetto-trace with --kernel]
    #[arg(short, long = "output", value_name = "FILE")]
    pub(in crate::cli) output_file: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) events: Events,
    /// Only these events of a provider, or, with ^, all except these (.NET 10)
    #[arg(long, value_name = "PROVIDER/[^]ID,ID")]
    pub(in crate::cli) event_ids: Vec<String>,
    /// Stop at this event, by its id or name, or * for any; with :TEXT, only if its payload contains it; with [FIELD=VALUE,..], only if fields have these values; followed by "N times in TIME" if once is not enough
    #[arg(long, value_name = "PROVIDER/EVENT", value_parser = Trigger::parse)]
    pub(in crate::cli) stop_on: Option<Trigger>,
    /// Stop once one of these conditions is met, as for `dn-top trace --when`
    #[arg(long, value_name = "CONDITION", value_parser = Conditions::parse)]
    pub(in crate::cli) stop_when: Option<Conditions>,
    /// Flight recorder: keep only the newest part, a size such as 64MB or a time such as 5m
    #[arg(long, value_name = "SIZE|TIME", value_parser = parse_keep, conflicts_with = "max_size")]
    pub(in crate::cli) flight: Option<RetentionLimits>,
    /// Also record the kernel's scheduling, both in one trace for ui.perfetto.dev. Needs Perfetto's tracing service (`apt install perfetto`) with traced_probes, and access to it
    #[arg(long, conflicts_with = "flight")]
    pub(in crate::cli) kernel: bool,
    /// Keep CPU samples (profiles cpu and slow) in a second file, NAME.cpu.nettrace, for programs that do not read format 6
    #[arg(long, conflicts_with_all = ["kernel", "flight"])]
    pub(in crate::cli) separate: bool,
    /// Also convert the finished file to this format, next to it
    #[arg(long, value_name = "FORMAT", value_enum, ignore_case = true, conflicts_with = "kernel")]
    pub(in crate::cli) export: Option<TraceFormat>,
    /// Stop at this file size, such as 64MB; the rundown at the end is added to it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(in crate::cli) max_size: Option<u64>,
    /// Event buffer in the runtime, in MB
    #[arg(long, value_name = "MB", default_value = "256")]
    pub(in crate::cli) buffer_mb: u32,
    /// Rundown of methods and modules at the end: full, none, or keywords such as 0x38 (.NET 9) [default: what the profiles need]
    #[arg(long, value_name = "full|none|0xHEX")]
    pub(in crate::cli) rundown: Option<String>,
    /// Record events without stacks, except samples (.NET 9; older runtimes send them anyway)
    #[arg(long)]
    pub(in crate::cli) no_stacks: bool,
    /// Block the target when the buffer is full instead of dropping events (.NET 11)
    #[arg(long)]
    pub(in crate::cli) block: bool,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}
