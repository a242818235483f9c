//! One recording, from the request to the finished file.
//!
//! Order matters (reference: dotnet/diagnostics, "EventPipe session life"): the session is opened; a thread drains its stream into the
//! file; to stop, `StopTracing` goes over a second connection *while the stream goes on being drained*, since the runtime writes its
//! rundown before it answers; the stream's end is the end. A session whose stream has ended is never stopped: its id may be another's by then.

use std::future::pending;
use std::net::Shutdown;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::blocking::blocking;
use super::count::Counting;
use super::names::Names;
use super::output::OutputFile;
use super::plan::{Plan, StartError};
use super::progress::{Progress, Totals};
use super::pump::{Pump, Pumped};
use super::threads::Threads;
use crate::ipc::SessionId;
use crate::model::{Outcome, Phase, Rate, Recording, StoppedBy};
use crate::net::ExchangeError;
use crate::net::client::Client;

/// What somebody wants of a running recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    GoOn,
    Stop,
    Abandon,
}

/// A running recording. Dropping it does not end it; the task sees to its end.
#[derive(Debug)]
pub struct Recorder {
    session: SessionId,
    wish: watch::Sender<Wish>,
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
        let (output, file) = OutputFile::create(&plan.file)?;
        let session = match client.start_session(&plan.config).await {
            Ok(session) => session,
            Err(error) => {
                output.discard();
                return Err(error.into());
            }
        };
        let progress = Arc::new(Progress::new(plan.lens.clone()));
        // The pump blocks in read; shutting a second handle down is what ends it before the runtime does.
        let (reading, stream) = match blocking(session.stream) {
            Ok(handles) => handles,
            Err(error) => {
                output.discard();
                return Err(StartError::Handle(error));
            }
        };
        let keep = plan.keep.map(|keep| (keep, output.partial().to_owned()));
        let counting = Counting { analysed: plan.analysed, stop_on: plan.stop_on.clone(), keep };
        let pump = Pump { stream: reading, file, max_bytes: plan.max_bytes, counting, progress: progress.clone() };
        let pump = tokio::task::spawn_blocking(move || pump.run());

        let (wish, wishes) = watch::channel(Wish::GoOn);
        let recording = Recording { losses: session.losses, ..plan.starting() };
        let (publish, published) = watch::channel(recording.clone());
        let mut ticks = interval(Recording::STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let driver = Driver {
            client,
            session: session.id,
            stream,
            recording,
            begun,
            limits: Limits { duration: plan.duration, bytes: plan.max_bytes },
            progress,
            publish,
            wishes,
            ticks,
            threads: plan.analysed.then(Threads::default),
            names: plan.analysed.then(|| Names::new(begun)),
            last: (begun, Totals::default()),
            stopping: None,
        };
        let task = tokio::spawn(driver.run(pump, output));
        Ok(Self { session: session.id, wish, progress: published, task })
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
        self.wish.send_if_modified(|wish| {
            let first = *wish == Wish::GoOn;
            if first {
                *wish = Wish::Stop;
            }
            first
        });
    }

    /// Ends at once, without the rundown, and keeps what has come. The runtime frees the session when it next writes to it.
    pub fn abandon(&self) {
        self.wish.send_replace(Wish::Abandon);
    }

    /// Waits for the end.
    pub async fn finished(self) -> Recording {
        // The driver's last act is to publish the outcome; a panic in it is seen by whoever installed the panic hook.
        let _ = self.task.await;
        self.progress.borrow().clone()
    }
}

/// How long a session may stay quiet after its stop failed before it is given up.
const QUIET: Duration = Duration::from_secs(10);

/// The stopping half of a recording's life.
#[derive(Debug, Clone, Copy)]
struct Stopping {
    by: StoppedBy,
    at: Instant,
    /// Bytes there were when stop was asked for: what comes on top is rundown.
    bytes: u64,
    abandoned: bool,
}

struct Driver {
    client: Client,
    session: SessionId,
    /// A second handle to the stream, to end it from here.
    stream: UnixStream,
    recording: Recording,
    begun: Instant,
    limits: Limits,
    progress: Arc<Progress>,
    publish: watch::Sender<Recording>,
    wishes: watch::Receiver<Wish>,
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
}

impl Driver {
    async fn run(mut self, mut pump: JoinHandle<Pumped>, output: OutputFile) {
        let (pumped, refusal) = match self.record(&mut pump).await {
            ControlFlow::Break(pumped) => (pumped, None),
            ControlFlow::Continue(by) => self.stop(by, &mut pump).await,
        };
        if let Some(names) = self.names.take() {
            names.finish().await;
        }
        self.finish(pumped, refusal, output);
    }

