//! Actions in the panes.

use std::path::PathBuf;

use tui_input::Input;

use crate::app::action::Context;
use crate::app::cursor::{Neighbor, Step};
use crate::app::dialog::{Change, CopyItem, ListState, Overlay, Pick, Reader, Subject};
use crate::app::mode::{Line, LinePurpose, Pause};
use crate::app::toast::Level;
use crate::app::{Activity, Answer, Column, Cursor, Effect, Focus, Form, FrameStats, OutputView, State, Tab};

use super::{files, overlays};
use crate::model::{Process, ProcessKey, RunState, TraceOptions, default_dump_path, reachable_path, sanitize};

/// Moves in the overlay or the focused pane.
pub(in crate::app) fn step(state: &mut State, step: Step) {
    if state.overlay.is_some() {
        return overlays::step(state, step);
    }
    if state.focus == Focus::List {
        let page = state.layout().list_height();
        return state.list.move_by(step.lines(page));
    }
    match state.tab {
        Tab::Overview => step_overview(state, step),
        Tab::Trace => choose_recording(state, step),
        Tab::Methods if state.is_flame() => state.select_frame(|graph| Some(graph.after(step))),
        _ => state.step_view(step),
    }
}

/// Selects the next finding, and scrolls after the last one.
fn step_overview(state: &mut State, step: Step) {
    let Some(body) = state.layout().detail.map(|detail| detail.body) else { return };
    let Some(overview) = state.overview() else { return };
    let bar = overview.scroll_bar(body, state.details.scroll);
    let (page, lines) = bar.lines();
    let shown = overview.findings.iter().take(usize::from(overview.layout(body).findings));
    let kinds: Vec<_> = shown.map(|found| found.finding.kind()).collect();
    let next = overview.selected.checked_add_signed(step.lines(page)).and_then(|next| kinds.get(next));
    let is_single = matches!(step, Step::By(-1 | 1));
    match next.filter(|_| is_single && state.details.scroll == 0) {
        Some(kind) => state.details.finding = Some(*kind),
        None => state.details.scroll = bar.offset().saturating_add_signed(step.lines(page)).min(lines.saturating_sub(page)),
    }
}

/// Opens the details of the selected finding of the overview.
pub(in crate::app) fn open_finding(state: &mut State) -> Vec<Effect> {
    let finding = state.overview().and_then(|mut overview| {
        let at = overview.selected;
        (at < overview.findings.len()).then(|| overview.findings.swap_remove(at).finding)
    });
    finding.map_or_else(Vec::new, |finding| state.open_finding(&finding))
}

/// Opens the tab to the right or left.
pub(in crate::app) fn switch_tab(state: &mut State, to: Neighbor) {
    state.tab = state.tab.step(to, state.row_kind());
}

pub(in crate::app) fn open_tab_by_digit(state: &mut State, digit: usize) {
    let (key, of) = (digit.to_string(), state.row_kind());
    let tab = Tab::ALL.into_iter().find(|tab| tab.is_shown(of) && tab.key(of) == key);
    state.tab = tab.unwrap_or(state.tab);
}

pub(in crate::app) fn sort_by_digit(state: &mut State, digit: usize) {
    let at = if digit == 0 { 9 } else { digit - 1 };
    if let Some(column) = shown_columns(state).get(at) {
        state.list.sort_by(*column);
    }
}

/// Starts typing the process filter, with the focus on the table.
pub(in crate::app) fn filter_processes(state: &mut State) {
    state.focus = Focus::List;
    type_line(state, LinePurpose::Filter, state.list.filter().as_str().to_owned());
}

pub(in crate::app) fn filter_tab(state: &mut State) {
    type_line(state, LinePurpose::Tab, state.views.filter(state.tab).as_str().to_owned());
}

pub(in crate::app) fn refresh(state: &mut State) -> Vec<Effect> {
    if state.shows_files() {
        files::read_again(state);
        return Vec::new();
    }
    let since = state.details.since;
    state.details.reset(state.list.selected(), state.now.elapsed);
    state.details.since = since;
    vec![Effect::Refresh]
}

