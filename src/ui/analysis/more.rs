//! What a recording holds besides: a line that says what there is, and one section of it.

use ratatui::layout::Rect;

use crate::analysis::{ActivitySubject, OperationSnapshot, Outcome};
use crate::app::{Section, Tab};
use crate::model::{Count, CountRate, Nanoseconds};

use super::super::canvas::Canvas;
use super::grid::{Grid, number, text};
use super::panel::{Figure, figures};
use super::{Look, below, filter, nothing, split};
use super::{compilation, logs};

/// Draws the section that is shown. Says where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) -> Option<(u16, u16)> {
    let shown = look.state.section();
    let Some(shown) = shown else {
        nowhere(canvas, look, area);
        return None;
    };
    let (head, cursor) = filter(canvas, look.state, area);
    sections(canvas, look, shown, head);
    let area = below(area, 1);
    match shown {
        Section::Logs => logs::draw(canvas, look, area),
        Section::Activities => activities(canvas, look, area),
        Section::Compilation => compilation::draw(canvas, look, area),
        Section::Assemblies => assemblies(canvas, look, area),
    }
    cursor
}

/// What there is, and which of it is shown.
fn sections(canvas: &mut Canvas<'_>, look: &Look<'_>, shown: Section, line: Rect) {
    let theme = canvas.theme;
    let mut x = line.x;
    for section in Section::ALL {
        let count = section.count(&look.findings.snapshot);
        let style = match (section == shown, count > 0) {
            (true, _) => theme.chip,
            (false, true) => theme.text,
            (false, false) => theme.dim,
        };
        let figure = if count > 0 { format!(" {} ", Count(count)) } else { " ".to_owned() };
        let room = line.right().saturating_sub(x);
        x += canvas.pieces(x, line.y, room, &[(" ", style), (section.title(), style), (&figure, style)]) + 1;
    }
    canvas.text(x + 1, line.y, line.right().saturating_sub(x + 1), "f: next", theme.dim);
}

/// What to press for each of them.
fn nowhere(canvas: &mut Canvas<'_>, look: &Look<'_>, mut area: Rect) {
    for section in Section::ALL {
        let theme = canvas.theme;
        canvas.text(area.x, area.y, area.width.min(14), section.title(), theme.accent);
        let words = Rect { x: area.x + 14, width: area.width.saturating_sub(14), ..area };
        let used = nothing(canvas, look, section.source(), words);
        area = below(area, used.max(1));
    }
}

/// Requests and the like: each kind, and what the selected one is about.
fn activities(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let operations = look.state.operations();
    if operations.is_empty() {
        canvas.text(area.x, area.y, area.width, "Nothing matches the filter.", theme.dim);
        return;
    }
    let (upper, lower) = split(area, (operations.len() as u16 + 1).min(area.height / 2).max(3));
    let failed = operations.iter().any(|operation| operation.failed > 0);
    let columns = [
        Some(text("OPERATION", 0)),
        Some(number("RATE", 8)),
        Some(number("STARTED", 7)),
        failed.then_some(number("FAILED", 6)),
        Some(number("NOW", 4)),
        Some(number("P50", 7)),
        Some(number("P95", 7)),
        Some(number("MAX", 7)),
        Some(text("PROVIDER", 30)),
    ];
    let columns: Vec<_> = columns.into_iter().flatten().collect();
    let grid = Grid::new(canvas, upper, &columns);
    let cursor = look.state.view_cursor(Tab::More);
    let lines = grid.lines();
    for (operation, y) in operations[grid.window(cursor, operations.len())].iter().zip(lines.y..lines.bottom()) {
        let OperationSnapshot { started, failed, rate, running, quantiles_ns, longest_ns, .. } = **operation;
        // Several providers tell of requests, and there is not always room for their column.
        let is_alone = operations.iter().filter(|other| other.name == operation.name).count() == 1;
        let short = operation.provider.rsplit(['.', '-']).next().unwrap_or_default();
        let name = if is_alone { operation.name.clone() } else { format!("{} ({short})", operation.name) };
        grid.text(canvas, "OPERATION", y, &name, theme.text);
        grid.value(canvas, "RATE", y, CountRate(look.rate(started, rate)), theme.events);
        grid.value(canvas, "STARTED", y, Count(started), theme.strong);
        if failed > 0 {
            grid.value(canvas, "FAILED", y, Count(failed), theme.bad);
        }
        grid.value(canvas, "NOW", y, running, if running > 0 { theme.accent } else { theme.dim });
        if let Some([half, most, _]) = quantiles_ns {
            grid.value(canvas, "P50", y, Nanoseconds(half), theme.text);
            grid.value(canvas, "P95", y, Nanoseconds(most), theme.text);
            grid.value(canvas, "MAX", y, Nanoseconds(longest_ns), theme.strong);
        }
        grid.text(canvas, "PROVIDER", y, &operation.provider, theme.dim);
    }
    grid.finish(canvas, look.state, cursor, operations.len());
    let Some(selected) = operations.get(cursor.at.min(operations.len() - 1)) else { return };
    if selected.subjects.is_empty() {
        let text = "How long each took is not told: that takes activity ids, which profiles http and database ask for.";
        canvas.wrapped(below(lower, 1), text, theme.dim);
        return;
    }
    let has_status = selected.subjects.iter().any(|subject| subject.outcome != Outcome::Unknown);
    let columns = [
        Some(text("WHAT", 0)),
        has_status.then_some(number("STATUS", 6)),
        Some(number("COUNT", 6)),
        Some(number("TIME", 7)),
        Some(number("MEAN", 7)),
        Some(number("MAX", 7)),
    ];
    let columns: Vec<_> = columns.into_iter().flatten().collect();
    let grid = Grid::new(canvas, below(lower, 1), &columns);
    let lines = grid.lines();
    for (ActivitySubject { text, outcome, count, total_ns, longest_ns }, y) in selected.subjects.iter().zip(lines.y..lines.bottom()) {
        let style = if selected.layer.is_failure(*outcome) { theme.bad } else { theme.text };
        match outcome {
            Outcome::Unknown => {}
            Outcome::Status(status) => grid.value(canvas, "STATUS", y, status, style),
            Outcome::Failed => grid.value(canvas, "STATUS", y, "failed", style),
        }
        grid.text(canvas, "WHAT", y, if text.is_empty() { "(it does not say)" } else { text }, theme.text);
        grid.value(canvas, "COUNT", y, Count(*count), theme.strong);
        grid.value(canvas, "TIME", y, Nanoseconds(*total_ns), theme.events);
        grid.value(canvas, "MEAN", y, Nanoseconds(total_ns / (*count).max(1)), theme.text);
        grid.value(canvas, "MAX", y, Nanoseconds(*longest_ns), theme.text);
    }
}

