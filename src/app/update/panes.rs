//! Actions in the panes.

use tui_input::Input;

use crate::app::action::{Action, Context};
use crate::app::cursor::Step;
use crate::app::dialog::{ActMenu, CopyItem, CopyMenu, ListState, Overlay, Palette, Picker, Reader};
use crate::app::state::{Line, Pause, Typing};
use crate::app::toast::Level;
use crate::app::{Activity, Column, Content, Cursor, Effect, Focus, Form, OutputView, State, Tab, capabilities};

use super::{files, leaving, process, watching};
use crate::model::Order;

pub(super) fn act(state: &mut State, action: Action, digit: Option<u32>) -> Vec<Effect> {
    match action {
        Action::Up => step(state, Step::By(-1)),
        Action::Down => step(state, Step::By(1)),
        Action::PageUp => step(state, Step::Page(-1)),
        Action::PageDown => step(state, Step::Page(1)),
        Action::First => step(state, Step::First),
        Action::Last => step(state, Step::Last),
        Action::Open => open(state),
        Action::Back => back(state),
        Action::NextTab => state.tab = state.tab.step(true, state.shows_files()),
        Action::PreviousTab => state.tab = state.tab.step(false, state.shows_files()),
        Action::Digit => count_to(state, digit),
        Action::Filter => {
            // What is filtered is to be seen, and moved in.
            state.focus = Focus::List;
            type_line(state, Typing::Filter, state.list.filter().as_str().to_owned());
        }
        Action::Search => type_line(state, Typing::Tab, state.views.filter(state.tab).as_str().to_owned()),
        Action::SortLeft | Action::SortRight if state.context() == Context::Counters => state.order_counters(action == Action::SortRight),
        Action::SortLeft | Action::SortRight if state.context() == Context::Methods => {
            state.views.sampling.by_total = !state.views.sampling.by_total
        }
        Action::Waiting => state.views.sampling.waiting = !state.views.sampling.waiting,
        Action::Shape if state.tab == Tab::Events => state.show_single_events(!state.views.events.single),
        Action::Shape => {
            state.views.sampling.next_shape();
            state.views.first(Tab::Methods);
        }
        Action::Threads => {
            state.views.sampling.toggle_threads();
            state.views.first(Tab::Methods);
        }
        Action::Widen => state.widen(),
        Action::Left => state.step_sideways(false),
        Action::Right => state.step_sideways(true),
        Action::SortLeft => sort_beside(state, false),
        Action::SortRight => sort_beside(state, true),
        Action::Reverse => state.list.reverse(),
        Action::Refresh => {
            state.details.turn_to(state.list.selected(), state.now.elapsed);
            return vec![Effect::Refresh];
        }
        Action::Pause => return pause(state),
        Action::Zoom => state.zoomed = !state.zoomed,
        Action::Reveal => {
            if let Some((index, _)) = state.variable() {
                state.details.toggle_reveal(index);
            }
        }
        Action::Environment => {
            state.tab = Tab::Environment;
            state.focus = Focus::Detail;
            // Someone asked: no need to wait whether the selection stays.
            state.details.settles = None;
        }
        Action::Watch => return watching::toggle(state),
        Action::Earlier | Action::Later | Action::MuchEarlier | Action::MuchLater | Action::Mark | Action::Whole => {
            files::walk(state, action)
        }
        Action::Meters => return watching::toggle_meters(state),
        Action::WatchAll => return watching::toggle_all(state),
        Action::Trace => return process::toggle_trace(state),
        Action::Save => return process::save(state),
        Action::Abandon => return process::abandon(state),
        Action::Profiles => {
            if let Some(subject) = state.selected_subject() {
                state.overlay = Some(Overlay::Profiles(Picker::new(subject, &state.last_profiles)));
            }
        }
        Action::TraceForm => {
            let order = state.last_order.clone();
            return trace_form(state, &order);
        }
        Action::Act => {
            let subject = state.selected_subject();
            state.overlay = Some(Overlay::Act(ActMenu { subject, list: ListState::default() }));
        }
        Action::SetVariable | Action::UnsetVariable | Action::StartupHook | Action::AttachProfiler | Action::StartupProfiler => {
            if let (Some(row), Some(change)) = (state.selected(), action.change()) {
                state.overlay = Some(Overlay::Form(Form::control(&row.process, change)));
            }
        }
        Action::Port => state.overlay = Some(Overlay::Form(process::port_form(state))),
        Action::Producer => {
            let form = match &state.producer {
                Some(producer) => Form::running_producer(producer),
                None => Form::producer(&state.last_profiles),
            };
            state.overlay = Some(Overlay::Form(form));
        }
        Action::Launch => state.overlay = Some(Overlay::Form(Form::launch(&state.last_profiles))),
        Action::Dump => {
            if let Some(row) = state.selected() {
                state.overlay = Some(Overlay::Form(Form::dump(&row.process, state.now)));
            }
        }
        Action::Export => state.overlay = process::export_form(state).map(Overlay::Form),
        Action::PerfMap => {
            if let Some(row) = state.selected() {
                state.overlay = Some(Overlay::Form(Form::perf_map(&row.process, state.jobs.perf_map(row.process.key))));
            }
        }
        Action::Resume => {
            if let Some(row) = state.selected() {
                state.overlay = Some(Overlay::Form(Form::resume(&row.process, state.waiting().count())));
            }
        }
        Action::Copy => {
            let items = copyable(state);
            if !items.is_empty() {
                state.overlay = Some(Overlay::Copy(CopyMenu { list: ListState::default(), items }));
            }
        }
        Action::Help => state.overlay = Some(Overlay::Help(Reader::default())),
        Action::Messages => {
            state.toasts.dismiss(state.now.elapsed);
            state.overlay = Some(Overlay::Messages(Reader::default()));
        }
        Action::Palette => state.overlay = Some(Overlay::Palette(state.searched(Palette::default()))),
        Action::Quit => return leaving::quit(state),
        // Of dialogs and lists over the panes, or of the whole program.
        Action::Accept
        | Action::Cancel
        | Action::NextField
        | Action::PreviousField
        | Action::Toggle
        | Action::Choose
        | Action::CopyCommand
        | Action::Yes
        | Action::No
        | Action::Interrupt
        | Action::Suspend
        | Action::Redraw => {}
    }
    Vec::new()
}

