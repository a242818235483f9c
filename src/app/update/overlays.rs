//! Actions in overlays.

use std::sync::Arc;

use tui_input::Input;

use crate::app::action::{Action, TABLE};
use crate::app::cursor::{Neighbor, Step};
use crate::app::dialog::picked_profiles;
use crate::app::{Effect, Field, Form, Found, Line, LinePurpose, OutputView, Overlay, Pick, State, Ticket};
use crate::clr::SLOW_PROFILE;
use crate::model::{SafeText, TraceOptions};

use super::submit::submit;
use super::{files, keys, panes, tagged};

/// Closes the overlay; a chooser returns to its form, the help to the overlay below it.
pub(in crate::app) fn cancel(state: &mut State) {
    state.overlay = match state.overlay.take() {
        Some(Overlay::List(_, Pick::Values(chooser))) => Some(Overlay::Form(chooser.form)),
        Some(Overlay::Help(help)) => help.beneath.map(|beneath| *beneath),
        _ => None,
    };
}

/// Starts typing a filter.
pub(in crate::app) fn filter(state: &mut State) {
    let filter = state.overlay.as_mut().and_then(Overlay::filter);
    let input = filter.map(|filter| Input::new(filter.as_str().to_owned()));
    state.line = input.map(|input| Line { purpose: LinePurpose::Overlay, input, selected: None });
}

/// Accepts the selected row of a list.
pub(in crate::app) fn accept(state: &mut State) -> Vec<Effect> {
    let Some(picked) = state.picked() else { return Vec::new() };
    let Some(Overlay::List(list, pick)) = state.overlay.take() else { return Vec::new() };
    match pick {
        Pick::Actions(_) => keys::perform(state, Pick::ACTIONS[picked], None),
        Pick::Palette(palette) => match palette.found.get(picked) {
            Some(Found::Action(index)) => keys::perform(state, TABLE[*index].action, None),
            Some(Found::Tab(tab)) => {
                state.open_tab(*tab);
                Vec::new()
            }
            Some(Found::Profile(profile)) => {
                let effects = keys::perform(state, Action::Profiles, None);
                if let Some(Overlay::List(_, Pick::Profiles(subject))) = &state.overlay {
                    state.overlay = Some(Overlay::profiles(subject.clone(), std::slice::from_ref(&profile.name)));
                }
                effects
            }
            Some(Found::Theme(name)) => vec![Effect::SetTheme(name.clone())],
            Some(Found::Process(subject)) => {
                panes::go_to(state, subject.key);
                Vec::new()
            }
            Some(Found::File(file)) => {
                state.open_additional_file(file.clone());
                Vec::new()
            }
            None => Vec::new(),
        },
        Pick::Profiles(subject) => {
            let profiles = picked_profiles(&list.chosen, picked);
            if profiles == [SLOW_PROFILE] {
                return tagged::why_slow(state);
            }
            let options = TraceOptions::of_profiles(&profiles);
            tagged::start_trace(state, subject, options)
        }
        Pick::Values(chooser) => {
            state.overlay = Some(chooser.accept(&list.chosen, picked));
            Vec::new()
        }
        Pick::Files(purpose, mut files) => files::picked(state, purpose, files.swap_remove(picked)),
        Pick::Copy(items) => {
            let item = items.into_iter().nth(picked);
            item.map(|item| Effect::Copy { text: item.text, label: item.label.to_owned() }).into_iter().collect()
        }
    }
}

/// Picks or unpicks the selected row of a list.
pub(in crate::app) fn toggle(state: &mut State) {
    if let Some(picked) = state.picked()
        && let Some(Overlay::List(list, _)) = &mut state.overlay
        && let Some(chosen) = list.chosen.get_mut(picked)
    {
        *chosen = !*chosen;
    }
}

/// Opens the trace form with the picked profiles.
pub(in crate::app) fn options(state: &mut State) -> Vec<Effect> {
    let picked = state.picked();
    let Some(Overlay::List(list, Pick::Profiles(_))) = &state.overlay else { return Vec::new() };
    let profiles = picked.map_or_else(Vec::new, |picked| picked_profiles(&list.chosen, picked));
    let options = TraceOptions { profiles, ..state.last_trace_options.clone() };
    panes::trace_form(state, &options)
}

