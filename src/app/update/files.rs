//! Recorded files: reading them, and choosing which part is looked at.

use crate::app::toast::Level;
use crate::app::{Effect, OpenFile, State, Ticket};
use crate::model::{FileContents, NameSearch, Outcome, Phase, Recording, SafeText, StoppedBy};

/// Changes the range of the selected file.
pub(in crate::app) fn walk(state: &mut State, change: impl Fn(&mut OpenFile)) {
    if let Some(file) = state.open_file_mut() {
        change(file);
    }
}

/// Has every file read of which something else is to be shown than what was read.
pub(in crate::app) fn ask(state: &mut State) -> Vec<Effect> {
    let unasked: Vec<usize> = (0..state.files.len()).filter(|index| state.files[*index].ticket.is_none()).collect();
    let ask = |index: usize| {
        let ticket = state.ticket();
        let file = &mut state.files[index];
        file.ticket = Some(ticket);
        file.progress = Some(0);
        Effect::ReadFile { key: file.key, ticket, path: file.path(), span: file.span() }
    };
    unasked.into_iter().map(ask).collect()
}

/// Has the file of the recording that is shown read, where its analysis was released while it was not shown.
pub(in crate::app) fn ask_again(state: &mut State) -> Option<Effect> {
    let id = state.shown_recording()?.value.id;
    let (key, path) = state.recordings.released(id)?;
    let path = path.clone();
    let ticket = state.ticket();
    state.recordings.ask(id, ticket);
    state.dirty = true;
    Some(Effect::ReadFile { key, ticket, path, span: None })
}

pub(in crate::app) fn progress(state: &mut State, ticket: Ticket, bytes: u64) -> Vec<Effect> {
    if let Some(file) = state.files.iter_mut().find(|file| file.ticket == Some(ticket)) {
        file.progress = Some(bytes);
        state.dirty = true;
    }
    Vec::new()
}

/// A file was read, or cannot be.
pub(in crate::app) fn read(state: &mut State, ticket: Ticket, result: Result<FileContents, SafeText>) -> Vec<Effect> {
    let Some(file) = state.files.iter_mut().find(|file| file.ticket == Some(ticket)) else {
        let trouble = result.as_ref().err().cloned();
        if state.recordings.answer(ticket, result) {
            state.dirty = true;
            if let Some(trouble) = trouble {
                state.say(Level::Error, trouble);
            }
        }
        return Vec::new();
    };
    file.progress = None;
    state.dirty = true;
    let contents = match result {
        Ok(contents) => contents,
        Err(trouble) => {
            state.say(Level::Error, trouble);
            return Vec::new();
        }
    };
    let FileContents { analysis, bytes, end, duration, complete, trouble } = contents;
    file.complete = Some(complete);
    if file.span().is_none() {
        file.end = Some(end);
    }
    let path = file.path();
    let outcome = Outcome { stopped_by: StoppedBy::Interrupt, complete, file: Some(path.clone()), trouble };
    let totals = analysis.snapshot.totals;
    let recording = Recording {
        id: file.recording(),
        key: file.key,
        name: file.process().name,
        file: path,
        what: Vec::new(),
        notes: Vec::new(),
        phase: Phase::Done(outcome),
        elapsed: duration,
        bytes,
        events: totals.events,
        dropped: totals.dropped,
        unanalysed: 0,
        history: Vec::new(),
        threads: [].into(),
        names: NameSearch::NotYet,
        kept: None,
        kernel: None,
        scheduling: None,
        no_cpu: None,
        cpu_file: None,
        analysis: Some(analysis),
    };
    state.recordings.put(recording, state.now.elapsed);
    Vec::new()
}
