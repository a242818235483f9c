//! `diff BEFORE [AFTER]`: the differences between two recordings, two parts of one, or two heaps.

use std::io::Write;
use std::path::Path;

use super::analyses::note_range;
use super::args;
use super::exit::{Exit, Failure};
use super::heap_diff;
use super::print::{self, Value, json};
use crate::analysis::{ComparedFigure, Section};
use crate::model::{Amount, Change, Count, Counted, FileContents, FileKind, SafeText, Span};
use crate::session;

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
    let documents = || {
        let sections: Vec<Value> = sections.iter().map(|section| document(section, arguments.count)).collect();
        json!({ "before": recording(first, &before), "after": recording(second, &after), "sections": sections })
    };
    print::result(arguments.output.json, documents, |out| {
        for (title, path, contents) in [("before", first, &before), ("after", second, &after)] {
            let file = SafeText::from_path(path);
            writeln!(out, "{title:<8}{file}: {}", print::seconds(contents.duration))?;
        }
        sections.iter().try_for_each(|section| write_section(out, section, arguments.count))
    })?;
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

fn recording(path: &Path, contents: &FileContents) -> Value {
    json!({
        "file": SafeText::from_path(path),
        "duration_ms": u64::try_from(contents.duration.as_millis()).unwrap_or(u64::MAX),
        "dropped_events": contents.analysis.snapshot.totals.dropped,
        // Whether the whole recording could be read.
        "complete": contents.complete,
    })
}

fn document(section: &Section, most: usize) -> Value {
    // A value is null if the recording does not contain it.
    let figure = |figure: &ComparedFigure| {
        let ComparedFigure { name, unit, before, after } = figure;
        json!({ "name": SafeText::new(name), "unit": unit.name(), "before": before, "after": after, "change": figure.change() })
    };
    let figures: Vec<Value> = section.figures.iter().take(most).map(figure).collect();
    json!({ "subject": section.subject.name(), "figures": figures })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Subject, Unit};

    #[test]
    fn figures_beyond_the_limit_are_counted() {
        let figure = |name: &str| ComparedFigure { name: name.to_owned(), unit: Unit::Plain, before: None, after: Some(2.0) };
        let section = Section { subject: Subject::Exceptions, figures: ["A", "B", "C"].map(figure).to_vec() };
        let lines = |most| {
            let mut out = Vec::new();
            write_section(&mut out, &section, most).unwrap();
            let last_column = |line: &str| line.rsplit_once("  ").map(|(_, name)| name.to_owned());
            String::from_utf8(out).unwrap().lines().skip(3).filter_map(last_column).collect::<Vec<_>>()
        };
        assert_eq!(lines(3), ["A", "B", "C"]);
        assert_eq!(lines(1), ["A", "and 2 more (-n)"]);
    }
}
