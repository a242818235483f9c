//! Joint recording of the kernel's scheduling and one process's events in one trace. dn-top is the consumer, which makes the service record
//! both and reads the trace into its file during the recording, and the producer of the events.
//!
//! The service discards a recording when its consumer disconnects, so none is left behind if dn-top is killed. The file then lacks only the
//! last seconds.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::producer::{PacketSource, Producer};
use super::{Inlet, service_state};
use crate::model::{Bytes, Counted, SafeText, Scheduling, Stopwatch};
use crate::net::perfetto::{Cause, Connection, IncomingReply, PerfettoError, REPLY_TIMEOUT, Sockets};
use crate::perfetto::call::{Method as _, Reply};
use crate::perfetto::consumer::ConsumerMethod as Method;
use crate::perfetto::recording::{FTRACE, Packets, disabled, enable, flush, losses};
use crate::session::blocking::start_blocking;
use crate::session::progress::Progress;

/// Interval between reads of the service's buffers.
const READ_INTERVAL: Duration = Duration::from_millis(500);
/// Flush timeout for data sources, in milliseconds, and the time limit for the service's confirmation.
const FLUSH: (u64, Duration) = (10_000, Duration::from_secs(12));
/// Time limit for ending a recording: the service waits 5 s for its data sources.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for one read of the service's buffers, which hold 64 MB at most and take a second, or more if the file's disk is slow; and the limit
/// once the recording is ending.
const READ_TIMEOUTS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));
/// Time within which kernel events are expected: data sources deliver data every second.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of reported gaps in the kernel's events.
const MAX_KERNEL_GAPS: usize = 10;
/// Size of a write.
const PIECE: usize = 256 << 10;

/// A running recording. Dropping it stops the recording and leaves the file as it is.
#[derive(Debug)]
pub(in crate::session) struct SchedulingRecording {
    end: watch::Sender<bool>,
    reading: JoinSet<Result<Vec<String>, SchedulingError>>,
}

/// Output of the trace, and its state.
#[derive(Debug)]
pub(in crate::session) struct Target {
    pub(in crate::session) file: Arc<File>,
    /// Request the stop once the file has this many bytes.
    pub(in crate::session) max_bytes: Option<u64>,
    pub(in crate::session) progress: Arc<Progress>,
}

/// Why the trace is incomplete.
#[derive(Debug, Error)]
pub(in crate::session) enum SchedulingError {
    #[error("{0}; the data read so far is kept")]
    Service(#[from] PerfettoError),
    #[error("{}", crate::session::pump::write_error_message(.0))]
    File(#[from] io::Error),
    #[error("recording failed inside dn-top; please report it")]
    Panicked,
}

/// Purpose of a call, which identifies its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Ended,
    Read,
    Flushed,
    Disabled,
    Counted,
    Freed,
}

impl SchedulingRecording {
    /// Starts a recording in the service. Returns the inlet for the event packets.
    ///
    /// # Errors
    /// [`PerfettoError`]: there is no service, it denies access, or it does not record. Nothing is recorded then.
    pub(in crate::session) async fn start(sockets: Sockets, target: Target) -> Result<(Self, Inlet), PerfettoError> {
        let mut connection = Connection::<Method, Token>::open(sockets.consumer).await?;
        // An older service may be unable to list its data sources, and may have this one all the same.
        let state = service_state(Some(connection.address().clone())).await.ok();
        let has_kernel = state.is_none_or(|(_, state)| state.data_sources.iter().any(|(name, _)| name == FTRACE));
        let source = source_name();
        let (inlets, mut started) = mpsc::channel(1);
        let mut producer = Producer::connect(sockets.producer, &source, PacketSource::Stream(inlets)).await?;
        let (stop, mut stopped) = watch::channel(false);
        let mut producing = JoinSet::new();
        producing.spawn(async move { producer.run(&mut stopped, &|_| {}).await });
        connection.call(Method::EnableTracing, enable(&source), Token::Ended)?;
        let inlet = timeout(REPLY_TIMEOUT, async {
            loop {
                tokio::select! {
                    Some(inlet) = started.recv() => return Ok(inlet),
                    incoming = connection.next() => if let IncomingReply { token: Token::Ended, reply, .. } = incoming? {
                        return Err(connection.error(why_ended(&reply)));
                    },
                }
            }
        });
        let silent = Cause::Timeout { what: Method::EnableTracing.name(), limit: REPLY_TIMEOUT };
        let inlet = inlet.await.unwrap_or_else(|_| Err(connection.error(silent)))?;
        let (end, ended) = watch::channel(false);
        let reader = Reader {
            connection,
            producing,
            _stop: stop,
            has_kernel,
            began: Instant::now(),
            kernel_at: None,
            kernel_gaps: Vec::new(),
            ended,
            packets: Packets::default(),
            trace: Vec::new(),
            target,
        };
        reader.show();
        let mut reading = JoinSet::new();
        reading.spawn(reader.run());
        Ok((Self { end, reading }, inlet))
    }

