//! Dragging with the left mouse button: scroll bars, and the range of an opened file.

use crate::app::scroll::Scrolled;
use crate::app::{Focus, Overlay, State};
use crate::model::Span;

use super::overlays;

/// What moves with the pointer until the button is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Drag {
    ScrollBar {
        scrolled: Scrolled,
        /// The line of the thumb that the pointer holds.
        grip: u16,
    },
    Range {
        /// The time at which the button was pressed.
        from: i64,
        /// The range shown then.
        before: Option<Span>,
        /// Whether the pointer has moved.
        moved: bool,
    },
}

/// Presses the button. Returns whether something is dragged from there.
pub(super) fn press(state: &mut State, x: u16, y: u16) -> bool {
    state.drag = None;
    if let Some((scrolled, bar)) = state.scroll_bar_at(x, y) {
        match scrolled {
            Scrolled::Processes => state.focus = Focus::List,
            Scrolled::Overview | Scrolled::Tab => state.focus = Focus::Detail,
            Scrolled::Picks | Scrolled::Text => {}
        }
        let grip = bar.grip(y);
        state.drag = Some(Drag::ScrollBar { scrolled, grip: grip.unwrap_or(bar.middle()) });
        if grip.is_none() {
            drag(state, x, y);
        }
    } else if let Some((from, before)) = state.time_at(x, Some(y)).zip(state.open_file().map(|file| file.span())) {
        state.focus = Focus::Detail;
        state.drag = Some(Drag::Range { from, before, moved: false });
    }
    state.drag.is_some()
}

/// Moves the pointer while the button is pressed.
pub(super) fn drag(state: &mut State, x: u16, y: u16) {
    match state.drag {
        Some(Drag::ScrollBar { scrolled, grip }) => {
            if let Some(bar) = state.scroll_bar(scrolled) {
                let (shown, len) = bar.lines();
                scroll_to(state, scrolled, bar.offset_at(y, grip), shown, len);
            }
        }
        Some(Drag::Range { from, before, .. }) => {
            let to = state.time_at(x, None);
            if let Some((file, to)) = state.open_file_mut().zip(to) {
                file.show_range(from, to);
                state.drag = Some(Drag::Range { from, before, moved: true });
            }
        }
        None => return,
    }
    state.dirty = true;
}

/// Releases the button. A range is read only now; a click moves the nearer end of the range.
pub(super) fn release(state: &mut State) {
    let Some(Drag::Range { from, before, moved }) = state.drag.take() else { return };
    if let Some(file) = state.open_file_mut() {
        if !moved {
            file.move_nearer_end(from);
        }
        file.read_if_changed(before);
        state.dirty = true;
    }
}

fn scroll_to(state: &mut State, scrolled: Scrolled, offset: usize, shown: usize, len: usize) {
    match scrolled {
        Scrolled::Processes => state.list.scroll_to(offset, shown),
        Scrolled::Overview => state.details.scroll = offset,
        Scrolled::Tab => state.scroll_view(offset),
        Scrolled::Picks => {
            if let Some(Overlay::List(list, _)) = &mut state.overlay {
                list.cursor.scroll_to(offset, len, shown);
            }
        }
        Scrolled::Text => overlays::scroll_text(state, offset, shown, len),
    }
}