pub(in crate::app) fn reveal(state: &mut State) {
    if let Some((index, _)) = state.variable() {
        state.details.toggle_reveal(index);
    }
}

pub(in crate::app) fn environment(state: &mut State) {
    state.open_tab(Tab::Environment);
    // Requested explicitly, so there is no need to wait until the selection settles.
    state.details.settles_at = None;
}

/// Samples the stacks of all threads.
pub(in crate::app) fn stacks(state: &mut State) -> Vec<Effect> {
    let Some(key) = state.list.selected() else { return Vec::new() };
    let ticket = state.next_ticket();
    state.open_tab(Tab::Stacks);
    state.details.stacks = Answer::Requested(ticket);
    vec![Effect::SampleStacks { key, ticket }]
}

pub(in crate::app) fn profiles(state: &mut State) {
    if let Some(subject) = state.selected_subject() {
        state.overlay = Some(Overlay::profiles(subject, &state.last_profiles));
    }
}

pub(in crate::app) fn options(state: &mut State) -> Vec<Effect> {
    let options = state.last_trace_options.clone();
    trace_form(state, &options)
}

pub(in crate::app) fn actions(state: &mut State) {
    state.overlay = Some(Overlay::List(ListState::default(), Pick::Actions(state.selected_subject())));
}

/// Opens a dialog about the selected process.
fn open_form(state: &mut State, form: impl Fn(&State, &Process) -> Form) {
    if let Some(row) = state.selected() {
        state.overlay = Some(Overlay::Form(form(state, &row.process)));
    }
}

pub(in crate::app) fn control(state: &mut State, change: Change) {
    open_form(state, |_, process| Form::control(process, change));
}

pub(in crate::app) fn dump(state: &mut State) -> Vec<Effect> {
    let Some(row) = state.selected() else { return Vec::new() };
    let proposed = default_dump_path(&row.process, &state.options.output_name, state.now.file_stamp());
    let here = reachable_path(&row.process, &proposed);
    state.overlay = Some(Overlay::Form(Form::dump(&row.process, &proposed)));
    find_free_name(state, proposed, here)
}

/// Requests an unused name for the open dialog. Names that contain the time are unused anyway.
pub(in crate::app) fn find_free_name(state: &State, proposed: PathBuf, here: PathBuf) -> Vec<Effect> {
    if state.options.output_name.has_time() { Vec::new() } else { vec![Effect::FindFreeName { proposed, here }] }
}

pub(in crate::app) fn perf_map(state: &mut State) {
    open_form(state, |state, process| Form::perf_map(process, state.jobs.perf_map(process.key)));
}

pub(in crate::app) fn resume(state: &mut State) {
    open_form(state, |state, process| Form::resume(process, state.suspended().count()));
}

pub(in crate::app) fn export(state: &mut State) {
    state.overlay = export_form(state).map(Overlay::Form);
}

fn export_form(state: &State) -> Option<Form> {
    let subject = state.selected_subject()?;
    if let Some(file) = state.open_file() {
        return Some(Form::export(subject, file.facts.path.clone(), file.span(), false, state.now));
    }
    let (source, grows) = state.shown_recording()?.written()?;
    Some(Form::export(subject, source, None, grows, state.now))
}

/// Opens the dialog for serving a diagnostic port, or for closing the served one.
pub(in crate::app) fn port(state: &mut State) {
    let form = match &state.port {
        None => Form::port(),
        Some(path) => {
            let connected: Vec<_> = state.connected().map(|row| &row.process).collect();
            let waiting = connected.iter().filter(|process| process.run_state == RunState::Suspended).count();
            let recorded = connected.iter().filter(|process| state.recordings.is_recording(process.key)).count();
            let subjects: Vec<_> = connected.into_iter().map(Subject::of).collect();
            Form::close_port(path, &subjects, waiting, recorded)
        }
    };
    state.overlay = Some(Overlay::Form(form));
}

