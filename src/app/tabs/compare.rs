//! The comparison of two recordings, or of two ranges of one.

use std::sync::Arc;

use super::quantity::plain;
use super::{Cell, Descriptor, Fit, Head, Line, Role, Shows, TabList, Table, View};
use crate::analysis::{ComparedFigure, Subject, Unit};
use crate::app::action::Run::Do;
use crate::app::action::{Action, Context, Entry, Status, char, details, places, ready_if};
use crate::app::text::width;
use crate::app::update::comparison;
use crate::app::{Answer, ComparedRange, Comparison, RowKind, State, Tab};
use crate::model::{Amount, Change, Count, FileKind, Percent, SafeText};

/// Minimum number of visible characters of a file name.
const MIN_NAME_WIDTH: usize = 8;

type Row<'a> = (Subject, &'a ComparedFigure);

pub(super) const TAB: Descriptor = Descriptor {
    titles: ["Compare", "Comp", "Cmp"],
    is_shown: |of| of == RowKind::File(FileKind::Trace),
    context: |_| Context::Compare,
    actions: ACTIONS,
    shows: Shows::List(view),
};

const ACTIONS: &[Entry] = &[
    details(
        Action::Shape,
        &[char('f')],
        "next subject",
        "Show the figures of the next subject only, or all.",
        places::COMPARE,
        Do(comparison::next_subject),
    )
    .hint(83)
    .when(compared),
    details(Action::Swap, &[char('X')], "swap", "Swap before and after.", places::COMPARE, Do(comparison::swap)).hint(82).when(compared),
];

fn compared(state: &State) -> Status {
    ready_if(state.comparison.as_ref().is_some_and(|comparison| !comparison.sections().is_empty()))
}

pub(super) fn view(state: &State) -> View<'_> {
    let comparison = state.comparison.as_ref();
    let subject = comparison.and_then(|comparison| comparison.subject);
    let rows = comparison.map(|comparison| comparison.figures().collect()).unwrap_or_default();
    let TabList { list, cursor, selected } =
        Table::new(rows, |(subject, figure): &Row<'_>| format!("{subject:?}\n{:?}\n{}", figure.unit, figure.name))
            .column("CHANGE", 10, Fit::Right, |(_, figure)| changed(figure))
            .column("BEFORE", 10, Fit::Right, |(_, figure)| value(figure.before, figure.unit))
            .column("AFTER", 10, Fit::Right, |(_, figure)| value(figure.after, figure.unit))
            .column_if(subject.is_none(), "SUBJECT", 11, Fit::Left, |(subject, _)| Cell::new(subject.short_title(), Role::Dim))
            .column("NAME", 0, Fit::Name, |(_, figure)| Cell::new(name(figure), Role::Text))
            .column("CHANGE %", 8, Fit::Right, |(_, figure)| relative(figure))
            .place(state, Tab::Compare);
    let title = subject.map_or("All subjects: counts are per second, times a share of the recording.", Subject::title);
    let is_compared = comparison.is_some_and(|comparison| !comparison.sections().is_empty());
    View {
        heading: comparison.map(|comparison| heading(state, comparison)),
        head: is_compared.then(|| Head::text(title, Role::Accent)).into_iter().collect(),
        empty: empty(state, comparison),
        copy: selected.map(|(_, figure)| ("name", figure.name.clone())),
        ..View::new(list, cursor, "")
    }
}

/// Shows the compared ranges, the earlier one first.
fn heading(state: &State, comparison: &Comparison) -> Vec<Line> {
    let shown = state.shown_range();
    let chosen = (Some(&comparison.name), comparison.chosen.get());
    let shown = (shown.as_ref().map(|(name, _)| name), shown.as_ref().map(|(_, range)| range));
    let (before, after) = if comparison.swapped { (shown, chosen) } else { (chosen, shown) };
    let room = state.tab_body().map_or(0, |body| body.width.saturating_sub(2));
    // The times of methods are then missing on one side.
    let lacks = |one: Option<&ComparedRange>, other: Option<&ComparedRange>| {
        one.is_some_and(|one| !has_samples(one)) && other.is_some_and(has_samples)
    };
    let (no_before, no_after) = (lacks(before.1, after.1), lacks(after.1, before.1));
    vec![side("before", before, no_before, room), side("after ", after, no_after, room)]
}

