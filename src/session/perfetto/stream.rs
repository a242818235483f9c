//! One process of a recording: its EventPipe session, and a thread that converts the stream to packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::commits::{Batch, PacketQuota, Work};
use crate::export::{LivePackets, LiveProcess, LiveTrace};
use crate::ipc::SessionConfig;
use crate::model::{PacketCounts, Process, SafeText};
use crate::net::client::Client;
use crate::net::stream::BlockingStream;
use crate::nettrace::{DecodeError, Decoder, Limits, Sink, Thread, ThreadId};
use crate::perfetto::chunk::WriterId;
use crate::session::blocking::{Blocking, start_blocking};
use crate::session::trace_session::{EventStream, TraceSession};
use crate::session::{Slot, StartError, StopLimit};

/// Interval between repeated descriptions. Older ones may have been overwritten if the service has a ring buffer.
const DESCRIPTION_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of threads whose names are remembered.
const MAX_NAMED_THREADS: usize = 1 << 14;
/// Interval between readings of the process's thread names.
const NAMES_INTERVAL: Duration = Duration::from_secs(1);

/// Destination of packets.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    pub(super) writer: WriterId,
    pub(super) buffer: u32,
    pub(super) work: mpsc::UnboundedSender<Work>,
}

impl Outlet {
    /// Takes the next free writer number; `None` if there are no more.
    pub(super) fn new(writers: &AtomicU16, buffer: u32, work: mpsc::UnboundedSender<Work>) -> Option<Self> {
        let number = writers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| number.checked_add(1)).ok()?;
        Some(Self { writer: WriterId::new(number)?, buffer, work })
    }
}

/// Entry point for the packets of one recording.
#[derive(Debug)]
pub(in crate::session) struct Inlet {
    pub(super) outlet: Outlet,
    /// Changes when all descriptions must be written again.
    pub(super) restart: watch::Receiver<u64>,
    pub(super) tally: Arc<Tally>,
}

/// Thread names of a process by thread id, read every second until dropped.
#[derive(Debug)]
pub(in crate::session) struct ThreadNames {
    /// The last reading, until it is taken.
    seen: Slot<HashMap<u64, SafeText>>,
    task: JoinHandle<()>,
}

impl ThreadNames {
    pub(in crate::session) async fn of(client: Client) -> Self {
        let seen = Slot::default();
        // /proc can be slow. A panic in it is reported by the panic hook.
        let read = |client: Client, names: Slot<_>| async move {
            let _ = start_blocking(move || names.put(client.thread_names())).await;
        };
        read(client.clone(), seen.clone()).await;
        let names = seen.clone();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(NAMES_INTERVAL).await;
                read(client.clone(), names.clone()).await;
            }
        });
        Self { seen, task }
    }
}

impl Drop for ThreadNames {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A process being recorded.
#[derive(Debug)]
pub(super) struct Stream {
    session: Arc<TraceSession>,
    thread: Blocking<()>,
}

/// Packet counts of all streams of a recording.
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
    /// Opens the session and starts the conversion.
    pub(super) async fn open(client: Client, process: &Process, config: &SessionConfig, inlet: Inlet) -> Result<Self, StartError> {
        let (session, stream) = TraceSession::open(client.clone(), config, u64::MAX).await?;
        let stream = stream.into_blocking().map_err(StartError::Handle)?;
        let about = LiveProcess {
            pid: process.key.pid,
            started: process.key.started,
            name: process.name.to_string(),
            command_line: process.command_line.to_string(),
            runtime: process.runtime.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        let names = ThreadNames::of(client).await;
        let thread = {
            let session = session.clone();
            start_blocking(move || convert(stream, &session, Converter::new(about, names, inlet)))
        };
        Ok(Self { session, thread })
    }

    /// Stops the session, processes the remaining data, and waits until all packets are passed on.
    pub(super) async fn stop(self, limit: StopLimit) {
        // Missing data is shown in the trace.
        let _ = self.session.stop(limit).await;
        // A panic in it is reported by the panic hook.
        let _ = self.thread.await;
    }
}

/// Converts a stream, blocking until it ends.
fn convert(mut stream: EventStream<BlockingStream>, session: &TraceSession, mut converter: Converter) {
    let rest = stream.feed_all(|bytes| {
        let used = converter.feed_blocks(bytes)?;
        session.examine(&converter.decoder);
        Ok(used)
    });
    // Ends the session now, although conversion may still have work to do.
    drop(stream);
    // `finish` shows that the stream is incomplete.
    let _ = converter.feed(rest.unused());
    converter.finish(session);
}

/// Converts a stream to packets as it is read. It stays on one thread.
pub(in crate::session) struct Converter {
    trace: LiveTrace,
    decoder: Decoder,
    names: ThreadNames,
    /// Names already in the trace.
    named: HashMap<u64, SafeText>,
    restart: watch::Receiver<u64>,
    described: Instant,
    out: PacketSender,
}

impl Converter {
    pub(in crate::session) fn new(process: LiveProcess, names: ThreadNames, inlet: Inlet) -> Self {
        let Inlet { outlet, restart, tally } = inlet;
        Self {
            trace: LiveTrace::new(process),
            decoder: Decoder::new(Limits::LIVE),
            names,
            named: HashMap::default(),
            restart,
            described: Instant::now(),
            out: PacketSender { outlet, backlog: PacketQuota::default(), waiting: 0, tally },
        }
    }