/// Opens the trace form for the selected process.
pub(super) fn trace_form(state: &mut State, order: &Order) -> Vec<Effect> {
    let Some(row) = state.selected() else { return Vec::new() };
    let key = row.process.key;
    state.overlay = Some(Overlay::Form(Form::trace(&row.process, order)));
    vec![Effect::LookAtTracepoints { key }]
}

/// Moves in the pane that has the focus.
fn step(state: &mut State, step: Step) {
    let layout = state.layout();
    if state.focus == Focus::List {
        state.list.move_by(step.lines(layout.list_height()));
        return;
    }
    let page = layout.detail.map_or(0, |detail| usize::from(detail.body.height));
    match state.tab.content() {
        Content::Info => {
            state.details.scroll = state.details.scroll.saturating_add_signed(step.lines(page)).min(info_lines(state).saturating_sub(1))
        }
        Content::Recordings => choose_recording(state, step),
        Content::Recording if state.tab == Tab::Methods && state.is_flame() => state.step_flame(step),
        Content::Recording | Content::List => state.step_view(step),
    }
}

/// Lines of facts and capabilities, generously counted.
fn info_lines(state: &State) -> usize {
    18 + state.selected().map_or(0, |row| capabilities(&row.process).len())
}

/// Goes through the recordings of the selected process, newest first.
fn choose_recording(state: &mut State, step: Step) {
    let Some(key) = state.list.selected() else { return };
    let ids: Vec<_> = state.recordings.of(key).map(|tracked| tracked.value.id).collect();
    let shown = state.shown_recording().map(|tracked| tracked.value.id);
    let mut cursor = Cursor::at(ids.iter().position(|id| Some(*id) == shown).unwrap_or(0));
    cursor.go(step, ids.len(), ids.len());
    state.chosen = ids.get(cursor.at).copied();
}

fn open(state: &mut State) {
    match state.context() {
        Context::Jobs => open_operation(state),
        Context::Counters => state.fold_counters(),
        Context::Methods | Context::Flame => state.enter_sampling(),
        Context::Events => state.enter_event(),
        _ => state.focus = Focus::Detail,
    }
}

fn open_operation(state: &mut State) {
    if let Some(Activity::Job(job)) = state.selected_activity()
        && job.what.output().is_some()
    {
        state.overlay = Some(Overlay::Output(OutputView::new(job)));
        return;
    }
    let goal = state.selected_activity().map(|activity| {
        let recording = match activity {
            Activity::Recording(tracked) => Some(tracked.value.id),
            Activity::Job(_) => None,
        };
        (activity.key(), recording)
    });
    let Some((key, recording)) = goal else { return };
    if !go_to(state, key) {
        return;
    }
    if recording.is_some() {
        state.tab = Tab::Trace;
        // The details turn to the process now, so that the choice is not forgotten when they would later.
        state.details.turn_to(Some(key), state.now.elapsed);
        state.chosen = recording;
    }
}

/// Selects a process, even one that the filter hides. Says so when it is not there any more.
pub(super) fn go_to(state: &mut State, key: crate::model::ProcessKey) -> bool {
    if !state.list.select(key) && state.list.find(key).is_some() {
        state.list.set_filter("");
        state.list.select(key);
    }
    let there = state.list.selected() == Some(key);
    if !there {
        super::warn(state, format!("Process {} is not there any more.", key.pid));
    }
    there
}

