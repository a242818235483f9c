//! Runs the effects returned by `update` on the task pool, and answers with messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::{Notify, mpsc, oneshot};

use super::clipboard::Desktop;
use super::exports::export;
use super::files::Files;
use super::heaps::Heaps;
use super::kernel;
use super::launch::{self, LaunchRecording};
use super::recordings::Recordings;
use super::sessions::{self, Sessions};
use super::tasks::{self, blocking, boxed, start_blocking};
use super::work::{clean_up, close_port, control, stacks};
use crate::app::{Clipboard, ControlRequest, Effect, JobKind, JobResult, Msg, Ticket};
use crate::model::{
    Environment, OutputName, Process, ProcessKey, Recording, RecordingId, SafeText, SecretPatterns, TraceOptions, Variable,
};
use crate::net::client::Client;
use crate::net::log;
use crate::net::port;
use crate::net::user_events::Kernel;
use crate::net::{Clients, Directory};
use crate::session::{self, DumpNotice, Plan, ServeOptions, Settings, StopRequest, WatchOptions};

/// Minimum interval between values of a watched process: a shorter one costs more and shows nothing more.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Runner {
    /// `None` if recorded files are shown.
    clients: Option<Clients>,
    files: Files,
    heaps: Heaps,
    processes: HashMap<ProcessKey, Process>,
    pub(super) recordings: Recordings,
    pub(super) watches: Sessions<ProcessKey>,
    pub(super) producer: Sessions<()>,
    /// Interval between values of a watched process.
    interval: Duration,
    desktop: Desktop,
    output_name: OutputName,
    /// Additional patterns of secret environment variables.
    secrets: Arc<SecretPatterns>,
    wake: Arc<Notify>,
    inbox: mpsc::Sender<Msg>,
}

/// Maximum number of listed threads of a process: each requires reading four small files.
const MAX_THREADS: usize = 512;
/// Maximum number of listed assemblies.
const MAX_ASSEMBLIES: usize = 10_000;

impl Drop for Runner {
    /// Removes the socket of a served port: tasks aborted at the end hold clients as well, and would leave it behind.
    fn drop(&mut self) {
        if let Some(clients) = &self.clients {
            clients.close_port();
        }
    }
}

impl Runner {
    pub(super) fn new(
        clients: Option<Clients>,
        refresh: Duration,
        output_name: OutputName,
        secrets: SecretPatterns,
        wake: Arc<Notify>,
        inbox: mpsc::Sender<Msg>,
    ) -> Self {
        Self {
            clients,
            files: Files::default(),
            heaps: Heaps::default(),
            processes: HashMap::default(),
            recordings: Recordings::default(),
            watches: Sessions::default(),
            producer: Sessions::default(),
            interval: refresh.max(MIN_INTERVAL),
            desktop: Desktop::default(),
            output_name,
            secrets: Arc::new(secrets),
            wake,
            inbox,
        }
    }

    /// Stores the processes, which effects refer to by key.
    pub(super) fn store_processes(&mut self, msg: &Msg) {
        if let Msg::Processes(processes) = msg {
            self.processes = processes.iter().map(|process| (process.key, process.clone())).collect();
        }
    }

