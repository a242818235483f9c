//! Watching a process: a small session of its runtime's own counters, written to no file.
//!
//! Its stream is a few kilobytes a second, so that it needs no thread: many processes can be watched at once.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::analysis::{CounterTally, CountersSnapshot, MeterLimits, MeterNotice};
use crate::ipc::{BufferMb, SessionId};
use crate::model::Process;
use crate::net::client::{Client, Session};
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};

use super::counters::CounterRequest;

/// The provider of the runtime's own counters, in every version since 3.0.
const RUNTIME: &str = "System.Runtime";
/// All meters (reference: .NET 9 and later).
const ALL_METERS: &str = "*";
/// Room for events in the target, MB: the least there is.
const BUFFER_MB: u32 = 1;
/// One read takes at most this much.
const CHUNK: usize = 16 * 1024;
/// Values of an interval come one after the other: they are told together this long after the first.
const GATHER: Duration = Duration::from_millis(100);
/// How long a runtime may take to stop the session. There is no rundown: most need a few milliseconds.
const STOP: Duration = Duration::from_secs(3);
/// How often a session begins anew because others changed what they ask of the meters.
const SESSIONS: usize = 5;

/// What is watched.
#[derive(Debug, Clone)]
pub struct Watch {
    /// The process.
    pub process: Process,
    /// Time between two values.
    pub interval: Duration,
    /// Whether all meters are asked for, too.
    pub meters: bool,
}

/// Why a session is over.
enum Over {
    /// The target ended, or closed the stream.
    Ended,
    /// It was stopped.
    Stopped,
    /// Another session has the meters, with these limits.
    OtherLimits(MeterLimits),
}

/// Watches until the process ends or `stop` is true, or gone, and ends the session before it returns. `publish` is told what is known whenever there is
/// something new.
///
/// # Errors
/// A sentence: why there is no session, or what became of it.
pub async fn watch<F: Future<Output = ()>>(
    client: &Client,
    watch: &Watch,
    mut stop: watch::Receiver<bool>,
    publish: impl Fn(CountersSnapshot) -> F,
) -> Result<(), String> {
    let version = watch.process.runtime.as_ref();
    let mut request = CounterRequest::new(version, watch.interval);
    let metrics = if watch.meters { ALL_METERS } else { "" };
    for _ in 0..SESSIONS {
        let buffer = BufferMb::new(BUFFER_MB).map_err(|error| error.to_string())?;
        let config = request.config([RUNTIME].into_iter(), metrics, buffer).map_err(|error| error.to_string())?;
        let Session { id, mut stream, .. } = client.start_session(&config).await.map_err(|error| error.to_string())?;
        let mut tally = CounterTally::new(request.session());
        let over = listen(&mut stream, &mut tally, &mut stop, &publish).await;
        if !matches!(over, Ok(Over::Ended)) {
            end(client, id, stream).await;
        }
        match over {
            Ok(Over::Ended | Over::Stopped) => return Ok(()),
            Ok(Over::OtherLimits(limits)) => request.take_limits(limits),
            Err(error) => return Err(format!("what its runtime sends makes no sense ({error})")),
        }
    }
    Err("other sessions keep changing what they ask of the meters".to_owned())
}

/// Takes in what comes, until there is a reason not to.
async fn listen<F: Future<Output = ()>>(
    stream: &mut UnixStream,
    tally: &mut CounterTally,
    stop: &mut watch::Receiver<bool>,
    publish: &impl Fn(CountersSnapshot) -> F,
) -> Result<Over, DecodeError> {
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = vec![0; CHUNK];
    let (mut told, mut due): (u64, Option<Instant>) = (0, None);
    loop {
        tokio::select! {
            () = stopped(stop) => return Ok(Over::Stopped),
            read = stream.read(&mut buffer) => match read {
                // The decoder is the one that reads files: so little comes here.
                Ok(count @ 1..) => decoder.feed(&buffer[..count], &mut (tally as &mut dyn Sink))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return Ok(Over::Ended),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                let snapshot = tally.snapshot();
                let limits = snapshot.notices.iter().find_map(|notice| match notice {
                    MeterNotice::OtherLimits(limits) => Some(limits.clone()),
                    _ => None,
                });
                if let Some(limits) = limits {
                    return Ok(Over::OtherLimits(limits));
                }
                publish(snapshot).await;
            }
        }
        if told != tally.values() {
            told = tally.values();
            due.get_or_insert_with(|| Instant::now() + GATHER);
        }
    }
}

/// Waits until somebody wants an end, or nobody can any more.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Stops the session and reads on meanwhile, as runtimes need it. What does not stop in time finds its reader gone at its next write.
async fn end(client: &Client, session: SessionId, mut stream: UnixStream) {
    let drained = async {
        let mut buffer = vec![0; CHUNK];
        while let Ok(1..) = stream.read(&mut buffer).await {}
    };
    let stopped = async {
        // Where the stop fails there is nothing to wait for.
        let mut drained = std::pin::pin!(drained);
        tokio::select! {
            // The stream has ended: an unsent stop must not reach whoever gets the same id next.
            () = &mut drained => {}
            answered = client.stop_session(session) => if answered.is_ok() {
                drained.await;
            },
        }
    };
    let _ = timeout(STOP, stopped).await;
}
