//! Performs what a dialog requests.

use std::sync::Arc;

use crate::app::dialog::ControlRequest;
use crate::app::{Effect, Form, Job, JobKind, Level, OutputView, Overlay, Producer, Purpose, Row, State, Subject, Ticket};
use crate::ipc::DumpKind;
use crate::model::{ProcessKey, RunState, TraceOptions, check_heap_file, shown_command_line};

use super::{heap, leaving, process};

/// Performs the action of a form, or returns the invalid field and the reason. `None`: the button must be pressed again.
pub(super) fn submit(state: &mut State, form: &Form, button: usize) -> Result<Option<Vec<Effect>>, (usize, String)> {
    let subject = form.subject.clone().unwrap_or_else(|| without_process("dn-top"));
    let key = subject.key;
    Ok(Some(match &form.purpose {
        Purpose::Quit if button == 2 => leaving::quit_now(state, true),
        Purpose::Quit => leaving::finish_recordings(state),
        Purpose::Dump(_) => {
            let request = form.dump_request()?;
            if request.kind == DumpKind::Full && !form.pressed_once {
                return Ok(None);
            }
            let ticket = begin(state, subject, JobKind::Dump(request.clone()));
            vec![Effect::Dump { key, request, ticket }]
        }
        Purpose::Trace(_) => {
            let options = form.trace_options()?;
            if options.block && !form.pressed_once {
                return Ok(None);
            }
            state.last_trace_options = TraceOptions { file: None, block: false, ..options.clone() };
            process::start_trace(state, subject, options)
        }
        Purpose::PerfMap(_) => {
            let kind = form.perf_map_request();
            let ticket = begin(state, subject, JobKind::PerfMap(kind));
            vec![Effect::PerfMap { key, kind, ticket }]
        }
        Purpose::Resume(_) => {
            let subjects = if form.resumes_all() { state.suspended().collect() } else { vec![subject] };
            let resume = |subject: Subject| Effect::Resume { key: subject.key, ticket: begin(state, subject, JobKind::Resume) };
            subjects.into_iter().map(resume).collect()
        }
        Purpose::Control(change) => {
            let ControlRequest { command, data, what } = form.control_request(*change)?;
            let ticket = begin(state, subject, JobKind::Control(*change, what));
            vec![Effect::Control { key, command, data, ticket }]
        }
        Purpose::Export(_) => {
            let request = form.export_request()?;
            let ticket = begin(state, subject, JobKind::Export(request.destination.clone()));
            vec![Effect::Export { request, ticket }]
        }
        Purpose::Launch => {
            let program = form.launch_request(state.now)?;
            let kind = JobKind::Launch { line: shown_command_line(&program.words.join(" ")), output: program.output.clone() };
            let ticket = begin(state, without_process(program.name()), kind);
            state.last_profiles.clone_from(&program.options.profiles);
            state.overlay = state.jobs.find(ticket).map(|job| Overlay::Output(OutputView::new(job)));
            vec![Effect::Launch { program: Box::new(program), id: state.recordings.next_id(), ticket }]
        }
        Purpose::Port => {
            let path = form.port_request()?;
            let ticket = begin(state, subject, JobKind::Port(path.clone()));
            vec![Effect::ServePort { path, ticket }]
        }
        Purpose::ClosePort => {
            let Some(path) = state.port.clone() else { return Ok(Some(Vec::new())) };
            let is_suspended = |row: &&Row| form.resumes_suspended() && row.process.run_state == RunState::Suspended;
            let resume = state.connected().filter(is_suspended).map(|row| row.process.key).collect();
            let ticket = begin(state, subject, JobKind::ClosePort(path));
            vec![Effect::ClosePort { resume, ticket }]
        }
        Purpose::CleanUp(folders) => {
            let ticket = begin(state, subject, JobKind::CleanUp);
            vec![Effect::CleanUp { folders: folders.clone(), ticket }]
        }
        Purpose::Producer => {
            let (targets, profiles) = form.producer_request()?;
            let named = if targets.is_empty() { "all processes".to_owned() } else { targets.join(", ") };
            let ticket = begin(state, subject, JobKind::Producer(format!("{named}: {}", profiles.join(", "))));
            state.producer = Some(Producer::new(ticket));
            vec![Effect::ServeProducer { targets, profiles, ticket }]
        }
        Purpose::StopProducer => vec![Effect::StopProducer],
        Purpose::HeapWalk => heap::begin(state, subject),
        Purpose::HeapFile(walk) => {
            let destination = form.new_file(0)?;
            check_heap_file(&destination).map_err(|wrong| (0, format!("{wrong}.")))?;
            let Some(heap) = state.heaps.written_by(*walk) else { return Ok(Some(Vec::new())) };
            let subject = heap.subject.clone();
            let ticket = begin(state, subject, JobKind::HeapFile(destination.clone()));
            vec![Effect::WriteHeap { walk: *walk, destination, ticket }]
        }
    }))
}

/// Returns the subject of a job that concerns no process, or one that does not exist yet.
fn without_process(name: &str) -> Subject {
    Subject { key: ProcessKey { pid: 0, started: 0 }, name: name.into() }
}

/// Returns the message that a job has begun.
pub(super) fn beginning(subject: &Subject, kind: &JobKind) -> String {
    format!("{subject}: {} …", kind.title())
}

/// Adds a job to the action log.
pub(super) fn begin(state: &mut State, subject: Subject, kind: JobKind) -> Ticket {
    let ticket = state.next_ticket();
    state.notify(Level::Info, beginning(&subject, &kind));
    state.jobs.begin(Job { ticket, subject, kind, began: state.now.elapsed, ended: None, output_lines: Arc::default(), percent: None });
    ticket
}
