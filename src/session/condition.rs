//! Waits for a condition: reads a figure of a process once a second until it reaches a value, or waits for an event.

mod event;

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep, sleep_until};

pub(super) use self::event::EventWait;
use super::blocking::read_process;
use super::{CounterError, CounterEvent, CounterMonitor, CounterOptions, CounterSelection, StartError};
use crate::analysis::{CounterKind, CounterSnapshot};
use crate::clr::{SelectError, Trigger};
use crate::ipc::{BufferMb, InvalidRequest, RuntimeVersion};
use crate::model::{Condition, Conditions, Figure, Threshold, counters_delay};
use crate::net::client::Client;

/// Time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);
/// The first values arrive after a second; the name of the counter, or of the provider of an event, may be wrong if there is none for this long.
const FIRST_VALUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Buffer in the target, in MB; the values of an interval have some kilobytes.
const BUFFER_MB: u32 = 1;

/// Why a condition can no longer be checked.
#[derive(Debug, Error)]
pub enum ConditionError {
    /// The counters cannot be read.
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] InvalidRequest),
    /// The provider of the event cannot be enabled.
    #[error(transparent)]
    Provider(#[from] SelectError),
    /// The session for the event could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The counter has no size.
    #[error("{figure} is in {unit:?} and cannot be compared with a size: use a number")]
    NoSize {
        /// The counter.
        figure: Figure,
        /// Its unit; may be empty.
        unit: String,
    },
    /// The system does not show the figure.
    #[error("the system does not show {0} of this process")]
    Unknown(Figure),
    /// The process has exited, or closed the session.
    #[error("the process exited before the condition was met")]
    Ended,
}

/// What is known about a condition that is not met yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionUpdate<'a> {
    /// The current value of a figure.
    Value(&'a Figure, &'a str),
    /// The process has not published a counter within 5 s.
    Unpublished(&'a Figure),
    /// The provider of an event has sent none within 5 s, and its name may be wrong: a sentence.
    SilentProvider(&'a str),
}

/// A wait for one of several conditions. The sessions of events are open: what occurs from the start on counts.
pub struct ConditionWait<'a> {
    client: Client,
    waits: Vec<Wait<'a>>,
}