    /// Converts the next bytes of the stream. Never blocks.
    ///
    /// # Errors
    /// If the bytes are not a valid event stream; later bytes are then useless.
    pub(in crate::session) fn feed(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.convert(|decoder, trace| decoder.feed(bytes, trace))
    }

    /// As [`feed`](Self::feed), but returns the number of bytes used (see [`Decoder::feed_blocks`]).
    fn feed_blocks(&mut self, bytes: &[u8]) -> Result<usize, DecodeError> {
        self.convert(|decoder, trace| decoder.feed_blocks(bytes, trace))
    }

    fn convert<T>(&mut self, decode: impl FnOnce(&mut Decoder, &mut LiveTrace) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
        for (thread, name) in self.names.seen.take().unwrap_or_default() {
            if self.named.get(&thread) == Some(&name) || self.named.len() >= MAX_NAMED_THREADS {
                continue;
            }
            self.named.insert(thread, name.clone());
            self.trace.thread(&Thread { id: ThreadId::of(thread), name: name.into() });
        }
        let decoded = decode(&mut self.decoder, &mut self.trace)?;
        self.out.send(&mut self.trace);
        if self.restart.has_changed().unwrap_or(false) || self.described.elapsed() > DESCRIPTION_INTERVAL {
            self.restart.mark_unchanged();
            self.described = Instant::now();
            self.trace.restart(0);
        }
        Ok(decoded)
    }

    /// Passes on the remaining packets and the method names once the session has ended. Returns the packet counts.
    pub(in crate::session) fn finish(mut self, session: &TraceSession) -> PacketCounts {
        let ending = self.decoder.finish(&mut self.trace);
        self.out.send(&mut self.trace);
        let trouble = (!ending.is_complete()).then(|| match session.why_cut() {
            Some(cut) => format!("The event stream was cut off: {cut}"),
            None => "The process exited or closed its stream: method names are missing".to_owned(),
        });
        self.out.put(self.trace.finish(trouble.as_deref()), true);
        self.out.tally.counts()
    }
}

/// Passes packets on as long as there is room.
struct PacketSender {
    outlet: Outlet,
    backlog: PacketQuota,
    /// Number of packets lost since the last ones were passed on.
    waiting: u64,
    tally: Arc<Tally>,
}

impl PacketSender {
    fn send(&mut self, trace: &mut LiveTrace) {
        let packets = trace.take();
        if packets.count == 0 {
            return;
        }
        if self.put(packets, false) {
            self.waiting = 0;
            trace.acknowledge();
        } else {
            trace.restart(self.waiting);
        }
    }

    /// Returns whether there was room, which is always the case if `needed` is set.
    fn put(&mut self, LivePackets { bytes, count }: LivePackets, needed: bool) -> bool {
        let Some(share) = self.backlog.take(bytes.len(), needed) else {
            self.waiting += count;
            self.tally.dropped.fetch_add(count, Ordering::Relaxed);
            return false;
        };
        self.tally.packets.fetch_add(count, Ordering::Relaxed);
        self.tally.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let Outlet { writer, buffer, ref work } = self.outlet;
        // If the connection is closed, packets are not needed.
        let _ = work.send(Work::Packets(Batch { writer, buffer, packets: bytes, _share: share }));
        true
    }
}
