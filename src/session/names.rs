//! Names of methods that were compiled before a recording began, obtained during the recording.
//!
//! A runtime sends them only when a session ends (reference: dotnet/runtime, "EventPipe rundown"). A second session that requests only the
//! rundown is therefore opened and stopped at once. Its events are processed but not stored. The target pays the cost of a rundown, so this
//! is done only if samples, allocations, exceptions or lock waits have unnamed methods.

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
use crate::analysis::{ContentionSite, Live, Origin, Profile, SampleFilter, Symbols};
use crate::ipc::{BufferMb, InvalidRequest, Level, Provider, Rundown, SessionConfig};
use crate::model::{MethodNameResolution, RecordingAnalysis};
use crate::net::client::Client;
use crate::nettrace::{Sink, StreamTail};

/// Pauses between rundowns if many samples are still unnamed: a program that has just started keeps compiling.
const RUNDOWN_PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(10)];
/// Pause before unnamed samples are counted again, if there were few.
const RECOUNT_INTERVAL: Duration = Duration::from_secs(2);
/// A rundown is repeated if more than one in this many samples is unnamed.
const UNNAMED_DIVISOR: u64 = 20;
/// Limits of the whole operation.
const LIMIT: StopLimit = StopLimit { time: Duration::from_secs(20), ..StopLimit::RUNDOWN };
/// The session requests no events, but runtimes require a provider. No provider has this name.
const UNUSED_PROVIDER: &str = "DnTop-Unused";
/// Size of the end marker of a runtime's stream, in bytes.
const END_BYTES: i64 = 1;
/// Keywords for the names of methods and modules, of the runtime's provider and of the rundown: `Loader`, `Jit` and `NGen`.
pub(super) const NAME_KEYWORDS: u64 = 0x38;
/// The rundown of a search for names. The default one is a third larger (seen on 10), and has nothing else that is used.
const NAMES: Rundown = Rundown::AtLeast(NAME_KEYWORDS);
/// Buffer for a rundown: the runtime buffers what it cannot send at once.
const BUFFER_MB: u32 = 64;

/// The search for method names of one recording.
#[derive(Debug)]
pub(super) struct MethodNameSearch {
    /// Earliest time of the next rundown.
    due: Instant,
    times: usize,
    state: watch::Receiver<MethodNameResolution>,
    task: Option<JoinHandle<()>>,
}

impl MethodNameSearch {
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now, times: 0, state: watch::channel(MethodNameResolution::NotStarted).1, task: None }
    }

    /// Current state of the search.
    pub(super) fn state(&self) -> MethodNameResolution {
        self.state.borrow().clone()
    }

    /// Starts a rundown if it is due and useful.
    pub(super) fn step(&mut self, client: &Client, progress: &Arc<Progress>, elapsed: Duration) {
        let now = Instant::now();
        let busy = self.task.as_ref().is_some_and(|task| !task.is_finished());
        if busy || now < self.due || self.times > RUNDOWN_PAUSES.len() {
            return;
        }
        if self.times > 0 {
            self.due = now + RECOUNT_INTERVAL;
        }
        // Kernel samples are available before the stream has been analyzed.
        let is_first = self.times == 0 && progress.cpu.get().is_some_and(|cpu| cpu.has_generated_code());
        // Each profile may have methods that the other lacks: threads that wait are not on a processor.
        let is_wanted = |analysis: &RecordingAnalysis| {
            let allocations = analysis.snapshot.gc.allocations.as_ref().map(|all| all.stacks.profile());
            let exceptions = analysis.snapshot.exceptions.stacks.profile();
            [Some(&analysis.profile), analysis.cpu.as_ref().map(|cpu| &cpu.profile), allocations, Some(exceptions)]
                .into_iter()
                .flatten()
                .any(|profile| self.lacks_names(profile))
                || self.waits_lack_names(&analysis.snapshot.contention.sites)
        };
        if !is_first && !progress.analysis.borrow().as_deref().is_some_and(is_wanted) {
            return;
        }
        self.due = now + RUNDOWN_PAUSES.get(self.times).copied().unwrap_or_default();
        self.times += 1;
        let (sender, state) = watch::channel(MethodNameResolution::Requested);
        self.state = state;
        let (client, progress) = (client.clone(), progress.clone());
        self.task = Some(tokio::spawn(async move {
            let outcome = match request_names(client).await {
                Ok(symbols) => {
                    let methods = symbols.methods();
                    progress.names.put(symbols);
                    MethodNameResolution::Found { methods, at: elapsed, took: now.elapsed() }
                }
                Err(reason) => MethodNameResolution::Failed(reason.into()),
            };
            // The receiver may have been dropped.
            let _ = sender.send(outcome);
        }));
    }

    /// Whether samples, allocations or exceptions lack too many names.
    fn lacks_names(&self, profile: &Profile) -> bool {
        let counts = profile.count(SampleFilter::ALL);
        let all = counts.samples().all();
        // Code of a method whose events were lost looks like a stub; real stubs are rare.
        self.are_too_many(counts.unresolved(), all) || counts.own_of_origin(Origin::Stub).all() > all / UNNAMED_DIVISOR
    }

    /// Whether lock waits do.
    fn waits_lack_names(&self, sites: &[ContentionSite]) -> bool {
        let unnamed = sites.iter().filter(|site| site.method.starts_with("0x"));
        self.are_too_many(unnamed.map(|site| site.count).sum(), sites.iter().map(|site| site.count).sum())
    }

    fn are_too_many(&self, unnamed: u64, all: u64) -> bool {
        unnamed > if self.times == 0 { 0 } else { all / UNNAMED_DIVISOR }
    }

    /// Waits for a running rundown until `abandoned` completes: its session then ends with its connection.
    pub(super) async fn finish(self, abandoned: impl Future<Output = ()>) {
        let Some(mut task) = self.task else { return };
        tokio::select! {
            // A panic in the task is reported by the panic hook.
            _ = &mut task => {}
            () = abandoned => task.abort(),
        }
    }
}

