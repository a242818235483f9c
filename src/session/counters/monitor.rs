//! A session of counters that is read as it comes, and begins again where other sessions change the settings of the meters.
//!
//! Its stream is a few kilobytes a second, so that it needs no thread: many processes can be watched at once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::request::CounterRequest;
use super::selection::CounterSelection;
use crate::analysis::{CollectionMarks, CounterTally, CountersSnapshot, MeterLimits, MeterNotice};
use crate::ipc::{BufferMb, Invalid, RuntimeVersion, SessionConfig};
use crate::net::client::Client;
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};
use crate::session::plan::StartError;
use crate::session::trace_session::{Cut, EventStream, StopLimit, TraceSession, Unfinished};

/// One read takes at most this much.
const CHUNK: usize = 16 * 1024;
/// Values of an interval arrive one by one: they are published together after this long without another, or after half an interval.
const QUIET: Duration = Duration::from_millis(100);
/// Bytes a second of collections' events above which they are not recorded any more, and values in a row. Measured: 0.7 kB a collection (.NET 3.1),
/// 1.1 kB (.NET 9), 70 bytes (.NET 10, which filters events).
const TOO_MANY: (f64, u32) = (64e3, 3);
/// Values after which they are recorded again: a recording that samples threads suspends them so often, and ends.
const RETRY: u32 = 60;
/// Nothing is read for half an interval after values, and no longer than this: what comes then needs no wake-up of its own.
const REST: Duration = Duration::from_millis(500);
/// How often a session begins again because others changed the settings of the meters.
const SESSIONS: usize = 5;

/// What to collect, and how.
#[derive(Debug, Clone)]
pub struct CounterOptions {
    /// The counters and meters.
    pub selection: CounterSelection,
    /// Time between two values.
    pub interval: Duration,
    /// Most histograms that the runtime reports.
    pub max_histograms: u32,
    /// Most time series that the runtime reports for one instrument.
    pub max_time_series: u32,
    /// Room for events in the target.
    pub buffer: BufferMb,
    /// Whether to record collections one by one, as long as there are not too many.
    pub collections: bool,
}

impl CounterOptions {
    /// Limits as dotnet-counters has them.
    pub fn new(selection: CounterSelection, interval: Duration, buffer: BufferMb) -> Self {
        Self { selection, interval, max_histograms: 10, max_time_series: 1000, buffer, collections: false }
    }
}

/// What happens in a session of counters.
#[derive(Debug)]
pub enum CounterEvent {
    /// Values of an interval have come.
    Values(Box<CountersSnapshot>),
    /// Another session has the meters, with these limits. Values come only with the same limits: the session begins again with them.
    OtherLimits(MeterLimits),
    /// The target ended, or closed the stream.
    Ended,
}

