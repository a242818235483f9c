//! `open FILE..`: the dashboard over recorded files.

use std::path::PathBuf;

use super::args::Dashboard;
use super::dashboard;
use super::exit::{Exit, Failure};
use crate::session::trace_file;

pub(super) fn run(paths: &[PathBuf], options: &Dashboard) -> Result<Exit, Failure> {
    let files = paths.iter().map(|path| trace_file(path)).collect::<Result<_, _>>().map_err(Failure::usage)?;
    dashboard::over_files(options, files)
}
