//! One recording, from the request to the finished file: a thread takes its stream into the file, and a task drives it to its end.

use std::fs::File;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::count::Counting;
use super::cpu::collect_beside;
use super::names::Names;
use super::output::{OutputError, OutputFile};
use super::perfetto::{Joint, ServicePump, Target, ThreadNames};
use super::plan::{Plan, StartError};
use super::progress::{Progress, Totals};
use super::pump::{Pump, Pumped};
use super::threads::Threads;
use super::trace_session::{Cut, StopLimit, TraceSession, Unfinished};
use crate::export::LiveProcess;
use crate::ipc::SessionId;
use crate::model::{Outcome, Phase, Rate, Recording, SafeText, StoppedBy, sanitise, shown_command_line};
use crate::net::ExchangeError;
use crate::net::client::Client;

/// Whether a recording is to end. Later requests replace earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// It goes on.
    None,
    /// With its rundown.
    Stop,
    /// At once, with what has come.
    Abandon,
}

/// A running recording. Dropping it does not end it; the task sees to its end.
#[derive(Debug)]
pub struct Recorder {
    session: SessionId,
    request: watch::Sender<StopRequest>,
    progress: watch::Receiver<Recording>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Makes the file, opens the session and begins to record.
    ///
    /// # Errors
    /// When the file cannot be made or the runtime does not open the session.
    pub async fn start(client: Client, plan: Plan) -> Result<Self, StartError> {
        let begun = Instant::now();
        let created = OutputFile::create(&plan.file);
        let (output, file) = created.map_err(|error| if plan.scheduling.is_some() { error.without_salvage() } else { error })?;
        let progress = Arc::new(Progress::new(plan.event_filter.clone()));
        let keep = plan.keep.map(|keep| (keep, output.partial().to_owned()));
        let counting = Counting { analysed: plan.analysed, stop_on: plan.stop_on.clone(), keep };
        let (session, joint, pump) = match begin(&client, &plan, file, counting, &progress).await {
            Ok(begun) => begun,
            Err(error) => {
                output.discard();
                return Err(error);
            }
        };

        let (request, requests) = watch::channel(StopRequest::None);
        let mut recording = plan.starting();
        recording.notes.extend(session.losses().iter().map(ToString::to_string));
        if plan.analysed && plan.config.samples() {
            recording.notes.extend(sample_cpu(client.clone(), &progress).await);
        }
        let (publish, published) = watch::channel(recording.clone());
        let mut ticks = interval(Recording::STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let driver = Driver {
            client,
            session: session.clone(),
            recording,
            begun,
            limits: Limits { duration: plan.duration, bytes: plan.max_bytes, stop: plan.stop_limit },
            progress,
            publish,
            requests,
            ticks,
            joint,
            threads: plan.analysed.then(Threads::default),
            names: plan.analysed.then(|| Names::new(begun)),
            last: (begun, Totals::default()),
            stopping: None,
        };
        let task = tokio::spawn(driver.run(pump, output));
        Ok(Self { session: session.id(), request, progress: published, task })
    }

    /// The runtime's id of the session, unique while it lives.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Snapshots, newest wins. The last one has [`Phase::Done`].
    pub fn progress(&self) -> watch::Receiver<Recording> {
        self.progress.clone()
    }

    /// Asks for the stop: the runtime sends its rundown and ends the stream.
    pub fn stop(&self) {
        self.request.send_if_modified(|request| {
            let first = *request == StopRequest::None;
            if first {
                *request = StopRequest::Stop;
            }
            first
        });
    }

    /// Ends at once, without the rundown, and keeps what has come. The runtime frees the session when it next writes to it.
    pub fn abandon(&self) {
        self.request.send_replace(StopRequest::Abandon);
    }

    /// Waits for the end.
    pub async fn finished(self) -> Recording {
        // The driver's last act is to publish the outcome; a panic in it is seen by whoever installed the panic hook.
        let _ = self.task.await;
        self.progress.borrow().clone()
    }
}

/// What a recording consists of: its session, its kernel's half where that is wanted, and the thread that reads the stream.
type Begun = (Arc<TraceSession>, Option<Joint>, JoinHandle<Pumped>);

/// Opens the session, and has its stream read.
async fn begin(client: &Client, plan: &Plan, file: File, counting: Counting, progress: &Arc<Progress>) -> Result<Begun, StartError> {
    let open = async || {
        let (session, stream) = TraceSession::open(client.clone(), &plan.config, u64::MAX).await?;
        Ok::<_, StartError>((session, stream.into_blocking().map_err(StartError::Handle)?))
    };
    let progress = progress.clone();
    let Some(sockets) = plan.scheduling.clone() else {
        let (session, stream) = open().await?;
        let pump = Pump { session: session.clone(), file, max_bytes: plan.max_bytes, counting, progress };
        return Ok((session, None, tokio::task::spawn_blocking(move || pump.run(stream))));
    };
    let target = Target { file, max_bytes: plan.max_bytes, progress: progress.clone() };
    let (joint, inlet) = Joint::start(sockets, target).await?;
    let process = describe(client, plan).await;
    let names = ThreadNames::of(client.clone());
    let (session, stream) = open().await?;
    let pump = ServicePump { session: session.clone(), process, names, inlet, counting, progress };
    Ok((session, Some(joint), tokio::task::spawn_blocking(move || pump.run(stream))))
}

/// Has the kernel sample the process as well. Gives why it does not, where a person can do something about it.
async fn sample_cpu(client: Client, progress: &Progress) -> Option<String> {
    // It looks at every thread.
    match tokio::task::spawn_blocking(move || collect_beside(&client)).await.ok()? {
        Ok(cpu) => {
            // There is one.
            let _ = progress.cpu.set(cpu);
            None
        }
        Err(error) => error.is_denied().then(|| format!("Methods shows thread time of managed code instead of CPU time: {error}")),
    }
}

/// What a trace says of the process. A runtime that is too old to say who it is has a name all the same.
async fn describe(client: &Client, plan: &Plan) -> LiveProcess {
    let info = client.process_info().await.ok().flatten();
    let (command_line, runtime) =
        info.map_or_else(Default::default, |info| (info.command_line.clone(), info.runtime_version().to_string()));
    let (command_line, runtime) = (shown_command_line(&command_line), sanitise(&runtime));
    LiveProcess { pid: plan.key.pid, started: plan.key.started, name: plan.name.to_string(), command_line: command_line.into(), runtime }
}

/// The stopping half of a recording's life.
#[derive(Debug, Clone, Copy)]
struct Stopping {
    by: StoppedBy,
    at: Instant,
    /// Bytes there were when stop was asked for: what comes on top is rundown.
    bytes: u64,
}

struct Driver {
    client: Client,
    session: Arc<TraceSession>,
    recording: Recording,
    begun: Instant,
    limits: Limits,
    progress: Arc<Progress>,
    /// The kernel's half, and the service that both halves go through.
    joint: Option<Joint>,
    publish: watch::Sender<Recording>,
    requests: watch::Receiver<StopRequest>,
    ticks: Interval,
    /// Of whom somebody may want to know, where what comes is analysed.
    threads: Option<Threads>,
    /// For the same.
    names: Option<Names>,
    last: (Instant, Totals),
    stopping: Option<Stopping>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    duration: Option<Duration>,
    bytes: Option<u64>,
    stop: StopLimit,
}

impl Driver {
    async fn run(mut self, pump: JoinHandle<Pumped>, output: OutputFile) {
        let stopped_by = self.record().await;
        if let Some(cpu) = self.progress.cpu.get() {
            cpu.stop();
        }
        let refusal = match stopped_by {
            Some(by) => self.stop(by).await,
            None => None,
        };
        let pumped = self.settle(pump).await;
        let pumped = self.join(pumped).await;
        if let Some(names) = self.names.take() {
            names.finish(self.is_abandoned()).await;
        }
        self.finish(pumped, refusal, output);
    }