enum Wait<'a> {
    Threshold(&'a Threshold),
    Event(&'a Trigger, EventWait),
}

impl<'a> ConditionWait<'a> {
    /// Opens the sessions of events. The runtime may be suspended at startup.
    ///
    /// # Errors
    /// [`ConditionError`]: a session could not be opened.
    pub async fn start(client: Client, conditions: &'a Conditions) -> Result<Self, ConditionError> {
        let mut waits = Vec::new();
        for condition in conditions.iter() {
            waits.push(match condition {
                Condition::Threshold(threshold) => Wait::Threshold(threshold),
                Condition::Event(trigger) => Wait::Event(trigger, EventWait::start(client.clone(), trigger).await?),
            });
        }
        Ok(Self { client, waits })
    }

    /// Waits until one of the conditions is met by a process whose runtime has this version, and returns a sentence with the value or the event that
    /// met it. Calls `show` with what is known before.
    ///
    /// # Errors
    /// [`ConditionError`]: one of the conditions cannot be checked.
    pub async fn met(self, version: Option<&RuntimeVersion>, show: &impl Fn(ConditionUpdate<'_>)) -> Result<String, ConditionError> {
        let Self { client, waits } = self;
        let mut waits: Vec<_> = waits.into_iter().map(|wait| Box::pin(meet(client.clone(), version, wait, show))).collect();
        poll_fn(|context| waits.iter_mut().map(|wait| wait.as_mut().poll(context)).find(Poll::is_ready).unwrap_or(Poll::Pending)).await
    }
}

async fn meet(
    client: Client,
    version: Option<&RuntimeVersion>,
    wait: Wait<'_>,
    show: &impl Fn(ConditionUpdate<'_>),
) -> Result<String, ConditionError> {
    match wait {
        Wait::Threshold(threshold) => {
            let value = reach(client, version, threshold, show).await?;
            Ok(format!("{threshold} is true: {value}"))
        }
        Wait::Event(trigger, event) => {
            let fields = event.occurrence(FIRST_VALUE_TIMEOUT, |hint| show(ConditionUpdate::SilentProvider(hint))).await?;
            let verb = if trigger.repetition().count == 1 { "occurred" } else { "is true; the last event" };
            Ok(format!("{trigger} {verb}: {fields}"))
        }
    }
}

/// Waits until a figure has reached a value, which is returned as text.
async fn reach(
    client: Client,
    version: Option<&RuntimeVersion>,
    threshold: &Threshold,
    show: &impl Fn(ConditionUpdate<'_>),
) -> Result<String, ConditionError> {
    if matches!(threshold.figure, Figure::Counter { .. }) {
        let delay = counters_delay(version, client.uptime().unwrap_or_default());
        tokio::select! {
            () = sleep(delay) => {}
            () = client.process_exit() => return Err(ConditionError::Ended),
        }
    }
    let mut monitor = Monitor::new(client, version, threshold)?;
    let (mut too_late, mut is_awaited) = (pin!(sleep(FIRST_VALUE_TIMEOUT)), true);
    loop {
        // Never canceled: it may be opening a session.
        let mut next = pin!(monitor.next());
        let (value, is_met) = loop {
            tokio::select! {
                next = &mut next => break next?,
                () = &mut too_late, if is_awaited => {
                    is_awaited = false;
                    show(ConditionUpdate::Unpublished(&threshold.figure));
                }
            }
        };
        let Some(value) = value else { continue };
        if is_met {
            return Ok(value);
        }
        is_awaited = false;
        show(ConditionUpdate::Value(&threshold.figure, &value));
    }
}

/// Waits until one of the conditions is met, and returns a sentence about it; waits forever if there is none. Sends sentences about counters and
/// events whose names may be wrong to `hints`.
pub(super) async fn until_met(
    client: Client,
    conditions: Option<Conditions>,
    hints: UnboundedSender<String>,
) -> Result<String, ConditionError> {
    let Some(conditions) = conditions else { return pending().await };
    // A process that was just started has not been asked for its version yet.
    let version = client.process_info().await.ok().flatten().map(|info| info.runtime_version());
    let show = |update: ConditionUpdate<'_>| {
        let hint = match update {
            ConditionUpdate::Value(..) => return,
            ConditionUpdate::Unpublished(figure) => format!("the process has not published {figure} yet"),
            ConditionUpdate::SilentProvider(hint) => hint.to_owned(),
        };
        // The receiver may have ended.
        let _ = hints.send(hint);
    };
    ConditionWait::start(client, &conditions).await?.met(version.as_ref(), &show).await
}

/// A value of a figure.
#[derive(Debug)]
struct Value {
    number: f64,
    unit: String,
    /// Whether it is a change per second.
    is_rate: bool,
}

/// Checks a threshold. Dropping it ends its session in the process, if it has one.
#[derive(Debug)]
struct Monitor<'a> {
    threshold: &'a Threshold,
    client: Client,
    /// The counters, if the figure is one of them.
    counters: Option<CounterMonitor>,
    /// When to read /proc again.
    due: Instant,
    /// The CPU time at the previous reading.
    cpu: Option<(Instant, Duration)>,
    /// Since when the value has been reached.
    since: Option<Instant>,
}

impl<'a> Monitor<'a> {
    fn new(client: Client, version: Option<&RuntimeVersion>, threshold: &'a Threshold) -> Result<Self, InvalidRequest> {
        let counters = match &threshold.figure {
            Figure::Counter { provider, name, .. } => {
                let options = CounterOptions::new(CounterSelection::one(provider, name), INTERVAL, BufferMb::new(BUFFER_MB)?);
                Some(CounterMonitor::new(client.clone(), version, options)?)
            }
            _ => None,
        };
        Ok(Self { threshold, client, counters, due: Instant::now(), cpu: None, since: None })
    }

    /// Waits for the next value of the figure. Returns it as text, and whether the condition is met, and has lasted as long as it must.
    async fn next(&mut self) -> Result<(Option<String>, bool), ConditionError> {
        let client = self.client.clone();
        let values = tokio::select! {
            biased;
            values = self.values() => values?,
            // The end of a process that only /proc shows is noticed by nothing else.
            () = client.process_exit() => return Err(ConditionError::Ended),
        };
        // A value that meets the condition, or else any.
        let mut shown = values.first();
        let mut is_met = false;
        for value in &values {
            let no_size = || ConditionError::NoSize { figure: self.threshold.figure.clone(), unit: value.unit.clone() };
            if self.threshold.is_met(value.number, &value.unit).ok_or_else(no_size)? {
                (shown, is_met) = (Some(value), true);
            }
        }
        let is_met = self.has_lasted(is_met, Instant::now());
        let text = |Value { number, unit, is_rate }: &Value| {
            let per_second = if *is_rate { "/s" } else { "" };
            format!("{}{per_second}", self.threshold.figure.text(*number, unit))
        };
        Ok((shown.map(text), is_met))
    }

    /// Whether the condition has been met long enough, given whether it is now.
    fn has_lasted(&mut self, is_met: bool, now: Instant) -> bool {
        self.since = is_met.then(|| self.since.unwrap_or(now));
        self.since.is_some_and(|since| now - since >= self.threshold.lasting)
    }

    /// Waits for the values of the figure. A counter has one for each combination of tags, or none yet.
    async fn values(&mut self) -> Result<Vec<Value>, ConditionError> {
        let (Some(monitor), Figure::Counter { provider, name, .. }) = (&mut self.counters, &self.threshold.figure) else {
            return self.process_value().await.map(|value| vec![value]);
        };
        loop {
            match monitor.next().await? {
                CounterEvent::Values(snapshot) => {
                    let figure = &self.threshold.figure;
                    let is_wanted =
                        |counter: &&CounterSnapshot| counter.group == *provider && counter.name == *name && figure.has_tags(&counter.tags);
                    let value = |counter: &CounterSnapshot| {
                        let (_, number) = *counter.history.last()?;
                        Some(Value { number, unit: counter.unit.clone(), is_rate: counter.kind == CounterKind::Counter })
                    };
                    return Ok(snapshot.counters.iter().filter(is_wanted).filter_map(value).collect());
                }
                CounterEvent::OtherLimits(_) => {}
                CounterEvent::Ended => return Err(ConditionError::Ended),
            }
        }
    }

    /// Waits until the next reading of /proc is due, and reads it.
    async fn process_value(&mut self) -> Result<Value, ConditionError> {
        loop {
            sleep_until(self.due).await;
            let now = Instant::now();
            self.due = now + INTERVAL;
            let figure = &self.threshold.figure;
            let (cpu, resources) = read_process(&self.client, |client| (client.cpu_time(), client.resources())).await.unwrap_or_default();
            let value = match figure {
                Figure::Cpu => match (self.cpu.replace((now, cpu.ok_or_else(|| ConditionError::Unknown(figure.clone()))?)), cpu) {
                    (Some((before, used)), Some(cpu)) => {
                        Some(cpu.saturating_sub(used).as_secs_f64() / (now - before).as_secs_f64() * 100.0)
                    }
                    // A rate needs two readings.
                    _ => continue,
                },
                Figure::Memory => resources.resident.map(|bytes| bytes as f64),
                Figure::Threads => resources.threads.map(|threads| threads as f64),
                Figure::OpenFiles => resources.open_files.map(|files| files.count.used as f64),
                Figure::Counter { .. } => None,
            };
            let value = value.map(|number| Value { number, unit: "B".to_owned(), is_rate: false });
            return value.ok_or_else(|| ConditionError::Unknown(figure.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessKey;
    use crate::net::endpoint::Endpoint;

    fn client() -> Client {
        Client::new(Endpoint { key: ProcessKey { pid: 7, started: 1 }, socket: "none".into() })
    }

    fn threshold(conditions: &Conditions) -> &Threshold {
        let Some(Condition::Threshold(threshold)) = conditions.iter().next() else { panic!("not a threshold") };
        threshold
    }

    /// A process that has used three seconds of processor time.
    #[cfg(target_os = "linux")]
    fn fake_proc() -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir(proc.path().join("7")).unwrap();
        let stat = "7 (dotnet) S 1 1 1 0 -1 4194560 1 2 3 4 300 0 0 0 20 0 1 0 1 1000000 2500 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1";
        std::fs::write(proc.path().join("7/stat"), stat).unwrap();
        proc
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn cpu_use_is_relative_to_the_time_since_the_previous_reading() {
        let proc = fake_proc();
        let conditions = Conditions::parse("cpu>80").unwrap();
        let mut monitor = Monitor::new(client().with_proc(proc.path()).unwrap(), None, threshold(&conditions)).unwrap();
        monitor.cpu = Some((Instant::now() - Duration::from_secs(10), Duration::from_secs(1)));
        let percent = monitor.process_value().await.unwrap().number;
        assert!((15.0..=20.0).contains(&percent), "{percent}");
    }

    /// A value that does not meet a condition is no reason for a note.
    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn figure_with_a_value_is_not_reported_as_unpublished() {
        let proc = fake_proc();
        let (sender, mut hints) = tokio::sync::mpsc::unbounded_channel();
        let met = until_met(client().with_proc(proc.path()).unwrap(), Conditions::parse("cpu>80").ok(), sender);
        assert!(tokio::time::timeout(2 * FIRST_VALUE_TIMEOUT, met).await.is_err());
        assert_eq!(hints.recv().await, None);
    }

    #[test]
    fn condition_must_last_without_interruption() {
        let conditions = Conditions::parse("cpu>80 for 3s").unwrap();
        let mut monitor = Monitor::new(client(), None, threshold(&conditions)).unwrap();
        let begin = Instant::now();
        for (second, is_met, expected) in
            [(1, true, false), (3, true, false), (4, false, false), (5, true, false), (7, true, false), (8, true, true), (9, false, false)]
        {
            assert_eq!(monitor.has_lasted(is_met, begin + Duration::from_secs(second)), expected, "{second} s");
        }
    }
}