    /// Until the stream ends by itself (break) or there is a reason to stop it (continue).
    async fn record(&mut self, pump: &mut JoinHandle<Pumped>) -> ControlFlow<Pumped, StoppedBy> {
        let progress = self.progress.clone();
        let deadline = async |duration: Option<Duration>, begun: Instant| match duration {
            Some(duration) => sleep_until(begun + duration).await,
            None => pending().await,
        };
        let deadline = deadline(self.limits.duration, self.begun);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                pumped = &mut *pump => return ControlFlow::Break(pumped.unwrap_or_else(|_| Pumped::lost())),
                _ = self.ticks.tick() => self.step(),
                Ok(()) = self.wishes.changed() => {
                    self.heed();
                    return ControlFlow::Continue(StoppedBy::Interrupt);
                }
                () = progress.enough.notified() => {
                    let full = self.limits.bytes.is_some_and(|most| progress.totals().bytes >= most);
                    return ControlFlow::Continue(if full { StoppedBy::Size } else { StoppedBy::Error });
                }
                () = progress.came.notified() => return ControlFlow::Continue(StoppedBy::Event),
                () = &mut deadline => return ControlFlow::Continue(StoppedBy::Duration),
            }
        }
    }

    /// Asks the runtime to stop and waits for the end of the stream. Also gives the stop's own failure, if it failed.
    async fn stop(&mut self, by: StoppedBy, pump: &mut JoinHandle<Pumped>) -> (Pumped, Option<ExchangeError>) {
        let abandoned = *self.wishes.borrow() == Wish::Abandon;
        self.progress.stopping.store(true, Ordering::Relaxed);
        self.stopping = Some(Stopping { by, at: Instant::now(), bytes: self.progress.totals().bytes, abandoned });
        self.step();
        let (client, session) = (self.client.clone(), self.session);
        let mut request = (!abandoned).then(|| tokio::spawn(async move { client.stop_session(session).await }));
        let mut refusal = None;
        let mut heard = (Instant::now(), self.progress.totals().bytes);
        let pumped = loop {
            tokio::select! {
                pumped = &mut *pump => break pumped.unwrap_or_else(|_| Pumped::lost()),
                _ = self.ticks.tick() => {
                    self.step();
                    let bytes = self.progress.totals().bytes;
                    if bytes != heard.1 {
                        heard = (Instant::now(), bytes);
                    }
                    if request.as_ref().is_some_and(JoinHandle::is_finished)
                        && let Some(answered) = request.take()
                        && let Ok(Err(error)) = answered.await
                    {
                        refusal = Some(error);
                    }
                    if refusal.is_some() && heard.0.elapsed() > QUIET {
                        self.hang_up();
                    }
                }
                Ok(()) = self.wishes.changed() => self.heed(),
            }
        };
        // The stream has ended: an unanswered stop must not reach whoever gets the same id next.
        if let Some(request) = request {
            request.abort();
        }
        (pumped, refusal)
    }

    /// Does what the latest wish needs at once.
    fn heed(&mut self) {
        if *self.wishes.borrow_and_update() == Wish::Abandon {
            if let Some(stopping) = &mut self.stopping {
                stopping.abandoned = true;
            }
            self.hang_up();
        }
    }

    /// Ends the stream from our side: the pump reads what is still in the socket and then its end.
    fn hang_up(&self) {
        // It fails only where the stream has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Brings the snapshot up to date and publishes it.
    fn step(&mut self) {
        let (now, totals) = (Instant::now(), self.progress.totals());
        let (before, last) = self.last;
        let seconds = now.duration_since(before).as_secs_f64();
        self.last = (now, totals);
        if self.recording.phase == Phase::Starting && totals.bytes > 0 {
            self.recording.phase = Phase::Recording;
        }
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
        if let Some(names) = &mut self.names {
            // A suspended runtime sends nothing, and so is never asked.
            if self.recording.phase == Phase::Recording {
                names.step(&self.client, &self.progress, now.duration_since(self.begun));
            }
            self.recording.names = names.state();
        }
        self.tell(now, totals);
    }

    fn tell(&mut self, now: Instant, totals: Totals) {
        let Totals { bytes, events, dropped } = totals;
        self.recording.elapsed = now.duration_since(self.begun);
        (self.recording.bytes, self.recording.events, self.recording.dropped) = (bytes, events, dropped);
        self.recording.kept = *self.progress.kept.borrow();
        self.recording.findings = self.progress.findings.borrow().clone();
        // Nobody may be looking any more; the file is finished all the same.
        let _ = self.publish.send(self.recording.clone());
    }

    fn finish(mut self, pumped: Pumped, refusal: Option<ExchangeError>, output: OutputFile) {
        let totals = self.progress.totals();
        let abandoned = self.stopping.is_some_and(|stopping| stopping.abandoned);
        let mut trouble = pumped.trouble;
        if !pumped.complete && trouble.is_none() {
            trouble = Some(match refusal {
                Some(error) => format!("the session could not be stopped: {error}"),
                None if totals.bytes == 0 && self.stopping.is_some() => {
                    "the runtime sent nothing; one that is suspended at start-up sends nothing until it is resumed".to_owned()
                }
                None if abandoned => "abandoned before the rundown was whole: method names may be missing".to_owned(),
                None => "the target ended, or closed the stream, before the recording was whole; every complete block is kept".to_owned(),
            });
        }
        let file = if pumped.complete {
            let partial = output.partial().to_owned();
            Some(output.keep().unwrap_or_else(|error| {
                trouble = Some(format!("{error}; the whole recording is in {}", partial.display()));
                partial
            }))
        } else if totals.bytes == 0 {
            output.discard();
            None
        } else {
            Some(output.partial().to_owned())
        };
        let stopped_by = match self.stopping {
            Some(stopping) => stopping.by,
            None if pumped.broken => StoppedBy::Error,
            None => StoppedBy::TargetExit,
        };
        self.recording.phase = Phase::Done(Outcome { stopped_by, complete: pumped.complete, file, trouble });
        self.tell(Instant::now(), totals);
    }
}
