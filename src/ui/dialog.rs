//! Dialogs with questions.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::layout::Layout;
use crate::app::tabs::Sign;
use crate::app::{Choice, Field, Form, FormLayout, FormLine, Purpose, Question, Reply};

use super::canvas::{Canvas, skip_columns, width};

/// Draws the dialog. Returns the position of the terminal's cursor while something is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, form: &Form, layout: &Layout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let place = form.place(layout);
    let style = if form.is_dangerous() { theme.warn } else { theme.focus };
    canvas.dialog(place.frame, &form.title(), style);
    let mut cursor = None;
    for (at, row) in &place.questions {
        if let Some(question) = form.questions.get(*at) {
            let focused = form.focus == Field::Question(*at);
            cursor = ask(canvas, question, &place, *row, focused).or(cursor);
        }
    }
    canvas.scroll_mark(&place.scroll_bar);
    for (line, row) in &place.lines {
        match line {
            FormLine::Help(text) => canvas.text(row.x, row.y, row.width, text, theme.dim),
            FormLine::Effect(text) => canvas.text(row.x, row.y, row.width, text, theme.text),
            FormLine::Warning(text) => canvas.text(row.x, row.y, row.width, text, theme.warn),
            FormLine::Problem(text) => canvas.text(row.x, row.y, row.width, text, theme.bad),
            FormLine::Command(text) => canvas.text(row.x, row.y, row.width, text, theme.accent),
        };
    }
    for (index, (button, row)) in form.buttons().iter().zip(&place.buttons).enumerate() {
        let style = if form.focus == Field::Button(index) {
            if index == 0 || !form.is_dangerous() || matches!(form.purpose, Purpose::Quit) { theme.chip } else { theme.alert }
        } else {
            theme.dim
        };
        canvas.pieces(row.x, row.y, row.width, &[("  ", style), (button, style), ("  ", style)]);
    }
    cursor
}

/// Draws a question with its answer and, if there is room, an explanation below.
fn ask(canvas: &mut Canvas<'_>, question: &Question, place: &FormLayout, row: Rect, focused: bool) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let label = if focused { theme.key } else { theme.dim };
    canvas.text(row.x, row.y, place.labels.saturating_sub(1), question.label, label);
    let x = row.x + place.labels;
    let room = row.right().saturating_sub(x);
    if let Some(reason) = &question.refused {
        canvas.pieces(x + 1, row.y, room.saturating_sub(1), &[(theme.sign(Sign::No), theme.dim), (" ", theme.dim), (reason, theme.dim)]);
        return None;
    }
    if place.explained {
        canvas.text(x + 1, row.y + 1, room.saturating_sub(1), question.about(), theme.dim);
    }
    match &question.reply {
        Reply::Choice(choice) => {
            options(canvas, choice, Rect { x, width: room, ..row }, focused);
            None
        }
        Reply::Text(input) => {
            let (x, mut room) = (x + 1, room.saturating_sub(2));
            if let Some(problem) = &question.problem {
                let text = width(input.value()) + 2;
                let left = room.saturating_sub(text).max(room / 2);
                canvas.pieces(
                    x + room - left,
                    row.y,
                    left,
                    &[(" ", theme.text), (theme.sign(Sign::No), theme.bad), (" ", theme.bad), (problem, theme.bad)],
                );
                room -= left;
            }
            if input.value().is_empty() && !focused && !place.explained {
                canvas.text(x, row.y, room, question.about, theme.dim);
                return None;
            }
            let scroll = input.visual_scroll(usize::from(room));
            let style: Style = if focused { theme.strong } else { theme.text };
            canvas.text(x, row.y, room, &skip_columns(input.value(), scroll), style);
            let before = u16::try_from(input.visual_cursor().saturating_sub(scroll)).unwrap_or(u16::MAX);
            focused.then(|| (x.saturating_add(before).min(row.right()), row.y))
        }
    }
}

fn options(canvas: &mut Canvas<'_>, choice: &Choice, row: Rect, focused: bool) {
    let theme = canvas.theme;
    let mut x = row.x;
    let widest: u16 = choice.options.iter().map(|(name, _)| width(name) + 3).sum();
    let gap = u16::from(widest <= row.width + 1);
    for (index, (name, _)) in choice.options.iter().enumerate() {
        let style = match (index == choice.at, focused) {
            (true, true) => theme.chip,
            (true, false) => theme.strong,
            (false, _) => theme.dim,
        };
        let room = row.right().saturating_sub(x);
        let (open, close) = if index == choice.at && !focused { ("[", "]") } else { (" ", " ") };
        x += canvas.pieces(x, row.y, room, &[(open, style), (name, style), (close, style)]) + gap;
    }
}
