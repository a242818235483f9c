//! Drives a recording to completion: publishes its progress, stops it, and gives the file its final name.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, sleep};

use super::joined_file::{JoinedFile, NotJoined};
use super::recorded_names::{IF_ABANDONED, read_names};
use super::{StopRequest, disk_space};
use crate::model::{Bytes, Conditions, Outcome, Phase, Rate, Recording, SafeText, StoppedBy};
use crate::net::client::Client;
use crate::net::{ExchangeError, log};
use crate::session::blocking::{Blocking, start_blocking};
use crate::session::condition::until_met;
use crate::session::cpu::MethodNames;
use crate::session::names::MethodNameSearch;
use crate::session::perfetto::SchedulingRecording;
use crate::session::progress::{Progress, Totals};
use crate::session::pump::{FirstError, Pumped};
use crate::session::threads::Threads;
use crate::session::trace_session::TraceSession;
use crate::session::{Cut, OutputError, OutputFile, Plan, Unfinished};

/// State of a recording that is being stopped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopping {
    by: StoppedBy,
    at: Instant,
    /// When the stop was sent to the runtime, which may have to wait for meters, and the number of bytes then: any more are rundown.
    sent: Option<(Instant, u64)>,
}

pub(super) struct Driver {
    pub(super) client: Client,
    pub(super) session: Arc<TraceSession>,
    pub(super) recording: Recording,
    pub(super) plan: Plan,
    pub(super) begun: Instant,
    pub(super) progress: Arc<Progress>,
    /// The joint recording with kernel scheduling, in the tracing service.
    pub(super) scheduling: Option<SchedulingRecording>,
    pub(super) publish: watch::Sender<Recording>,
    pub(super) requests: watch::Receiver<StopRequest>,
    pub(super) ticks: Interval,
    /// The thread that collects kernel samples.
    pub(super) cpu: Option<Blocking<()>>,
    /// Progress of joining the two files, once started.
    pub(super) joined_percent: Option<Arc<AtomicU8>>,
    /// Threads of the process, if events are analyzed.
    pub(super) threads: Option<Threads>,
    /// Search for method names, if events are analyzed or there are kernel samples.
    pub(super) names: Option<MethodNameSearch>,
    pub(super) last: (Instant, Totals),
    pub(super) stopping: Option<Stopping>,
    /// Free disk space because of which the recording was stopped, in bytes.
    pub(super) low_space: Option<u64>,
}

impl Driver {
    pub(super) async fn run(mut self, pump: Blocking<Pumped>, output: OutputFile) {
        let stopped_by = self.record(output.partial()).await;
        if let Some(by) = stopped_by {
            self.await_stoppable(by).await;
        }
        if let (Some(cpu), Some(task)) = (self.progress.cpu.get(), self.cpu.take()) {
            cpu.stop();
            // It collects the remaining samples, which takes a few milliseconds. A panic in it is reported by the panic hook.
            let _ = task.await;
        }
        let refusal = if stopped_by.is_some() { self.stop().await } else { None };
        // All data is written and counted then.
        let mut pumped = self.wait_for(pump).await.unwrap_or_else(|_| Pumped::lost());
        if let Some(free) = self.low_space {
            pumped.trouble.note(|| format!("stopped before the disk is full: {} are free", Bytes(free)));
        }
        self.finish_scheduling(&mut pumped).await;
        if let Some(names) = self.names.take() {
            self.wait_for(names.finish(self.abandoned())).await;
        }
        self.finish_cpu(&mut pumped, output.partial()).await;
        let (output, bytes) = self.join_files(&mut pumped, output).await;
        self.finish(pumped, refusal, output, bytes);
    }

