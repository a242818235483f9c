//! One process of a recording: its EventPipe session, and a thread that turns the stream into packets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::commits::{Backlog, Batch, Work};
use crate::export::{LiveProcess, LiveTrace};
use crate::ipc::SessionConfig;
use crate::model::{PacketCounts, Process};
use crate::net::client::Client;
use crate::nettrace::{Decoder, Limits, Sink, Thread, ThreadId};
use crate::perfetto::chunk::WriterId;
use crate::perfetto::producer::packets;
use crate::session::plan::StartError;
use crate::session::trace_session::{BlockingStream, Cut, EventStream, StopLimit, TraceSession};

/// One read takes at most this much.
const CHUNK: usize = 64 * 1024;
/// How often everything is described again. What was described longer ago may be overwritten, where the service has a ring buffer.
const DESCRIBED: Duration = Duration::from_secs(10);
/// Most threads whose names are remembered.
const THREADS: usize = 1 << 14;
/// How often it is looked which threads the process has.
const NAMES: Duration = Duration::from_secs(1);

/// Where packets go.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    /// The sequence.
    pub(super) writer: WriterId,
    /// The buffer of the service.
    pub(super) buffer: u32,
    /// To the connection.
    pub(super) work: mpsc::UnboundedSender<Work>,
}

/// Names of threads by number, since they were last looked at.
type Names = Arc<Mutex<HashMap<u64, String>>>;

/// A process that is recorded.
#[derive(Debug)]
pub(super) struct Stream {
    session: Arc<TraceSession>,
    thread: JoinHandle<()>,
    names: JoinHandle<()>,
}

/// Counts packets of all streams of a recording.
#[derive(Debug, Default)]
pub(super) struct Tally {
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

impl Tally {
    pub(super) fn counts(&self) -> PacketCounts {
        let [packets, bytes, dropped] = [&self.packets, &self.bytes, &self.dropped].map(|count| count.load(Ordering::Relaxed));
        PacketCounts { packets, bytes, dropped }
    }
}

impl Stream {
    /// Opens the session and begins to convert. `restart` changes when everything has to be described again.
    pub(super) async fn open(
        client: Client,
        process: &Process,
        config: &SessionConfig,
        outlet: Outlet,
        restart: watch::Receiver<u64>,
        tally: Arc<Tally>,
    ) -> Result<Self, StartError> {
        let (session, stream) = TraceSession::open(client.clone(), config, u64::MAX).await?;
        let stream = stream.into_blocking().map_err(StartError::Handle)?;
        let names = Names::default();
        put_names(&client, &names);
        let about = LiveProcess {
            pid: process.key.pid,
            started: process.key.started,
            name: process.name.clone(),
            command_line: process.command_line.clone(),
            runtime: process.runtime.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        let mut out = Handover { outlet, backlog: Backlog::default(), waiting: 0, tally };
        let converter = {
            let (session, names) = (session.clone(), names.clone());
            move || convert(stream, &session, about, &names, &mut out, restart)
        };
        let thread = tokio::task::spawn_blocking(converter);
        let looking = tokio::spawn(async move {
            loop {
                tokio::time::sleep(NAMES).await;
                let (client, names) = (client.clone(), names.clone());
                // A panic in it is seen by whoever installed the panic hook.
                let _ = tokio::task::spawn_blocking(move || put_names(&client, &names)).await;
            }
        });
        Ok(Self { session, thread, names: looking })
    }

    /// Stops the session, takes in what the runtime still sends, and waits until all packets are handed on.
    pub(super) async fn stop(self, limit: StopLimit) {
        if !self.session.has_ended() {
            // What is missing then is said in the trace.
            let _ = self.session.stop(limit).await;
        }
        self.names.abort();
        // A panic in it is seen by whoever installed the panic hook.
        let _ = self.thread.await;
    }
}

fn put_names(client: &Client, names: &Names) {
    *names.lock().unwrap_or_else(PoisonError::into_inner) = client.thread_names();
}

/// Blocks until the stream ends.
fn convert(
    mut stream: EventStream<BlockingStream>,
    session: &TraceSession,
    process: LiveProcess,
    names: &Names,
    out: &mut Handover,
    mut restart: watch::Receiver<u64>,
) {
    let mut trace = LiveTrace::new(process);
    let mut decoder = Decoder::new(Limits::LIVE);
    let mut buffer = vec![0; CHUNK];
    let (mut described, mut named) = (Instant::now(), HashMap::default());
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        for (thread, name) in std::mem::take(&mut *names.lock().unwrap_or_else(PoisonError::into_inner)) {
            if named.get(&thread) == Some(&name) || named.len() >= THREADS {
                continue;
            }
            named.insert(thread, name.clone());
            trace.thread(&Thread { id: ThreadId::of(thread), name });
        }
        if let Err(error) = decoder.feed(&buffer[..count], &mut trace) {
            session.cut(Cut::Undecodable(error));
            break;
        }
        out.hand_over(&mut trace);
        if restart.has_changed().unwrap_or(false) || described.elapsed() > DESCRIBED {
            restart.mark_unchanged();
            described = Instant::now();
            trace.restart(0);
        }
    }
    // The session is over, whatever there is still to convert.
    drop(stream);
    let ending = decoder.finish(&mut trace);
    out.hand_over(&mut trace);
    let trouble = (!ending.is_complete()).then(|| match session.why_cut() {
        Some(cut) => format!("The stream of events was cut: {cut}"),
        None => "The process ended, or closed its stream: methods have no names".to_owned(),
    });
    out.put(trace.finish(trouble.as_deref()), true);
}

/// Hands packets on, as far as there is room.
struct Handover {
    outlet: Outlet,
    backlog: Backlog,
    /// Packets that were lost since some arrived.
    waiting: u64,
    tally: Arc<Tally>,
}

impl Handover {
    fn hand_over(&mut self, trace: &mut LiveTrace) {
        let bytes = trace.take();
        if bytes.is_empty() {
            return;
        }
        if self.put(bytes, false) {
            self.waiting = 0;
            trace.arrived();
        } else {
            trace.restart(self.waiting);
        }
    }

    /// Says whether there was room; what is `needed` has room.
    fn put(&mut self, bytes: Vec<u8>, needed: bool) -> bool {
        let count = packets(&bytes).count() as u64;
        let Some(share) = self.backlog.take(bytes.len(), needed) else {
            self.waiting += count;
            self.tally.dropped.fetch_add(count, Ordering::Relaxed);
            return false;
        };
        self.tally.packets.fetch_add(count, Ordering::Relaxed);
        self.tally.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let Outlet { writer, buffer, ref work } = self.outlet;
        // Where the connection has gone nothing is wanted any more.
        let _ = work.send(Work::Packets(Batch { writer, buffer, packets: bytes, _share: share }));
        true
    }
}
