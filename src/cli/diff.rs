//! `diff BEFORE [AFTER]`: the differences between two recordings, two parts of one, or two heaps.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::analyses::note_range;
use super::args;
use super::exit::{Exit, Failure};
use super::{heap_diff, print};
use crate::analysis::{ComparedFigure, Section};
use crate::model::{Amount, Change, Count, Counted, FileContents, FileKind, SafeText, Span};
use crate::session;

/// The document of the command line contract.
#[derive(Serialize)]
struct Document {
    before: Recording,
    after: Recording,
    sections: Vec<SectionDocument>,
}

#[derive(Serialize)]
struct Recording {
    file: SafeText,
    duration_ms: u64,
    dropped_events: u64,
    /// Whether the whole recording could be read.
    complete: bool,
}

#[derive(Serialize)]
struct SectionDocument {
    subject: &'static str,
    figures: Vec<FigureDocument>,
}

/// A value is null if the recording does not contain it.
#[derive(Serialize)]
struct FigureDocument {
    name: SafeText,
    unit: &'static str,
    before: Option<f64>,
    after: Option<f64>,
    change: Option<f64>,
}

pub(super) fn run(arguments: &args::Diff) -> Result<Exit, Failure> {
    let (first, second) = (&arguments.before, arguments.after.as_ref().unwrap_or(&arguments.before));
    if arguments.after.is_none() && arguments.before_range.is_none() && arguments.after_range.is_none() {
        return Err(Failure::usage("give a second file, or --before-range and --after-range to compare two parts of one"));
    }
    match [first, second].map(|path| FileKind::of(path)) {
        [FileKind::Heap, FileKind::Heap] => return heap_diff::run(first, second, arguments),
        [FileKind::Trace, FileKind::Trace] => {}
        _ => return Err(Failure::usage("give two nettrace files, or two .gcdump files")),
    }
    let (before, after) = (read(first, arguments.before_range)?, read(second, arguments.after_range)?);
    let sections = before.analysis.compare(&after.analysis);
    if arguments.output.json {
        print::json(&Document {
            before: recording(first, &before),
            after: recording(second, &after),
            sections: sections.iter().map(|section| document(section, arguments.count)).collect(),
        })?;
    } else {
        print::text(|out| {
            for (title, path, contents) in [("before", first, &before), ("after", second, &after)] {
                let file = SafeText::from_path(path);
                writeln!(out, "{title:<8}{file}: {}", print::seconds(contents.duration))?;
            }
            sections.iter().try_for_each(|section| write_section(out, section, arguments.count))
        })?;
    }
    for (path, contents) in [(first, &before), (second, &after)] {
        if let Some(trouble) = &contents.trouble {
            print::message(format_args!("{}: {trouble}", path.display()));
        }
        let dropped = contents.analysis.snapshot.totals.dropped;
        if dropped > 0 {
            print::message(format_args!("{}: the runtime dropped {}: the figures are too low", path.display(), Counted(dropped, "event")));
        }
    }
    for (path, contents, range) in [(first, &before, arguments.before_range), (second, &after, arguments.after_range)] {
        note_range(path, range, contents.end);
    }
    if sections.is_empty() {
        print::message("neither recording contains anything to compare");
    }
    Ok(Exit::Done)
}

/// Reads a nettrace file, or a part of it.
pub(super) fn read(path: &Path, span: Option<Span>) -> Result<FileContents, Failure> {
    let read = session::read_trace(path, span, |_| true).map_err(|why| Failure::failed(anyhow::anyhow!(why)))?;
    read.ok_or_else(|| Failure::failed(anyhow::anyhow!("{}: reading was stopped", path.display())))
}

fn recording(path: &Path, contents: &FileContents) -> Recording {
    Recording {
        file: SafeText::from_path(path),
        duration_ms: contents.duration.as_millis().try_into().unwrap_or(u64::MAX),
        dropped_events: contents.analysis.snapshot.totals.dropped,
        complete: contents.complete,
    }
}

fn document(section: &Section, most: usize) -> SectionDocument {
    let figure = |figure: &ComparedFigure| FigureDocument {
        name: SafeText::new(&figure.name),
        unit: figure.unit.name(),
        before: figure.before,
        after: figure.after,
        change: figure.change(),
    };
    SectionDocument { subject: section.subject.name(), figures: section.figures.iter().take(most).map(figure).collect() }
}

fn write_section(out: &mut dyn Write, section: &Section, most: usize) -> std::io::Result<()> {
    writeln!(out, "\n{}", section.subject.title())?;
    writeln!(out, "{:>12} {:>12} {:>12}", "BEFORE", "AFTER", "CHANGE")?;
    for figure in section.figures.iter().take(most) {
        let ComparedFigure { name, unit, before, after } = figure;
        let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| Amount(value, *unit).to_string());
        let change = figure.change().map_or("-".to_owned(), |change| Change(change, *unit).to_string());
        writeln!(out, "{:>12} {:>12} {change:>12}  {}", value(*before), value(*after), title(name))?;
    }
    match section.figures.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "{:>38}  and {} more (-n)", "", Count(more as u64)),
    }
}

/// Returns the title of a figure: an allocation or wait without a stack has no name.
fn title(name: &str) -> SafeText {
    if name.is_empty() { SafeText::new("(no stack)") } else { SafeText::new(name) }
}