/// Obtains the method names of a runtime through a session that requests only the rundown.
///
/// # Errors
/// If the runtime sends no names.
pub(super) async fn request_names(client: Client) -> Result<Symbols, String> {
    let (symbols, ended) = rundown(client, NAMES, Live::symbols_only()).await?;
    let symbols = symbols.into_symbols();
    match ended {
        _ if symbols.methods() > 0 => Ok(symbols),
        Ok(()) => Err("the runtime sent no method names".to_owned()),
        Err(why) => Err(format!("the runtime did not send its method names: {why}")),
    }
}

/// Opens the session and stops it. Returns the sink with the rundown, and whether the rundown is complete.
async fn rundown<S: Sink + Send + 'static>(client: Client, rundown: Rundown, sink: S) -> Result<(S, Result<(), Unfinished>), String> {
    let config = session(rundown).map_err(|error| error.to_string())?;
    let mut listener = Listener::start(client, &config, sink, LIMIT.bytes).await.map_err(|error| error.to_string())?;
    let ended = listener.stop(LIMIT).await;
    let sink = listener.into_sink().ok_or_else(|| "the session did not end".to_owned())?;
    Ok((sink, ended))
}

/// Returns the configuration of a session that consists of this rundown.
fn session(rundown: Rundown) -> Result<SessionConfig, InvalidRequest> {
    let provider = Provider::new(UNUSED_PROVIDER, 0, Level::LogAlways)?;
    Ok(SessionConfig { buffer: BufferMb::new(BUFFER_MB)?, rundown, ..SessionConfig::new(provider.into()) })
}

/// Appends the method names of a process to a recording, from a second session, replacing the end marker. Returns the number of methods.
///
/// # Errors
/// If not all names arrive, or the file cannot be written; it may then contain a part of them.
pub async fn append_names(client: Client, file: &mut File, tail: StreamTail, largest_id: u32) -> Result<u64, String> {
    let not_written = |error: std::io::Error| format!("cannot append method names to the file: {error}");
    let bytes = file.seek(SeekFrom::End(-END_BYTES)).map_err(not_written)?;
    let appended = tail.append(bytes, largest_id, |metadata| metadata.provider.ends_with("Rundown")).map_err(|error| error.to_string())?;
    let ((symbols, appended), ended) = rundown(client, Rundown::Default, (Live::symbols_only(), appended)).await?;
    ended.map_err(|why| format!("the runtime did not send all of its method names: {why}"))?;
    let names = appended.finish().map_err(|error| error.to_string())?;
    file.write_all(&names).and_then(|()| file.sync_all()).map_err(not_written)?;
    match symbols.into_symbols().methods() {
        0 => Err("the runtime sent no method names".to_owned()),
        methods => Ok(methods as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::CommandCode::{CollectTracing, CollectTracing2, CollectTracing4};

    #[test]
    fn other_rundown_events_are_only_requested_for_the_file_and_of_old_runtimes() {
        let codes = |rundown| session(rundown).unwrap().attempts().iter().map(|attempt| attempt.command.code()).collect::<Vec<_>>();
        assert_eq!(codes(NAMES), [CollectTracing4, CollectTracing2, CollectTracing]);
        assert_eq!((NAMES.keyword(), codes(Rundown::Default)), (NAME_KEYWORDS, vec![CollectTracing2, CollectTracing]));
    }
}
