//! When a session with meters may be stopped.
//!
//! The event source `System.Diagnostics.Metrics` has a thread that collects meter values at the end of each interval. When the session is stopped,
//! the runtime waits for that thread while holding the lock of all event sources. The first collection in a process takes that lock, too, because
//! code that runs for the first time creates event sources. A stop during it deadlocks: it never completes, no other request is answered, and code
//! that creates an event source blocks forever. Seen on 9.0.7 and 10.0.14: with an interval of 1 s nearly every stop between 0.85 and 1 s after the
//! start did this, none in the first 0.4 s and none after 1.1 s.
//!
//! A target that gets little processor time takes longer. So a stop waits for the event at the end of a collection. A runtime without meters writes
//! no such event: it has none if event counters arrive when the first collection is due, and nothing of the source before them. Where the stream
//! shows neither, a stop relies on the time.

use std::ops::Range;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::ipc::{Level, Provider, SessionConfig, SessionId};

/// The event source of meters, and its argument for the interval in seconds.
const SOURCE: &str = "System.Diagnostics.Metrics";
const INTERVAL_ARGUMENT: &str = "RefreshInterval";
/// Its keyword for values, and for the events at the start and the end of a collection.
const VALUES: u64 = 2;
/// The default interval, and the shortest that the runtime accepts.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// A stop sent this long before the first collection is handled in time, even on a machine that is stalled for seconds.
const MARGIN_BEFORE: Duration = Duration::from_secs(5);
/// The first collection is over after this long, or there is none: a runtime without meters reports nothing.
const MARGIN_AFTER: Duration = Duration::from_secs(5);
/// The same if the event source has reported that it is enabled. If its first collection is not over by then, the process hardly runs.
const MARGIN_AFTER_ENABLED: Duration = Duration::from_secs(30);

/// Sessions with meters of a process whose first collection may still be to come.
#[derive(Debug, Default)]
pub(super) struct MeterSessions {
    sessions: Mutex<HashMap<SessionId, MeterSession>>,
    /// Notified when a session may be stopped earlier than expected.
    stoppable: Notify,
}

#[derive(Debug, Clone, Copy)]
struct MeterSession {
    interval: Duration,
    /// When the start of the session was sent, and answered.
    sent: Instant,
    answered: Instant,
    /// When the event source was first seen to be enabled: in a process that is suspended at startup, that is much later.
    enabled: Option<Instant>,
    /// Whether the session includes the events that show a collection.
    shows_collections: bool,
    /// Whether values of event counters have arrived when the first collection was due.
    has_counted: bool,
}

impl MeterSession {
    /// Returns the time span in which the first collection may be running.
    fn first_collection(&self) -> Range<Instant> {
        let from = (self.enabled.unwrap_or(self.sent) + self.interval).checked_sub(MARGIN_BEFORE).unwrap_or(self.sent);
        if self.has_counted && self.shows_collections && self.enabled.is_none() {
            return from..from;
        }
        let (enabled, margin) = self.enabled.map_or((self.answered, MARGIN_AFTER), |enabled| (enabled, MARGIN_AFTER_ENABLED));
        from..enabled + self.interval + margin
    }
}

impl MeterSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, MeterSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a session whose start was sent and answered at these times. Session ids are reused.
    pub(super) fn started(&self, id: SessionId, config: &SessionConfig, sent: Instant, answered: Instant) {
        let mut providers = config.providers.iter().map(|filtered| &filtered.provider);
        let Some(source) = providers.find(|provider| provider.name() == SOURCE) else {
            self.lock().remove(&id);
            return;
        };
        let shows_collections = source.keywords() & VALUES != 0 && source.level() >= Level::Informational;
        let session = MeterSession { interval: interval(source), sent, answered, enabled: None, shows_collections, has_counted: false };
        self.lock().insert(id, session);
    }

    /// Records that the stream of a session contains events of this kind.
    pub(super) fn seen(&self, id: SessionId, provider: &str, event: &str, now: Instant) {
        match (provider == SOURCE, event) {
            (true, "InitialInstrumentEnumerationComplete" | "CollectionStart") => self.enabled(id, now),
            (true, "CollectionStop") => self.release(id),
            (false, "EventCounters") => self.counted(id, now),
            _ => {}
        }
    }

    /// Records that the event source is enabled in the target.
    fn enabled(&self, id: SessionId, now: Instant) {
        if let Some(session) = self.lock().get_mut(&id) {
            session.enabled.get_or_insert(now);
        }
    }

    /// Records that a session may be stopped at any time: a collection is over, or its stop ends none, because the runtime has refused its meters.
    pub(super) fn release(&self, id: SessionId) {
        if self.lock().remove(&id).is_some() {
            self.stoppable.notify_waiters();
        }
    }

    /// Records that values of event counters have arrived. Those of other sessions can arrive earlier, and show nothing.
    fn counted(&self, id: SessionId, now: Instant) {
        if let Some(session) = self.lock().get_mut(&id).filter(|session| now >= session.sent + session.interval) {
            session.has_counted = true;
            self.stoppable.notify_waiters();
        }
    }

    /// Waits until a session may be stopped.
    pub(super) async fn until_stoppable(&self, id: SessionId) {
        loop {
            let mut earlier = pin!(self.stoppable.notified());
            earlier.as_mut().enable();
            let Some(time) = self.stop_time(id, Instant::now()) else { return };
            tokio::select! {
                () = earlier => {}
                () = sleep_until(time) => {}
            }
        }
    }

    /// Returns when a session may be stopped, as far as is known; `None` if at once.
    fn stop_time(&self, id: SessionId, now: Instant) -> Option<Instant> {
        let first = self.lock().get(&id)?.first_collection();
        first.contains(&now).then_some(first.end)
    }
}

