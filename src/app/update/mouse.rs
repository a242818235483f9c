//! Mouse handling: clicks perform the same actions as keys.

use std::time::Duration;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::app::action::{Action, Context};
use crate::app::cursor::Neighbor;
use crate::app::layout::ScreenTarget;
use crate::app::{Effect, Field, Focus, State, Tab};

use super::{drag, keys, overlays};

/// Lines scrolled per turn of the wheel.
const WHEEL: usize = 3;
/// The longest interval between the two clicks of a double click.
const DOUBLE_CLICK: Duration = Duration::from_millis(400);

pub(super) fn mouse(state: &mut State, event: MouseEvent) -> Vec<Effect> {
    // As for keys: what is not shown cannot be clicked.
    if state.layout().too_small {
        return Vec::new();
    }
    let (x, y) = (event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollUp => wheel(state, x, y, Action::Up),
        MouseEventKind::ScrollDown => wheel(state, x, y, Action::Down),
        MouseEventKind::Down(MouseButton::Left) if drag::press(state, x, y) => {
            state.dirty = true;
            Vec::new()
        }
        MouseEventKind::Down(MouseButton::Left) => click(state, x, y),
        MouseEventKind::Drag(MouseButton::Left) => {
            drag::drag(state, x, y);
            Vec::new()
        }
        MouseEventKind::Up(MouseButton::Left) => {
            drag::release(state);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn wheel(state: &mut State, x: u16, y: u16, action: Action) -> Vec<Effect> {
    state.dirty = true;
    if state.context().is_pane() {
        match state.layout().target_at(x, y) {
            ScreenTarget::Row(_) | ScreenTarget::Title(_) => state.focus = Focus::List,
            ScreenTarget::Detail | ScreenTarget::Tab(_) => state.focus = Focus::Detail,
            ScreenTarget::Hints(_) | ScreenTarget::Nothing => return Vec::new(),
        }
    }
    (0..WHEEL).flat_map(|_| keys::perform(state, action, None)).collect()
}

fn click(state: &mut State, x: u16, y: u16) -> Vec<Effect> {
    state.dirty = true;
    let layout = state.layout();
    let spot = layout.target_at(x, y);
    if let ScreenTarget::Hints(at) = spot {
        let hit = state.hints(layout.screen.width).into_iter().find(|hint| (hint.x..hint.x + hint.width).contains(&at));
        return hit.map(|hint| keys::perform(state, hint.action, None)).unwrap_or_default();
    }
    // As Enter does: what is typed is kept as the filter.
    state.line = None;
    if let Some(form) = state.form() {
        return match form.place(&layout).field(x, y) {
            Some(field) => click_field(state, field),
            None => Vec::new(),
        };
    }
    if let Some(again) = state.click_pick(x, y) {
        let is_second = state.is_second_click(x, y);
        // As in the panes, a double click acts like Enter; a click on the selected check box, like Space.
        let (is_chosen, action) = match state.context() {
            Context::PickMany => (again, Action::Toggle),
            _ => (is_second, Action::Accept),
        };
        return if is_chosen { keys::perform(state, action, None) } else { Vec::new() };
    }
    if !state.context().is_pane() {
        return Vec::new();
    }
    match spot {
        ScreenTarget::Title(column) => {
            state.focus = Focus::List;
            state.list.sort_by(column);
        }
        ScreenTarget::Row(line) => {
            state.focus = Focus::List;
            let place = state.list.offset() + line;
            if place < state.list.len() {
                state.list.select_place(place);
            }
        }
        ScreenTarget::Tab(tab) => state.open_tab(tab),
        ScreenTarget::Detail => {
            state.focus = Focus::Detail;
            click_detail(state, x, y);
        }
        ScreenTarget::Hints(_) | ScreenTarget::Nothing => {}
    }
    let is_row = matches!(spot, ScreenTarget::Row(_) | ScreenTarget::Detail);
    if is_row && state.is_second_click(x, y) { keys::perform(state, Action::Open, None) } else { Vec::new() }
}

fn click_detail(state: &mut State, x: u16, y: u16) {
    if state.tab == Tab::Overview {
        if let Some(tab) = state.finding_at(y) {
            state.tab = tab;
        }
    } else if state.tab == Tab::Methods && state.is_flame() {
        if let Some(area) = state.tab_view().map(|(_, geometry)| geometry.list) {
            state.select_frame(|graph| graph.at(area, x, y));
        }
    } else if !state.click_title(x, y) {
        state.select_row(y);
    }
}

impl State {
    /// Whether this is the second click of a double click.
    fn is_second_click(&mut self, x: u16, y: u16) -> bool {
        let now = self.now.elapsed;
        let is_second = self.last_click.is_some_and(|(place, at)| place == (x, y) && now.saturating_sub(at) <= DOUBLE_CLICK);
        self.last_click = (!is_second).then_some(((x, y), now));
        is_second
    }
}

/// Presses a button, or focuses a question; if it is already focused, selects its next option.
fn click_field(state: &mut State, field: Field) -> Vec<Effect> {
    let Some(form) = state.form_mut() else { return Vec::new() };
    match field {
        Field::Button(button) => {
            form.focus = field;
            return overlays::press(state, button);
        }
        Field::Question(at) if form.questions[at].refused.is_some() => {}
        Field::Question(_) if form.focus == field => form.change(Neighbor::Next),
        Field::Question(_) => {
            form.focus = field;
            form.reset_confirmation();
        }
    }
    Vec::new()
}