/// What is loaded, and what was looked for in vain.
fn assemblies(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let snapshot = &look.findings.snapshot.assemblies;
    let mut top: Vec<Figure> = vec![("known", Count(snapshot.loaded.len() as u64).to_string(), theme.strong)];
    top.push(("loaded meanwhile", Count(snapshot.loads).to_string(), theme.text));
    if snapshot.unloads > 0 {
        top.push(("unloaded", Count(snapshot.unloads).to_string(), theme.text));
    }
    if snapshot.searches > 0 {
        top.push(("searches", Count(snapshot.searches).to_string(), theme.text));
        top.push(("in vain", Count(snapshot.failures).to_string(), if snapshot.failures > 0 { theme.warn } else { theme.text }));
    }
    let used = figures(canvas, area, &top);
    let area = below(area, used);
    let vain = if snapshot.missing.is_empty() { 0 } else { (snapshot.missing.len() as u16 + 1).min(area.height / 3) };
    let (upper, lower) = split(area, area.height - vain);
    let assemblies = look.state.assemblies();
    let grid = Grid::new(canvas, upper, &[number("LOADED", 7), text("ASSEMBLY", 0), text("VERSION", 14), text("", 8)]);
    let cursor = look.state.view_cursor(Tab::More);
    let lines = grid.lines();
    for (assembly, y) in assemblies[grid.window(cursor, assemblies.len())].iter().zip(lines.y..lines.bottom()) {
        let (name, rest) = assembly.full_name.split_once(", ").unwrap_or((&assembly.full_name, ""));
        let version = rest.split(", ").find_map(|part| part.strip_prefix("Version=")).unwrap_or_default();
        match assembly.at {
            Some(at) => grid.value(canvas, "LOADED", y, logs::at(at), theme.text),
            None => grid.text(canvas, "LOADED", y, "before", theme.dim),
        }
        grid.text(canvas, "ASSEMBLY", y, name, theme.text);
        grid.text(canvas, "VERSION", y, version, theme.dim);
        grid.text(canvas, "", y, if assembly.is_dynamic { "dynamic" } else { "" }, theme.dim);
    }
    if assemblies.is_empty() {
        let words = if snapshot.loaded.is_empty() {
            "Assemblies that were there before come at the stop (t)."
        } else {
            "No assembly matches the filter."
        };
        canvas.text(lines.x, lines.y, lines.width, words, theme.dim);
    }
    grid.finish(canvas, look.state, cursor, assemblies.len());
    if vain == 0 {
        return;
    }
    let grid = Grid::new(canvas, lower, &[number("AT", 7), text("LOOKED FOR IN VAIN", 0), text("BY", 40)]);
    let lines = grid.lines();
    for (missing, y) in snapshot.missing.iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "AT", y, logs::at(missing.at), theme.dim);
        grid.text(canvas, "LOOKED FOR IN VAIN", y, &missing.name, theme.warn);
        grid.text(canvas, "BY", y, &missing.requested_by, theme.dim);
    }
}
