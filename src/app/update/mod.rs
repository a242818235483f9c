//! Message handling.

pub(super) mod comparison;
pub(super) mod drag;
pub(super) mod files;
pub(super) mod heap;
pub(super) mod keys;
pub(super) mod leaving;
mod mouse;
pub(super) mod overlays;
pub(super) mod panes;
pub(super) mod process;
mod replies;
mod submit;
pub(super) mod tagged;
mod time;
pub(super) mod watching;

use super::{Effect, Job, Level, Msg, Now, State};

/// Applies a message to the state and returns the effects.
pub fn update(state: &mut State, msg: Msg, now: Now) -> Vec<Effect> {
    if state.is_quitting {
        return Vec::new();
    }
    // A time-driven change that is due by now needs a redraw, and so does any message except regular ones, which set the flag if they change anything.
    let due = time::next_change(state);
    let is_regular = matches!(
        msg,
        Msg::Tick
            | Msg::Mouse(_)
            | Msg::Processes(_)
            | Msg::Recording(_)
            | Msg::WatchReport { .. }
            | Msg::OwnLog(_)
            | Msg::ProgramOutput { .. }
    );
    state.now = now;
    state.dirty |= !is_regular || due.is_some_and(|due| due <= now.elapsed);

    if matches!(msg, Msg::Key(_) | Msg::Mouse(_) | Msg::Paste(_)) {
        // From now on the selection counts as the user's.
        state.list.pin();
    }
    let mut effects = Vec::new();
    match msg {
        Msg::Key(event) => effects = keys::key(state, &event),
        Msg::Mouse(event) => effects = mouse::mouse(state, event),
        Msg::Paste(text) => keys::paste(state, &text),
        Msg::Resize(width, height) => state.size = (width, height),
        Msg::Tick => {}
        Msg::Processes(processes) => {
            replies::processes(state, processes);
            effects.extend(overlays::follow_log(state));
        }
        Msg::StaleSockets(found) => state.stale_sockets = found,
        Msg::Threads { ticket, threads } => _ = state.details.threads.take(ticket, threads, now.elapsed),
        Msg::Assemblies { ticket, paths } => {
            if state.details.assemblies.refresh.take(ticket) {
                state.details.assemblies.paths = Some(paths);
            }
        }
        Msg::Stacks { ticket, result } => {
            if state.details.stacks.take(ticket, result) {
                state.details.stacks_at = now.elapsed;
            }
        }
        Msg::HeapProgress { ticket, objects, bytes } => state.heaps.advance(ticket, objects, bytes),
        Msg::HeapWalked { ticket, result } => heap::walked(state, ticket, result),
        Msg::Environment { ticket, result } => replies::environment(state, ticket, result),
        Msg::TracepointsMissing { key, missing } => replies::tracepoints_missing(state, key, missing),
        Msg::Recording(recording) => replies::recording(state, *recording),
        Msg::TraceFailed { id, reason } => replies::trace_failed(state, id, reason),
        Msg::JobProgress { ticket, percent } => state.jobs.advance(ticket, percent),
        Msg::FilesFound { ticket, files } => files::found(state, ticket, files),
        Msg::OwnLog(lines) => overlays::show_output(state, None, &lines),
        Msg::FreeName { proposed, free } => {
            if let Some(form) = state.covered_form_mut() {
                form.rename(&proposed, &free);
            }
        }
        Msg::FreeSpace { folder, space } => {
            if let Some(form) = state.covered_form_mut() {
                form.show_free_space(&folder, space);
            }
        }
        Msg::FileProgress { ticket, bytes } => files::progress(state, ticket, bytes),
        Msg::FileRead { ticket, result } => files::read(state, ticket, result),
        Msg::WatchReport { ticket, counters, usage } => watching::apply(state, ticket, counters, usage),
        Msg::WatchEnded { ticket, trouble } => watching::ended(state, ticket, trouble),
        Msg::Launched { ticket, recording } => effects.push(process::launched(state, ticket, *recording)),
        Msg::ProgramOutput { ticket, lines } => {
            overlays::show_output(state, Some(ticket), &lines);
            state.jobs.apply(ticket, lines);
        }
        Msg::JobStalled { ticket, notice } => {
            if state.jobs.find(ticket).is_some_and(Job::is_running) {
                state.notify(Level::Warning, notice);
            }
        }
        Msg::Producer { ticket, report } => replies::producer(state, ticket, report),
        Msg::JobDone { ticket, result } => replies::job_done(state, ticket, result),
        Msg::Copied { label, to } => replies::copied(state, &label, to),
        Msg::Failed(reason) => state.notify(Level::Error, reason),
        Msg::Terminate => effects = leaving::terminate(state),
        Msg::TaskPanicked(text) => {
            state.notify(Level::Error, format!("An internal error occurred: {text}. The rest of dn-top continues."));
        }
    }
    effects.extend(time::update_due(state));
    comparison::refresh(state);
    state.refresh_flame_matches();
    effects
}

#[cfg(test)]
mod tests;
