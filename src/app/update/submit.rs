//! Performs what a dialog requests.

use std::sync::Arc;

use crate::app::{Effect, Form, Job, JobKind, Level, OutputView, Overlay, Producer, Purpose, Row, State, Subject, Tab};
use crate::ipc::DumpKind;
use crate::model::{ProcessKey, RunState, TraceOptions, check_heap_file};

use super::{leaving, process};

/// Performs the action of a form, or returns the invalid field and the reason. `None`: the button must be pressed again.
pub(super) fn submit(state: &mut State, form: &Form, button: usize) -> Result<Option<Vec<Effect>>, (usize, String)> {
    let mut subject = form.subject.clone().unwrap_or_else(|| without_process("dn-top"));
    let kind = match &form.purpose {
        Purpose::Quit if button == 2 => return Ok(Some(leaving::quit_now(state, true))),
        Purpose::Quit => return Ok(Some(leaving::finish_recordings(state))),
        Purpose::StopProducer => return Ok(Some(vec![Effect::StopProducer])),
        Purpose::Trace(_) => {
            let options = form.trace_options()?;
            if options.block && !form.pressed_once {
                return Ok(None);
            }
            state.last_trace_options = TraceOptions { file: None, ..options.clone() };
            return Ok(Some(process::start_trace(state, subject, options)));
        }
        Purpose::Resume(_) if form.resumes_all() => {
            let subjects: Vec<_> = state.suspended().collect();
            return Ok(Some(subjects.into_iter().map(|subject| begin(state, subject, JobKind::Resume)).collect()));
        }
        Purpose::Resume(_) => JobKind::Resume,
        Purpose::Dump(_) => {
            let request = form.dump_request()?;
            if request.kind == DumpKind::Full && !form.pressed_once {
                return Ok(None);
            }
            JobKind::Dump(request)
        }
        Purpose::PerfMap(_) => JobKind::PerfMap(form.perf_map_request()),
        Purpose::Control(change) => JobKind::Control(*change, form.control_request(*change)?),
        Purpose::Export(_) => JobKind::Export(form.export_request()?),
        Purpose::Launch => {
            let program = form.launch_request(state.now)?;
            subject = without_process(program.name());
            JobKind::Launch(Box::new(program), state.recordings.next_id())
        }
        Purpose::Port => JobKind::Port(form.port_request()?),
        Purpose::ClosePort => {
            let Some(path) = state.port.clone() else { return Ok(Some(Vec::new())) };
            let is_suspended = |row: &&Row| form.resumes_suspended() && row.process.run_state == RunState::Suspended;
            JobKind::ClosePort(path, state.connected().filter(is_suspended).map(|row| row.process.key).collect())
        }
        Purpose::CleanUp(folders) => JobKind::CleanUp(folders.clone()),
        Purpose::Producer => {
            let (targets, profiles) = form.producer_request()?;
            JobKind::Producer { targets, profiles }
        }
        Purpose::HeapWalk => JobKind::HeapWalk,
        Purpose::HeapFile(walk) => {
            let destination = form.new_file(0)?;
            check_heap_file(&destination).map_err(|wrong| (0, format!("{wrong}.")))?;
            let Some(heap) = state.heaps.written_by(*walk) else { return Ok(Some(Vec::new())) };
            subject = heap.subject.clone();
            JobKind::HeapFile(*walk, destination)
        }
    };
    Ok(Some(vec![begin(state, subject, kind)]))
}

/// Returns the subject of a job that concerns no process, or one that does not exist yet.
fn without_process(name: &str) -> Subject {
    Subject { key: ProcessKey { pid: 0, started: 0 }, name: name.into() }
}

/// Returns the message that a job has begun.
pub(super) fn beginning(subject: &Subject, kind: &JobKind) -> String {
    format!("{subject}: {} …", kind.title())
}

/// Adds a job to the action log, and shows what it produces.
fn begin(state: &mut State, subject: Subject, kind: JobKind) -> Effect {
    let (key, ticket) = (subject.key, state.next_ticket());
    state.notify(Level::Info, beginning(&subject, &kind));
    let job = Job { ticket, subject, kind, began: state.now.elapsed, ended: None, output_lines: Arc::default(), percent: None };
    match &job.kind {
        JobKind::HeapWalk => {
            state.heaps.begin(job.subject.clone(), ticket);
            state.open_tab(Tab::Heap);
        }
        JobKind::Producer { .. } => state.producer = Some(Producer::new(ticket)),
        JobKind::Launch(program, _) => {
            state.last_profiles.clone_from(&program.options.profiles);
            state.overlay = Some(Overlay::Output(OutputView::new(&job)));
        }
        _ => {}
    }
    let kind = job.kind.clone();
    state.jobs.begin(job);
    Effect::Begin { key, ticket, kind }
}
