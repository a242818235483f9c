//! The session configuration that makes a runtime publish counters and meters, and nothing else.

use std::hash::{BuildHasher, RandomState};

use super::CounterOptions;
use crate::analysis::{CounterSession, MeterLimits};
use crate::clr::{METRICS_PROVIDER, RUNTIME_PROVIDER};
use crate::ipc::{
    Capabilities, CommandCode, EventFilter, InvalidRequest, Level, Provider, Providers, Rundown, RuntimeVersion, SessionConfig,
};

/// The provider of all meters, and its keyword for values (TimeSeriesValues).
const METERS: (&str, u64) = (METRICS_PROVIDER, 2);

/// The runtime's GC keyword, and the events that delimit collections: GCStart, GCEnd, GCRestartEEEnd, GCHeapStats, GCSuspendEEBegin; and
/// those that delimit the work of the finalizer thread: GCFinalizersEnd, GCFinalizersBegin.
const COLLECTIONS: (u64, &[u32]) = (1, &[1, 2, 3, 4, 9, 13, 14]);
/// Its Contention keyword, and the events that delimit waits for locks: ContentionStart, ContentionStop.
const LOCK_WAITS: (u64, &[u32]) = (0x4000, &[81, 91]);

/// Runtime events that a session records in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RuntimeEvents {
    pub(super) collections: bool,
    pub(super) lock_waits: bool,
}

/// Parameters of a counters session: its options, and the ids that distinguish its meters from those of other sessions.
#[derive(Debug, Clone)]
pub(super) struct CounterRequest {
    pub(super) options: CounterOptions,
    /// Those of the options, or of another session.
    pub(super) limits: MeterLimits,
    major: u32,
    session: String,
    client: String,
    /// Whether the runtime can filter out the other events of these keywords.
    has_filters: bool,
}

impl CounterRequest {
    /// Creates a request for a runtime of this version.
    pub(super) fn new(version: Option<&RuntimeVersion>, options: CounterOptions) -> Self {
        let major = version.map_or(0, RuntimeVersion::major);
        Self {
            major,
            // Libraries since 8.0 serve several sessions at once if all of them are shared; older ones treat this as an ordinary session id.
            session: if major >= 8 { "SHARED".to_owned() } else { guid() },
            client: guid(),
            has_filters: Capabilities::of(version).expected(CommandCode::CollectTracing5).is_ok(),
            limits: MeterLimits {
                max_histograms: options.max_histograms.to_string(),
                max_time_series: options.max_time_series.to_string(),
                refresh_interval: options.interval.as_secs_f64().to_string(),
            },
            options,
        }
    }

    /// Ids that distinguish the values of this session from others.
    pub(super) fn session(&self) -> CounterSession {
        CounterSession {
            interval_ms: Some(u32::try_from(self.options.interval.as_millis()).unwrap_or(u32::MAX)),
            meter_session: Some(self.session.clone()),
            meter_client: Some(self.client.clone()),
        }
    }

    /// Returns the session configuration, with these additional events.
    ///
    /// # Errors
    /// If a name is invalid, or nothing is selected.
    pub(super) fn config(&self, events: RuntimeEvents) -> Result<SessionConfig, InvalidRequest> {
        let (CounterOptions { selection, interval, buffer, .. }, major) = (&self.options, self.major);
        let every = format!("EventCounterIntervalSec={}", interval.as_secs_f64());
        // EventCounters are written at every level; the provider's ordinary events are not written at this one.
        let event_counters =
            selection.event_counters(major).map(|name| Provider::new(name, u64::MAX, Level::Critical)?.with_arguments(every.as_str()));
        let mut providers = event_counters.collect::<Result<Vec<_>, _>>()?;
        let metrics = selection.metrics(major);
        if !metrics.is_empty() {
            let MeterLimits { max_histograms, max_time_series, refresh_interval } = &self.limits;
            let arguments = format!(
                "SessionId={};Metrics={metrics};RefreshInterval={refresh_interval};MaxTimeSeries={max_time_series};\
                 MaxHistograms={max_histograms};ClientId={}",
                self.session, self.client
            );
            providers.push(Provider::new(METERS.0, METERS.1, Level::Informational)?.with_arguments(arguments)?);
        }
        let kinds = [(events.collections, COLLECTIONS), (events.lock_waits, LOCK_WAITS)];
        let (mut keywords, mut ids) = (0, Vec::new());
        for (_, (keyword, of_keyword)) in kinds.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            keywords |= keyword;
            ids.extend_from_slice(of_keyword);
        }
        if keywords != 0 {
            providers.push(Provider::new(RUNTIME_PROVIDER, keywords, Level::Informational)?);
        }
        let mut config = SessionConfig::new(Providers::new(providers)?);
        if let Some(last) = config.providers.last_mut().filter(|_| keywords != 0 && self.has_filters) {
            last.filter = EventFilter::only(ids);
        }
        config.buffer = *buffer;
        config.rundown = Rundown::None;
        config.stacks = false;
        Ok(config)
    }
}