/// Returns the time from the start of a session to its first collection of meters.
fn interval(source: &Provider) -> Duration {
    let arguments = source.arguments().unwrap_or_default().split(';');
    let seconds = arguments.filter_map(|argument| argument.split_once('=')).find(|(name, _)| *name == INTERVAL_ARGUMENT);
    let interval = seconds.map_or(Some(DEFAULT_INTERVAL), |(_, seconds)| Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok());
    // A day is longer than any stop waits, and too short to overflow a time.
    interval.unwrap_or(MIN_INTERVAL).clamp(MIN_INTERVAL, Duration::from_secs(86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str, arguments: &str) -> SessionConfig {
        SessionConfig::new(Provider::new(name, 2, Level::Verbose).and_then(|provider| provider.with_arguments(arguments)).unwrap().into())
    }

    #[test]
    fn stop_is_delayed_past_the_first_collection() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for (name, arguments, stop, expected) in [
            (SOURCE, "SessionId=a;Metrics=b;RefreshInterval=1", 0, 6100),
            (SOURCE, "SessionId=a;Metrics=b;RefreshInterval=6", 999, 999),
            (SOURCE, "SessionId=a;Metrics=b;RefreshInterval=6", 1000, 11_100),
            (SOURCE, "RefreshInterval=1", 6099, 6100),
            (SOURCE, "RefreshInterval=1", 6100, 6100),
            (SOURCE, "RefreshInterval=10", 4900, 4900),
            (SOURCE, "RefreshInterval=10", 9600, 15_100),
            (SOURCE, "", 700, 6100),
            // The runtime takes anything that is too small or not a number as the minimum.
            (SOURCE, "RefreshInterval=-1", 0, 5200),
            (SOURCE, "RefreshInterval=NaN", 0, 5200),
            (SOURCE, "RefreshInterval=1e300", 700, 5200),
            (SOURCE, "RefreshInterval=90000", 700, 700),
            ("System.Runtime", "EventCounterIntervalSec=1", 700, 700),
        ] {
            let (sessions, id) = (MeterSessions::default(), SessionId(7));
            sessions.started(id, &config(name, arguments), at(0), at(100));
            assert_eq!(sessions.stop_time(id, at(stop)).unwrap_or(at(stop)), at(expected), "{name} {arguments} {stop}");
        }
    }

    /// The target is stalled for longer than a collection ever takes.
    #[tokio::test(start_paused = true)]
    async fn stop_waits_for_the_first_collection_of_a_slow_target() {
        let (sessions, id, start) = (MeterSessions::default(), SessionId(7), Instant::now());
        let stops_after = async |begin: u64, collected: Option<u64>| {
            let wait = async {
                tokio::time::sleep(Duration::from_secs(begin)).await;
                sessions.until_stoppable(id).await;
            };
            let collect = async {
                if let Some(seconds) = collected {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    sessions.release(id);
                }
            };
            let begun = Instant::now();
            tokio::join!(wait, collect);
            begun.elapsed().as_secs()
        };
        sessions.started(id, &config(SOURCE, ""), start, start);
        sessions.enabled(id, start);
        assert_eq!(stops_after(1, Some(20)).await, 20);
        assert_eq!(stops_after(0, None).await, 0, "it has been collected");
        // The event may be lost.
        let start = Instant::now();
        sessions.started(id, &config(SOURCE, ""), start, start);
        sessions.enabled(id, start);
        assert_eq!(stops_after(1, None).await, 31);
        // A runtime without meters.
        let start = Instant::now();
        sessions.started(id, &config(SOURCE, ""), start, start);
        assert_eq!(stops_after(1, None).await, 6);
        let start = Instant::now();
        sessions.started(id, &config(SOURCE, ""), start, start);
        sessions.counted(id, start + Duration::from_millis(900));
        assert_eq!(stops_after(0, None).await, 6, "counters of another session");
        let start = Instant::now();
        sessions.started(id, &config(SOURCE, ""), start, start);
        sessions.counted(id, start + DEFAULT_INTERVAL);
        assert_eq!(stops_after(0, None).await, 0);
        // It does not show its collections.
        for (keywords, level) in [(2, Level::Warning), (1, Level::Verbose)] {
            let (start, source) = (Instant::now(), Provider::new(SOURCE, keywords, level).unwrap());
            sessions.started(id, &SessionConfig::new(source.into()), start, start);
            sessions.counted(id, start + DEFAULT_INTERVAL);
            assert_eq!(stops_after(0, None).await, 6);
        }
        sessions.started(id, &config(SOURCE, ""), Instant::now(), Instant::now());
        // The program creates the first one later.
        sessions.enabled(id, Instant::now());
        assert_eq!(stops_after(0, Some(2)).await, 2);
        // Another session collects the meters.
        sessions.started(id, &config(SOURCE, ""), Instant::now(), Instant::now());
        sessions.release(id);
        assert_eq!(stops_after(0, None).await, 0);
        // A process that was suspended enables the source late.
        for (argument, stop, expected) in [("", 0, 2), ("RefreshInterval=60", 5, 5)] {
            let start = Instant::now();
            sessions.started(id, &config(SOURCE, argument), start, start);
            tokio::time::advance(Duration::from_secs(100)).await;
            sessions.enabled(id, Instant::now());
            assert_eq!(stops_after(stop, Some(expected)).await, expected);
        }
    }

    #[test]
    fn reused_session_id_is_a_new_session() {
        let (sessions, id, now) = (MeterSessions::default(), SessionId(7), Instant::now());
        sessions.started(id, &config(SOURCE, ""), now, now);
        sessions.started(id, &config("System.Runtime", ""), now, now);
        assert_eq!(sessions.stop_time(id, now + DEFAULT_INTERVAL), None);
    }
}
