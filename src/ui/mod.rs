//! Pure rendering of the state: panes, charts, themes, overlays.
//!
//! [`view`] draws a [`State`] with a [`Theme`] to a frame and changes nothing. It draws every frame from scratch, only what is visible, and takes
//! all positions from [`app::layout`](crate::app::layout), which mouse handling uses too. Everything is clipped: no terminal is too small to draw
//! to.

mod analysis;
mod canvas;
mod chart;
mod detail;
mod dialog;
mod glyphs;
mod header;
mod list;
mod names;
mod overlay;
mod overview;
mod reader;
mod table;
mod theme;
mod theme_file;
mod toasts;
mod trace;

use ratatui::Frame;

use crate::app::layout::{Layout, MIN_HEIGHT, MIN_WIDTH};
use crate::app::{Form, Overlay, Purpose, State};
use canvas::{Canvas, width, wrap};

pub use theme::Theme;

/// Draws the state. Returns the position of the terminal's cursor while something is being typed.
pub fn view(state: &State, theme: &Theme, frame: &mut Frame<'_>) -> Option<(u16, u16)> {
    let layout = state.layout();
    let canvas = &mut Canvas::new(frame.buffer_mut(), theme);
    if layout.too_small {
        too_small(canvas, state, &layout);
        return None;
    }
    header::draw(canvas, state, &layout);
    let list = layout.list.as_ref().and_then(|list| table::draw(canvas, state, list));
    let detail = layout.detail.as_ref().and_then(|detail| detail::draw(canvas, state, detail));
    hints(canvas, state, &layout);
    let over = match &state.overlay {
        Some(Overlay::Help(help)) => reader::keys(canvas, state, help, &layout),
        Some(Overlay::Messages(reader)) => reader::messages(canvas, state, reader, &layout),
        Some(Overlay::Output(view)) => reader::output(canvas, state, view, &layout),
        Some(Overlay::Form(form)) => dialog::draw(canvas, form, &layout),
        _ => state.pick_list().and_then(|list| overlay::pick_list(canvas, state, &list)),
    };
    overlay::finishing(canvas, state, &layout);
    toasts::draw(canvas, state, &layout);
    over.or(list).or(detail)
}

/// Draws the last line: the available keys.
fn hints(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let (key, label) = (canvas.theme.key, canvas.theme.dim);
    for hint in state.hints(layout.screen.width) {
        canvas.pieces(layout.hints.x + hint.x, layout.hints.y, hint.width, &[(&hint.key, key), (" ", label), (hint.label, label)]);
    }
}

/// Draws the message for a terminal that is too small for the dashboard.
fn too_small(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let theme = canvas.theme;
    let screen = layout.screen;
    let mut text = format!("{}x{} is too small: dn-top needs {MIN_WIDTH}x{MIN_HEIGHT}.", screen.width, screen.height);
    match (&state.overlay, state.recordings.active()) {
        _ if state.pending_quit.is_some() => text.push_str(" Finishing."),
        (Some(Overlay::Form(Form { purpose: Purpose::Quit, .. })), _) => text.push_str(" Ctrl-C again stops and quits."),
        (_, 1..) => text.push_str(" Recording continues."),
        _ => {}
    }
    let lines = wrap(&text, screen.width);
    let top = screen.height.saturating_sub(lines.len() as u16) / 2;
    for (line, y) in lines.iter().zip(top..screen.height) {
        canvas.text((screen.width.saturating_sub(width(line))) / 2, y, screen.width, line, theme.text);
    }
}

#[cfg(test)]
pub(crate) mod tests;