/// Returns a unique session id.
fn guid() -> String {
    // The hash keys are different for every instance; the id need not be secret.
    let [high, low] = [0, 1].map(|half: u64| RandomState::new().hash_one(half));
    let (high, low) = (format!("{high:016x}"), format!("{low:016x}"));
    format!("{}-{}-{}-{}-{}", &high[..8], &high[8..12], &high[12..], &low[..4], &low[4..])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ipc::BufferMb;
    use crate::session::CounterSelection;

    fn request(version: Option<&str>, interval: Duration) -> CounterRequest {
        let options = CounterOptions::new(CounterSelection::runtime(false), interval, BufferMb::new(1).unwrap());
        CounterRequest::new(version.map(RuntimeVersion::new).as_ref(), options)
    }

    #[test]
    fn the_request_becomes_a_session_configuration() {
        let asked = |selection: CounterSelection| -> Vec<(String, String)> {
            let mut request = CounterRequest { client: "C".into(), ..request(Some("9.0.7"), Duration::from_millis(500)) };
            request.options.selection = selection;
            let pair = |provider: &crate::ipc::FilteredProvider| {
                (provider.provider.name().to_owned(), provider.provider.arguments().unwrap_or_default().to_owned())
            };
            request.config(RuntimeEvents::default()).unwrap().providers.iter().map(pair).collect()
        };
        let event_counters = |name: &str| (name.to_owned(), "EventCounterIntervalSec=0.5".to_owned());
        let meters = |metrics: &str| {
            let rest = "RefreshInterval=0.5;MaxTimeSeries=1000;MaxHistograms=10;ClientId=C";
            ("System.Diagnostics.Metrics".to_owned(), format!("SessionId=SHARED;Metrics={metrics};{rest}"))
        };
        let selection = |text: &str| CounterSelection::parse(text).unwrap();
        assert_eq!(asked(selection(r"EventCounters\System.Runtime")), [event_counters("System.Runtime")]);
        assert_eq!(asked(selection("App[hits,lat]")), [event_counters("App"), meters(r"App\hits,App\lat")]);
        assert_eq!(
            asked(CounterSelection::runtime(false)),
            [event_counters("System.Runtime"), event_counters("Microsoft.AspNetCore.Hosting")]
        );
        assert_eq!(asked(CounterSelection::runtime(true)).last(), Some(&meters("*")));
    }

    #[test]
    fn gc_and_lock_wait_events_are_requested_independently() {
        for (collections, lock_waits, expected) in [
            (true, true, Some((0x4001, &[1, 2, 3, 4, 9, 13, 14, 81, 91][..]))),
            (true, false, Some(COLLECTIONS)),
            (false, true, Some(LOCK_WAITS)),
            (false, false, None),
        ] {
            for version in ["9.0.7", "10.0.0"] {
                let request = request(Some(version), Duration::from_secs(1));
                let config = request.config(RuntimeEvents { collections, lock_waits }).unwrap();
                let runtime = config.providers.iter().find(|provider| provider.provider.name() == RUNTIME_PROVIDER);
                assert_eq!(runtime.map(|runtime| runtime.provider.keywords()), expected.map(|(keywords, _)| keywords));
                let filter = |ids: &[u32]| if request.has_filters { EventFilter::only(ids.to_vec()) } else { EventFilter::ALL };
                assert_eq!(runtime.map(|runtime| runtime.filter.clone()), expected.map(|(_, ids)| filter(ids)));
            }
        }
    }

    /// Of a value modulo 2³² no reported one would be accepted, or that of another session.
    #[test]
    fn interval_of_months_is_not_truncated() {
        let interval = |days: u64| request(None, Duration::from_secs(days * 86_400)).session().interval_ms;
        assert_eq!([49, 50].map(interval), [Some(49 * 86_400_000), Some(u32::MAX)]);
    }

    #[test]
    fn metrics_session_ids_are_unique() {
        let (one, other) = (guid(), guid());
        assert!(one != other && one.len() == 36, "{one}");
        assert_eq!(one.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_ne!(request(None, Duration::from_secs(1)).session, "SHARED", "older libraries do not share");
    }
}