    /// Starts an effect without waiting for it. Those on the terminal belong to the event loop.
    pub(super) fn run(&mut self, effect: Effect) {
        match effect {
            Effect::Refresh => self.wake.notify_one(),
            Effect::ReadEnvironment { key, ticket } => {
                let secrets = Arc::clone(&self.secrets);
                let query = |client: Client, _| async move {
                    let (raw, source) = client.environment_or_initial().await.map_err(|error| error.to_string())?;
                    Ok(Environment { variables: raw.iter().map(|raw| Variable::new(raw, &secrets)).collect(), source })
                };
                self.spawn_query(key, query, move |result| Msg::Environment { ticket, result: result.map_err(SafeText::from) });
            }
            Effect::ListThreads { key, ticket } => {
                let query = |client: Client, _| blocking(move || client.thread_times(MAX_THREADS));
                self.spawn_query(key, query, move |threads| Msg::Threads { ticket, threads: threads.unwrap_or_default() });
            }
            Effect::ListAssemblies { key, ticket } => {
                let query = |client: Client, _| blocking(move || client.assemblies(MAX_ASSEMBLIES));
                self.spawn_query(key, query, move |paths| Msg::Assemblies { ticket, paths: paths.unwrap_or_default() });
            }
            Effect::SampleStacks { key, ticket } => {
                let query = |client, _| async move { session::thread_stacks(&client).await.map(stacks).map_err(|error| error.to_string()) };
                self.spawn_query(key, query, move |result| Msg::Stacks { ticket, result: result.map_err(SafeText::from) });
            }
            Effect::Begin { key, ticket, kind } => self.begin(key, ticket, kind),
            Effect::ReadHeap { ticket, path } => self.heaps.read(path, ticket, self.inbox.clone()),
            Effect::CancelHeapWalk { ticket } => self.heaps.cancel(ticket),
            Effect::StartTrace { id, key, options } => {
                if let Err(reason) = self.start_trace(id, key, *options) {
                    self.send(Msg::TraceFailed { id, reason: reason.into() });
                }
            }
            Effect::CheckTracepoints { key } => {
                let runtime = self.processes.get(&key).and_then(|process| process.runtime.as_ref());
                let missing = session::user_events_missing(&Kernel::machine(), runtime);
                self.send(Msg::TracepointsMissing { key, missing: missing.iter().map(|missing| missing.to_string().into()).collect() });
            }
            Effect::StopTrace { id } => self.recordings.request(id, StopRequest::Stop),
            Effect::AbandonTrace { id } => self.recordings.request(id, StopRequest::Abandon),
            Effect::ReadFile { key, ticket, path, span } => self.files.read(key, path, span, ticket, self.inbox.clone()),
            Effect::FindFiles { known, ticket } => self.spawn(async move {
                let files = blocking(move || session::recorded_files(&known, &std::env::current_dir().unwrap_or_default())).await;
                Msg::FilesFound { ticket, files: files.unwrap_or_default() }
            }),
            Effect::ReadLog => self.send(Msg::OwnLog(log::latest().into())),
            Effect::FindFreeName { proposed, here } => {
                let inbox = self.inbox.clone();
                start_blocking(move || {
                    let free = session::free_target_path(&proposed, &here);
                    if free != proposed {
                        let _ = inbox.blocking_send(Msg::FreeName { proposed, free });
                    }
                });
            }
            Effect::FindFreeSpace { key, folder, here } => {
                let (inbox, client) = (self.inbox.clone(), self.client_of(key).ok());
                start_blocking(move || {
                    let space = client.and_then(|(client, _)| session::free_space(&client, &here));
                    let _ = inbox.blocking_send(Msg::FreeSpace { folder, space });
                });
            }
            Effect::Watch { key, ticket, meters } => match self.client_of(key) {
                Ok((client, process)) => {
                    let watch = WatchOptions { process, interval: self.interval, meters };
                    let inbox = self.inbox.clone();
                    self.watches.start(key, |stopped| sessions::watch(client, watch, stopped, ticket, inbox));
                }
                Err(trouble) => self.send(Msg::WatchEnded { ticket, trouble: Some(trouble.into()) }),
            },
            Effect::Unwatch { key } => self.watches.stop(&key),
            Effect::FilterEvents { id, filter } => self.recordings.filter_events(id, filter),
            Effect::StopProducer => self.producer.stop(&()),
            Effect::Copy { text, label } => {
                let set = self.desktop.set(text);
                self.spawn(async move {
                    match set.await {
                        Ok(()) => Msg::Copied { label: label.into(), to: Clipboard::Desktop },
                        Err(why) => Msg::Failed(format!("the {label} was not copied: {why}").into()),
                    }
                });
            }
            Effect::SetTheme(_) | Effect::Redraw | Effect::Suspend | Effect::Quit { .. } => {}
        }
    }

