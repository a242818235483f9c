//! `export FILE`: converts a recording to the format of another tool.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::args;
use super::exit::{Exit, Failure};
use super::interrupt::{self, interruptible};
use super::print::{self, Value, json};
use super::runtime;
use crate::export::{Finished, JoinCounts, Options, Part};
use crate::model::{Nanoseconds, SafeText, TraceFormat, check_file_name, export_stem};
use crate::net::interrupts::Interrupts;
use crate::session::{Destination, ExportError, Exported, export};

pub(super) fn run(arguments: &args::Export) -> Result<Exit, Failure> {
    let format = arguments.format;
    let (from, to) = (arguments.from.unwrap_or(i64::MIN), arguments.to.unwrap_or(i64::MAX));
    if from > to {
        return Err(Failure::usage("--from is later than --to: the range is empty"));
    }
    let Some((first, others)) = arguments.files.split_first() else { return Err(Failure::usage("no file is given")) };
    let only_perfetto = [(arguments.slices, "--slices"), (arguments.flows, "--flows"), (!others.is_empty(), "one trace of several files")];
    if let Some((_, what)) = only_perfetto.into_iter().find(|(is_requested, _)| *is_requested && format != TraceFormat::Perfetto) {
        return Err(Failure::usage(format!("{what} needs --format perfetto")));
    }
    if arguments.all_events && !format.has_timeline() {
        return Err(Failure::usage("--all-events needs --format perfetto or chromium"));
    }
    if !format.has_parts() && (from, to, arguments.thread.is_empty()) != (i64::MIN, i64::MAX, true) {
        return Err(Failure::usage("the format nettrace holds all of a recording: leave --from, --to and --thread out"));
    }
    let to_stdout = arguments.output_path.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if to_stdout && arguments.output.json {
        return Err(Failure::usage("--json describes the output file: with -o - the export itself is written to stdout"));
    }
    if let Some(path) = arguments.output_path.as_ref().filter(|_| !to_stdout) {
        check_file_name(path, format.extension()).map_err(Failure::usage)?;
    }
    let part = Part { window: from..=to, threads: arguments.thread.iter().copied().collect() };
    let options =
        Options { calls: arguments.slices, tasks: arguments.flows, all_events: arguments.all_events, ..Options::new(format, part) };
    let destination = match &arguments.output_path {
        Some(_) if to_stdout => Destination::Stdout,
        Some(path) => Destination::File(path.clone()),
        None => Destination::File(file_beside(first, format)),
    };
    let exported = match destination {
        // There is no file to remove, and a blocked pipe would delay the handling of a signal: it ends the program.
        Destination::Stdout => export(&arguments.files, &options, &destination, &mut |_, _| true),
        Destination::File(_) => {
            let (files, destination) = (arguments.files.clone(), destination.clone());
            runtime()?.block_on(async {
                let mut interrupts = interrupt::listen()?;
                let work = move |wanted: &dyn Fn() -> bool| export(&files, &options, &destination, &mut |_, _| wanted());
                interruptible(&mut interrupts, work).await
            })?
        }
    };
    let exported = match exported {
        // As with all output, a reader that closes the pipe early is not an error.
        Err(ExportError::Stdout(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Done),
        exported => exported.map_err(failure)?,
    };
    for exported in &exported {
        let path = exported.path.display();
        if let Some(trouble) = exported.pass.trouble() {
            print::message(format_args!("{path}: {trouble}"));
        }
        if let Some(note) = exported.finished.note() {
            print::message(format_args!("{path}: {note}"));
        }
    }
    missing(&exported, arguments).iter().for_each(print::message);
    let Destination::File(path) = destination else { return Ok(Exit::Done) };
    print::result(arguments.output.json, || document(&exported, &path, format), |out| writeln!(out, "{}", path.display()))?;
    Ok(Exit::Done)
}

fn document(exported: &[Exported], output: &Path, format: TraceFormat) -> Value {
    let files = exported.iter().flat_map(|exported| std::iter::once(&exported.path).chain(&exported.samples));
    let is_whole = |exported: &Exported| exported.pass.ending.is_complete() && !exported.joined().is_some_and(|joined| joined.samples_cut);
    let mut document = json!({
        // The files that were read. Files with CPU samples beside recordings are included, or replace these in formats that contain only samples.
        "files": files.map(|path| SafeText::from_path(path)).collect::<Vec<_>>(),
        "output": SafeText::from_path(output),
        "bytes": output.metadata().map_or(0, |facts| facts.len()),
        // Whether no recording, and no file with CPU samples, is truncated.
        "complete": exported.iter().all(is_whole),
        // Number of samples, slices, events and values of counters written: 0 if the selected part has none.
        "records": records(exported, format),
    });
    // For the nettrace format.
    if let Some(JoinCounts { events, samples, lost, .. }) = exported.iter().find_map(Exported::joined) {
        (document["events"], document["cpu_samples"], document["lost_events"]) = (events.into(), samples.into(), lost.into());
    }
    document
}

/// Returns the number of samples and events that were written.
fn records(exported: &[Exported], format: TraceFormat) -> u64 {
    let of = |exported: &Exported| match &exported.finished {
        Finished::Part(written) if format.has_events() => written.samples + written.others,
        Finished::Part(written) => written.samples,
        Finished::Joined(counts) => counts.events + counts.samples,
    };
    exported.iter().map(of).sum()
}

/// Returns sentences about selected data that does not exist: a range, or a thread, may be mistyped.
fn missing(exported: &[Exported], arguments: &args::Export) -> Vec<String> {
    let written = || {
        exported.iter().filter_map(|exported| match &exported.finished {
            Finished::Part(written) => Some(written),
            Finished::Joined(_) => None,
        })
    };
    let Some(newest) = written().map(|written| written.newest).max() else { return Vec::new() };
    if exported.iter().all(|exported| exported.is_before_part) {
        let end = Nanoseconds(newest.max(0).unsigned_abs());
        return vec![format!("nothing was exported: --from is after the end of the recording at {end}")];
    }
    let is_missing = |thread: &&u64| !written().any(|written| written.threads.contains(thread));
    let absent: Vec<_> = arguments.thread.iter().filter(is_missing).map(u64::to_string).collect();
    let place = if (arguments.from, arguments.to) == (None, None) { "the recording" } else { "the selected range" };
    if !absent.is_empty() {
        return vec![format!("{place} has no events of thread {} (--thread)", absent.join(", "))];
    }
    let what = if arguments.format.has_events() { "events for this format" } else { "samples" };
    // Events that were left out are reported as such.
    let is_nothing = records(exported, arguments.format) == 0 && written().all(|written| written.left_out == 0);
    if is_nothing { vec![format!("nothing was exported: {place} has no {what}")] } else { Vec::new() }
}

/// Converts a recording into a file next to it, unless a signal cancels it.
pub(super) async fn beside(recording: &Path, format: TraceFormat, interrupts: &mut Interrupts) -> Result<PathBuf, Failure> {
    let options = Options::new(format, Part::default());
    let file = file_beside(recording, format);
    let (recording, destination) = (recording.to_owned(), Destination::File(file.clone()));
    let work = move |wanted: &dyn Fn() -> bool| export(&[recording], &options, &destination, &mut |_, _| wanted());
    interruptible(interrupts, work).await?.map_err(failure)?;
    Ok(file)
}

fn file_beside(recording: &Path, format: TraceFormat) -> PathBuf {
    format!("{}.{}", export_stem(recording), format.extension()).into()
}

fn failure(error: ExportError) -> Failure {
    let exit = match &error {
        ExportError::Output(error) => Exit::of_error(error.is_denied()),
        ExportError::Canceled => Exit::Interrupted,
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Arguments, Command};
    use clap::Parser as _;

    #[test]
    fn options_without_effect_are_rejected() {
        for options in [
            "csv -o - --json",
            "csv --slices",
            "csv --flows",
            "csv --all-events",
            "csv b.nettrace",
            "nettrace --from 1s",
            "nettrace --thread 7",
            "csv --from 2s --to 1s",
            "csv -o a.folded",
        ] {
            let line = format!("dn-top export a.nettrace --format {options}");
            let Some(Command::Export(arguments)) = Arguments::parse_from(line.split(' ')).command else { panic!("{line}") };
            assert_eq!(run(&arguments).unwrap_err().exit, Exit::Usage, "{line}");
        }
    }
}
