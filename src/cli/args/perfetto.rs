//! Options of `perfetto`.

use clap::{Args, Subcommand};

use super::{Events, Output};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct Perfetto {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<PerfettoCommand>,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PerfettoCommand {
    /// Serve the data source `dotnet` until Ctrl-C: tracing sessions that request it record the events of .NET processes
    ///
    /// A trace configuration can set more in legacy_config: targets=NAME,NAME profiles=NAME,NAME provider=SPEC clr-events=NAME+NAME.
    /// The service is that of PERFETTO_PRODUCER_SOCK_NAME, or /run/perfetto/traced-producer.sock, or /tmp/perfetto-producer.
    Serve(ServePerfetto),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ServePerfetto {
    /// Pids, names of entry assemblies or diagnostic sockets [default: all processes running when a recording starts]
    #[arg(value_name = "TARGET")]
    pub(in crate::cli) targets: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) events: Events,
}
