//! Key presses: dispatched to an action, or edited into a line of text.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};

use crate::analysis::Filter;
use crate::app::action::{Action, Context, Entry, Status, TABLE, entry};
use crate::app::{Effect, Level, Line, LinePurpose, Overlay, Pick, Reader, State, typing};

use super::overlays;

pub(in crate::app) fn key(state: &mut State, event: &KeyEvent) -> Vec<Effect> {
    // Key repeats count, but releases, which some terminals report, must not trigger the action again.
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    state.toasts.mark_seen(state.now.elapsed);
    let context = state.context();
    let digit = match event.code {
        KeyCode::Char(c) => c.to_digit(10),
        _ => None,
    };
    match state.options.keys.lookup(context, event) {
        Some(action) => return perform(state, action, digit),
        None => {
            if let Some(action) = menu_action(state, event) {
                state.overlay = None;
                return perform(state, action, None);
            }
            // As in some shells, Right accepts the suggested completion.
            if event.code == KeyCode::Right
                && let Some(form) = state.form_mut()
                && form.complete()
            {
                return Vec::new();
            }
            if line_input(state).is_some_and(|input| typing::key(input, event)) {
                typed(state);
            }
        }
    }
    Vec::new()
}

/// Returns the action of the menu with this key, which the menu shows.
fn menu_action(state: &State, event: &KeyEvent) -> Option<Action> {
    if state.context().is_text() {
        return None;
    }
    let Some(Overlay::List(_, Pick::Actions(_))) = &state.overlay else { return None };
    Pick::ACTIONS.into_iter().find(|action| state.options.keys.of(entry(*action)).iter().any(|key| key.matches(event)))
}

pub(in crate::app) fn paste(state: &mut State, text: &str) {
    if let Some(input) = line_input(state) {
        typing::paste(input, text);
        typed(state);
    }
}

/// Performs an action in the current context if it is available.
pub(in crate::app) fn perform(state: &mut State, action: Action, digit: Option<u32>) -> Vec<Effect> {
    let context = state.context();
    // Nothing is changed while nothing is shown.
    if state.layout().too_small && !matches!(action, Action::Interrupt | Action::Quit | Action::Suspend | Action::Redraw) {
        return Vec::new();
    }
    let here = |entry: &&Entry| entry.action == action && entry.places.contains(context);
    let Some(entry) = TABLE.iter().find(here) else { return Vec::new() };
    match entry.status(state) {
        Status::Ready => return entry.run(state, digit),
        Status::Refused(reason) => state.notify(Level::Warning, reason),
        Status::Idle => {}
    }
    Vec::new()
}

/// Returns the line of text that has the keyboard focus.
fn line_input(state: &mut State) -> Option<&mut tui_input::Input> {
    match state.context() {
        Context::Line => state.line.as_mut().map(|line| &mut line.input),
        Context::FormText | Context::Palette => match state.overlay.as_mut() {
            Some(Overlay::Form(form)) => form.input(),
            Some(Overlay::List(_, Pick::Palette(palette))) => Some(&mut palette.input),
            _ => None,
        },
        _ => None,
    }
}

/// Applies the edited text immediately.
fn typed(state: &mut State) {
    if let Some(Line { purpose, input, .. }) = &state.line {
        let (purpose, text) = (*purpose, input.value().to_owned());
        return apply(state, purpose, &text);
    }
    if let Some(form) = state.form_mut() {
        return form.reset_confirmation();
    }
    // The contents of the palette depend on the context below it.
    match state.overlay.take() {
        Some(Overlay::List(mut list, Pick::Palette(palette))) => {
            list.set_filter(Filter::new(palette.input.value()));
            state.overlay = Some(Overlay::List(list, Pick::Palette(state.searched(palette))));
        }
        other => state.overlay = other,
    }
}

fn apply(state: &mut State, purpose: LinePurpose, text: &str) {
    match purpose {
        LinePurpose::Filter => state.list.set_filter(text),
        LinePurpose::Tab => {
            state.views.of_mut(state.tab).filter = Filter::new(text);
            state.views.events.open = false;
        }
        LinePurpose::Overlay => {
            let filter = Filter::new(text);
            if let Some(reader) = state.overlay.as_mut().and_then(Overlay::reader) {
                *reader = Reader { scroll: 0, search: filter };
                overlays::show_new_output(state);
            } else if let Some(Overlay::List(list, _)) = &mut state.overlay {
                list.set_filter(filter);
            }
        }
    }
}

/// Clears the line of text and its filter.
pub(in crate::app) fn clear_line(state: &mut State) {
    if let Some(line) = state.line.take() {
        apply(state, line.purpose, "");
        // A filter given up while it is typed leaves no other process selected.
        if line.purpose == LinePurpose::Filter
            && let Some(key) = line.selected
        {
            state.list.select(key);
        }
    }
}
