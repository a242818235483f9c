//! Options of `salvage`.

use std::path::PathBuf;

use clap::Args;

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
