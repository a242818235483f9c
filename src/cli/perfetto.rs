//! `perfetto`: the state of Perfetto's tracing service, and .NET processes as one of its data sources.

use std::io::Write;
use std::time::Duration;

use tokio::sync::watch;

use super::args::perfetto::ServePerfetto;
use super::args::{Events, Selection};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt;
use super::print::{self, Value, json};
use crate::model::{ProducerReport, SafeText};
use crate::perfetto::consumer::{ProducerState, ServiceState, SessionState};
use crate::session::{ServeOptions, Settings, serve, service_state};

/// Shows the service: its producers with their data sources, and its sessions.
pub(super) async fn show_service(is_json: bool) -> Result<Exit, Failure> {
    let (socket, state) = service_state(None).await.map_err(|error| Failure::new(Exit::of_error(error.is_denied()), error))?;
    let socket = socket.to_string();
    print::result(is_json, || document(&socket, &state), |out| write_text(out, &socket, &state))?;
    Ok(Exit::Done)
}

fn data_sources(state: &ServiceState, producer: u32) -> Vec<SafeText> {
    state.data_sources.iter().filter(|(_, of)| *of == producer).map(|(name, _)| SafeText::new(name)).collect()
}

fn document(socket: &str, state: &ServiceState) -> Value {
    let producer = |ProducerState { id, name, pid, uid, version }: &ProducerState| {
        json!({
            "id": id,
            "name": SafeText::new(name),
            "pid": Some(pid).filter(|pid| **pid != 0),
            "uid": uid,
            "version": SafeText::new(version),
            "data_sources": data_sources(state, *id),
        })
    };
    let session = |session: &SessionState| {
        json!({
            "id": session.id,
            "name": SafeText::new(&session.name),
            "uid": session.uid,
            "state": SafeText::new(&session.state),
            "buffer_kb": session.buffer_kb,
            "duration_ms": Some(session.duration_ms).filter(|time| *time != 0),
            "data_sources": session.data_sources,
        })
    };
    let producers: Vec<Value> = state.producers.iter().map(producer).collect();
    let sessions: Vec<Value> = state.sessions.iter().map(session).collect();
    json!({ "socket": socket, "version": SafeText::new(&state.version), "producers": producers, "sessions": sessions })
}

fn write_text(out: &mut dyn Write, socket: &str, state: &ServiceState) -> std::io::Result<()> {
    writeln!(out, "{} at {socket}", SafeText::new(&state.version))?;
    for ProducerState { id, name, pid, uid, version } in &state.producers {
        let (name, version) = (SafeText::new(name), SafeText::new(version));
        let process = if *pid == 0 { "a process on another machine".to_owned() } else { format!("process {pid}") };
        writeln!(out, "producer {id}: {name}, {process} of user {uid}, {version}")?;
        data_sources(state, *id).iter().try_for_each(|source| writeln!(out, "  {source}"))?;
    }
    if state.sessions.is_empty() {
        return writeln!(out, "no sessions");
    }
    for SessionState { id, name, uid, state, buffer_kb, duration_ms, data_sources } in &state.sessions {
        let name = if name.is_empty() { String::new() } else { format!(" {}", SafeText::new(name)) };
        let until = match duration_ms {
            0 => String::new(),
            time => format!(", for {}", humantime::format_duration(Duration::from_millis(*time))),
        };
        let state = SafeText::new(state);
        writeln!(out, "session {id}{name}: {state}, of user {uid}, data sources: {data_sources}, {buffer_kb} KB{until}")?;
    }
    // The service state contains no buffer statistics, and GetTraceStats only covers the consumer's own session.
    writeln!(out, "lost data: the service reports it only to the consumer that started a session, and in the trace")
}

/// Serves until Ctrl-C, or for the given duration.
pub(super) async fn serve_processes(host: &Host, arguments: ServePerfetto) -> Result<Exit, Failure> {
    let ServePerfetto { targets, events: Events { selection, duration } } = arguments;
    let Selection { profile, provider, clr_events } = selection;
    let settings = Settings { targets, profiles: profile, providers: provider, clr_events };
    let selected = settings.select().map_err(Failure::usage)?;
    selected.warnings.iter().for_each(print::message);
    let mut interrupts = interrupt::listen()?;
    let stop = watch::Sender::new(false);
    let options = ServeOptions { address: None, settings, directory: host.directory()? };
    let serving = serve(options, stop.subscribe(), Box::new(report_progress));
    tokio::pin!(serving);
    let exit = tokio::select! {
        served = &mut serving => return Ok(served.map(|()| Exit::Done).map_err(anyhow::Error::from)?),
        () = interrupts.next() => Exit::Interrupted,
        () = tokio::time::sleep(duration.unwrap_or(Duration::MAX)) => Exit::Done,
    };
    stop.send_replace(true);
    tokio::select! {
        served = &mut serving => served.map_err(anyhow::Error::from)?,
        () = interrupts.next() => {}
    }
    Ok(exit)
}

fn report_progress(report: ProducerReport) {
    match report {
        ProducerReport::Progress { .. } => {}
        ProducerReport::Connected(_) => print::message(format!("{report}; serving the data source `dotnet`; Ctrl-C stops it")),
        report => print::message(report),
    }
}
