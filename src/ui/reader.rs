//! Texts to read: the help, the message history, and program output.

use ratatui::layout::Rect;

use crate::analysis::{Field, Filter};
use crate::app::help::{COLUMNS, Help, HelpRow, INDENT, KEYS_WIDTH};
use crate::app::layout::Layout;
use crate::app::tabs::Sign;
use crate::app::{Level, LinePurpose, OutputView, Reader, ScrollBar, State, Toast};
use crate::model::{Counted, Stopwatch};

use super::canvas::{Canvas, below};
use super::theme::Theme;

/// Draws all keys. Returns the position of the terminal's cursor while a search is being typed.
pub(super) fn keys(canvas: &mut Canvas<'_>, state: &State, help: &Help, layout: &Layout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let inside = canvas.dialog(layout.reader(), "Keys", theme.focus);
    let rows = state.help_rows(help);
    let bar = ScrollBar::of_text(inside, help.reader.scroll, rows.len());
    let (x, room) = (inside.x + INDENT, inside.width.saturating_sub(INDENT));
    for (row, y) in rows.iter().skip(bar.offset()).zip(inside.y..inside.bottom()) {
        match row {
            HelpRow::Blank => 0,
            HelpRow::Heading(title) => canvas.text(inside.x, y, inside.width, title, theme.key),
            HelpRow::Note(text) => canvas.text(x, y, room, text, theme.text),
            HelpRow::Entry(keys, text) => {
                let keys: Vec<_> = keys.iter().map(|key| key.name(theme.glyphs.ascii)).collect();
                canvas.text(x, y, KEYS_WIDTH - 1, &keys.join(" "), theme.strong);
                canvas.text(x + KEYS_WIDTH, y, room.saturating_sub(KEYS_WIDTH), text, theme.text)
            }
        };
    }
    if rows.is_empty() {
        nothing(canvas, &help.reader, &COLUMNS, inside, "No key matches.");
    }
    canvas.scroll_mark(&bar);
    search(canvas, state, &help.reader.search, layout.reader())
}

/// Draws the message history, newest first.
pub(super) fn messages(canvas: &mut Canvas<'_>, state: &State, reader: &Reader, layout: &Layout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let inside = canvas.dialog(layout.reader(), "Messages", theme.focus);
    let passes = |toast: &&Toast| reader.search.passes(&[Field::text("TEXT", &toast.text)]);
    let all: Vec<&Toast> = state.toasts.history().filter(passes).collect();
    if all.is_empty() {
        let text = if reader.search.is_empty() { "No messages yet." } else { "No message matches." };
        nothing(canvas, reader, &["TEXT"], inside, text);
    }
    let bar = ScrollBar::of_messages(inside, reader.scroll, all.len());
    let mut y = inside.y;
    for toast in all.iter().skip(bar.offset()) {
        let (sign, style) = mark(theme, toast.level);
        if y >= inside.bottom() {
            break;
        }
        canvas.pieces(inside.x, y, inside.width, &[(&toast.at.clock(), theme.dim), (" ", theme.dim), (sign, style)]);
        y += canvas.wrapped(
            Rect { x: inside.x + 11, y, width: inside.width.saturating_sub(11), height: inside.bottom() - y },
            &toast.text,
            theme.text,
        );
    }
    canvas.scroll_mark(&bar);
    search(canvas, state, &reader.search, layout.reader())
}

/// Draws the output of a started program and its state, or the log of dn-top: the end, unless it is scrolled up.
pub(super) fn output(canvas: &mut Canvas<'_>, state: &State, view: &OutputView, layout: &Layout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let job = view.ticket.and_then(|ticket| state.jobs.find(ticket));
    let title = match (view.ticket, job) {
        (None, _) => "Log of dn-top".to_owned(),
        (Some(_), Some(job)) => format!("Output of {}", job.subject),
        (Some(_), None) => "Output".to_owned(),
    };
    let inside = canvas.dialog(layout.reader(), &title, theme.focus);
    let body = below(inside, 2);
    let rows = view.rows(inside.width);
    let bar = ScrollBar::of_output(body, view.reader.scroll, rows.len());
    for (row, y) in rows.iter().skip(bar.offset()).zip(body.y..body.bottom()) {
        canvas.text(inside.x, y, inside.width, row, theme.text);
    }
    if rows.is_empty() {
        let text = match (view.lines.is_empty(), job) {
            (true, None) => "No log lines yet.",
            (true, Some(job)) if job.ended.is_some() => "No output.",
            (true, Some(_)) => "No output yet.",
            (false, _) => "No line matches.",
        };
        nothing(canvas, &view.reader, &["TEXT"], body, text);
    }
    // At the top, where no message covers it.
    let (sign, style, stands) = match job.map(|job| (job, &job.ended)) {
        None => (
            theme.glyphs.dot,
            theme.accent,
            format!("The latest {}; --log FILE writes all of them to a file.", Counted(view.lines.len() as u64, "line")),
        ),
        Some((job, None)) => {
            (theme.sign(Sign::Waiting), theme.accent, format!("Running for {}.", Stopwatch(job.elapsed(state.now.elapsed))))
        }
        Some((_, Some((_, Ok(result))))) => {
            (theme.sign(Sign::Yes), theme.good, format!("{}.", result.note.as_deref().unwrap_or("It ended")))
        }
        Some((_, Some((_, Err(reason))))) => (theme.sign(Sign::No), theme.bad, reason.to_string()),
    };
    let file = job.and_then(|job| job.kind.output()).map(|file| format!("  Full output: {}", file.display())).unwrap_or_default();
    canvas.pieces(inside.x, inside.y, inside.width, &[(sign, style), (" ", style), (&stands, theme.strong), (&file, theme.dim)]);
    canvas.scroll_mark(&bar);
    search(canvas, state, &view.reader.search, layout.reader())
}

/// Draws the replacement for an empty text.
fn nothing(canvas: &mut Canvas<'_>, reader: &Reader, columns: &[&str], area: Rect, text: &str) {
    let problem = reader.search.unknown_column(columns);
    canvas.wrapped(area, problem.as_deref().unwrap_or(text), canvas.theme.dim);
}

/// Returns the symbol and style for the level of a message.
pub(super) fn mark(theme: &Theme, level: Level) -> (&'static str, ratatui::style::Style) {
    match level {
        Level::Info => (theme.glyphs.dot, theme.accent),
        Level::Success => (theme.sign(Sign::Yes), theme.good),
        Level::Warning => (theme.sign(Sign::Trouble), theme.warn),
        Level::Error => (theme.sign(Sign::No), theme.bad),
    }
}

/// Draws the search text on the lower border.
pub(super) fn search(canvas: &mut Canvas<'_>, state: &State, filter: &Filter, area: Rect) -> Option<(u16, u16)> {
    let (x, y, room) = (area.x + 2, area.bottom().saturating_sub(1), area.width.saturating_sub(4));
    canvas.filter(x, y, room, filter, state.typed(LinePurpose::Overlay)).1
}