/// Moves in a list or a text.
pub(in crate::app) fn step(state: &mut State, step: Step) {
    match state.text_scroll_bar() {
        Some(bar) => {
            let (shown, len) = bar.lines();
            let last = if matches!(state.overlay, Some(Overlay::Messages(_))) { len.saturating_sub(1) } else { len.saturating_sub(shown) };
            scroll_text(state, bar.offset().saturating_add_signed(step.lines(shown)).min(last), shown, len);
        }
        None => state.step_pick(step),
    }
}

/// Scrolls a text of `len` lines, of which `shown` fit, to a line.
pub(super) fn scroll_text(state: &mut State, offset: usize, shown: usize, len: usize) {
    // Output is scrolled relative to its end.
    let from_end = matches!(state.overlay, Some(Overlay::Output(_)));
    if let Some(reader) = state.overlay.as_mut().and_then(Overlay::reader) {
        reader.scroll = if from_end { len.saturating_sub(shown).saturating_sub(offset) } else { offset };
    }
    show_new_output(state);
}

/// Opens dn-top's log.
pub(in crate::app) fn open_log(state: &mut State) -> Vec<Effect> {
    state.overlay = Some(Overlay::Output(OutputView::log()));
    vec![Effect::ReadLog]
}

/// Shows new lines of a program's output, or of dn-top's log, if they are open.
pub(in crate::app) fn show_output(state: &mut State, of: Option<Ticket>, lines: &Arc<[SafeText]>) {
    if let Some(Overlay::Output(view)) = &mut state.overlay
        && view.ticket == of
    {
        state.dirty |= view.follow(lines);
    }
}

/// Rereads the log if its end is shown.
pub(in crate::app) fn follow_log(state: &State) -> Option<Effect> {
    matches!(&state.overlay, Some(Overlay::Output(view)) if view.follows_log()).then_some(Effect::ReadLog)
}

/// Shows new output once the end is reached.
pub(super) fn show_new_output(state: &mut State) {
    if let Some(Overlay::Output(view)) = &mut state.overlay
        && let Some(job) = view.ticket.and_then(|ticket| state.jobs.find(ticket))
    {
        view.follow(&job.output_lines);
    }
}

/// Submits the form. If that would change a process, only moves the focus to the button, so that a stray key press does nothing.
pub(in crate::app) fn confirm(state: &mut State) -> Vec<Effect> {
    let Some(form) = state.form_mut() else { return Vec::new() };
    if !form.is_dangerous() {
        return press(state, 1);
    }
    form.focus = Field::Button(1);
    Vec::new()
}

/// Moves through the fields to the buttons on Enter, or presses the focused button.
pub(in crate::app) fn accept_form(state: &mut State) -> Vec<Effect> {
    let Some(form) = state.form_mut() else { return Vec::new() };
    match form.focus {
        Field::Button(button) => return press(state, button),
        Field::Question(_) => form.step(Neighbor::Next),
    }
    Vec::new()
}

pub(in crate::app) fn choose(state: &mut State) {
    state.overlay = match state.overlay.take() {
        Some(Overlay::Form(form)) => Some(form.choose()),
        other => other,
    };
}

pub(in crate::app) fn copy_command(state: &mut State) -> Vec<Effect> {
    let copy =
        state.form().and_then(Form::command_line).map(|line| Effect::Copy { text: line.to_owned(), label: "command line".to_owned() });
    copy.into_iter().collect()
}

/// Presses a button of the form; the first one cancels.
pub(super) fn press(state: &mut State, button: usize) -> Vec<Effect> {
    let Some(Overlay::Form(mut form)) = state.overlay.take() else { return Vec::new() };
    if button == 0 {
        return Vec::new();
    }
    match submit(state, &form, button) {
        Ok(Some(effects)) => return effects,
        Ok(None) => {
            form.pressed_once = true;
            form.focus = Field::Button(1);
        }
        Err((question, problem)) => form.show_problem(question, problem),
    }
    state.overlay = Some(Overlay::Form(form));
    Vec::new()
}