/// Steps back: from the details to the table; in the table puts away errors, then the filter.
fn back(state: &mut State) {
    if state.context() == Context::Flame && state.is_zoomed_flame() {
        state.widen();
    } else if state.context() == Context::Events && state.views.events.open {
        state.views.events.open = false;
    } else if state.focus == Focus::Detail {
        state.focus = Focus::List;
    } else if state.toasts.shown(state.now.elapsed).any(|toast| toast.level == Level::Error) {
        state.toasts.dismiss(state.now.elapsed);
    } else {
        state.list.set_filter("");
    }
}

/// A digit is a column to sort by in the table, a tab in the details.
fn count_to(state: &mut State, digit: Option<u32>) {
    let Some(digit) = digit else { return };
    let at = if digit == 0 { 9 } else { digit as usize - 1 };
    if state.focus == Focus::Detail {
        let key = digit.to_string();
        let files = state.shows_files();
        let tab = Tab::ALL.into_iter().find(|tab| (tab.is_in_file() || !files) && tab.key(files) == key);
        state.tab = tab.unwrap_or(state.tab);
    } else if let Some(column) = shown_columns(state).get(at) {
        state.list.sort_by(*column);
    }
}

fn shown_columns(state: &State) -> Vec<Column> {
    state.layout().list.map(|list| list.columns.iter().map(|slot| slot.column).collect()).unwrap_or_default()
}

/// Sorts by the column beside the current one, round the ends, among those that are shown.
fn sort_beside(state: &mut State, right: bool) {
    let columns = shown_columns(state);
    if columns.is_empty() {
        return;
    }
    let at = columns.iter().position(|column| *column == state.list.sort().column);
    let next = match at {
        Some(at) => (at + if right { 1 } else { columns.len() - 1 }) % columns.len(),
        None => 0,
    };
    if Some(next) != at {
        state.list.sort_by(columns[next]);
    }
}

fn type_line(state: &mut State, purpose: Typing, text: String) {
    state.line = Some(Line { purpose, input: Input::new(text) });
}

/// Freezes what is shown, or shows what has come meanwhile.
fn pause(state: &mut State) -> Vec<Effect> {
    match state.pause.take() {
        None => {
            state.pause = Some(Pause { since: state.now, pending: None });
            state.recordings.freeze(Some(state.now.elapsed));
            Vec::new()
        }
        Some(pause) => {
            state.recordings.freeze(None);
            state.watches.thaw();
            watching::mark(state);
            pause.pending.map_or_else(Vec::new, |pending| super::replies::processes(state, pending))
        }
    }
}

/// What there is to copy where the focus is; nothing that is masked.
fn copyable(state: &State) -> Vec<CopyItem> {
    let mut items = Vec::new();
    let mut add = |label: &'static str, text: String| {
        if !text.is_empty() {
            items.push(CopyItem { label, text });
        }
    };
    let context = state.context();
    if context == Context::Environment
        && let Some((index, variable)) = state.variable()
    {
        if state.details.is_readable(index) {
            add("value", variable.value.clone());
            add("NAME=value", format!("{}={}", variable.name, variable.value));
        }
        add("variable name", variable.name.clone());
    }
    if context == Context::Jobs
        && let Some(activity) = state.selected_activity()
    {
        activity.files().into_iter().for_each(|file| add("file", file));
        let now = state.now;
        let log = |only: Option<crate::model::ProcessKey>| {
            let all = state.activity();
            let wanted = all.iter().rev().filter(|other| only.is_none_or(|key| other.key() == key));
            wanted.map(|other| other.entry(now)).collect::<Vec<_>>().join("\n")
        };
        add("what it answered", activity.answer());
        add("this entry", activity.entry(now));
        add("log of the process", log(Some(activity.key())));
        add("whole log", log(None));
    }
    if let Some((label, text)) = state.shown_name() {
        add(label, text);
    }
    if let Some(tracked) = state.shown_recording() {
        add("trace file", tracked.value.file.to_string_lossy().into_owned());
        add("tracepoints", tracked.value.kernel.as_ref().map(ToString::to_string).unwrap_or_default());
    }
    if let Some(row) = state.selected() {
        let process = &row.process;
        add("pid", process.key.pid.to_string());
        if process.ns_pid != process.key.pid {
            add("pid in its container", process.ns_pid.to_string());
        }
        add("name", process.name.clone());
        add("command line", process.command_line.clone());
        add("socket", process.socket.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default());
        add("container", process.container.clone().unwrap_or_default());
        add("why", process.contact.reason().unwrap_or_default().to_owned());
    }
    items
}