    /// Starts a job, whose answer has this ticket.
    fn begin(&mut self, key: ProcessKey, ticket: Ticket, kind: JobKind) {
        match kind {
            JobKind::Dump(request) => {
                let inbox = self.inbox.clone();
                self.spawn_job(key, ticket, move |client, process| async move {
                    let expected = process.usage.dump_bytes(request.kind).max(1);
                    let report = |notice: DumpNotice| {
                        let message = match notice {
                            // The size is an estimate, and the end is reported by the runtime.
                            DumpNotice::Written(bytes) => {
                                Msg::JobProgress { ticket, percent: (bytes.saturating_mul(100) / expected).min(99) as u8 }
                            }
                            DumpNotice::Stalled(notice) => Msg::JobStalled { ticket, notice: notice.into() },
                        };
                        drop(inbox.try_send(message));
                    };
                    let dumped = session::dump(&client, &process, &request, report).await.map_err(|error| error.to_string())?;
                    let note = dumped.bytes.is_none().then(|| "its size cannot be read from here".into());
                    Ok(JobResult { files: vec![SafeText::from_path(&dumped.reachable_path)], bytes: dumped.bytes, note })
                });
            }
            JobKind::PerfMap(kind) => self.spawn_job(key, ticket, move |client, process| async move {
                let files = session::perf_map(&client, &process, kind).await.map_err(|error| error.to_string())?;
                let note = (kind.is_some() && files.is_empty()).then(|| "its files are not visible from here yet".into());
                Ok(JobResult { files: files.iter().map(|file| SafeText::from_path(file)).collect(), bytes: None, note })
            }),
            JobKind::HeapWalk => match self.client_of(key) {
                Ok((client, process)) => self.heaps.walk(client, process, ticket, self.inbox.clone()),
                Err(gone) => self.send(Msg::HeapWalked { ticket, result: Err(gone.into()) }),
            },
            JobKind::HeapFile(walk, destination) => self.spawn_work(ticket, self.heaps.write(walk, destination)),
            JobKind::Resume => {
                let clients = self.clients.clone();
                self.spawn_job(key, ticket, move |_, process| async move {
                    if let Some(clients) = clients
                        && let Some(Err(error)) = clients.resume(&process).await
                    {
                        return Err(error.to_string());
                    }
                    Ok(JobResult::default())
                });
            }
            JobKind::Control(_, ControlRequest { command, data, .. }) => self.spawn_job(key, ticket, move |client, _| async move {
                control(&client, command, data.as_deref()).await.map(|()| JobResult::default())
            }),
            JobKind::Export(request) => {
                let inbox = self.inbox.clone();
                self.spawn_work(ticket, move || export(request, ticket, &inbox));
            }
            JobKind::Port(path) => {
                let result = self.serve(&path);
                self.send(Msg::job_done(ticket, result));
                self.wake.notify_one();
            }
            JobKind::ClosePort(_, resume) => {
                let waiting: Vec<_> = resume.iter().filter_map(|key| self.processes.get(key).cloned()).collect();
                let (clients, wake) = (self.clients.clone(), Arc::clone(&self.wake));
                self.spawn(async move {
                    let closed = match clients {
                        Some(clients) => close_port(&clients, &waiting).await,
                        None => Ok(()),
                    };
                    wake.notify_one();
                    Msg::job_done(ticket, closed.map(|()| JobResult::default()))
                });
            }
            JobKind::CleanUp(folders) => {
                let wake = Arc::clone(&self.wake);
                self.spawn_work(ticket, move || {
                    let removed = clean_up(&folders);
                    wake.notify_one();
                    removed
                });
            }
            JobKind::Producer { targets, profiles } => match self.directory() {
                Ok(directory) => {
                    let settings = Settings { targets, profiles, ..Settings::default() };
                    let (options, inbox) = (ServeOptions { address: None, settings, directory }, self.inbox.clone());
                    self.producer.start((), |stopped| sessions::serve(options, stopped, ticket, inbox));
                }
                Err(reason) => self.send(Msg::job_done(ticket, Err(reason))),
            },
            JobKind::Launch(program, id) => {
                let (start, started) = oneshot::channel();
                self.recordings.await_start(id, started, self.inbox.clone());
                let recording = LaunchRecording { id, output_name: self.output_name.clone(), start };
                tasks::spawn(launch::run(*program, recording, ticket, self.inbox.clone()));
            }
        }
    }

