//! Watching a process: a small session of its runtime's own counters, written to no file.
//!
//! Its stream is a few kilobytes a second, so that it needs no thread: many processes can be watched at once.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::analysis::{CounterTally, CountersSnapshot, MeterLimits, MeterNotice};
use crate::ipc::BufferMb;
use crate::model::Process;
use crate::net::client::Client;
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};

use super::counters::CounterRequest;
use super::trace_session::{EventStream, StopLimit, TraceSession};

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
/// There is no rundown, and little else.
const STOP: StopLimit = StopLimit { time: Duration::from_secs(3), bytes: 1 << 20 };
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
        let opened = TraceSession::open(client.clone(), &config, u64::MAX).await;
        let (session, mut stream) = opened.map_err(|error| error.to_string())?;
        let mut tally = CounterTally::new(request.session());
        let over = listen(&mut stream, &mut tally, &mut stop, &publish).await;
        // What cannot be decoded is not waited for.
        if matches!(over, Ok(Over::Stopped | Over::OtherLimits(_))) {
            tokio::join!(stream.drain(), session.stop(STOP));
        }
        match over {
            Ok(Over::Ended | Over::Stopped) => return Ok(()),
            Ok(Over::OtherLimits(limits)) => request.take_limits(limits),
            Err(error) => return Err(format!("cannot decode its event stream: {error}")),
        }
    }
    Err("other sessions keep changing the meter settings".to_owned())
}

/// Takes in what comes, until there is a reason not to.
async fn listen<F: Future<Output = ()>>(
    stream: &mut EventStream,
    tally: &mut CounterTally,
    stop: &mut watch::Receiver<bool>,
    publish: &impl Fn(CountersSnapshot) -> F,
) -> Result<Over, DecodeError> {
    let mut decoder = Decoder::new(Limits::LIVE);
    let mut buffer = vec![0; CHUNK];
    let (mut told, mut due): (u64, Option<Instant>) = (0, None);
    loop {
        tokio::select! {
            () = stopped(stop) => return Ok(Over::Stopped),
            read = stream.read(&mut buffer) => match read {
                // The decoder is the one that reads files: so little comes here.
                Ok(count @ 1..) => decoder.feed(&buffer[..count], &mut (tally as &mut dyn Sink))?,
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
