//! One recording, from the request to the finished file: a thread writes its stream to the file, and a task drives it to completion.

mod disk_space;
mod driver;
mod joined_file;
mod recorded_names;
mod silent_providers;

use std::fs::File;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::driver::Driver;
use super::blocking::{Blocking, start_blocking};
use super::count::Counting;
use super::cpu::CpuSampling;
use super::names::MethodNameSearch;
use super::output::{OutputError, OutputFile, free_name};
use super::perfetto::{SchedulingRecording, ServicePump, Target, ThreadNames};
use super::plan::{Plan, StartError};
use super::progress::{Progress, Totals};
use super::pump::{Pump, Pumped};
use super::threads::Threads;
use super::trace_session::TraceSession;
use crate::export::LiveProcess;
use crate::ipc::{SessionConfig, SessionId};
use crate::model::{CpuTimeUnavailable, Recording, SafeText, shown_command_line};
use crate::net::client::Client;
use crate::net::log;

/// Whether to end a recording. Later requests replace earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Continue.
    None,
    /// Stop after the rundown.
    Stop,
    /// Stop at once, and keep the data received so far.
    Abandon,
}

/// A running recording. Dropping it does not stop it; the task completes it.
#[derive(Debug)]
pub struct Recorder {
    session: SessionId,
    request: watch::Sender<StopRequest>,
    progress: watch::Receiver<Recording>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Creates the file, opens the session and starts recording.
    ///
    /// # Errors
    /// If the file cannot be created or the runtime does not open the session.
    pub async fn start(client: Client, mut plan: Plan) -> Result<Self, StartError> {
        let begun = Instant::now();
        let mut created = OutputFile::create(&plan.file);
        // Another recording may have taken the name since it was chosen.
        while plan.is_default_file && matches!(created, Err(OutputError::Exists(_) | OutputError::PartialExists(_))) {
            let next = free_name(&plan.file);
            if next == plan.file {
                break;
            }
            plan.file = next;
            created = OutputFile::create(&plan.file);
        }
        let (mut output, file) = created.map_err(|error| if plan.scheduling.is_some() { error.without_salvage() } else { error })?;
        let progress = Arc::new(Progress::new(plan.event_filter.clone()));
        let keep = plan.keep.map(|keep| (keep, output.partial().to_owned()));
        let (config, cpu, cpu_unavailable) = sample_cpu(&client, &plan).await?;
        let plan = Plan { config, ..plan };
        let cpu = cpu.map(|CpuSampling { collector, task }| {
            // It cannot be set already.
            let _ = progress.cpu.set(collector);
            task
        });
        let counting = Counting { analyzed: plan.analyzed, stop_on: plan.stop_on.clone(), keep };
        let (session, scheduling, pump) = begin(&client, &plan, file, counting, &progress).await?;
        output.keep();

        log::note(format_args!("recording of process {} has begun, {}", plan.key.pid, output.partial().display()));
        let (request, requests) = watch::channel(StopRequest::None);
        let mut recording = plan.starting();
        recording.notes.extend(session.downgrades.iter().map(ToString::to_string));
        recording.cpu_unavailable = cpu_unavailable;
        let (publish, published) = watch::channel(recording.clone());
        let mut ticks = interval(Recording::STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let driver = Driver {
            client,
            session: session.clone(),
            recording,
            begun,
            progress,
            publish,
            requests,
            ticks,
            scheduling,
            joined_percent: None,
            threads: plan.analyzed.then(Threads::default),
            // Without analysis, they are needed to complete the kernel samples.
            names: (plan.analyzed || cpu.is_some()).then(|| MethodNameSearch::new(begun)),
            cpu,
            plan,
            last: (begun, Totals::default()),
            stopping: None,
            low_space: None,
        };
        let task = tokio::spawn(driver.run(pump, output));
        Ok(Self { session: session.id, request, progress: published, task })
    }

    /// The runtime's session id, unique while the session exists.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Snapshots of the recording; only the latest is kept. The last one has [`Phase::Done`](crate::model::Phase::Done).
    pub fn progress(&self) -> watch::Receiver<Recording> {
        self.progress.clone()
    }

    /// Requests the stop: the runtime sends its rundown and ends the stream.
    pub fn stop(&self) {
        self.request.send_if_modified(|request| {
            let first = *request == StopRequest::None;
            if first {
                *request = StopRequest::Stop;
            }
            first
        });
    }

    /// Ends the recording at once, without the rundown, and keeps the data received so far. The runtime frees the session at its next write.
    pub fn abandon(&self) {
        self.request.send_replace(StopRequest::Abandon);
    }

    /// Waits until the recording has ended.
    pub async fn finished(self) -> Recording {
        // The driver publishes the outcome last; a panic in it is reported by the panic hook.
        let _ = self.task.await;
        self.progress.borrow().clone()
    }
}

/// A started recording: its session, the joint recording of kernel scheduling if requested, and the thread that reads the stream.
type StartedRecording = (Arc<TraceSession>, Option<SchedulingRecording>, Blocking<Pumped>);

/// Opens the session, and starts reading its stream.
async fn begin(
    client: &Client,
    plan: &Plan,
    file: File,
    counting: Counting,
    progress: &Arc<Progress>,
) -> Result<StartedRecording, StartError> {
    let open = async || {
        let (session, stream) = TraceSession::open(client.clone(), &plan.config, u64::MAX).await?;
        Ok::<_, StartError>((session, stream.into_blocking().map_err(StartError::Handle)?))
    };
    let progress = progress.clone();
    let Some(sockets) = plan.scheduling.clone() else {
        let (session, stream) = open().await?;
        let pump = Pump { session: session.clone(), file, max_bytes: plan.max_bytes, counting, progress };
        return Ok((session, None, start_blocking(move || pump.run(stream))));
    };
    let target = Target { file: Arc::new(file), max_bytes: plan.max_bytes, progress: progress.clone() };
    let (scheduling, inlet) = SchedulingRecording::start(sockets, target).await?;
    let process = describe(client, plan).await;
    let names = ThreadNames::of(client.clone()).await;
    let (session, stream) = open().await?;
    let pump = ServicePump { session: session.clone(), process, names, inlet, counting, progress };
    Ok((session, Some(scheduling), start_blocking(move || pump.run(stream))))
}

/// The session to open, the kernel sampling, and why the kernel cannot sample if it was requested.
type Sampling = (SessionConfig, Option<CpuSampling>, Option<CpuTimeUnavailable>);

/// Starts kernel sampling if requested, and chooses the session depending on its success.
async fn sample_cpu(client: &Client, plan: &Plan) -> Result<Sampling, OutputError> {
    let (file, fallback) = (plan.cpu_file(), plan.fallback.as_ref().unwrap_or(&plan.config));
    // Without a file, samples are only needed for analysis.
    if file.is_none() && !(plan.analyzed && (plan.fallback.is_some() || plan.config.has_sample_profiler())) {
        return Ok((fallback.clone(), None, None));
    }
    let config = if file.is_some() { &plan.config } else { fallback };
    Ok(match CpuSampling::start_with_file(client, plan.name.to_string(), file).await? {
        Ok(cpu) => (config.clone(), Some(cpu), None),
        Err(cpu_unavailable) => (fallback.clone(), None, Some(cpu_unavailable)),
    })
}

/// Returns the facts about the process for a trace. If the runtime is too old to report them, only the name is known.
async fn describe(client: &Client, plan: &Plan) -> LiveProcess {
    let info = client.process_info().await.ok().flatten();
    let (command_line, runtime) =
        info.map_or_else(Default::default, |info| (info.command_line.clone(), info.runtime_version().to_string()));
    let (command_line, runtime) = (shown_command_line(&command_line), SafeText::from(runtime));
    LiveProcess {
        pid: plan.key.pid,
        started: plan.key.started,
        name: plan.name.to_string(),
        command_line: command_line.into(),
        runtime: runtime.into(),
    }
}
