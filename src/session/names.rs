//! Names of methods that were compiled before a recording began, while it goes on.
//!
//! A runtime tells them only when a session ends (reference: dotnet/runtime, "EventPipe rundown"). So a second session is opened that wants nothing
//! but that, and is stopped at once. What it sends is taken in and goes into no file. It costs the target what its rundown costs, so it is done only
//! where samples come whose methods nobody knows.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::listener::Listener;
use super::progress::Progress;
use super::trace_session::StopLimit;
use crate::analysis::{Live, Profile, SampleFilter, Symbols};
use crate::ipc::{BufferMb, Level, Provider, SessionConfig};
use crate::model::NameSearch;
use crate::net::client::Client;

/// The pauses before it is done again, where many samples still have no name: a program that has only been started compiles on.
const AGAIN: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(10)];
/// The pause before samples without a name are counted again, where there were few.
const RECOUNT: Duration = Duration::from_secs(2);
/// How many samples without a name, as a part of all, are worth another time.
const MANY: u64 = 20;
/// What all of it may take.
const LIMIT: StopLimit = StopLimit { time: Duration::from_secs(20), ..StopLimit::RUNDOWN };
/// The session wants no events, but runtimes want a provider. None of that name is anywhere.
const NOBODY: &str = "DnTop-Nobody";
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
        if !progress.findings.borrow().as_deref().is_some_and(|findings| self.is_wanted(&findings.profile)) {
            return;
        }
        self.due = now + AGAIN.get(self.times).copied().unwrap_or_default();
        self.times += 1;
        let (tell, state) = watch::channel(NameSearch::Asked);
        self.state = state;
        let (client, progress) = (client.clone(), progress.clone());
        self.task = Some(tokio::spawn(async move {
            let outcome = match ask(client).await {
                Ok(symbols) => {
                    let methods = symbols.methods();
                    progress.names.put(symbols);
                    NameSearch::Found { methods, at: elapsed, took: now.elapsed() }
                }
                Err(reason) => NameSearch::Failed(reason),
            };
            // Nobody may be looking any more.
            let _ = tell.send(outcome);
        }));
    }

    fn is_wanted(&self, profile: &Profile) -> bool {
        let counts = profile.count(SampleFilter::ALL);
        let many = if self.times == 0 { 1 } else { counts.samples().all() / MANY + 1 };
        counts.unresolved() >= many
    }

    /// Waits for the end of what was begun, or gives it up: its session ends with its connection.
    pub(super) async fn finish(self, abandon: bool) {
        if let Some(task) = self.task {
            if abandon {
                task.abort();
            }
            // A panic in it is seen by whoever installed the panic hook.
            let _ = task.await;
        }
    }
}

/// Opens the session, stops it, and gives what it sent.
async fn ask(client: Client) -> Result<Symbols, String> {
    let provider = Provider::new(NOBODY, 0, Level::LogAlways).map_err(|error| error.to_string())?;
    let buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
    let config = SessionConfig { buffer, ..SessionConfig::new(provider.into()) };
    let mut listener = Listener::start(client, &config, Live::only_symbols(), LIMIT.bytes).await.map_err(|error| error.to_string())?;
    let ended = listener.stop(LIMIT).await;
    let symbols = listener.into_sink().map(Live::into_symbols).filter(|symbols| symbols.methods() > 0);
    match (symbols, ended) {
        (Some(symbols), _) => Ok(symbols),
        (None, Ok(())) => Err("the runtime told no methods".to_owned()),
        (None, Err(why)) => Err(format!("the runtime did not send its methods: {why}")),
    }
}