    /// Writes the names, which are in the recording, to the file of kernel samples, and gives that its final name.
    async fn finish_cpu(&mut self, pumped: &mut Pumped, recording: &Path) {
        let Some(cpu) = self.progress.cpu.get().cloned().filter(|cpu| cpu.has_file()) else { return };
        // The recording is removed as well.
        if self.is_empty() && cpu.discard_empty_file() {
            return;
        }
        let (recording, progress, complete) = (recording.to_owned(), self.progress.clone(), pumped.complete);
        let finished = start_blocking(move || {
            let (live, all) = read_names(&recording, &progress, IF_ABANDONED);
            let names = if all && complete { MethodNames::Complete } else { MethodNames::Missing };
            (cpu.finish_file(live.symbols(), names), all)
        });
        let (finished, all) = self.wait_for(finished).await.unwrap_or((None, true));
        match finished {
            Some(Ok(file)) => self.recording.cpu_file = Some(file),
            Some(Err(why)) => pumped.trouble.note(|| format!("the CPU samples were not written to a file: {why}")),
            None => pumped.trouble.note(|| "the CPU samples were not written to a file".to_owned()),
        }
        if !all {
            pumped.trouble.note(|| "canceled before all methods of the CPU samples were named".to_owned());
        }
    }

    /// Joins the recording and the kernel samples into one file, unless disabled. Returns the file, and its size if it was joined.
    async fn join_files(&mut self, pumped: &mut Pumped, output: OutputFile) -> (OutputFile, Option<u64>) {
        let Some(samples) = self.recording.cpu_file.clone().filter(|_| pumped.complete && !self.plan.separate) else {
            return (output, None);
        };
        let (progress, events) = (self.progress.clone(), self.progress.totals().events);
        let percent = self.joined_percent.insert(Arc::default()).clone();
        let joining = start_blocking(move || {
            JoinedFile::join(output, &samples, events, &mut |done, of| {
                percent.store((done * 100 / of.max(1)).min(100) as u8, Ordering::Relaxed);
                !progress.abandoned.load(Ordering::Relaxed)
            })
        });
        match self.wait_for(joining).await {
            Ok(Ok(JoinedFile { output, bytes, samples })) => {
                (self.recording.cpu_file, self.recording.cpu_samples) = (None, Some(samples));
                (output, Some(bytes))
            }
            Ok(Err(NotJoined { output, trouble })) => {
                pumped.trouble.add(trouble);
                (output, None)
            }
            // Blocking tasks are never canceled.
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Runs until the stream, which is written to this file, ends by itself (`None`) or there is a reason to stop it.
    async fn record(&mut self, file: &Path) -> Option<StoppedBy> {
        let (progress, session) = (self.progress.clone(), self.session.clone());
        let mut analysis = progress.analysis.subscribe();
        let deadline = sleep(self.plan.duration.map_or(Duration::MAX, |duration| duration.saturating_sub(self.begun.elapsed())));
        let is_flight = self.plan.keep.is_some();
        let low_space = async {
            // A flight recorder deletes its oldest data instead.
            if is_flight { pending().await } else { disk_space::low(file).await }
        };
        let stop_when = self.plan.stop_when.clone();
        let (new_hints, mut hints) = unbounded_channel();
        let met = until_met(self.client.clone(), stop_when.clone(), new_hints);
        let mut is_checked = true;
        tokio::pin!(deadline, low_space, met);
        loop {
            tokio::select! {
                () = session.ended() => return None,
                _ = self.ticks.tick() => {
                    self.note_silent_providers();
                    self.step();
                }
                // New names, or samples without names, are published without waiting for the next step.
                Ok(()) = analysis.changed() => self.publish(Instant::now(), self.progress.totals()),
                Ok(()) = self.requests.changed() => {
                    self.handle_request();
                    return Some(StoppedBy::Interrupt);
                }
                () = progress.stop_needed.notified() => {
                    let full = self.plan.max_bytes.is_some_and(|most| progress.totals().bytes >= most);
                    return Some(if full { StoppedBy::Size } else { StoppedBy::Error });
                }
                () = progress.stop_event.notified() => return Some(StoppedBy::Event),
                () = &mut deadline => return Some(StoppedBy::Duration),
                Some(hint) = hints.recv() => {
                    self.recording.notes.push(hint);
                    self.publish(Instant::now(), self.progress.totals());
                }
                met = &mut met, if is_checked => {
                    is_checked = false;
                    let is_met = met.is_ok();
                    let note = met.unwrap_or_else(|error| {
                        let condition = stop_when.iter().map(Conditions::to_string).collect::<String>();
                        format!("{condition} is no longer checked, the recording continues: {error}")
                    });
                    self.recording.notes.push(note);
                    self.publish(Instant::now(), self.progress.totals());
                    if is_met {
                        return Some(StoppedBy::Condition);
                    }
                }
                free = &mut low_space => {
                    self.low_space = Some(free);
                    return Some(StoppedBy::DiskSpace);
                }
            }
        }
    }

    /// Waits until the stop can be sent; the recording goes on.
    async fn await_stoppable(&mut self, by: StoppedBy) {
        self.stopping = Some(Stopping { by, at: Instant::now(), sent: None });
        self.step();
        let session = self.session.clone();
        self.wait_for(session.until_stoppable()).await;
    }

    /// Requests the stop and waits for the end of the stream. Returns the error if the request failed.
    async fn stop(&mut self) -> Option<ExchangeError> {
        self.progress.stopping.store(true, Ordering::Relaxed);
        // The rundown does not belong to the recorded period.
        if let Some(mut threads) = self.threads.take() {
            let client = self.client.clone();
            self.recording.threads = self.wait_for(threads.read_last(&client)).await;
            self.threads = Some(threads);
            self.show_thread_times();
        }
        let sent = Some((Instant::now(), self.progress.totals().bytes));
        self.stopping = self.stopping.map(|stopping| Stopping { sent, ..stopping });
        self.step();
        let session = self.session.clone();
        if self.is_abandoned() {
            session.ended().await;
            return None;
        }
        // Half of the free space remains, whatever the runtime sends.
        let limit = self.low_space.map_or(self.plan.stop_limit, |free| self.plan.stop_limit.within(free));
        self.wait_for(session.stop(limit)).await
    }

    /// Waits for a step of finishing the recording, and publishes progress and handles requests until then.
    async fn wait_for<T>(&mut self, step: impl Future<Output = T>) -> T {
        tokio::pin!(step);
        loop {
            tokio::select! {
                // The step may depend on the request as well, and must find it handled.
                biased;
                Ok(()) = self.requests.changed() => self.handle_request(),
                finished = &mut step => return finished,
                _ = self.ticks.tick() => self.step(),
            }
        }
    }

    /// Makes the tracing service end its recording, and waits until the whole trace is in the file.
    async fn finish_scheduling(&mut self, pumped: &mut Pumped) {
        let Some(mut scheduling) = self.scheduling.take() else { return };
        let abandoned = self.abandoned();
        let finished = async {
            tokio::select! {
                biased;
                () = abandoned => None,
                finished = scheduling.finish() => Some(finished),
            }
        };
        match self.wait_for(finished).await {
            None => pumped.complete = false,
            Some(Ok(missing)) => pumped.trouble.add((!missing.is_empty()).then(|| missing.join("; "))),
            // The stream's result is useless without the trace.
            Some(Err(error)) => *pumped = Pumped { complete: false, broken: true, trouble: FirstError(Some(error.to_string())) },
        }
    }

    /// Handles the parts of the latest request that need immediate action.
    fn handle_request(&mut self) {
        if *self.requests.borrow_and_update() == StopRequest::Abandon {
            self.session.cut(Cut::Abandoned);
            self.progress.abandoned.store(true, Ordering::Relaxed);
        }
    }

    fn is_abandoned(&self) -> bool {
        *self.requests.borrow() == StopRequest::Abandon
    }

    /// Waits until the recording is abandoned.
    fn abandoned(&self) -> impl Future<Output = ()> + use<> {
        let mut requests = self.requests.clone();
        async move {
            if requests.wait_for(|request| *request == StopRequest::Abandon).await.is_err() {
                pending().await
            }
        }
    }

    /// Updates the snapshot and publishes it.
    fn step(&mut self) {
        let (now, totals) = (Instant::now(), self.progress.totals());
        let (before, last) = self.last;
        let seconds = now.duration_since(before).as_secs_f64();
        self.last = (now, totals);
        if let Some(stopping) = self.stopping {
            let bytes = stopping.sent.map_or(0, |(_, before)| totals.bytes.saturating_sub(before));
            self.recording.phase = Phase::Stopping { since: now.duration_since(stopping.at), bytes };
        }
        if let Some(percent) = &self.joined_percent {
            self.recording.phase = Phase::Joining { percent: percent.load(Ordering::Relaxed) };
        }
        if seconds > 0.0 {
            // The total can decrease: data not kept by a flight recorder is not counted in the end.
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
        if let Some(threads) = &mut self.threads
            && let Some(shown) = threads.read_if_due(&self.client)
        {
            self.recording.threads = shown;
            self.show_thread_times();
        }
        self.publish(now, totals);
    }

    /// Whether the runtime has sent nothing: it may be suspended at startup.
    fn is_empty(&self) -> bool {
        self.progress.totals().bytes == 0
    }

    fn show_thread_times(&mut self) {
        if let Some(threads) = &self.threads {
            self.progress.thread_times.put(threads.cpu_times());
            self.recording.cpu_constraints = threads.cpu_constraints();
        }
    }

    fn publish(&mut self, now: Instant, totals: Totals) {
        if self.recording.phase == Phase::Starting && totals.bytes > 0 {
            self.recording.phase = Phase::Recording;
        }
        if let Some(names) = &mut self.names {
            // A suspended runtime sends nothing, so names are never requested from it.
            if self.recording.phase == Phase::Recording {
                names.step(&self.client, &self.progress, now.duration_since(self.begun));
            }
            self.recording.names = names.state();
        }
        let Totals { bytes, events, dropped } = totals;
        let end = self.stopping.and_then(|stopping| stopping.sent).map_or(now, |(at, _)| at);
        self.recording.elapsed = end.duration_since(self.begun);
        (self.recording.bytes, self.recording.events, self.recording.dropped) = (bytes, events, dropped);
        self.recording.unanalyzed = self.progress.unanalyzed.load(Ordering::Relaxed);
        self.recording.kept = self.progress.kept.borrow().clone();
        self.recording.scheduling.clone_from(&self.progress.scheduling.borrow());
        self.recording.analysis = self.progress.analysis.borrow().clone();
        // The receiver may have been dropped; the file is finished anyway.
        let _ = self.publish.send(self.recording.clone());
    }

    fn finish(mut self, pumped: Pumped, refusal: Option<ExchangeError>, output: OutputFile, bytes: Option<u64>) {
        let totals = self.progress.totals();
        let totals = Totals { bytes: bytes.unwrap_or(totals.bytes), ..totals };
        let is_empty = self.is_empty();
        let mut trouble = pumped.trouble;
        if !pumped.complete {
            trouble.note(|| match self.session.unfinished(refusal) {
                Unfinished::Closed | Unfinished::Cut(Cut::Time(_)) if totals.bytes == 0 && self.stopping.is_some() => {
                    "no data received; a runtime that is suspended at startup sends nothing until it is resumed".to_owned()
                }
                why @ Unfinished::Closed => format!("{why}, before the recording was complete; every complete block is kept"),
                why => why.to_string(),
            });
        }
        let stopped_by = match self.stopping {
            Some(stopping) => stopping.by,
            None if pumped.broken => StoppedBy::Error,
            None => StoppedBy::TargetExit,
        };
        let mut outcome = Outcome { stopped_by, complete: pumped.complete, file: None, trouble: trouble.0.map(SafeText::from) };
        let partial = output.partial().to_owned();
        if is_empty {
            output.discard();
        } else {
            match if pumped.complete { output.persist() } else { output.keep_partial() } {
                Ok(file) => outcome.file = Some(file),
                Err(error @ OutputError::Lost(_)) => {
                    (outcome.stopped_by, outcome.complete, outcome.trouble) = (StoppedBy::Error, false, Some(error.to_string().into()));
                }
                Err(error) => {
                    outcome.trouble = Some(format!("{error}; the complete recording is in {}", partial.display()).into());
                    (outcome.stopped_by, outcome.file) = (StoppedBy::Error, Some(partial));
                }
            }
        }
        let Recording { key, file, .. } = &self.recording;
        let end = if outcome.complete { "is complete" } else { "is not complete" };
        let trouble = outcome.trouble.as_ref().map_or_else(String::new, |trouble| format!(": {trouble}"));
        let path = outcome.file.as_ref().unwrap_or(file).display();
        log::note(format_args!("recording of process {} {end}, {} bytes, {path}{trouble}", key.pid, totals.bytes));
        (self.recording.providers, self.recording.phase) = (self.progress.providers.take().map(Arc::new), Phase::Done(outcome));
        self.publish(Instant::now(), totals);
    }
}
