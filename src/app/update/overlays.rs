//! Actions in what lies over the panes.

use std::path::PathBuf;

use tui_input::Input;

use crate::app::action::{Action, TABLE};
use crate::app::cursor::Step;
use crate::app::dialog::{
    ActMenu, Change, Chosen, ExportRequest, Field, Form, Found, Overlay, ProducerForm, Program, Purpose, Reader, Served, Subject, Wanted,
};
use crate::app::help::help;
use crate::app::state::{Line, Typing};
use crate::app::{Effect, State};
use crate::ipc::{DumpKind, DumpRequest, PerfMapKind};
use crate::model::Order;

use super::{leaving, panes, process};

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Cancel | Action::No => {
            state.overlay = match state.overlay.take() {
                Some(Overlay::Choose(chooser)) => Some(Overlay::Form(chooser.form)),
                _ => None,
            };
            return Vec::new();
        }
        Action::Search => {
            let filter = state.overlay.as_mut().and_then(Overlay::filter);
            state.line = filter.map(|filter| Line { purpose: Typing::Overlay, input: Input::new(filter.as_str().to_owned()) });
            return Vec::new();
        }
        _ => {}
    }
    if let Some(step) = as_step(action)
        && !matches!(state.overlay, Some(Overlay::Form(_)))
    {
        scroll(state, step);
        catch_up(state);
        return Vec::new();
    }
    let picked = state.picked();
    match state.overlay.take() {
        Some(Overlay::Form(form)) => form_act(state, form, action),
        Some(Overlay::Profiles(mut picker)) => match action {
            Action::Accept if !picker.names(picked).is_empty() => {
                let order = Order::of_profiles(&picker.names(picked));
                process::start_trace(state, picker.subject, order)
            }
            Action::TraceForm => {
                let order = Order { profiles: picker.names(picked), ..state.last_order.clone() };
                panes::trace_form(state, &order)
            }
            _ => {
                if let (Action::Toggle, Some(item)) = (action, picked) {
                    picker.toggle(item);
                }
                state.overlay = Some(Overlay::Profiles(picker));
                Vec::new()
            }
        },
        Some(Overlay::Choose(mut chooser)) => {
            state.overlay = Some(match action {
                Action::Accept => chosen(chooser.accept(picked)),
                _ => {
                    if let Some(item) = picked {
                        chooser.toggle(item);
                    }
                    Overlay::Choose(chooser)
                }
            });
            Vec::new()
        }
        Some(Overlay::Copy(menu)) => {
            let item = picked.and_then(|item| menu.items.get(item).cloned());
            item.map(|item| Effect::Copy { text: item.text, label: item.label.to_owned() }).into_iter().collect()
        }
        Some(Overlay::Palette(palette)) => {
            if let Some(Found::Process(subject)) = picked.and_then(|item| palette.found.get(item)) {
                panes::go_to(state, subject.key);
            }
            Vec::new()
        }
        other => {
            state.overlay = other;
            Vec::new()
        }
    }
}

/// The action that is chosen from a list of such, which is closed by that.
pub(super) fn chosen_action(state: &mut State, action: Action) -> Option<Action> {
    let picked = state.picked().filter(|_| action == Action::Accept)?;
    let chosen = match &state.overlay {
        Some(Overlay::Act(_)) => ActMenu::ITEMS.get(picked).copied()?,
        Some(Overlay::Palette(palette)) => match palette.found.get(picked)? {
            Found::Action(index) => TABLE[*index].action,
            Found::Process(_) => return None,
        },
        _ => return None,
    };
    state.overlay = None;
    Some(chosen)
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
    let layout = state.layout();
    let page = layout.reader_height();
    let history = state.toasts.history().len();
    match &mut state.overlay {
        Some(Overlay::Help(reader)) => {
            let last = help(&reader.search).len().saturating_sub(page);
            scroll_reader(reader, step.lines(page), last);
        }
        Some(Overlay::Messages(reader)) => scroll_reader(reader, step.lines(page), history.saturating_sub(1)),
        Some(Overlay::Output(view)) => {
            let (page, columns) = layout.output_size();
            let last = view.rows(columns).len().saturating_sub(page);
            // It is scrolled from its end.
            scroll_reader(&mut view.reader, step.lines(page).saturating_neg(), last);
        }
        Some(Overlay::Palette(_) | Overlay::Profiles(_) | Overlay::Choose(_) | Overlay::Copy(_) | Overlay::Act(_)) => state.step_pick(step),
        Some(Overlay::Form(_)) | None => {}
    }
}

/// Whoever is at the end again sees what has come meanwhile.
fn catch_up(state: &mut State) {
    if let Some(Overlay::Output(view)) = &mut state.overlay
        && let Some(job) = state.jobs.find(view.ticket)
    {
        view.follow(&job.wrote);
    }
}

fn scroll_reader(reader: &mut Reader, lines: isize, last: usize) {
    reader.scroll = reader.scroll.saturating_add_signed(lines).min(last);
}

