//! `counters TARGET`: what the program and its libraries publish, as it comes.

mod print_out;
mod wanted;

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use self::print_out::Printer;
use self::wanted::Wanted;
use super::args;
use super::exit::{Exit, Failure};
use super::print;
use super::record::Interrupts;
use super::target::{called, connect_running, not_started};
use crate::analysis::{CounterSession, Live, MeterLimits, MeterNotice};
use crate::ipc::{BufferMb, Capabilities, CommandCode, Level, Provider, Providers, Rundown, SessionConfig};
use crate::model::{Process, sanitise};
use crate::session::Listener;

/// The provider of all meters, and its keyword for values (TimeSeriesValues).
const METERS: (&str, u64) = ("System.Diagnostics.Metrics", 2);
/// dotnet-counters' share of the target's memory.
const BUFFER_MB: u32 = 10;
const POLL: Duration = Duration::from_millis(50);
const STOP: Duration = Duration::from_secs(10);
/// How often a session begins anew because others changed what they ask for.
const SESSIONS: usize = 5;

/// Why a session is over.
enum Over {
    Interrupted,
    /// The duration, the target's end, or nobody reads any more.
    Done,
    /// Another session has the meters, with these limits: only who asks for the same gets values.
    OtherLimits(MeterLimits),
}

pub(super) async fn run(arguments: args::Counters) -> Result<Exit, Failure> {
    let wanted = Wanted::parse(&arguments.counters).map_err(Failure::usage)?;
    let (process, client) = connect_running(&arguments.target.target).await?;
    let mut interrupts = Interrupts::new()?;
    let mut asked = Asked::new(&process, arguments.interval);
    let deadline = arguments.duration.map(|duration| Instant::now() + duration);
    let mut printer = Printer::new(arguments.format);
    for _ in 0..SESSIONS {
        let config = asked.config(&wanted, &process).map_err(Failure::usage)?;
        let mut live = Live::default();
        live.set_counter_session(asked.session());
        let mut listener = Listener::start(client.clone(), &config, live).await.map_err(not_started)?;
        printer.begin();
        let watched = Watch { listener: &listener, wanted: &wanted, printer: &mut printer, deadline, interval: arguments.interval };
        let over = watched.run(&mut interrupts, &called(&process)).await;
        listener.stop(STOP).await;
        let over = over?;
        // What came last.
        listener.look(|live| printer.print(live, &wanted))?;
        match over {
            Over::Interrupted => return Ok(Exit::Interrupted),
            Over::Done => return Ok(Exit::Done),
            Over::OtherLimits(limits) => {
                let every = sanitise(&limits.refresh_interval);
                print::say(format_args!("another session reads the meters, every {every} s and with other limits: taking the same"));
                asked.limits = limits;
            }
        }
    }
    Err(anyhow::anyhow!("{}: other sessions keep changing what they ask of the meters", called(&process)).into())
}

/// What a session asks for.
struct Asked {
    interval: Duration,
    session: String,
    client: String,
    limits: MeterLimits,
}

impl Asked {
    fn new(process: &Process, interval: Duration) -> Self {
        let major = process.runtime.as_ref().map_or(0, |version| version.major());
        Self {
            interval,
            // Libraries since 8.0 serve several sessions at once, if all of them share; older ones take this for a name like any other.
            session: if major >= 8 { "SHARED".to_owned() } else { guid() },
            client: guid(),
            limits: MeterLimits {
                max_histograms: "10".to_owned(),
                max_time_series: "1000".to_owned(),
                refresh_interval: interval.as_secs_f64().to_string(),
            },
        }
    }

    fn session(&self) -> CounterSession {
        CounterSession {
            interval_ms: Some(self.interval.as_millis() as u32),
            meter_session: Some(self.session.clone()),
            meter_client: Some(self.client.clone()),
        }
    }

    fn config(&self, wanted: &Wanted, process: &Process) -> Result<SessionConfig, crate::ipc::Invalid> {
        let major = process.runtime.as_ref().map_or(0, |version| version.major());
        let every = format!("EventCounterIntervalSec={}", self.interval.as_secs_f64());
        // EventCounters are always written; at this level the provider's ordinary events are not.
        let event_counters = wanted.event_counters(major);
        let event_counters = event_counters.map(|name| Provider::new(name, u64::MAX, Level::Critical)?.with_arguments(every.as_str()));
        let mut providers = event_counters.collect::<Result<Vec<_>, _>>()?;
        let metrics = wanted.metrics(major);
        if !metrics.is_empty() {
            let MeterLimits { max_histograms, max_time_series, refresh_interval } = &self.limits;
            let arguments = format!(
                "SessionId={};Metrics={metrics};RefreshInterval={refresh_interval};MaxTimeSeries={max_time_series};\
                 MaxHistograms={max_histograms};ClientId={}",
                self.session, self.client
            );
            providers.push(Provider::new(METERS.0, METERS.1, Level::Informational)?.with_arguments(arguments)?);
        }
        let mut config = SessionConfig::new(Providers::new(providers)?);
        config.buffer = BufferMb::new(BUFFER_MB)?;
        config.rundown = Rundown::None;
        config.stacks = Capabilities::of(process.runtime.as_ref()).missing(CommandCode::CollectTracing3).is_some();
        Ok(config)
    }
}

