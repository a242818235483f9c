//! Names of methods that were compiled before a recording began, while it goes on.
//!
//! A runtime sends them only when a session ends (reference: dotnet/runtime, "EventPipe rundown"). So a second session is opened that requests nothing
//! but that, and is stopped at once. What it sends is taken in and goes into no file. It costs the target what its rundown costs, so it is done only
//! where samples or allocations come whose methods have no names.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::listener::Listener;
use super::progress::Progress;
use super::trace_session::{StopLimit, Unfinished};
use crate::analysis::{Live, Origin, Profile, SampleFilter, Symbols};
use crate::ipc::{BufferMb, Level, Provider, SessionConfig};
use crate::model::{NameSearch, RecordingAnalysis};
use crate::net::client::Client;
use crate::nettrace::{Sink, Tail};

/// The pauses before it is done again, where many samples still have no name: a program that has only been started compiles on.
const AGAIN: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(10)];
/// The pause before samples without a name are counted again, where there were few.
const RECOUNT: Duration = Duration::from_secs(2);
/// How many samples without a name, as a part of all, are worth another time.
const MANY: u64 = 20;
/// What all of it may take.
const LIMIT: StopLimit = StopLimit { time: Duration::from_secs(20), ..StopLimit::RUNDOWN };
/// The session requests no events, but runtimes require a provider. No provider has this name.
const UNUSED_PROVIDER: &str = "DnTop-Unused";
/// The end of a stream of a runtime, bytes.
const END: i64 = 1;
/// Room for a rundown: what a runtime cannot send at once it keeps.
const BUFFER_MB: u32 = 64;

/// The search for names of one recording.
#[derive(Debug)]
pub(super) struct Names {
    /// From when on it may be done.
    due: Instant,
    times: usize,
    state: watch::Receiver<NameSearch>,
    task: Option<JoinHandle<()>>,
}

impl Names {
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now, times: 0, state: watch::channel(NameSearch::NotYet).1, task: None }
    }

    /// How it stands.
    pub(super) fn state(&self) -> NameSearch {
        self.state.borrow().clone()
    }

    /// Begins where it is time, and where it is of use.
    pub(super) fn step(&mut self, client: &Client, progress: &Arc<Progress>, elapsed: Duration) {
        let now = Instant::now();
        let busy = self.task.as_ref().is_some_and(|task| !task.is_finished());
        if busy || now < self.due || self.times > AGAIN.len() {
            return;
        }
        if self.times > 0 {
            self.due = now + RECOUNT;
        }
        // Samples of the kernel are there before anything is known of the stream.
        let is_first = self.times == 0 && progress.cpu.get().is_some_and(|cpu| cpu.has_generated_code());
        // Either side may have methods that the other has not: threads that wait are not on a processor.
        let is_wanted = |analysis: &RecordingAnalysis| {
            let allocations = analysis.snapshot.gc.allocations.as_ref();
            [Some(&analysis.profile), analysis.cpu.as_ref().map(|cpu| &cpu.profile), allocations.map(|all| all.stacks.profile())]
                .into_iter()
                .flatten()
                .any(|profile| self.is_wanted(profile))
        };
        if !is_first && !progress.analysis.borrow().as_deref().is_some_and(is_wanted) {
            return;
        }
        self.due = now + AGAIN.get(self.times).copied().unwrap_or_default();
        self.times += 1;
        let (tell, state) = watch::channel(NameSearch::Requested);
        self.state = state;
        let (client, progress) = (client.clone(), progress.clone());
        self.task = Some(tokio::spawn(async move {
            let outcome = match ask(client).await {
                Ok(symbols) => {
                    let methods = symbols.methods();
                    progress.names.put(symbols);
                    NameSearch::Found { methods, at: elapsed, took: now.elapsed() }
                }
                Err(reason) => NameSearch::Failed(reason.into()),
            };
            // The receiver may be gone.
            let _ = tell.send(outcome);
        }));
    }

    fn is_wanted(&self, profile: &Profile) -> bool {
        let counts = profile.count(SampleFilter::ALL);
        let many = if self.times == 0 { 1 } else { counts.samples().all() / MANY + 1 };
        // Code of a method whose events were lost looks like a stub, of which there is little.
        let stubs = counts.own_of_origin(Origin::Stub).all();
        counts.unresolved() >= many || stubs > counts.samples().all() / MANY
    }

    /// Waits for the end of what was begun, or gives it up: its session ends with its connection.
    pub(super) async fn finish(self, abandon: bool) {
        if let Some(task) = self.task {
            if abandon {
                task.abort();
            }
            // The panic hook reports a panic in it.
            let _ = task.await;
        }
    }
}

/// Has a runtime send the names of its methods, by a session that requests nothing but its rundown.
///
/// # Errors
/// When it sends no name.
pub(super) async fn ask(client: Client) -> Result<Symbols, String> {
    let (symbols, ended) = rundown(client, Live::only_symbols()).await?;
    let symbols = symbols.into_symbols();
    match ended {
        _ if symbols.methods() > 0 => Ok(symbols),
        Ok(()) => Err("the runtime sent no methods".to_owned()),
        Err(why) => Err(format!("the runtime did not send its methods: {why}")),
    }
}

/// Opens the session, stops it, and gives the sink back that took in what it sent, and whether that is all.
async fn rundown<S: Sink + Send + 'static>(client: Client, sink: S) -> Result<(S, Result<(), Unfinished>), String> {
    let provider = Provider::new(UNUSED_PROVIDER, 0, Level::LogAlways).map_err(|error| error.to_string())?;
    let buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
    let config = SessionConfig { buffer, ..SessionConfig::new(provider.into()) };
    let mut listener = Listener::start(client, &config, sink, LIMIT.bytes).await.map_err(|error| error.to_string())?;
    let ended = listener.stop(LIMIT).await;
    let sink = listener.into_sink().ok_or_else(|| "the session did not end".to_owned())?;
    Ok((sink, ended))
}

/// Appends the names of a process's methods to a recording of it, by a second session: behind its end, in place of it. Gives how many there are.
///
/// # Errors
/// When not all of them come, or the file takes none; it may hold a part of them then.
pub async fn append_names(client: Client, file: &mut File, tail: Tail, largest_id: u32) -> Result<u64, String> {
    let not_written = |error: std::io::Error| format!("cannot append method names to the file: {error}");
    let bytes = file.seek(SeekFrom::End(-END)).map_err(not_written)?;
    let appended = tail.append(bytes, largest_id, |metadata| metadata.provider.ends_with("Rundown")).map_err(|error| error.to_string())?;
    let ((symbols, appended), ended) = rundown(client, (Live::only_symbols(), appended)).await?;
    ended.map_err(|why| format!("the runtime did not send all of its methods: {why}"))?;
    let names = appended.finish().map_err(|error| error.to_string())?;
    file.write_all(&names).and_then(|()| file.sync_all()).map_err(not_written)?;
    match symbols.into_symbols().methods() {
        0 => Err("the runtime sent no methods".to_owned()),
        methods => Ok(methods as u64),
    }
}