pub(in crate::app) fn clean_up(state: &mut State) {
    state.overlay = Some(Overlay::Form(Form::clean_up(state.stale_sockets.folders.clone())));
}

pub(in crate::app) fn launch(state: &mut State) {
    state.overlay = Some(Overlay::Form(Form::launch(&state.last_profiles)));
}

pub(in crate::app) fn producer(state: &mut State) {
    let form = match &state.producer {
        Some(producer) => Form::running_producer(producer),
        None => Form::producer(&state.last_profiles),
    };
    state.overlay = Some(Overlay::Form(form));
}

pub(in crate::app) fn copy(state: &mut State) {
    let items = copyable(state);
    if !items.is_empty() {
        state.overlay = Some(Overlay::List(ListState::default(), Pick::Copy(items)));
    }
}

pub(in crate::app) fn messages(state: &mut State) {
    state.toasts.dismiss(state.now.elapsed);
    state.overlay = Some(Overlay::Messages(Reader::default()));
}

pub(in crate::app) fn toggle_frame_stats(state: &mut State) {
    state.frame_stats = if state.frame_stats.is_some() { None } else { Some(FrameStats::default()) };
}

/// Opens the trace form for the selected process.
pub(in crate::app) fn trace_form(state: &mut State, options: &TraceOptions) -> Vec<Effect> {
    let Some(row) = state.selected() else { return Vec::new() };
    let key = row.process.key;
    state.overlay = Some(Overlay::Form(Form::trace(&row.process, options)));
    vec![Effect::CheckTracepoints { key }]
}

/// Steps through the recordings of the selected process, newest first.
fn choose_recording(state: &mut State, step: Step) {
    let Some(key) = state.list.selected() else { return };
    let ids: Vec<_> = state.recordings.of(key).map(|tracked| tracked.value.id).collect();
    let shown = state.shown_recording().map(|tracked| tracked.value.id);
    let mut cursor = Cursor::at(ids.iter().position(|id| Some(*id) == shown).unwrap_or(0));
    cursor.go(step, ids.len(), ids.len());
    state.chosen_recording = ids.get(cursor.at).copied();
}

/// Shows the process of the selected job, or its program's output.
pub(in crate::app) fn open_job(state: &mut State) {
    let Some(activity) = state.selected_activity() else { return };
    let key = activity.key();
    let recording = match activity {
        Activity::Recording(tracked) => Some(tracked.value.id),
        Activity::Job(job) if job.kind.output().is_some() => {
            state.overlay = Some(Overlay::Output(OutputView::new(job)));
            return;
        }
        Activity::Job(job) if key.pid == 0 => {
            let text = format!("The {} job concerns no process.", job.kind.title());
            return state.notify(Level::Warning, text);
        }
        Activity::Job(_) => None,
    };
    if go_to(state, key) && recording.is_some() {
        state.tab = Tab::Trace;
        // Switch the details now, so that a later switch does not reset the chosen recording.
        state.details.reset(Some(key), state.now.elapsed);
        state.chosen_recording = recording;
    }
}

/// Selects a process, even if the filter hides it, or notifies that it has ended.
pub(in crate::app) fn go_to(state: &mut State, key: ProcessKey) -> bool {
    if !state.list.select(key) && state.list.find(key).is_some() {
        state.list.set_filter("");
        state.list.select(key);
    }
    let there = state.list.selected() == Some(key);
    if !there {
        state.notify(Level::Warning, format!("Process {} has ended.", key.pid));
    }
    there
}