/// A name that nobody else has.
fn guid() -> String {
    use std::hash::{BuildHasher, RandomState};
    // Keys are new for every one; it need not be a secret.
    let [high, low] = [0, 1].map(|half: u64| RandomState::new().hash_one(half));
    let (high, low) = (format!("{high:016x}"), format!("{low:016x}"));
    format!("{}-{}-{}-{}-{}", &high[..8], &high[8..12], &high[12..], &low[..4], &low[4..])
}

/// One session while it runs.
struct Watch<'a> {
    listener: &'a Listener<Live>,
    wanted: &'a Wanted,
    printer: &'a mut Printer,
    deadline: Option<Instant>,
    interval: Duration,
}

impl Watch<'_> {
    /// Prints what comes until there is a reason to stop.
    async fn run(self, interrupts: &mut Interrupts, name: &str) -> Result<Over, Failure> {
        let began = Instant::now();
        // The first values come after an interval, and meters begin at the next whole one.
        let patience = (self.interval * 3).max(Duration::from_secs(5));
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Events so far, and since when there are some that were not looked at.
        let (mut events, mut unseen): (u64, Option<Instant>) = (0, None);
        let (mut printed, mut complained) = (false, false);
        loop {
            tokio::select! {
                () = interrupts.next() => return Ok(Over::Interrupted),
                _ = ticks.tick() => {}
            }
            let now = self.listener.look(|live| live.throughput().snapshot().events);
            // Values of an interval come one after the other: they are shown together once it gets quiet, or has not for long.
            let quiet = now == events;
            events = now;
            unseen = unseen.or((!quiet).then(Instant::now));
            if unseen.is_some_and(|since| quiet || since.elapsed() > self.interval / 2) {
                unseen = None;
                let shown = self.listener.look(|live| self.printer.print(live, self.wanted))?;
                printed |= shown.any;
                if let Some(limits) = shown.other_limits {
                    return Ok(Over::OtherLimits(limits));
                }
                if !shown.is_read {
                    return Ok(Over::Done);
                }
            }
            if !printed && !complained && began.elapsed() > patience {
                complained = true;
                print::say(format_args!("{name} publishes nothing of that name so far"));
            }
            if self.listener.is_over() {
                print::say(format_args!("{name} ended, or closed the session"));
                return Ok(Over::Done);
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Over::Done);
            }
        }
    }
}

impl Printer {
    /// Prints what is new, and says what a person should know.
    fn print(&mut self, live: &Live, wanted: &Wanted) -> anyhow::Result<Shown> {
        let snapshot = live.snapshot(live.newest()).counters;
        let mut other_limits = None;
        for notice in &snapshot.notices {
            match notice {
                MeterNotice::OtherLimits(limits) => other_limits = Some(limits.clone()),
                notice => self.say(notice),
            }
        }
        let (any, is_read) = self.counters(&snapshot.counters, wanted)?;
        Ok(Shown { any, is_read, other_limits })
    }
}

/// What came of printing.
struct Shown {
    any: bool,
    /// Whether anybody still reads.
    is_read: bool,
    other_limits: Option<MeterLimits>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::RuntimeVersion;
    use crate::model::ProcessKey;

    fn config(version: &str, counters: &str) -> Vec<(String, String)> {
        let process = Process { runtime: Some(RuntimeVersion::new(version)), ..Process::new(ProcessKey { pid: 7, started: 1 }) };
        let asked = Asked { client: "C".into(), session: "S".into(), ..Asked::new(&process, Duration::from_millis(500)) };
        let config = asked.config(&Wanted::parse(counters).unwrap(), &process).unwrap();
        let provider = |provider: &crate::ipc::FilteredProvider| {
            (provider.provider.name().to_owned(), provider.provider.arguments().unwrap_or_default().to_owned())
        };
        config.providers.iter().map(provider).collect()
    }

    fn meters(metrics: &str) -> (String, String) {
        let rest = "RefreshInterval=0.5;MaxTimeSeries=1000;MaxHistograms=10;ClientId=C";
        ("System.Diagnostics.Metrics".into(), format!("SessionId=S;Metrics={metrics};{rest}"))
    }

    #[test]
    fn what_a_runtime_is_asked() {
        let event_counters = |name: &str| (name.to_owned(), "EventCounterIntervalSec=0.5".to_owned());
        assert_eq!(config("3.1.23", "System.Runtime"), [event_counters("System.Runtime")]);
        assert_eq!(config("8.0.1", "System.Runtime"), [event_counters("System.Runtime")]);
        assert_eq!(config("9.0.7", "System.Runtime"), [meters("System.Runtime")]);
        assert_eq!(config("9.0.7", "System.Runtime[cpu-usage]"), [event_counters("System.Runtime")], "what only EventCounters have");
        assert_eq!(
            config("10.0.0", "App[hits,lat],System.Runtime[dotnet.exceptions]"),
            [event_counters("App"), meters(r"App\hits,App\lat,System.Runtime\dotnet.exceptions")]
        );
    }

    #[test]
    fn sessions_have_names_of_their_own() {
        let (one, other) = (guid(), guid());
        assert!(one != other && one.len() == 36, "{one}");
        assert_eq!(one.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }
}