    /// Until the stream ends by itself (`None`) or there is a reason to stop it.
    async fn record(&mut self) -> Option<StoppedBy> {
        let (progress, session) = (self.progress.clone(), self.session.clone());
        let mut findings = progress.findings.subscribe();
        let deadline = async |duration: Option<Duration>, begun: Instant| match duration {
            Some(duration) => sleep_until(begun + duration).await,
            None => pending().await,
        };
        let deadline = deadline(self.limits.duration, self.begun);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                () = session.ended() => return None,
                _ = self.ticks.tick() => self.step(),
                // New names, or samples without: neither waits for the next step.
                Ok(()) = findings.changed() => self.publish(Instant::now(), self.progress.totals()),
                Ok(()) = self.requests.changed() => {
                    self.handle_request();
                    return Some(StoppedBy::Interrupt);
                }
                () = progress.enough.notified() => {
                    let full = self.limits.bytes.is_some_and(|most| progress.totals().bytes >= most);
                    return Some(if full { StoppedBy::Size } else { StoppedBy::Error });
                }
                () = progress.came.notified() => return Some(StoppedBy::Event),
                () = &mut deadline => return Some(StoppedBy::Duration),
            }
        }
    }

    /// Has the runtime stop and waits for the end of the stream. Gives the request's own failure, if it failed.
    async fn stop(&mut self, by: StoppedBy) -> Option<ExchangeError> {
        self.progress.stopping.store(true, Ordering::Relaxed);
        self.stopping = Some(Stopping { by, at: Instant::now(), bytes: self.progress.totals().bytes });
        self.step();
        let session = self.session.clone();
        if self.is_abandoned() {
            session.ended().await;
            return None;
        }
        let stopped = session.stop(self.limits.stop);
        tokio::pin!(stopped);
        loop {
            tokio::select! {
                refusal = &mut stopped => return refusal,
                _ = self.ticks.tick() => self.step(),
                Ok(()) = self.requests.changed() => self.handle_request(),
            }
        }
    }

    /// Waits until all that came is in the file and counted.
    async fn settle(&mut self, mut pump: JoinHandle<Pumped>) -> Pumped {
        loop {
            tokio::select! {
                pumped = &mut pump => return pumped.unwrap_or_else(|_| Pumped::lost()),
                _ = self.ticks.tick() => self.step(),
                Ok(()) = self.requests.changed() => self.handle_request(),
            }
        }
    }

    /// Has the tracing service end its recording, and waits until all of the trace is in the file.
    async fn join(&mut self, mut pumped: Pumped) -> Pumped {
        let Some(mut joint) = self.joint.take() else { return pumped };
        let joined = loop {
            if self.is_abandoned() {
                return Pumped { complete: false, ..pumped };
            }
            tokio::select! {
                joined = joint.finish() => break joined,
                _ = self.ticks.tick() => self.step(),
                Ok(()) = self.requests.changed() => self.handle_request(),
            }
        };
        match joined {
            Ok(missing) => pumped.trouble = pumped.trouble.or_else(|| (!missing.is_empty()).then(|| missing.join("; "))),
            // What comes of the stream then is of no use.
            Err(error) => pumped = Pumped { complete: false, broken: true, trouble: Some(error.to_string()) },
        }
        pumped
    }

    /// Does what the latest request needs at once.
    fn handle_request(&mut self) {
        if *self.requests.borrow_and_update() == StopRequest::Abandon {
            self.session.cut(Cut::Abandoned);
            self.progress.abandoned.store(true, Ordering::Relaxed);
        }
    }

    fn is_abandoned(&self) -> bool {
        *self.requests.borrow() == StopRequest::Abandon
    }

    /// Brings the snapshot up to date and publishes it.
    fn step(&mut self) {
        let (now, totals) = (Instant::now(), self.progress.totals());
        let (before, last) = self.last;
        let seconds = now.duration_since(before).as_secs_f64();
        self.last = (now, totals);
        if let Some(stopping) = self.stopping {
            let bytes = totals.bytes.saturating_sub(stopping.bytes);
            self.recording.phase = Phase::Stopping { since: now.duration_since(stopping.at), bytes };
        }
        if seconds > 0.0 {
            // What a flight recorder does not keep is not counted in the end.
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            let history = &mut self.recording.history;
            if history.len() == Recording::HISTORY {
                history.remove(0);
            }
            history.push(Rate {
                bytes: rate(totals.bytes, last.bytes),
                events: rate(totals.events, last.events),
                dropped: totals.dropped > last.dropped,
            });
        }
        if let Some(threads) = &mut self.threads {
            self.recording.threads = threads.look(&self.client);
        }
        self.publish(now, totals);
    }

    fn publish(&mut self, now: Instant, totals: Totals) {
        if self.recording.phase == Phase::Starting && totals.bytes > 0 {
            self.recording.phase = Phase::Recording;
        }
        if let Some(names) = &mut self.names {
            // A suspended runtime sends nothing, and so is never asked.
            if self.recording.phase == Phase::Recording {
                names.step(&self.client, &self.progress, now.duration_since(self.begun));
            }
            self.recording.names = names.state();
        }
        let Totals { bytes, events, dropped } = totals;
        self.recording.elapsed = now.duration_since(self.begun);
        (self.recording.bytes, self.recording.events, self.recording.dropped) = (bytes, events, dropped);
        self.recording.unanalysed = self.progress.unanalysed.load(Ordering::Relaxed);
        self.recording.kept = *self.progress.kept.borrow();
        self.recording.scheduling.clone_from(&self.progress.scheduling.borrow());
        self.recording.findings = self.progress.findings.borrow().clone();
        // Nobody may be looking any more; the file is finished all the same.
        let _ = self.publish.send(self.recording.clone());
    }

    fn finish(mut self, pumped: Pumped, refusal: Option<ExchangeError>, output: OutputFile) {
        let totals = self.progress.totals();
        let mut trouble = pumped.trouble;
        if !pumped.complete && trouble.is_none() {
            trouble = Some(match self.session.unfinished(refusal) {
                Unfinished::Closed | Unfinished::Cut(Cut::Time(_)) if totals.bytes == 0 && self.stopping.is_some() => {
                    "no data received; a runtime that is suspended at startup sends nothing until it is resumed".to_owned()
                }
                why @ Unfinished::Closed => format!("{why}, before the recording was whole; every complete block is kept"),
                why => why.to_string(),
            });
        }
        let stopped_by = match self.stopping {
            Some(stopping) => stopping.by,
            None if pumped.broken => StoppedBy::Error,
            None => StoppedBy::TargetExit,
        };
        let mut outcome = Outcome { stopped_by, complete: pumped.complete, file: None, trouble: trouble.map(SafeText::from) };
        let partial = output.partial().to_owned();
        if totals.bytes == 0 && !pumped.complete {
            output.discard();
        } else {
            match if pumped.complete { output.keep() } else { output.leave() } {
                Ok(file) => outcome.file = Some(file),
                Err(error @ OutputError::Lost(_)) => {
                    (outcome.stopped_by, outcome.complete, outcome.trouble) = (StoppedBy::Error, false, Some(error.to_string().into()));
                }
                Err(error) => {
                    outcome.trouble = Some(format!("{error}; the whole recording is in {}", partial.display()).into());
                    (outcome.stopped_by, outcome.file) = (StoppedBy::Error, Some(partial));
                }
            }
        }
        self.recording.phase = Phase::Done(outcome);
        self.publish(Instant::now(), totals);
    }
}
