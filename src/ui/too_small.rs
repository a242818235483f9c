//! What is shown in a terminal that is too small for the dashboard.

use crate::app::layout::{Layout, MIN_HEIGHT, MIN_WIDTH};
use crate::app::{Form, Overlay, Purpose, State};

use super::canvas::{Canvas, width, wrap};

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let theme = canvas.theme;
    let screen = layout.screen;
    let mut text = format!("{}x{} is too small: dn-top needs {MIN_WIDTH}x{MIN_HEIGHT}.", screen.width, screen.height);
    match (&state.overlay, state.recordings.active()) {
        _ if state.ending.is_some() => text.push_str(" Finishing."),
        (Some(Overlay::Form(Form { purpose: Purpose::Quit(_), .. })), _) => text.push_str(" Ctrl-C again stops and leaves."),
        (_, 1..) => text.push_str(" Recording goes on."),
        _ => {}
    }
    let lines = wrap(&text, screen.width);
    let top = screen.height.saturating_sub(lines.len() as u16) / 2;
    for (line, y) in lines.iter().zip(top..screen.height) {
        canvas.text((screen.width.saturating_sub(width(line))) / 2, y, screen.width, line, theme.text);
    }
}