    /// Ends the recording, and waits until the whole trace is in the file. Returns a message for each kind of missing data. Cancel safe: it
    /// can be called again.
    ///
    /// # Errors
    /// [`SchedulingError`]: the trace is incomplete.
    pub(in crate::session) async fn finish(&mut self) -> Result<Vec<String>, SchedulingError> {
        self.end.send_replace(true);
        match self.reading.join_next().await {
            Some(Ok(finished)) => finished,
            // The panic is reported by the panic hook.
            Some(Err(_)) | None => Err(SchedulingError::Panicked),
        }
    }
}

/// Returns the name of a data source that no other recording uses. Another dn-top in a container may have the same pid and use the same service.
fn source_name() -> String {
    format!("dotnet.dn-top.{}.{:016x}", std::process::id(), RandomState::new().hash_one(0))
}

fn why_ended(reply: &Reply) -> Cause {
    let what = Method::EnableTracing.name();
    match disabled(&reply.body) {
        Ok(Some(why)) => Cause::RefusedBecause { what, why: SafeText::new(&why) },
        Ok(None) if reply.success => Cause::RefusedBecause { what, why: "the service ended the recording".into() },
        Ok(None) => Cause::refused(what, reply.error.as_deref()),
        Err(error) => error.into(),
    }
}

/// Deadline for all replies to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }
}

/// The consumer side of a recording.
struct Reader {
    connection: Connection<Method, Token>,
    /// The producer of the events, while it is connected.
    producing: JoinSet<Result<(), PerfettoError>>,
    /// Stops the producer when dropped.
    _stop: watch::Sender<bool>,
    /// Whether the kernel's data source was registered when the recording began.
    has_kernel: bool,
    began: Instant,
    /// When kernel events last arrived.
    kernel_at: Option<Instant>,
    /// Messages about gaps in the kernel's events, after which more arrived.
    kernel_gaps: Vec<String>,
    /// Whether the recording is to end.
    ended: watch::Receiver<bool>,
    packets: Packets,
    trace: Vec<u8>,
    target: Target,
}

impl Reader {
    async fn run(mut self) -> Result<Vec<String>, SchedulingError> {
        let finished = match self.read_periodically().await {
            Ok(()) => self.finish().await,
            Err(error) => Err(error),
        };
        if finished.is_err() {
            self.target.progress.stop_needed.notify_one();
        }
        finished
    }

