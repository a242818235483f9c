//! Message handling.

pub(super) mod comparison;
pub(super) mod files;
pub(super) mod heap;
pub(super) mod keys;
pub(super) mod leaving;
mod mouse;
pub(super) mod overlays;
pub(super) mod panes;
pub(super) mod process;
mod replies;
pub(super) mod tagged;
mod time;
pub(super) mod watching;

use super::toast::Level;
use super::{Effect, Job, Msg, Now, Overlay, State};

/// Applies a message to the state and returns the effects.
pub fn update(state: &mut State, msg: Msg, now: Now) -> Vec<Effect> {
    if state.is_quitting {
        return Vec::new();
    }
    // A time-driven change that is due by now needs a redraw.
    let due = time::next_change(state);
    state.now = now;
    state.dirty |= due.is_some_and(|due| due <= now.elapsed);

    if matches!(msg, Msg::Key(_) | Msg::Mouse(_) | Msg::Paste(_)) {
        // From now on the selection counts as the user's.
        state.list.pin();
    }
    let mut effects = match msg {
        Msg::Key(event) => keys::key(state, &event),
        Msg::Mouse(event) => mouse::mouse(state, event),
        Msg::Paste(text) => keys::paste(state, &text),
        Msg::Resize(width, height) => {
            state.size = (width, height);
            state.dirty = true;
            Vec::new()
        }
        Msg::Tick => Vec::new(),
        Msg::Processes(processes) => {
            let effects = replies::processes(state, processes);
            effects.into_iter().chain(overlays::follow_log(state)).collect()
        }
        Msg::StaleSockets(found) => {
            state.stale_sockets = found;
            state.dirty = true;
            Vec::new()
        }
        Msg::Threads { ticket, threads } => {
            state.dirty |= state.details.threads.take(ticket, threads, state.now.elapsed);
            Vec::new()
        }
        Msg::Assemblies { ticket, paths } => {
            if state.details.assemblies.refresh.take(ticket) {
                (state.details.assemblies.paths, state.dirty) = (Some(paths), true);
            }
            Vec::new()
        }
        Msg::Stacks { ticket, result } => {
            if state.details.stacks.take(ticket, result) {
                (state.details.stacks_at, state.dirty) = (state.now.elapsed, true);
            }
            Vec::new()
        }
        Msg::HeapProgress { ticket, objects, bytes } => heap::progress(state, ticket, objects, bytes),
        Msg::HeapWalked { ticket, result } => heap::walked(state, ticket, result),
        Msg::Environment { ticket, result } => replies::environment(state, ticket, result),
        Msg::TracepointsMissing { key, missing } => replies::tracepoints_missing(state, key, missing),
        Msg::Recording(recording) => replies::recording(state, *recording),
        Msg::TraceFailed { id, reason } => replies::trace_failed(state, id, reason),
        Msg::JobProgress { ticket, percent } => {
            state.jobs.advance(ticket, percent);
            state.dirty = true;
            Vec::new()
        }
        Msg::FilesFound { ticket, files } => files::found(state, ticket, files),
        Msg::OwnLog(lines) => overlays::show_log(state, &lines),
        Msg::FreeName { proposed, free } => {
            if let Some(Overlay::Form(form)) = state.dialog_mut() {
                form.rename(&proposed, &free);
                state.dirty = true;
            }
            Vec::new()
        }
        Msg::FileProgress { ticket, bytes } => files::progress(state, ticket, bytes),
        Msg::FileRead { ticket, result } => files::read(state, ticket, result),
        Msg::WatchReport { ticket, counters, cpu } => watching::apply(state, ticket, counters, cpu),
        Msg::WatchEnded { ticket, trouble } => watching::ended(state, ticket, trouble),
        Msg::Launched { ticket, recording } => process::launched(state, ticket, *recording),
        Msg::ProgramOutput { ticket, lines } => process::program_output(state, ticket, lines),
        Msg::JobStalled { ticket, notice } if state.jobs.find(ticket).is_some_and(Job::is_running) => warn(state, notice),
        Msg::JobStalled { .. } => Vec::new(),
        Msg::Producer { ticket, report } => replies::producer(state, ticket, report),
        Msg::JobDone { ticket, result } => replies::job_done(state, ticket, result),
        Msg::Copied { label, to } => replies::copied(state, &label, to),
        Msg::Failed(reason) => replies::failed(state, reason),
        Msg::Terminate => leaving::terminate(state),
        Msg::TaskPanicked(text) => replies::task_panicked(state, &text),
    };
    effects.extend(time::update_due(state));
    comparison::refresh(state);
    effects
}

fn warn(state: &mut State, text: impl Into<crate::model::SafeText>) -> Vec<Effect> {
    state.notify(Level::Warning, text);
    Vec::new()
}

#[cfg(test)]
mod tests;
