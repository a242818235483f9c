//! Actions in what lies over the panes.

use tui_input::Input;

use crate::app::action::{Action, TABLE};
use crate::app::cursor::Step;
use crate::app::dialog::{Field, Form, Found, Overlay, Purpose, Reader};
use crate::app::help::help;
use crate::app::state::{Line, Typing};
use crate::app::{Effect, State};
use crate::ipc::DumpKind;

use super::{keys, leaving, panes, process};

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Cancel | Action::No => {
            state.overlay = None;
            return Vec::new();
        }
        Action::Search => {
            if let Some(Overlay::Help(reader) | Overlay::Messages(reader)) = &state.overlay {
                state.line = Some(Line { purpose: Typing::Reader, input: Input::new(reader.search.value().to_owned()) });
            }
            return Vec::new();
        }
        _ => {}
    }
    if let Some(step) = as_step(action)
        && !matches!(state.overlay, Some(Overlay::Form(_)))
    {
        scroll(state, step);
        return Vec::new();
    }
    match state.overlay.take() {
        Some(Overlay::Form(form)) => form_act(state, form, action),
        Some(Overlay::Profiles(mut picker)) => match action {
            Action::Accept => {
                let profiles = picker.names();
                process::start_trace(state, picker.subject, profiles)
            }
            _ => {
                picker.toggle();
                state.overlay = Some(Overlay::Profiles(picker));
                Vec::new()
            }
        },
        Some(Overlay::Copy(menu)) => {
            let item = menu.items.get(menu.cursor.at).cloned();
            item.map(|item| Effect::Copy { text: item.text, label: item.label.to_owned() }).into_iter().collect()
        }
        Some(Overlay::Palette(palette)) => match palette.found.get(palette.cursor.at) {
            Some(Found::Action(index)) => keys::perform(state, TABLE[*index].action, None),
            Some(Found::Process(subject)) => {
                panes::go_to(state, subject.key);
                Vec::new()
            }
            None => Vec::new(),
        },
        other => {
            state.overlay = other;
            Vec::new()
        }
    }
}

fn as_step(action: Action) -> Option<Step> {
    match action {
        Action::Up => Some(Step::By(-1)),
        Action::Down => Some(Step::By(1)),
        Action::PageUp => Some(Step::Page(-1)),
        Action::PageDown => Some(Step::Page(1)),
        Action::First => Some(Step::First),
        Action::Last => Some(Step::Last),
        _ => None,
    }
}

fn scroll(state: &mut State, step: Step) {
    let page = state.layout().reader_height();
    let history = state.toasts.history().len();
    match &mut state.overlay {
        Some(Overlay::Help(reader)) => {
            let last = help(reader.search.value()).len().saturating_sub(page);
            scroll_reader(reader, step, page, last);
        }
        Some(Overlay::Messages(reader)) => scroll_reader(reader, step, page, history.saturating_sub(1)),
        Some(Overlay::Palette(palette)) => palette.cursor.go(step, palette.found.len(), page),
        Some(Overlay::Profiles(picker)) => picker.cursor.go(step, picker.chosen.len(), page),
        Some(Overlay::Copy(menu)) => menu.cursor.go(step, menu.items.len(), page),
        Some(Overlay::Form(_)) | None => {}
    }
}

fn scroll_reader(reader: &mut Reader, step: Step, page: usize, last: usize) {
    reader.scroll = reader.scroll.saturating_add_signed(step.lines(page)).min(last);
}

fn form_act(state: &mut State, mut form: Form, action: Action) -> Vec<Effect> {
    match action {
        Action::NextField => form.step(true),
        Action::PreviousField => form.step(false),
        Action::Left => form.change(false),
        Action::Right => form.change(true),
        Action::Yes => return press(state, form, 1),
        // Enter goes through the fields to the buttons, and never past the harmless one by itself.
        Action::Accept => match form.focus {
            Field::Button(button) => return press(state, form, button),
            Field::Choice | Field::Path => form.step(true),
        },
        _ => {}
    }
    state.overlay = Some(Overlay::Form(form));
    Vec::new()
}

/// Presses a button: the first does nothing.
fn press(state: &mut State, mut form: Form, button: usize) -> Vec<Effect> {
    if form.is_quit() {
        let answer = form.quit_answer(button);
        return leaving::answer(state, answer);
    }
    let Some(subject) = form.subject.clone().filter(|_| button > 0) else { return Vec::new() };
    match form.purpose {
        Purpose::Quit(_) => Vec::new(),
        Purpose::PerfMap(_) => process::perf_map(state, subject, form.perf_map_request()),
        Purpose::Resume(_) => process::resume(state, subject, form.resumes_all()),
        Purpose::Dump(_) => match form.dump_request() {
            Ok((DumpKind::Full, _)) if !form.armed => {
                form.armed = true;
                form.focus = Field::Button(1);
                state.overlay = Some(Overlay::Form(form));
                Vec::new()
            }
            Ok((kind, path)) => process::dump(state, subject, kind, path),
            Err(complaint) => {
                form.complaint = Some(complaint);
                form.focus = Field::Path;
                state.overlay = Some(Overlay::Form(form));
                Vec::new()
            }
        },
    }
}
