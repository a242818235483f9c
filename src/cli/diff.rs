//! `diff BEFORE [AFTER]`: what changed between two recordings, or two parts of one.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::args;
use super::exit::{Exit, Failure};
use super::print;
use crate::analysis::{Compared, ComparedFigure, Section, Subject, Unit, compare};
use crate::model::{ByteRate, Bytes, Count, CountRate, FileContents, Nanoseconds, Number, Stopwatch, sanitise};
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
    file: String,
    duration_ms: u64,
    dropped_events: u64,
    /// Whether all of the recording could be read.
    complete: bool,
}

#[derive(Serialize)]
struct SectionDocument {
    subject: &'static str,
    figures: Vec<FigureDocument>,
}

/// A value is null where the recording does not hold it.
#[derive(Serialize)]
struct FigureDocument {
    name: String,
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
    let (before, after) = (read(first, arguments.before_range)?, read(second, arguments.after_range)?);
    // Thread time and CPU time do not compare.
    let waiting = before.analysis.cpu.is_none() || after.analysis.cpu.is_none();
    let sections = compare(compared(&before, waiting), compared(&after, waiting));
    if arguments.output.json {
        print::json(&Document {
            before: recording(first, &before),
            after: recording(second, &after),
            sections: sections.iter().map(|section| document(section, arguments.count)).collect(),
        })?;
    } else {
        print::text(|out| {
            for (title, path, contents) in [("before", first, &before), ("after", second, &after)] {
                let file = sanitise(&path.display().to_string());
                writeln!(out, "{title:<8}{file}: {}", Stopwatch(contents.duration))?;
            }
            sections.iter().try_for_each(|section| write_section(out, section, arguments.count))
        })?;
    }
    for (path, contents) in [(first, &before), (second, &after)] {
        if let Some(trouble) = &contents.trouble {
            print::say(format_args!("{}: {trouble}", path.display()));
        }
        let dropped = contents.analysis.snapshot.totals.dropped;
        if dropped > 0 {
            print::say(format_args!("{}: the runtime dropped {} events: the figures are too low", path.display(), Count(dropped)));
        }
    }
    if sections.is_empty() {
        print::say("neither recording holds anything that can be compared");
    }
    Ok(Exit::Done)
}

fn read(path: &Path, range: Option<args::Range>) -> Result<FileContents, Failure> {
    let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let span = range.map(|range| (range.from.map_or(0, nanoseconds), range.to.map_or(i64::MAX, nanoseconds)));
    let read = session::read_trace(path, span, |_| true).map_err(|why| Failure::failed(anyhow::anyhow!(why)))?;
    read.ok_or_else(|| Failure::failed(anyhow::anyhow!("{}: reading was stopped", path.display())))
}

fn compared(contents: &FileContents, waiting: bool) -> Compared<'_> {
    Compared { snapshot: &contents.analysis.snapshot, profile: contents.analysis.profile(waiting) }
}

fn recording(path: &Path, contents: &FileContents) -> Recording {
    Recording {
        file: path.display().to_string(),
        duration_ms: contents.duration.as_millis().try_into().unwrap_or(u64::MAX),
        dropped_events: contents.analysis.snapshot.totals.dropped,
        complete: contents.complete,
    }
}

fn document(section: &Section, most: usize) -> SectionDocument {
    let figure = |figure: &ComparedFigure| FigureDocument {
        name: sanitise(&figure.name),
        unit: unit(figure.unit),
        before: figure.before,
        after: figure.after,
        change: figure.change(),
    };
    SectionDocument { subject: titles(section.subject).0, figures: section.figures.iter().take(most).map(figure).collect() }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::PerSecond => "1/s",
        Unit::BytesPerSecond => "bytes/s",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "ns",
        Unit::Share => "share",
        Unit::Plain => "",
    }
}

/// The name of a subject in JSON, and its heading.
fn titles(subject: Subject) -> (&'static str, &'static str) {
    match subject {
        Subject::Gc => ("gc", "GC"),
        Subject::Methods => ("methods", "METHODS: self time, as a share of the recording"),
        Subject::MethodTotals => ("method_totals", "METHODS: total time, as a share of the recording"),
        Subject::Allocations => ("allocations", "ALLOCATIONS by type"),
        Subject::Exceptions => ("exceptions", "EXCEPTIONS by type"),
        Subject::Contention => ("contention", "LOCK CONTENTION: waiting time by method, as a share of the recording"),
        Subject::Jit => ("jit", "JIT"),
        Subject::Operations => ("operations", "HTTP REQUESTS and other operations"),
        Subject::Counters => ("counters", "COUNTERS: mean values"),
    }
}

fn write_section(out: &mut dyn Write, section: &Section, most: usize) -> std::io::Result<()> {
    writeln!(out, "\n{}", titles(section.subject).1)?;
    writeln!(out, "{:>12} {:>12} {:>12}", "BEFORE", "AFTER", "CHANGE")?;
    for figure in section.figures.iter().take(most) {
        let ComparedFigure { name, unit, before, after } = figure;
        let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| shown(*unit, value));
        let change = figure.change().map_or("-".to_owned(), |change| match change {
            0.0 => "0".to_owned(),
            change => format!("{}{}", if change < 0.0 { '-' } else { '+' }, shown(*unit, change.abs())),
        });
        writeln!(out, "{:>12} {:>12} {change:>12}  {}", value(*before), value(*after), title(name))?;
    }
    match section.figures.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "{:>38}  and {} more (-n)", "", Count(more as u64)),
    }
}

/// A place without a stack has no name.
fn title(name: &str) -> String {
    if name.is_empty() { "(no stack)".to_owned() } else { sanitise(name) }
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond if value > 0.0 && value < 10.0 => format!("{value:.1}/s"),
        Unit::PerSecond => CountRate(value).to_string(),
        Unit::BytesPerSecond => ByteRate(value).to_string(),
        Unit::Bytes => Bytes(value as u64).to_string(),
        Unit::Nanoseconds => Nanoseconds(value as u64).to_string(),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Plain => Number(value).to_string(),
    }
}
