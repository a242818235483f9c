//! `export FILE`: a recording in the format of another tool.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args;
use super::exit::{Exit, Failure};
use super::print;
use crate::export::{Options, Part};
use crate::model::{SafeText, TraceFormat, export_stem};
use crate::session::{Destination, ExportError, OutputError, export};

/// The document of `--json`.
#[derive(Serialize)]
struct Exported {
    /// Those that were read: CPU samples beside a recording are among them, or stand for it.
    files: Vec<SafeText>,
    output: SafeText,
    bytes: u64,
    /// Whether all recordings end the way a whole one does.
    complete: bool,
}

pub(super) fn run(arguments: &args::Export) -> Result<Exit, Failure> {
    let format = arguments.format;
    let nanoseconds = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let from = arguments.from.map_or(i64::MIN, nanoseconds);
    let to = arguments.to.map_or(i64::MAX, nanoseconds);
    if from > to {
        return Err(Failure::usage("--from is later than --to: nothing lies between them"));
    }
    let Some((first, others)) = arguments.files.split_first() else { return Err(Failure::usage("no file is given")) };
    let only_perfetto = [(arguments.slices, "--slices"), (arguments.flows, "--flows"), (!others.is_empty(), "several files in one")];
    if let Some((_, what)) = only_perfetto.into_iter().find(|(is_asked_for, _)| *is_asked_for && format != TraceFormat::Perfetto) {
        return Err(Failure::usage(format!("{what} can only be had with --format perfetto")));
    }
    let part = Part { window: from..=to, threads: arguments.thread.iter().copied().collect() };
    let options = Options { format, part, calls: arguments.slices, tasks: arguments.flows, number: 0 };
    let destination = match &arguments.output_path {
        Some(path) if path.as_os_str() == "-" => Destination::Stdout,
        Some(path) => Destination::File(path.clone()),
        None => Destination::File(format!("{}.{}", export_stem(first), format.extension()).into()),
    };
    let passes = export(&arguments.files, &options, &destination, &mut |_, _| true).map_err(failure)?;
    for (file, pass) in &passes {
        if let Some(trouble) = pass.trouble() {
            print::say(format_args!("{}: {trouble}", file.display()));
        }
    }
    let Destination::File(path) = destination else { return Ok(Exit::Done) };
    if arguments.output.json {
        print::json(&Exported {
            files: passes.iter().map(|(file, _)| SafeText::from_path(file)).collect(),
            output: SafeText::from_path(&path),
            bytes: path.metadata().map_or(0, |facts| facts.len()),
            complete: passes.iter().all(|(_, pass)| pass.ending.is_complete()),
        })?;
    } else {
        print::text(|out| writeln!(out, "{}", path.display()))?;
    }
    Ok(Exit::Done)
}

/// Converts a recording into a file next to it.
pub(super) fn beside(recording: &Path, format: TraceFormat) -> Result<PathBuf, Failure> {
    let options = Options { format, part: Part::default(), calls: false, tasks: false, number: 0 };
    let file = PathBuf::from(format!("{}.{}", export_stem(recording), format.extension()));
    export(&[recording.to_owned()], &options, &Destination::File(file.clone()), &mut |_, _| true).map_err(failure)?;
    Ok(file)
}

fn failure(error: ExportError) -> Failure {
    let exit = match &error {
        ExportError::Output(error @ OutputError::Denied { .. }) if error.is_denied() => Exit::Denied,
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}
