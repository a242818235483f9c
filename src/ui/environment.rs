//! The environment of the selected process.

use ratatui::layout::Rect;

use crate::analysis::Field;
use crate::app::action::{Action, Status};
use crate::app::{Answer, Focus, State, Typing, Variables};
use crate::model::Variable;

use super::canvas::Canvas;

/// Draws the environment. Says where the terminal's cursor belongs, while a search is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let room = body.width.saturating_sub(2);
    let variables = match &state.details.environment {
        Answer::Here(variables) => variables,
        other => {
            let (text, style) = match other {
                Answer::Failed(reason) => (reason.clone(), theme.warn),
                _ => match Action::Environment.status(state) {
                    Status::Refused(reason) => (reason, theme.warn),
                    Status::Ready | Status::Idle => ("Asking the runtime …".to_owned(), theme.dim),
                },
            };
            canvas.wrapped(Rect { x: body.x + 1, width: room, ..body }, &text, style);
            return None;
        }
    };
    let cursor = heading(canvas, state, variables, body);
    let view = &state.details.variables;
    let lines = Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body };
    let window = view.cursor.window(view.matches.len(), usize::from(lines.height));
    let names = variables.iter().map(|variable| variable.name.len()).max().unwrap_or(0);
    let names = u16::try_from(names).unwrap_or(u16::MAX).min(room * 2 / 5).max(8);
    for ((place, index), y) in view.matches.iter().enumerate().skip(window.start).zip(lines.y..lines.bottom()) {
        let Some(variable) = variables.get(*index) else { continue };
        let [name, value] = Variables::COLUMNS;
        let marks = view.search.marks(Field::text(name, &variable.name));
        canvas.filtered(body.x + 1, y, names, &variable.name, theme.accent, &marks);
        let x = body.x + 1 + names + 2;
        let width = room.saturating_sub(names + 2);
        if !state.details.is_readable(*index) {
            canvas.text(x, y, width, theme.glyphs.mask, theme.dim);
        } else {
            let marks = view.search.marks(Field::text(value, &variable.value));
            canvas.filtered(x, y, width, &variable.value, if variable.is_secret() { theme.warn } else { theme.text }, &marks);
        }
        if place == view.cursor.at {
            let style = if state.focus == Focus::Detail { theme.selected } else { theme.shadowed };
            canvas.style(Rect { y, height: 1, ..body }, style);
        }
    }
    let track = Rect { x: body.right(), width: 1, ..lines };
    canvas.scroll_mark(track, window.start, usize::from(lines.height), view.matches.len());
    cursor
}

/// How many variables there are, and what is searched for.
fn heading(canvas: &mut Canvas<'_>, state: &State, variables: &[Variable], body: Rect) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let typing = state.line.as_ref().filter(|line| line.purpose == Typing::Environment);
    let search = &state.details.variables.search;
    let secrets = variables.iter().filter(|variable| variable.is_secret()).count();
    let mut count = format!("{} variables", variables.len());
    if state.details.variables.matches.len() != variables.len() {
        count = format!("{} of {count}", state.details.variables.matches.len());
    }
    if secrets > 0 {
        count = format!("{count}, {secrets} {}", if secrets == 1 { "secret" } else { "secrets" });
    }
    let x = body.x + 1;
    let used = canvas.text(x, body.y, body.width.saturating_sub(2), &count, theme.dim);
    if search.as_str().is_empty() && typing.is_none() {
        return None;
    }
    let start = x + used + 2;
    let end =
        start + canvas.value(start, body.y, body.right().saturating_sub(start + 1), format_args!(" /{} ", search.as_str()), theme.chip);
    let line = typing?;
    let before = u16::try_from(line.input.visual_cursor()).unwrap_or(u16::MAX);
    Some((start.saturating_add(2).saturating_add(before).min(end.saturating_sub(1)), body.y))
}