/// Why there are no values.
#[derive(Debug, Error)]
pub enum CounterError {
    /// No session.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The limits of another session cannot be requested.
    #[error("cannot use the meter settings of another session: {0}")]
    Limits(#[from] Invalid),
    /// The stream makes no sense.
    #[error("cannot decode the event stream: {0}")]
    Undecodable(#[from] DecodeError),
    /// Other sessions change the limits again and again.
    #[error("other sessions keep changing the meter settings")]
    Contended,
}

/// A session of counters, from its beginning to its end. Dropping it closes the connection; [`stop`](Self::stop) is better.
#[derive(Debug)]
pub struct CounterMonitor {
    client: Client,
    selection: CounterSelection,
    major: u32,
    buffer: BufferMb,
    request: CounterRequest,
    /// What to ask for next.
    config: SessionConfig,
    sessions: usize,
    open: Option<Open>,
    /// Whether the open session is not what is asked for any more.
    is_outdated: bool,
    /// What becomes of collections.
    collections: Collections,
}

/// What becomes of collections' events.
#[derive(Debug)]
enum Collections {
    NotRecorded,
    /// Values in a row before which there were too many bytes.
    Recorded(u32),
    /// At this rate, for so many more values.
    TooMany(f64, u32),
}

/// A session that is open.
#[derive(Debug)]
struct Open {
    session: Arc<TraceSession>,
    stream: EventStream,
    decoder: Decoder,
    tally: CounterTally,
    buffer: Vec<u8>,
    /// Half an interval.
    longest: Duration,
    /// When to read again.
    resume: Instant,
    /// Events of counters so far.
    seen: u64,
    /// When values were published last, and the bytes of collections by then.
    published: (Instant, u64),
    /// When the first value came that was not published, and when to publish it.
    due: Option<(Instant, Instant)>,
    ended: bool,
}

impl CounterMonitor {
    /// Collects values of a runtime of this version, from the first call of [`next`](Self::next) on.
    ///
    /// # Errors
    /// Where a name is invalid, or nothing is selected.
    pub fn new(client: Client, version: Option<&RuntimeVersion>, options: CounterOptions) -> Result<Self, Invalid> {
        let CounterOptions { selection, interval, max_histograms, max_time_series, buffer, collections } = options;
        let request = CounterRequest::new(version, interval, max_histograms, max_time_series);
        let major = version.map_or(0, RuntimeVersion::major);
        let config = request.config(&selection, major, buffer, collections)?;
        let collections = if collections { Collections::Recorded(0) } else { Collections::NotRecorded };
        Ok(Self { client, selection, major, buffer, request, config, sessions: 0, open: None, is_outdated: false, collections })
    }

    /// Collects other counters from now on, in a session of its own.
    ///
    /// # Errors
    /// Where a name is invalid, or nothing is selected.
    pub fn select(&mut self, selection: CounterSelection) -> Result<(), Invalid> {
        self.selection = selection;
        self.sessions = 0;
        self.renew()
    }

    /// The next session is another one.
    fn renew(&mut self) -> Result<(), Invalid> {
        let collections = matches!(self.collections, Collections::Recorded(_));
        self.config = self.request.config(&self.selection, self.major, self.buffer, collections)?;
        self.is_outdated = true;
        Ok(())
    }

    /// Opens the session, where it is not open. [`next`](Self::next) does so as well; this way waiting for the runtime is not taken for waiting for values.
    ///
    /// # Errors
    /// [`CounterError`].
    pub async fn open(&mut self) -> Result<(), CounterError> {
        self.opened().await.map(drop)
    }

    async fn opened(&mut self) -> Result<&mut Open, CounterError> {
        if self.open.is_none() {
            if self.sessions == SESSIONS {
                return Err(CounterError::Contended);
            }
            let (session, stream) = TraceSession::open(self.client.clone(), &self.config, u64::MAX).await?;
            self.sessions += 1;
            self.open = Some(Open {
                session,
                stream,
                // The decoder is the one that reads files: so little comes here.
                decoder: Decoder::new(Limits::LIVE),
                tally: CounterTally::new(self.request.session()),
                buffer: vec![0; CHUNK],
                longest: self.request.interval() / 2,
                resume: Instant::now(),
                seen: 0,
                published: (Instant::now(), 0),
                due: None,
                ended: false,
            });
        }
        self.open.as_mut().ok_or(CounterError::Contended)
    }

    /// Waits for the next event. Nothing is lost where the wait is given up and begun again.
    ///
    /// # Errors
    /// [`CounterError`].
    pub async fn next(&mut self) -> Result<CounterEvent, CounterError> {
        if std::mem::take(&mut self.is_outdated) {
            // One that does not stop ends with its connection.
            let _ = self.stop().await;
        }
        let open = self.opened().await?;
        let Some(mut snapshot) = open.values().await? else { return Ok(CounterEvent::Ended) };
        let (marks, rate) = (open.tally.marks(), open.gc_rate());
        snapshot.collections = self.marks(marks, rate)?;
        let limits = snapshot.notices.iter().find_map(|notice| match notice {
            MeterNotice::OtherLimits(limits) => Some(limits.clone()),
            _ => None,
        });
        let Some(limits) = limits else { return Ok(CounterEvent::Values(Box::new(snapshot))) };
        self.request.take_limits(limits.clone());
        self.renew()?;
        Ok(CounterEvent::OtherLimits(limits))
    }

    /// What is known of collections, now that their events come at this rate.
    fn marks(&mut self, marks: CollectionMarks, rate: f64) -> Result<CollectionMarks, Invalid> {
        let (next, shown) = match &mut self.collections {
            Collections::NotRecorded => return Ok(CollectionMarks::NotRecorded),
            Collections::TooMany(_, 0) => (Collections::Recorded(0), marks),
            Collections::TooMany(rate, left) => {
                *left -= 1;
                return Ok(CollectionMarks::TooMany(*rate));
            }
            Collections::Recorded(high) => {
                *high = if rate > TOO_MANY.0 { *high + 1 } else { 0 };
                if *high < TOO_MANY.1 {
                    return Ok(marks);
                }
                (Collections::TooMany(rate, RETRY), CollectionMarks::TooMany(rate))
            }
        };
        self.collections = next;
        self.sessions = 0;
        self.renew()?;
        Ok(shown)
    }

    /// Stops the session. Gives the values that came last, and whether it came to its proper end.
    pub async fn stop(&mut self) -> (Option<CountersSnapshot>, Result<(), Unfinished>) {
        match self.open.take() {
            Some(open) => open.stop().await,
            None => (None, Ok(())),
        }
    }
}

impl Open {
    /// Bytes a second of collections' events since this was asked last.
    fn gc_rate(&mut self) -> f64 {
        let (now, bytes) = (Instant::now(), self.tally.gc_bytes());
        let (then, before) = std::mem::replace(&mut self.published, (now, bytes));
        (bytes - before) as f64 / (now - then).as_secs_f64().max(0.1)
    }

    /// Waits for values; `None` at the end of the stream.
    async fn values(&mut self) -> Result<Option<CountersSnapshot>, DecodeError> {
        loop {
            if self.ended {
                return Ok(self.due.take().map(|_| self.tally.snapshot()));
            }
            if let Some((first, due)) = self.due {
                // What comes by then is left where it is, and read at once: a read for each piece would wake us up as often.
                sleep_until(due).await;
                while self.read_available().await? {}
                let is_quiet = std::mem::replace(&mut self.seen, self.tally.values()) == self.seen;
                let now = Instant::now();
                if is_quiet || now >= first + self.longest || self.ended {
                    self.due = None;
                    self.resume = now + self.longest.min(REST);
                    return Ok(Some(self.tally.snapshot()));
                }
                self.due = Some((first, (now + QUIET).min(first + self.longest)));
                continue;
            }
            sleep_until(self.resume).await;
            let count = self.stream.read(&mut self.buffer).await;
            self.take(count)?;
            if std::mem::replace(&mut self.seen, self.tally.values()) != self.seen {
                let now = Instant::now();
                self.due = Some((now, now + QUIET.min(self.longest)));
            }
        }
    }

    /// Reads what is there already. Returns whether there was anything.
    async fn read_available(&mut self) -> Result<bool, DecodeError> {
        let read = tokio::select! {
            biased;
            read = self.stream.read(&mut self.buffer) => read,
            () = std::future::ready(()) => return Ok(false),
        };
        self.take(read)?;
        Ok(!self.ended)
    }

    fn take(&mut self, read: io::Result<usize>) -> Result<(), DecodeError> {
        match read {
            Ok(count @ 1..) => self.decoder.feed(&self.buffer[..count], &mut (&mut self.tally as &mut dyn Sink))?,
            Ok(0) | Err(_) => self.ended = true,
        }
        Ok(())
    }

    async fn stop(self) -> (Option<CountersSnapshot>, Result<(), Unfinished>) {
        let Self { session, mut stream, mut decoder, mut tally, mut buffer, seen, due, .. } = self;
        let rest = async {
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                if let Err(error) = decoder.feed(&buffer[..count], &mut (&mut tally as &mut dyn Sink)) {
                    session.cut(Cut::Undecodable(error));
                    break;
                }
            }
            drop(stream);
        };
        let ((), refusal) = tokio::join!(rest, session.stop(StopLimit::NO_RUNDOWN));
        let complete = decoder.finish(&mut (&mut tally as &mut dyn Sink)).is_complete();
        let last = (due.is_some() || tally.values() != seen).then(|| tally.snapshot());
        (last, if complete { Ok(()) } else { Err(session.unfinished(refusal)) })
    }
}