fn chosen(chosen: Chosen) -> Overlay {
    match chosen {
        Chosen::Next(chooser) => Overlay::Choose(chooser),
        Chosen::Done(form) => Overlay::Form(form),
    }
}

fn form_act(state: &mut State, mut form: Form, action: Action) -> Vec<Effect> {
    match action {
        Action::NextField => form.step(true),
        Action::PreviousField => form.step(false),
        Action::Left => form.change(false),
        Action::Right => form.change(true),
        Action::Yes => return press(state, form, 1),
        Action::Choose => {
            state.overlay = Some(chosen(form.choose()));
            return Vec::new();
        }
        Action::CopyCommand => {
            let copy = form.command_line().map(|line| Effect::Copy { text: line.to_owned(), label: "command line".to_owned() });
            state.overlay = Some(Overlay::Form(form));
            return copy.into_iter().collect();
        }
        // Enter goes through the fields to the buttons, and never past the harmless one by itself.
        Action::Accept => match form.focus {
            Field::Button(button) => return press(state, form, button),
            Field::Question(_) if form.is_quick() => return press(state, form, 1),
            Field::Question(_) => form.step(true),
        },
        _ => {}
    }
    state.overlay = Some(Overlay::Form(form));
    Vec::new()
}

/// Presses a button: the first does nothing.
pub(super) fn press(state: &mut State, mut form: Form, button: usize) -> Vec<Effect> {
    if form.is_quit() {
        let answer = form.quit_answer(button);
        return leaving::answer(state, answer);
    }
    if button == 0 {
        return Vec::new();
    }
    match request(&form) {
        Ok(request) if request.needs_second_yes() && !form.armed => {
            form.armed = true;
            form.focus = Field::Button(1);
            state.overlay = Some(Overlay::Form(form));
            Vec::new()
        }
        Ok(request) => carry_out(state, form.subject, request),
        Err((question, complaint)) => {
            form.complain(question, complaint);
            state.overlay = Some(Overlay::Form(form));
            Vec::new()
        }
    }
}

/// What a dialog was answered with.
enum Request {
    Nothing,
    Dump(DumpRequest),
    PerfMap(Option<PerfMapKind>),
    Resume { all: bool },
    Control(Change, Wanted),
    Trace(Order),
    Export(ExportRequest),
    Launch(Program),
    Port(PathBuf),
    ClosePort { resume: bool },
    Producer(Served),
    EndProducer,
}

impl Request {
    fn needs_second_yes(&self) -> bool {
        match self {
            Self::Dump(request) => request.kind == DumpKind::Full,
            Self::Trace(order) => order.block,
            _ => false,
        }
    }
}

/// What is asked for, or the question that is answered wrongly and why.
fn request(form: &Form) -> Result<Request, (usize, String)> {
    Ok(match &form.purpose {
        Purpose::Quit(_) => Request::Nothing,
        Purpose::PerfMap(_) => Request::PerfMap(form.perf_map_request()),
        Purpose::Resume(_) => Request::Resume { all: form.resumes_all() },
        Purpose::Dump(_) => Request::Dump(form.dump_request()?),
        Purpose::Control(control) => Request::Control(control.change(), form.control_request(control.change())?),
        Purpose::Trace(_) => Request::Trace(form.order()?),
        Purpose::Export(_) => Request::Export(form.export_request()?),
        Purpose::Launch(_) => Request::Launch(form.launch_request()?),
        Purpose::Port(_) => Request::Port(form.port_request()?),
        Purpose::Producer(ProducerForm::Begin) => Request::Producer(form.producer_request()?),
        Purpose::Producer(ProducerForm::GoesOn(_)) => Request::EndProducer,
        Purpose::ClosePort(_) => Request::ClosePort { resume: form.lets_run() },
    })
}

fn carry_out(state: &mut State, subject: Option<Subject>, request: Request) -> Vec<Effect> {
    match (request, subject) {
        (Request::Launch(program), _) => process::launch(state, program),
        (Request::Port(path), _) => process::port(state, path),
        (Request::ClosePort { resume }, _) => process::close_port(state, resume),
        (Request::Producer(served), _) => process::producer(state, served),
        (Request::EndProducer, _) => vec![Effect::EndProducer],
        (Request::Nothing, _) | (_, None) => Vec::new(),
        (Request::PerfMap(kind), Some(subject)) => process::perf_map(state, subject, kind),
        (Request::Resume { all }, Some(subject)) => process::resume(state, subject, all),
        (Request::Export(request), Some(subject)) => process::export(state, subject, request),
        (Request::Dump(request), Some(subject)) => process::dump(state, subject, request),
        (Request::Control(change, wanted), Some(subject)) => process::control(state, subject, change, wanted),
        (Request::Trace(order), Some(subject)) => {
            state.last_order = Order { file: None, block: false, ..order.clone() };
            process::start_trace(state, subject, order)
        }
    }
}