fn has_samples(range: &ComparedRange) -> bool {
    [false, true].into_iter().any(|waiting| !range.analysis.profile(waiting).is_empty())
}

/// Formats a compared range in a line of `room` columns; the file name is shortened if the line does not fit.
fn side(label: &str, (name, range): (Option<&SafeText>, Option<&ComparedRange>), lacks_samples: bool, room: u16) -> Line {
    let mut line = vec![(format!("{label}  "), Role::Dim)];
    if let Some(ComparedRange { range, complete, analysis }) = range {
        line.push((format!("   {range}"), Role::Dim));
        let dropped = analysis.snapshot.totals.dropped;
        line.extend((dropped > 0).then(|| (format!("   {} dropped", Count(dropped)), Role::Bad)));
        line.extend(lacks_samples.then(|| ("   no samples".to_owned(), Role::Warning)));
        line.extend((!complete).then(|| ("   incomplete".to_owned(), Role::Warning)));
    }
    let used: u16 = line.iter().map(|(text, _)| width(text)).sum();
    let name = name.cloned().unwrap_or_default().cut(usize::from(room.saturating_sub(used + 1)).max(MIN_NAME_WIDTH));
    line.insert(1, (name.to_string(), Role::Strong));
    line
}

/// Returns the text shown instead of an empty list.
fn empty(state: &State, comparison: Option<&Comparison>) -> (String, Role) {
    let compare = state.key(Action::Compare);
    let Some(comparison) = comparison else {
        return (format!("{compare}: compare this file with another, or one range of it with another."), Role::Text);
    };
    match &comparison.chosen {
        Answer::Failed(trouble) => (format!("{trouble}   {compare} chooses another file."), Role::Warning),
        Answer::NotRequested | Answer::Requested(_) => {
            let share = comparison.read as f64 / comparison.bytes.max(1) as f64;
            (format!("Reading {} … {}", comparison.name, Percent(share.min(1.0))), Role::Dim)
        }
        Answer::Received(_) if !comparison.sections().is_empty() => ("No figure matches the filter.".to_owned(), Role::Dim),
        Answer::Received(chosen) => match state.shown_range() {
            Some((_, shown)) if Arc::ptr_eq(&shown.analysis, &chosen.analysis) => {
                let [back, forward, start] = [Action::Earlier, Action::Later, Action::Mark].map(|action| state.key(action));
                (format!("This range is \"before\": choose the other with {back} {forward} and {start}, or another open file."), Role::Text)
            }
            Some(_) => ("Neither recording contains anything to compare.".to_owned(), Role::Dim),
            None => (String::new(), Role::Dim),
        },
    }
}

/// An entry without a stack has an empty name.
fn name(figure: &ComparedFigure) -> &str {
    if figure.name.is_empty() { "(no stack)" } else { &figure.name }
}

fn value(value: Option<f64>, unit: Unit) -> Cell {
    value.map_or(Cell::Unknown, |value| {
        let text = if unit == Unit::Plain { plain(value) } else { Amount(value, unit).to_string() };
        Cell::Number(value, text.into(), Role::Text)
    })
}

fn changed(figure: &ComparedFigure) -> Cell {
    figure.change().map_or(Cell::Unknown, |change| {
        let text = match figure.unit {
            Unit::Plain if change > 0.0 => format!("+{}", plain(change)),
            Unit::Plain => plain(change),
            unit => Change(change, unit).to_string(),
        };
        Cell::Number(change, text.into(), if change == 0.0 { Role::Dim } else { Role::Strong })
    })
}

/// Returns the change relative to the value before.
fn relative(figure: &ComparedFigure) -> Cell {
    match (figure.before, figure.change()) {
        (_, Some(0.0)) => Cell::Number(0.0, "0 %".into(), Role::Dim),
        (Some(0.0), Some(change)) => Cell::Number(f64::INFINITY * change.signum(), "new".into(), Role::Text),
        (Some(before), Some(change)) => {
            let percent = change / before.abs() * 100.0;
            let text = if percent >= 10_000.0 { ">9999 %".to_owned() } else { format!("{percent:+.0} %") };
            Cell::Number(percent, text.into(), Role::Text)
        }
        _ => Cell::Unknown,
    }
}
