//! The pure picture of the state: panes, charts, themes, overlays.
//!
//! [`view`] draws a [`State`] in a [`Theme`] into a frame and changes nothing. It draws every frame from scratch, only what
//! is visible, and takes all places from [`app::layout`](crate::app::layout), which the mouse uses, too. Everything is clipped:
//! no terminal is too small to draw into.

mod analysis;
mod canvas;
mod chart;
mod detail;
mod dialog;
mod glyphs;
mod header;
mod hints;
mod info;
mod invite;
mod list;
mod overlay;
mod reader;
mod span;
mod table;
mod theme;
mod toasts;
mod too_small;
mod trace;

use ratatui::Frame;

use crate::app::{Overlay, State};
use canvas::Canvas;

pub use theme::Theme;

/// Draws the state.
pub fn view(state: &State, theme: &Theme, frame: &mut Frame<'_>) {
    let layout = state.layout();
    let canvas = &mut Canvas::new(frame.buffer_mut(), theme);
    if layout.too_small {
        too_small::draw(canvas, state, &layout);
        return;
    }
    header::draw(canvas, state, &layout);
    let list = layout.list.as_ref().and_then(|list| table::draw(canvas, state, list));
    let detail = layout.detail.as_ref().and_then(|detail| detail::draw(canvas, state, detail));
    hints::draw(canvas, state, &layout);
    let over = match &state.overlay {
        Some(Overlay::Help(reader)) => reader::keys(canvas, state, reader, &layout),
        Some(Overlay::Messages(reader)) => reader::messages(canvas, state, reader, &layout),
        Some(Overlay::Output(view)) => reader::output(canvas, state, view, &layout),
        Some(Overlay::Form(form)) => dialog::draw(canvas, form, &layout),
        _ => state.pick_list().and_then(|list| overlay::pick_list(canvas, state, &list)),
    };
    overlay::finishing(canvas, state, &layout);
    toasts::draw(canvas, state, &layout);
    // The terminal's cursor is where something is typed, and nowhere else.
    if let Some(cursor) = over.or(list).or(detail) {
        frame.set_cursor_position(cursor);
    }
}

#[cfg(test)]
pub(crate) mod tests;
