//! Heap walk: an induced full GC that reports every object with its type and references.

use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::listener::Listener;
use super::{StartError, StopLimit, Unfinished};
use crate::analysis::{HeapSnapshot, Live, Retention};
use crate::clr::RUNTIME_PROVIDER;
use crate::export::HeapGraph;
use crate::ipc::{BufferMb, BufferMode, InvalidRequest, Level, Provider, Rundown, RuntimeVersion, SessionConfig};
use crate::net::client::Client;

/// Induces a GC and reports every object, reference and type: GC, GCHeapCollect, GCHeapDump, GCHeapAndTypeNames, Type.
const WALK: u64 = 0x198_0001;
/// A keyword without events at the critical level, which makes a session without events.
const LOADER: u64 = 8;
/// The walk writes events faster than they can be sent. This is the limit that dotnet-gcdump uses; memory is allocated only as needed.
const BUFFER_MB: u32 = 1024;
/// Timeout of a walk: a heap of 100 million objects takes minutes.
const WALK_TIMEOUT: Duration = Duration::from_secs(1800);
const STOP: StopLimit = StopLimit { time: Duration::from_secs(60), ..StopLimit::NO_RUNDOWN };
/// Limit for the stream of a session without events, in bytes.
const MAX_EMPTY_STREAM_BYTES: u64 = 16 << 20;
/// Assumed memory of the process if it cannot be read.
const UNKNOWN_HEAP_BYTES: u64 = 1 << 30;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Result of a heap walk.
#[derive(Debug)]
pub struct HeapWalk {
    /// Objects and bytes by type.
    pub heap: HeapSnapshot,
    /// All objects and references, if requested.
    pub graph: HeapGraph,
    /// Whether the stream of the session was complete.
    pub ended: Result<(), Unfinished>,
}

impl HeapWalk {
    /// Returns what keeps the objects of each type alive, and what they keep alive, in the order of [`HeapSnapshot::types`]. Takes seconds
    /// for millions of objects. `None` without a graph, and if it is incomplete or too large.
    pub fn retention(&self) -> Option<Retention> {
        self.heap.has_all_references().then(|| self.graph.retention(&self.heap.types))?
    }
}

