//! When a session with meters may be stopped.
//!
//! The event source `System.Diagnostics.Metrics` has a thread that collects meter values at the end of each interval. When the session is stopped,
//! the runtime waits for that thread while holding the lock of all event sources. The first collection in a process takes that lock, too, because
//! code that runs for the first time creates event sources. A stop during it deadlocks: it never completes, no other request is answered, and code
//! that creates an event source blocks forever. Seen on 9.0.7 and 10.0.14: with an interval of 1 s nearly every stop between 0.85 and 1 s after the
//! start did this, none in the first 0.4 s and none after 1.1 s.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use tokio::time::Instant;

use crate::ipc::{SessionConfig, SessionId};

/// The event source of meters, and its argument for the interval in seconds.
const SOURCE: &str = "System.Diagnostics.Metrics";
const INTERVAL_ARGUMENT: &str = "RefreshInterval";
/// The default interval, and the shortest that the runtime accepts.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// A stop sent this long before the first collection is handled in time, even on a busy machine.
const MARGIN_BEFORE: Duration = Duration::from_secs(1);
/// The first collection is over after this long.
const MARGIN_AFTER: Duration = Duration::from_millis(1500);

/// Sessions with meters of a process, and the time span in which their first collection may be running.
#[derive(Debug, Default)]
pub(super) struct MeterSessions(Mutex<HashMap<SessionId, Range<Instant>>>);

impl MeterSessions {
    /// Records a session whose start was sent and answered at these times. Session ids are reused.
    pub(super) fn started(&self, id: SessionId, config: &SessionConfig, sent: Instant, answered: Instant) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match interval(config) {
            Some(interval) => {
                let from = (sent + interval).checked_sub(MARGIN_BEFORE).unwrap_or(sent);
                sessions.insert(id, from..answered + interval + MARGIN_AFTER)
            }
            None => sessions.remove(&id),
        };
    }

    /// Returns when a session may be stopped, if a stop is requested now.
    pub(super) fn stop_time(&self, id: SessionId, now: Instant) -> Instant {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        first.filter(|first| first.contains(&now)).map_or(now, |first| first.end)
    }
}

/// Returns the time from the start of a session to its first collection of meters, if it has any.
fn interval(config: &SessionConfig) -> Option<Duration> {
    let source = config.providers.iter().map(|filtered| &filtered.provider).find(|provider| provider.name() == SOURCE)?;
    let arguments = source.arguments().unwrap_or_default().split(';');
    let seconds = arguments.filter_map(|argument| argument.split_once('=')).find(|(name, _)| *name == INTERVAL_ARGUMENT);
    let interval = seconds.map_or(Some(DEFAULT_INTERVAL), |(_, seconds)| Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok());
    // A day is longer than any stop waits, and too short to overflow a time.
    Some(interval.unwrap_or(MIN_INTERVAL).clamp(MIN_INTERVAL, Duration::from_secs(86_400)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{Level, Provider};

    fn config(name: &str, arguments: &str) -> SessionConfig {
        SessionConfig::new(Provider::new(name, 2, Level::Verbose).and_then(|provider| provider.with_arguments(arguments)).unwrap().into())
    }

    #[test]
    fn stop_is_delayed_past_the_first_collection() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for (name, arguments, stop, expected) in [
            (SOURCE, "SessionId=a;Metrics=b;RefreshInterval=1", 0, 2600),
            (SOURCE, "SessionId=a;Metrics=b;RefreshInterval=2", 999, 999),
            (SOURCE, "SessionId=a;Metrics=b;RefreshInterval=2", 1000, 3600),
            (SOURCE, "RefreshInterval=1", 2599, 2600),
            (SOURCE, "RefreshInterval=1", 2600, 2600),
            (SOURCE, "RefreshInterval=10", 8900, 8900),
            (SOURCE, "RefreshInterval=10", 9600, 11_600),
            (SOURCE, "", 700, 2600),
            // The runtime takes anything that is too small or not a number as the minimum.
            (SOURCE, "RefreshInterval=-1", 0, 1700),
            (SOURCE, "RefreshInterval=NaN", 0, 1700),
            (SOURCE, "RefreshInterval=1e300", 700, 1700),
            (SOURCE, "RefreshInterval=90000", 700, 700),
            ("System.Runtime", "EventCounterIntervalSec=1", 700, 700),
        ] {
            let (sessions, id) = (MeterSessions::default(), SessionId(7));
            sessions.started(id, &config(name, arguments), at(0), at(100));
            assert_eq!(sessions.stop_time(id, at(stop)), at(expected), "{name} {arguments} {stop}");
        }
    }

    #[test]
    fn reused_session_id_is_a_new_session() {
        let (sessions, id, now) = (MeterSessions::default(), SessionId(7), Instant::now());
        sessions.started(id, &config(SOURCE, ""), now, now);
        sessions.started(id, &config("System.Runtime", ""), now, now);
        assert_eq!(sessions.stop_time(id, now + DEFAULT_INTERVAL), now + DEFAULT_INTERVAL);
    }
}
