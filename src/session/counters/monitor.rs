//! A counters session that is read live, and restarted when other sessions change the meter settings.
//!
//! Its stream is a few kilobytes a second, so it needs no thread of its own and many processes can be watched at once.

use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::request::{CounterRequest, RuntimeEvents};
use super::{CounterOptions, CounterSelection};
use crate::analysis::{CollectionMarks, CounterTally, CountersSnapshot, EventBytes, MeterLimits, MeterNotice};
use crate::ipc::{InvalidRequest, RuntimeVersion, SessionConfig};
use crate::net::client::Client;
use crate::nettrace::DecodeError;
use crate::session::decoded_stream::DecodedStream;
use crate::session::{StartError, Unfinished};

/// The values of an interval arrive one by one. They are published together when no other value arrives within this time, or after half an
/// interval.
const PUBLISH_DELAY: Duration = Duration::from_millis(100);
/// Limit on GC events, or on lock contention events, in bytes per second, and the number of consecutive intervals above it after which they
/// are no longer recorded. Measured: 0.7 kB a collection (.NET 3.1), 1.1 kB (.NET 9), 70 bytes (.NET 10, which filters events) and 110 bytes for
/// GCHeapStats; 0.6 kB a wait (.NET 9).
const TOO_MANY: (f64, u32) = (64e3, 3);
/// Limit on the events of suspensions that are not for a collection, in bytes per second; beyond it they count as GC events. While any session
/// samples threads, the runtime suspends them a thousand times a second, with four events (two if the runtime filters events), which costs it much
/// less than the samples do. Measured: 137 kB/s as counted here, 35 kB/s in the stream (.NET 8 to 10).
const MAX_SUSPENSION_RATE: f64 = 512e3;
/// Number of intervals after which they are recorded again.
const RETRY_INTERVALS: u32 = 60;
/// Upper bound on the pause in reading after values were published, which is otherwise half an interval. Data that arrives in this time
/// causes no wake-up of its own.
const MAX_READ_PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of session restarts caused by other sessions changing the meter settings.
const MAX_RESTARTS: usize = 5;

/// Event of a counters session.
#[derive(Debug)]
pub enum CounterEvent {
    /// Values of an interval.
    Values(Box<CountersSnapshot>),
    /// Another session uses the meters with these limits. Values are published only to sessions with equal limits, so the session restarts
    /// with them.
    OtherLimits(MeterLimits),
    /// The target exited or closed the stream.
    Ended,
}