/// Goes back: from the details to the table; in the table, dismisses errors, then clears the filter, then closes files opened from it.
pub(in crate::app) fn back(state: &mut State) -> Vec<Effect> {
    if state.context() == Context::Flame && state.is_zoomed_flame() {
        state.widen();
    } else if state.context() == Context::Events && state.views.events.open {
        state.views.events.open = false;
    } else if state.context() == Context::Heap && state.views.heap.open {
        state.views.heap.open = false;
    } else if state.context() == Context::AllocationTree {
        state.leave_allocation_tree();
    } else if state.focus == Focus::Detail {
        state.focus = Focus::List;
    } else if state.toasts.shown(state.now.elapsed).any(|toast| toast.level == Level::Error) {
        state.toasts.dismiss(state.now.elapsed);
    } else if state.saved_process_view.is_some() && state.list.filter().as_str().is_empty() {
        return files::close(state);
    } else {
        state.list.set_filter("");
    }
    Vec::new()
}

fn shown_columns(state: &State) -> Vec<Column> {
    state.layout().list.map(|list| list.columns.iter().map(|slot| slot.column).collect()).unwrap_or_default()
}

/// Sorts by the column next to the current one, among the visible columns, wrapping around at the ends.
pub(in crate::app) fn sort_by_adjacent_column(state: &mut State, to: Neighbor) {
    let columns = shown_columns(state);
    if columns.is_empty() {
        return;
    }
    let at = columns.iter().position(|column| *column == state.list.sort().column);
    let next = at.map_or(0, |at| to.of(at, columns.len()));
    if Some(next) != at {
        state.list.sort_by(columns[next]);
    }
}

fn type_line(state: &mut State, purpose: LinePurpose, text: String) {
    state.line = Some(Line { purpose, input: Input::new(text), selected: state.list.selected() });
}

/// Pauses or resumes the display.
pub(in crate::app) fn pause(state: &mut State) {
    match state.pause.take() {
        None => {
            state.pause = Some(Pause { since: state.now, pending: None });
            state.recordings.freeze(Some(state.now.elapsed));
        }
        Some(pause) => {
            state.recordings.freeze(None);
            state.watches.show_pending(&state.options.thresholds, state.now.elapsed);
            if let Some(pending) = pause.pending {
                super::replies::processes(state, pending);
            }
        }
    }
}

/// Returns what can be copied from the focused pane; never masked values.
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
            add("value", variable.value.to_string());
            add("NAME=value", format!("{}={}", variable.name, variable.value));
        }
        add("variable name", variable.name.to_string());
    }
    if context == Context::Jobs
        && let Some(activity) = state.selected_activity()
    {
        activity.files().into_iter().for_each(|file| add("file", file));
        let now = state.now;
        let log = |only: Option<ProcessKey>| {
            let all = state.activity();
            let wanted = all.iter().rev().filter(|other| only.is_none_or(|key| other.key() == key));
            wanted.map(|other| other.entry(now)).collect::<Vec<_>>().join("\n")
        };
        add("answer", activity.answer());
        add("this entry", activity.entry(now));
        add("process log", log(Some(activity.key())));
        add("full log", log(None));
    }
    if let Some((label, text)) = state.copyable_selection() {
        add(label, text);
    }
    if let Some(tracked) = state.shown_recording() {
        Activity::Recording(tracked).files().into_iter().for_each(|file| add("trace file", file));
        add("tracepoints", tracked.value.kernel.as_ref().map(ToString::to_string).unwrap_or_default());
    }
    if let Some(row) = state.selected() {
        let process = &row.process;
        add("pid", process.key.pid.to_string());
        if process.ns_pid != process.key.pid {
            add("pid in container", process.ns_pid.to_string());
        }
        add("name", process.name.to_string());
        // That of a file is its path, which is already in the list if it is a recording.
        match (state.shows_files(), state.shown_recording()) {
            (false, _) => add("command line", process.command_line.to_string()),
            (true, None) => add("file", process.command_line.to_string()),
            (true, Some(_)) => {}
        }
        add("socket", process.socket.as_ref().map(|path| sanitize(&path.to_string_lossy())).unwrap_or_default());
        add("container", process.container.as_deref().unwrap_or_default().to_owned());
        add("reason", row.trouble().unwrap_or_default().into_owned());
    }
    items
}
