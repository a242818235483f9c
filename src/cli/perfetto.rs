//! `perfetto`: the state of Perfetto's tracing service, and .NET processes as one of its data sources.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::args::perfetto::ServePerfetto;
use super::args::{Events, Selection};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::{interrupt, print};
use crate::model::{ProducerReport, SafeText};
use crate::perfetto::consumer::ServiceState;
use crate::session::{ServeOptions, Settings, serve, service_state};

#[derive(Serialize)]
struct ServiceDocument {
    socket: String,
    version: SafeText,
    producers: Vec<ProducerDocument>,
    sessions: Vec<SessionDocument>,
}

#[derive(Serialize)]
struct ProducerDocument {
    id: u32,
    name: SafeText,
    pid: Option<u32>,
    uid: u32,
    version: SafeText,
    data_sources: Vec<SafeText>,
}

#[derive(Serialize)]
struct SessionDocument {
    id: u64,
    name: SafeText,
    uid: u32,
    state: SafeText,
    buffer_kb: u64,
    duration_ms: Option<u64>,
    data_sources: u32,
}

/// Shows the service: its producers with their data sources, and its sessions.
pub(super) async fn show_service(json: bool) -> Result<Exit, Failure> {
    let (socket, state) = service_state(None).await.map_err(|error| Failure::new(Exit::of_error(error.is_denied()), error))?;
    print::document(json, &document(socket.to_string(), state), |out, document| {
        writeln!(out, "{} at {}", document.version, document.socket)?;
        for ProducerDocument { id, name, pid, uid, version, data_sources } in &document.producers {
            let process = pid.map_or("a process on another machine".to_owned(), |pid| format!("process {pid}"));
            writeln!(out, "producer {id}: {name}, {process} of user {uid}, {version}")?;
            data_sources.iter().try_for_each(|source| writeln!(out, "  {source}"))?;
        }
        if document.sessions.is_empty() {
            writeln!(out, "no sessions")?;
        }
        for SessionDocument { id, name, uid, state, buffer_kb, duration_ms, data_sources } in &document.sessions {
            let name = if name.is_empty() { String::new() } else { format!(" {name}") };
            let until =
                duration_ms.map_or(String::new(), |time| format!(", for {}", humantime::format_duration(Duration::from_millis(time))));
            writeln!(out, "session {id}{name}: {state}, of user {uid}, data sources: {data_sources}, {buffer_kb} KB{until}")?;
        }
        if !document.sessions.is_empty() {
            // The service state contains no buffer statistics, and GetTraceStats only covers the consumer's own session.
            writeln!(out, "lost data: the service reports it only to the consumer that started a session, and in the trace")?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

/// Converts the state of the service. Its texts are untrusted.
fn document(socket: String, state: ServiceState) -> ServiceDocument {
    let ServiceState { version, producers, data_sources, sessions } = state;
    let sources = |producer: u32| data_sources.iter().filter(|(_, of)| *of == producer).map(|(name, _)| SafeText::new(name)).collect();
    let producers = producers.iter().map(|producer| ProducerDocument {
        id: producer.id,
        name: SafeText::new(&producer.name),
        pid: (producer.pid != 0).then_some(producer.pid),
        uid: producer.uid,
        version: SafeText::new(&producer.version),
        data_sources: sources(producer.id),
    });
    let sessions = sessions.iter().map(|session| SessionDocument {
        id: session.id,
        name: SafeText::new(&session.name),
        uid: session.uid,
        state: SafeText::new(&session.state),
        buffer_kb: session.buffer_kb,
        duration_ms: (session.duration_ms != 0).then_some(session.duration_ms),
        data_sources: session.data_sources,
    });
    ServiceDocument { socket, version: SafeText::new(&version), producers: producers.collect(), sessions: sessions.collect() }
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