    /// Reads the service's buffers periodically, until the recording is to end.
    async fn read_periodically(&mut self) -> Result<(), SchedulingError> {
        let mut ended = self.ended.clone();
        loop {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => return Ok(()),
                () = sleep(READ_INTERVAL) => {}
                incoming = self.connection.next() => {
                    let incoming = incoming?;
                    self.check_still_recording(&incoming)?;
                }
                Some(ended) = self.producing.join_next() => {
                    let closed = || Err(self.connection.error(Cause::Closed));
                    ended.map_err(|_| SchedulingError::Panicked)?.and_then(|()| closed())?;
                }
            }
            self.read().await?;
            self.show();
        }
    }

    fn check_still_recording(&self, incoming: &IncomingReply<Token>) -> Result<(), PerfettoError> {
        match incoming.token {
            Token::Ended => Err(self.connection.error(why_ended(&incoming.reply))),
            _ => Ok(()),
        }
    }

    /// Reads everything in the service's buffers.
    async fn read(&mut self) -> Result<(), SchedulingError> {
        self.connection.call(Method::ReadBuffers, Vec::new(), Token::Read)?;
        self.packets.begin_read();
        let (mut deadline, mut is_last) = (Deadline::after(READ_TIMEOUTS.0), *self.ended.borrow());
        loop {
            if !is_last && *self.ended.borrow() {
                (is_last, deadline) = (true, deadline.min(Deadline::after(READ_TIMEOUTS.1)));
            }
            let incoming = self.next(Method::ReadBuffers, REPLY_TIMEOUT, deadline).await?;
            if incoming.token != Token::Read {
                self.check_still_recording(&incoming)?;
                continue;
            }
            if !incoming.reply.success {
                return Err(self.connection.error(Cause::refused(Method::ReadBuffers.name(), incoming.reply.error.as_deref())).into());
            }
            self.packets.add(&incoming.reply.body, &mut self.trace).map_err(|error| self.connection.error(error))?;
            if self.trace.len() > PIECE || !incoming.reply.has_more {
                self.write().await?;
            }
            if !incoming.reply.has_more {
                self.note_kernel_events();
                return Ok(());
            }
        }
    }

    fn note_kernel_events(&mut self) {
        if !std::mem::take(&mut self.packets.has_kernel_events) {
            return;
        }
        let now = Instant::now();
        let before = self.kernel_at.replace(now);
        if let Some(before) = before.filter(|before| now - *before > KERNEL_TIMEOUT && self.kernel_gaps.len() < MAX_KERNEL_GAPS) {
            let [from, to] = [before, now].map(|at| Stopwatch(at - self.began));
            self.kernel_gaps.push(format!("no kernel events from about {from} to {to}"));
        }
    }

    /// Returns the next reply, with a time limit for it and for all replies together.
    async fn next(&mut self, method: Method, silence: Duration, deadline: Deadline) -> Result<IncomingReply<Token>, PerfettoError> {
        let (what, now) = (method.name(), Instant::now());
        let silent = now + silence;
        let endless = || Cause::Incomplete { what, limit: deadline.limit };
        // Enforce the limit even if replies are already available.
        if now >= deadline.at {
            return Err(self.connection.error(endless()));
        }
        match timeout_at(silent.min(deadline.at), self.connection.next()).await {
            Ok(incoming) => incoming,
            Err(_) if silent < deadline.at => Err(self.connection.error(Cause::Timeout { what, limit: silence })),
            Err(_) => Err(self.connection.error(endless())),
        }
    }

    async fn write(&mut self) -> Result<(), SchedulingError> {
        let (file, trace) = (self.target.file.clone(), std::mem::take(&mut self.trace));
        let length = trace.len() as u64;
        let written = start_blocking(move || (&*file).write_all(&trace)).await;
        written.map_err(|_| SchedulingError::Panicked)??;
        let Target { max_bytes, progress, .. } = &self.target;
        let bytes = progress.bytes.fetch_add(length, Ordering::Relaxed) + length;
        if max_bytes.is_some_and(|most| bytes >= most) {
            progress.stop_needed.notify_one();
        }
        Ok(())
    }

    /// Publishes the state of the kernel's scheduling events.
    fn show(&self) {
        let address = self.connection.address();
        let now = match (self.kernel_at, self.has_kernel) {
            (Some(at), _) if at.elapsed() < KERNEL_TIMEOUT => Scheduling::Recording,
            (Some(at), _) => Scheduling::Ended { after: at - self.began },
            (None, false) => Scheduling::Missing(format!(
                "the tracing service at {address} has no kernel data source ({FTRACE}): start `traced_probes` as root, on a machine with tracefs"
            ).into()),
            (None, true) if self.began.elapsed() > KERNEL_TIMEOUT => Scheduling::Missing(format!(
                "`traced_probes` sent no events within {} s: it has to run as root, with tracefs mounted at /sys/kernel/tracing",
                KERNEL_TIMEOUT.as_secs()
            ).into()),
            (None, true) => Scheduling::Waiting,
        };
        self.target.progress.scheduling.send_replace(Some(now));
    }

    /// Makes the service end the recording, and reads the rest.
    async fn finish(&mut self) -> Result<Vec<String>, SchedulingError> {
        let mut missing = std::mem::take(&mut self.kernel_gaps);
        let (flushed_from, mut is_flushed) = (Instant::now(), false);
        match self.connection.ask(Method::Flush, flush(FLUSH.0), Token::Flushed, FLUSH.1).await {
            Ok(_) => is_flushed = true,
            Err(PerfettoError { cause: Cause::Refused(_) | Cause::RefusedBecause { .. }, .. }) => {
                missing.push("a data source did not flush its last events in time".to_owned());
            }
            Err(error) => return Err(error.into()),
        }
        self.connection.ask(Method::DisableTracing, Vec::new(), Token::Disabled, REPLY_TIMEOUT).await?;
        let deadline = Deadline::after(END_TIMEOUT);
        let ended = loop {
            let incoming = self.next(Method::DisableTracing, END_TIMEOUT, deadline).await?;
            if incoming.token == Token::Ended {
                break incoming;
            }
        };
        if let Ok(Some(why)) = disabled(&ended.reply.body) {
            missing.push(format!("the service ended the recording with an error: {}", SafeText::new(&why)));
        }
        self.read().await?;
        self.show();
        // There must have been a context switch since the previous data, at least to one of this program's threads.
        if let Some(at) = self.kernel_at.filter(|at| is_flushed && *at < flushed_from) {
            let ended = Scheduling::Ended { after: at - self.began };
            missing.push(ended.to_string());
            self.target.progress.scheduling.send_replace(Some(ended));
        }
        // If losses are unknown, none is reported.
        if let Ok(incoming) = self.connection.ask(Method::GetTraceStats, Vec::new(), Token::Counted, REPLY_TIMEOUT).await {
            let losses = losses(&incoming.reply.body).map_err(|error| self.connection.error(error))?;
            for (loss, whose) in losses.iter().zip(["of the kernel", "of .NET"]) {
                if loss.overwritten > 0 || loss.discarded > 0 {
                    let (bytes, chunks) = (Bytes(loss.overwritten), loss.discarded);
                    missing.push(format!("the service's buffer lost events {whose}: {bytes} overwritten, {chunks} chunks discarded"));
                }
                if loss.dropped > 0 {
                    let packets = Counted(loss.dropped, "packet");
                    missing.push(format!("{packets} {whose} dropped: the service did not empty the shared memory in time"));
                }
            }
        }
        if self.packets.lost_kernel_events {
            missing.push("the kernel overwrote some of its events before `traced_probes` read them".to_owned());
        }
        // The service frees them anyway when the connection is closed.
        let _ = self.connection.ask(Method::FreeBuffers, Vec::new(), Token::Freed, REPLY_TIMEOUT).await;
        let file = self.target.file.clone();
        start_blocking(move || file.sync_all()).await.map_err(|_| SchedulingError::Panicked)??;
        Ok(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_source_name_does_not_only_depend_on_the_pid() {
        let [one, other] = [source_name(), source_name()];
        let suffix = |name: &str| name.strip_prefix(&format!("dotnet.dn-top.{}.", std::process::id())).map(str::len);
        assert!(one != other && suffix(&one) == Some(16) && suffix(&other) == Some(16), "{one} {other}");
    }
}