    fn start_trace(&mut self, id: RecordingId, key: ProcessKey, options: TraceOptions) -> Result<(), String> {
        let (client, process) = self.client_of(key)?;
        let Some((events, kernel)) = options.user_events()? else {
            let plan = Plan::from_options(&options, key, process.name, &std::env::current_dir().unwrap_or_default(), &self.output_name)?;
            let plan = Plan { id, analyzed: true, ..plan };
            self.recordings.start(client, plan, self.inbox.clone());
            return Ok(());
        };
        let what = options.select()?.what;
        let recording = Recording { kernel: Some(kernel), ..Recording::starting(id, key, process.name, what, PathBuf::new()) };
        let data = session::user_events_data(&Kernel::machine(), process.runtime.as_ref()).map_err(|error| error.to_string());
        let wanted = kernel::KernelRequest { recording, events, data, duration: options.duration };
        self.recordings.start_in_kernel(client, wanted, self.inbox.clone());
        Ok(())
    }

    /// Returns the client of a listed process, or an error sentence.
    fn client_of(&self, key: ProcessKey) -> Result<(Client, Process), String> {
        let process = self.processes.get(&key).ok_or_else(|| format!("process {} has ended", key.pid))?;
        let client = self
            .clients
            .as_ref()
            .and_then(|clients| clients.of(process))
            .ok_or_else(|| format!("process {} has no diagnostic socket", key.pid))?;
        Ok((client, process.clone()))
    }

    /// Creates a separate directory of the processes.
    fn directory(&self) -> Result<Directory, String> {
        let clients = self.clients.as_ref().ok_or("recorded files are open, not processes")?;
        clients.directory().map_err(|error| format!("the processes of this machine cannot be listed: {error}"))
    }

    /// Serves a port, and shows the environment variable that programs need to connect to it.
    fn serve(&self, path: &Path) -> Result<JobResult, String> {
        let clients = self.clients.as_ref().ok_or("recorded files are open, not processes")?;
        port::raise_file_limit();
        clients.serve(path).map_err(|error| error.to_string())?;
        Ok(JobResult { files: vec![format!("DOTNET_DiagnosticPorts={}", SafeText::from_path(path)).into()], ..JobResult::default() })
    }

    /// Spawns a task that queries a process, and answers with a message.
    fn spawn_query<T, F>(
        &self,
        key: ProcessKey,
        query: impl FnOnce(Client, Process) -> F,
        answer: impl FnOnce(Result<T, String>) -> Msg + Send + 'static,
    ) where
        F: Future<Output = Result<T, String>> + Send + 'static,
        T: Send + 'static,
    {
        match self.client_of(key) {
            Ok((client, process)) => {
                let query = query(client, process);
                self.spawn(async move { answer(query.await) });
            }
            Err(gone) => self.send(answer(Err(gone))),
        }
    }

    /// Spawns a job on a process, and reports its result.
    fn spawn_job<F>(&self, key: ProcessKey, ticket: Ticket, job: impl FnOnce(Client, Process) -> F)
    where
        F: Future<Output = Result<JobResult, String>> + Send + 'static,
    {
        self.spawn_query(key, job, move |result| Msg::job_done(ticket, result));
    }

    /// Spawns a job that blocks its thread, and reports its result.
    fn spawn_work(&self, ticket: Ticket, work: impl FnOnce() -> Result<JobResult, String> + Send + 'static) {
        self.spawn(async move { Msg::job_done(ticket, blocking(work).await.unwrap_or_else(Err)) });
    }

    fn send(&self, msg: Msg) {
        self.spawn(async { msg });
    }

    /// Spawns a task that answers with a message.
    fn spawn(&self, task: impl Future<Output = Msg> + Send + 'static) {
        let task = boxed(task);
        let inbox = self.inbox.clone();
        // The receiver is gone once the dashboard has quit.
        tasks::spawn(async move { drop(inbox.send(task.await).await) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_that_panics_has_failed() {
        let (inbox, mut messages) = mpsc::channel(9);
        let runner = Runner::new(None, Duration::ZERO, OutputName::default(), SecretPatterns::default(), Arc::default(), inbox);
        runner.spawn_work(Ticket(1), || panic!("no export"));
        match messages.recv().await {
            Some(Msg::JobDone { ticket: Ticket(1), result: Err(why) }) => assert!(why.contains("no export"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