/// Why a heap walk failed.
#[derive(Debug, Error)]
pub enum HeapError {
    /// The session could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session configuration is invalid.
    #[error(transparent)]
    Config(#[from] InvalidRequest),
    /// The stream ended before the first object.
    #[error("no object was reported: {0}")]
    Ended(Unfinished),
    /// The runtime reported no object.
    #[error("no object was reported within {} s", .0.as_secs())]
    NoObjects(Duration),
    /// Canceled by the caller.
    #[error("the heap walk was canceled")]
    Canceled,
}

/// Walks the heap of a runtime of this version until the walk is complete, or no event arrives for `idle_timeout`. `should_continue` receives the objects
/// and bytes so far, ten times a second, and returns whether to continue; after a cancellation the session is still stopped properly.
///
/// # Errors
/// [`HeapError`].
pub async fn walk_heap(
    client: Client,
    version: Option<&RuntimeVersion>,
    with_graph: bool,
    idle_timeout: Duration,
    mut should_continue: impl FnMut(u64, u64) -> bool,
) -> Result<HeapWalk, HeapError> {
    reset_reported_types(&client).await?;
    // The next session forces a GC.
    if !should_continue(0, 0) {
        return Err(HeapError::Canceled);
    }
    // The heap cannot be larger than the peak memory, which bounds the stream and the graph. An object takes at least 24 bytes of memory, 32
    // of the walk and 20 of the graph; a reference takes 8, 12 of the walk and 8 of the graph.
    let memory = client.peak_memory().unwrap_or(UNKNOWN_HEAP_BYTES);
    let (most, room) = (memory.saturating_mul(4).saturating_add(64 << 20), memory.saturating_mul(2).saturating_add(16 << 20));
    let config = session(version.map_or(0, RuntimeVersion::major))?;
    let sink = (Live::default(), HeapGraph::new(if with_graph { room } else { 0 }));
    let mut listener = Listener::start(client, &config, sink, most).await?;
    let followed = follow(&listener, idle_timeout, should_continue).await;
    let over = listener.is_over();
    let ended = listener.stop(STOP).await;
    let heap = followed?;
    let (live, graph) = listener.into_sink().unwrap_or_default();
    // The last figures may be among the lost events.
    match (live.heap().or(heap), ended) {
        (Some(heap), ended) => Ok(HeapWalk { heap, graph, ended }),
        (None, Err(why)) => Err(HeapError::Ended(why)),
        (None, Ok(())) if over => Err(HeapError::Ended(Unfinished::Closed)),
        (None, Ok(())) => Err(HeapError::NoObjects(idle_timeout)),
    }
}

/// Returns the session configuration of a walk. Its rundown supplies the modules of the types, and only those if the runtime can choose.
fn session(major: u32) -> Result<SessionConfig, InvalidRequest> {
    let mut config = SessionConfig::new(Provider::new(RUNTIME_PROVIDER, WALK, Level::Verbose)?.into());
    config.rundown = if major >= 9 { Rundown::Preferred(LOADER) } else { Rundown::Default };
    config.buffer = BufferMb::new(BUFFER_MB)?;
    if major >= 11 {
        // The process is paused anyway, and no events are lost.
        config.mode = BufferMode::Block;
    }
    Ok(config)
}

/// Makes the runtime report type names again. It reports each name once, until a session enables its provider with different settings.
/// dotnet-gcdump uses a sample profiler session for this, after which 3.1 still reports no type again (seen on 3.1 and 9).
async fn reset_reported_types(client: &Client) -> Result<(), HeapError> {
    let provider = Provider::new(RUNTIME_PROVIDER, LOADER, Level::Critical)?;
    let mut config = SessionConfig::new(provider.into());
    config.rundown = Rundown::None;
    let mut listener = Listener::start(client.clone(), &config, Live::symbols_only(), MAX_EMPTY_STREAM_BYTES).await?;
    // An error here also affects the walk, which reports it.
    let _ = listener.stop(STOP).await;
    Ok(())
}

/// Waits until the walk is complete, or no more events arrive.
async fn follow(
    listener: &Listener<(Live, HeapGraph)>,
    idle_timeout: Duration,
    mut should_continue: impl FnMut(u64, u64) -> bool,
) -> Result<Option<HeapSnapshot>, HeapError> {
    let began = Instant::now();
    let (mut before, mut at) = (None, began);
    loop {
        sleep(POLL_INTERVAL).await;
        let (over, progress) = (listener.is_over(), listener.with_sink(|(live, _)| live.heap_progress()));
        let (objects, bytes) = progress.unwrap_or_default();
        if !should_continue(objects, bytes) {
            return Err(HeapError::Canceled);
        }
        if progress != before && !over && began.elapsed() < WALK_TIMEOUT {
            (before, at) = (progress, Instant::now());
            continue;
        }
        // The end is only checked on a quiet stream, because that takes a snapshot of all types.
        let heap = progress.and_then(|_| listener.with_sink(|(live, _)| live.heap()));
        if over || at.elapsed() > idle_timeout || heap.as_ref().is_some_and(|heap| heap.is_finished) {
            return Ok(heap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::CommandCode;

    #[test]
    fn heap_session_blocks_instead_of_dropping_if_supported() {
        let session = |major| {
            let config = session(major).unwrap();
            (config.command().code(), config.mode, config.rundown.keyword())
        };
        assert_eq!(session(3), (CommandCode::CollectTracing2, BufferMode::Drop, Rundown::DEFAULT_KEYWORD));
        assert_eq!(session(9), (CommandCode::CollectTracing4, BufferMode::Drop, LOADER));
        assert_eq!(session(11), (CommandCode::CollectTracing6, BufferMode::Block, LOADER));
    }
}