/// Why no values are available.
#[derive(Debug, Error)]
pub enum CounterError {
    /// The session could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The limits of another session cannot be used in a request.
    #[error("cannot use the meter settings of another session: {0}")]
    Limits(#[from] InvalidRequest),
    /// The stream cannot be decoded.
    #[error("cannot decode the event stream: {0}")]
    Undecodable(#[from] DecodeError),
    /// Other sessions keep changing the limits.
    #[error("other sessions keep changing the meter settings")]
    Contended,
}

/// A counters session, from start to stop. Dropping it closes the connection; [`stop`](Self::stop) is preferred.
#[derive(Debug)]
pub struct CounterMonitor {
    client: Client,
    request: CounterRequest,
    /// Configuration of the next session.
    config: SessionConfig,
    sessions: usize,
    open: Option<OpenSession>,
    next: NextSession,
    collections: EventRecording,
    lock_waits: EventRecording,
    /// Counts of the previous session, if the next one continues them.
    counted: Option<CounterTally>,
}

/// Whether the open session is to be replaced.
#[derive(Debug, Clone, Copy, Default)]
enum NextSession {
    #[default]
    None,
    /// A session of the same counters, which continues their histories.
    SameCounters,
    OtherCounters,
}

/// Whether events of one kind are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
enum EventRecording {
    NotWanted,
    /// Number of consecutive intervals so far with too many bytes.
    Recorded(u32),
    /// Paused because of this rate (bytes per second), for this many more intervals.
    TooMany(f64, u32),
}

impl EventRecording {
    fn is_on(self) -> bool {
        matches!(self, Self::Recorded(_))
    }

    /// Returns the rate because of which it is paused.
    fn too_many(self) -> Option<f64> {
        if let Self::TooMany(rate, _) = self { Some(rate) } else { None }
    }

    /// Advances by one interval, in which the events had this rate in bytes per second. Returns whether recording was turned on or off.
    fn step(&mut self, rate: f64) -> bool {
        let before = *self;
        *self = match before {
            Self::NotWanted => before,
            Self::TooMany(_, 0) => Self::Recorded(0),
            Self::TooMany(rate, left) => Self::TooMany(rate, left - 1),
            Self::Recorded(_) if rate <= TOO_MANY.0 => Self::Recorded(0),
            Self::Recorded(high) if high + 1 < TOO_MANY.1 => Self::Recorded(high + 1),
            Self::Recorded(_) => Self::TooMany(rate, RETRY_INTERVALS),
        };
        self.is_on() != before.is_on()
    }
}

/// An open session.
#[derive(Debug)]
struct OpenSession {
    events: DecodedStream<CounterTally>,
    /// Half an interval.
    longest: Duration,
    /// When to read again.
    resume: Instant,
    /// Number of counter values so far.
    seen: u64,
    /// When values were last published, and the sizes of the other events at that time.
    published: (Instant, EventBytes),
    /// When the first unpublished value arrived, and when to publish it.
    due: Option<(Instant, Instant)>,
}

impl CounterMonitor {
    /// Collects values of a runtime of this version, starting with the first call of [`next`](Self::next).
    ///
    /// # Errors
    /// If a name is invalid, or nothing is selected.
    pub fn new(client: Client, version: Option<&RuntimeVersion>, options: CounterOptions) -> Result<Self, InvalidRequest> {
        let collections = options.collections;
        let request = CounterRequest::new(version, options);
        let config = request.config(RuntimeEvents { collections, lock_waits: collections })?;
        let recording = if collections { EventRecording::Recorded(0) } else { EventRecording::NotWanted };
        Ok(Self {
            client,
            request,
            config,
            sessions: 0,
            open: None,
            next: NextSession::None,
            collections: recording,
            lock_waits: recording,
            counted: None,
        })
    }

    /// Switches to other counters, in a new session.
    ///
    /// # Errors
    /// If a name is invalid, or nothing is selected.
    pub fn select(&mut self, selection: CounterSelection) -> Result<(), InvalidRequest> {
        self.request.options.selection = selection;
        self.sessions = 0;
        self.schedule_restart(NextSession::OtherCounters)
    }

    fn schedule_restart(&mut self, next: NextSession) -> Result<(), InvalidRequest> {
        let events = RuntimeEvents { collections: self.collections.is_on(), lock_waits: self.lock_waits.is_on() };
        self.config = self.request.config(events)?;
        self.next = next;
        Ok(())
    }

    /// Opens the session if it is not open. [`next`](Self::next) does so as well; a separate call distinguishes waiting for the runtime from
    /// waiting for values.
    ///
    /// # Errors
    /// [`CounterError`].
    pub async fn open(&mut self) -> Result<(), CounterError> {
        self.ensure_open().await.map(drop)
    }

    async fn ensure_open(&mut self) -> Result<&mut OpenSession, CounterError> {
        if self.open.is_none() {
            if self.sessions == MAX_RESTARTS {
                return Err(CounterError::Contended);
            }
            let mut events = DecodedStream::open(self.client.clone(), &self.config, CounterTally::new(self.request.session())).await?;
            self.sessions += 1;
            // Only now: the next attempt needs them if this one fails.
            if let Some(counted) = self.counted.take() {
                events.sink = counted;
            }
            self.open = Some(OpenSession {
                longest: self.request.options.interval / 2,
                resume: Instant::now(),
                seen: events.sink.values(),
                published: (Instant::now(), events.sink.event_bytes()),
                events,
                due: None,
            });
        }
        self.open.as_mut().ok_or(CounterError::Contended)
    }

    /// Waits for the next event. Cancel safe: no data is lost if the future is dropped.
    ///
    /// # Errors
    /// [`CounterError`].
    pub async fn next(&mut self) -> Result<CounterEvent, CounterError> {
        let next = std::mem::take(&mut self.next);
        if let Some(open) = self.open.take_if(|_| !matches!(next, NextSession::None)) {
            // If it does not stop, it ends with its connection.
            let (tally, ..) = open.stop().await;
            self.counted = matches!(next, NextSession::SameCounters).then_some(tally);
        }
        let open = self.ensure_open().await?;
        let Some(mut snapshot) = open.values().await? else { return Ok(CounterEvent::Ended) };
        let [collections, lock_waits] = open.rates();
        let changes = [self.collections.step(collections), self.lock_waits.step(lock_waits)];
        if !self.collections.is_on() {
            (snapshot.full_collections, snapshot.finalizer_wait) = (Vec::new(), None);
            snapshot.collections = self.collections.too_many().map_or(CollectionMarks::NotRecorded, CollectionMarks::TooMany);
        }
        // A recording that was just turned on again has no counts yet.
        if !self.lock_waits.is_on() || changes[1] {
            (snapshot.lock_waiters, snapshot.long_lock_waits_ns) = (None, Vec::new());
        }
        snapshot.too_many_lock_waits = self.lock_waits.too_many();
        if changes.contains(&true) {
            self.sessions = 0;
            self.schedule_restart(NextSession::SameCounters)?;
        }
        let limits = snapshot.notices.iter().find_map(|notice| match notice {
            MeterNotice::OtherLimits(limits) => Some(limits.clone()),
            _ => None,
        });
        let Some(limits) = limits else { return Ok(CounterEvent::Values(Box::new(snapshot))) };
        // Values are published only to sessions with the same limits.
        if let Some(open) = &self.open {
            self.client.meters_refused(open.events.session.id);
        }
        self.request.limits = limits.clone();
        self.schedule_restart(NextSession::OtherCounters)?;
        Ok(CounterEvent::OtherLimits(limits))
    }

    /// Stops the session. Returns the last unpublished values, and whether the stream was complete.
    pub async fn stop(&mut self) -> (Option<CountersSnapshot>, Result<(), Unfinished>) {
        match self.open.take() {
            Some(open) => {
                let (tally, is_new, ending) = open.stop().await;
                (is_new.then(|| tally.snapshot()), ending)
            }
            None => (None, Ok(())),
        }
    }
}

impl OpenSession {
    /// Rates of GC and lock contention events since the last call, in bytes per second.
    fn rates(&mut self) -> [f64; 2] {
        let (now, bytes) = (Instant::now(), self.events.sink.event_bytes());
        let (then, before) = std::mem::replace(&mut self.published, (now, bytes));
        let seconds = (now - then).as_secs_f64().max(0.1);
        rates(before, bytes, seconds)
    }

    /// Waits for values. Returns `None` at the end of the stream.
    async fn values(&mut self) -> Result<Option<CountersSnapshot>, DecodeError> {
        loop {
            if self.events.ended {
                return Ok(self.due.take().map(|_| self.events.sink.snapshot()));
            }
            if let Some((first, due)) = self.due {
                // Data is left in the socket until then and read in one go: a read for each piece would cause a wake-up for each.
                sleep_until(due).await;
                while self.events.read_available().await? {}
                let is_quiet = std::mem::replace(&mut self.seen, self.events.sink.values()) == self.seen;
                let now = Instant::now();
                if is_quiet || now >= first + self.longest || self.events.ended {
                    self.due = None;
                    self.resume = now + self.longest.min(MAX_READ_PAUSE);
                    self.events.flush();
                    return Ok(Some(self.events.sink.snapshot()));
                }
                self.due = Some((first, (now + PUBLISH_DELAY).min(first + self.longest)));
                continue;
            }
            sleep_until(self.resume).await;
            self.events.read().await?;
            if std::mem::replace(&mut self.seen, self.events.sink.values()) != self.seen {
                let now = Instant::now();
                self.due = Some((now, now + PUBLISH_DELAY.min(self.longest)));
            }
        }
    }

    /// Stops the session. Returns the counts, whether they contain unpublished values, and whether the session's stream was complete.
    async fn stop(self) -> (CounterTally, bool, Result<(), Unfinished>) {
        let Self { events, seen, due, .. } = self;
        let (tally, ending) = events.stop().await;
        let is_new = due.is_some() || tally.values() != seen;
        (tally, is_new, ending)
    }
}

/// Returns the rates of GC and lock contention events between two readings, in bytes per second.
fn rates(before: EventBytes, now: EventBytes, seconds: f64) -> [f64; 2] {
    let rate = |of: fn(EventBytes) -> u64| (of(now) - of(before)) as f64 / seconds;
    let suspensions = Some(rate(|bytes| bytes.suspensions)).filter(|rate| *rate > MAX_SUSPENSION_RATE);
    [rate(|bytes| bytes.collections) + suspensions.unwrap_or(0.0), rate(|bytes| bytes.lock_waits)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::BufferMb;
    use crate::model::ProcessKey;
    use crate::net::endpoint::Endpoint;

    #[test]
    fn suspensions_count_as_collections_if_there_are_too_many() {
        let bytes = |suspensions| EventBytes { collections: 100, lock_waits: 10, suspensions };
        let most = MAX_SUSPENSION_RATE as u64;
        let rates = [most, most + 1].map(|suspensions| rates(EventBytes::default(), bytes(2 * suspensions), 2.0));
        assert_eq!(rates, [[50.0, 5.0], [MAX_SUSPENSION_RATE + 51.0, 5.0]]);
    }

    #[tokio::test]
    async fn restarts_are_limited_until_other_counters_are_selected() {
        let client = Client::new(Endpoint { key: ProcessKey { pid: 7, started: 1 }, socket: "none".into() });
        let selection = || CounterSelection::one("P", "a");
        let options = CounterOptions::new(selection(), Duration::from_secs(1), BufferMb::new(1).unwrap());
        let mut monitor = CounterMonitor { sessions: MAX_RESTARTS, ..CounterMonitor::new(client, None, options).unwrap() };
        assert!(matches!(monitor.open().await, Err(CounterError::Contended)));
        monitor.select(selection()).unwrap();
        assert!(matches!(monitor.open().await, Err(CounterError::Start(_))));
    }

    #[test]
    fn excessive_events_are_suspended_and_retried_later() {
        let (few, many) = (TOO_MANY.0, TOO_MANY.0 + 1.0);
        let mut recording = EventRecording::Recorded(0);
        // A burst is not enough.
        for rate in [many, many, few, many, many] {
            assert!(!recording.step(rate) && recording.is_on());
        }
        assert!(recording.step(many));
        assert_eq!(recording, EventRecording::TooMany(many, RETRY_INTERVALS));
        let waited = (0..).take_while(|_| !recording.step(0.0)).count();
        assert_eq!((waited, recording), (RETRY_INTERVALS as usize, EventRecording::Recorded(0)));
        let mut never = EventRecording::NotWanted;
        assert!(!never.step(many) && !never.is_on());
    }
}
