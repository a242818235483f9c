//! Options of `salvage`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct Salvage {
    /// The file that was cut off, or all segments, in any order; they stay as they are
    #[arg(required = true, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// The whole file to make; with mode 0600, never over another
    #[arg(short, value_name = "OUT")]
    pub(in crate::cli) output: PathBuf,
    /// Have the process that was recorded, if it still runs, send the names of its methods, and append them
    #[arg(long)]
    pub(in crate::cli) names: bool,
}
