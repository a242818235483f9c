//! Dialogs that ask.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::layout::Layout;
use crate::app::{Field, Form, Purpose};

use super::canvas::{Canvas, width, wrap};

/// Columns of the fields' names.
const LABELS: u16 = 5;

/// Draws the dialog. Says where the terminal's cursor belongs, while a path is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, form: &Form, layout: &Layout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let columns = 78.min(layout.screen.width.saturating_sub(2));
    let room = columns.saturating_sub(4);
    let effects: Vec<(String, Style)> = form
        .effects()
        .iter()
        .map(|text| (text.as_str(), theme.text))
        .chain(form.complaint.as_deref().map(|text| (text, theme.bad)))
        .flat_map(|(text, style)| wrap(text, room).into_iter().map(move |line| (line, style)))
        .collect();
    let fields = form.choice.as_ref().map_or(0, |_| 2) + u16::from(form.path.is_some());
    let height = effects.len() as u16 + fields + u16::from(fields > 0) + 4;
    // Where room is short, blank lines and the option's meaning go first.
    let roomy = height <= layout.screen.height;
    let style = if matches!(form.purpose, Purpose::Quit(_)) { theme.focus } else { theme.warn };
    let inside = canvas.dialog(layout.centred(columns, height), &form.title(), style);
    let mut cursor = None;
    let mut y = inside.y;
    if let Some(choice) = &form.choice {
        let focused = form.focus == Field::Choice;
        label(canvas, inside, y, choice.label, focused);
        let mut x = inside.x + LABELS;
        for (index, (name, _)) in choice.options.iter().enumerate() {
            let style = match (index == choice.at, focused) {
                (true, true) => theme.chip,
                (true, false) => theme.strong,
                (false, _) => theme.dim,
            };
            let room = inside.right().saturating_sub(x);
            let (open, close) = if index == choice.at && !focused { ("[", "]") } else { (" ", " ") };
            x += canvas.pieces(x, y, room, &[(open, style), (name, style), (close, style)]) + 1;
        }
        if let Some((_, about)) = choice.options.get(choice.at).filter(|_| roomy) {
            canvas.text(inside.x + LABELS + 1, y + 1, room.saturating_sub(LABELS + 1), about, theme.dim);
        }
        y += 1 + u16::from(roomy);
    }
    if let Some(path) = &form.path {
        let focused = form.focus == Field::Path;
        label(canvas, inside, y, "Path", focused);
        let (x, room) = (inside.x + LABELS + 1, inside.width.saturating_sub(LABELS + 2));
        let scroll = path.visual_scroll(usize::from(room));
        let shown: String = skip_columns(path.value(), scroll);
        canvas.text(x, y, room, &shown, if focused { theme.strong } else { theme.text });
        if focused {
            let before = u16::try_from(path.visual_cursor().saturating_sub(scroll)).unwrap_or(u16::MAX);
            cursor = Some((x.saturating_add(before).min(inside.right()), y));
        }
        y += 1;
    }
    y += u16::from(fields > 0 && roomy);
    for ((line, style), y) in effects.iter().zip(y..inside.bottom().saturating_sub(1)) {
        canvas.text(inside.x, y, inside.width, line, *style);
    }
    buttons(canvas, form, inside);
    cursor
}

fn label(canvas: &mut Canvas<'_>, inside: Rect, y: u16, text: &str, focused: bool) {
    let style = if focused { canvas.theme.key } else { canvas.theme.dim };
    canvas.text(inside.x, y, LABELS, text, style);
}

fn buttons(canvas: &mut Canvas<'_>, form: &Form, inside: Rect) {
    let theme = canvas.theme;
    let buttons = form.buttons();
    let total: u16 = buttons.iter().map(|button| width(button) + 6).sum();
    let mut x = inside.right().saturating_sub(total).max(inside.x);
    let y = inside.bottom().saturating_sub(1);
    for (index, button) in buttons.iter().enumerate() {
        let style = if form.focus == Field::Button(index) {
            if index == 0 || matches!(form.purpose, Purpose::Quit(_)) { theme.chip } else { theme.alarm }
        } else {
            theme.dim
        };
        let room = inside.right().saturating_sub(x);
        x += canvas.pieces(x, y, room, &[("  ", style), (button, style), ("  ", style)]) + 2;
    }
}

/// What is left of a text behind so many columns.
fn skip_columns(text: &str, columns: usize) -> String {
    let mut skipped = 0;
    text.chars()
        .skip_while(|c| {
            let before = skipped;
            skipped += usize::from(width(c.encode_utf8(&mut [0; 4])));
            before < columns
        })
        .collect()
}
