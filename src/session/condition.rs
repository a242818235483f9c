//! Reads a figure of a process once a second until a condition on it is met.

use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::blocking::start_blocking;
use super::counters::{CounterError, CounterEvent, CounterMonitor, CounterOptions, CounterSelection};
use crate::analysis::CounterSnapshot;
use crate::ipc::{BufferMb, InvalidRequest, RuntimeVersion};
use crate::model::{Condition, Figure};
use crate::net::client::Client;

/// Time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);
/// Buffer in the target, in MB; the values of an interval have some kilobytes.
const BUFFER_MB: u32 = 1;

/// A reading of the figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The value as text, with its unit; `None` if the process has not published such a counter yet.
    pub value: Option<String>,
    /// Whether the condition is met, and has lasted as long as it must.
    pub is_met: bool,
}

/// Why a condition can no longer be checked.
#[derive(Debug, Error)]
pub enum ConditionError {
    /// The counters cannot be read.
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] InvalidRequest),
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

/// Checks a condition. Dropping it ends its session in the process, if it has one.
#[derive(Debug)]
pub struct ConditionMonitor {
    condition: Condition,
    client: Client,
    /// The counters, if the condition is on one of them.
    counters: Option<CounterMonitor>,
    /// When to read /proc again.
    due: Instant,
    /// The CPU time at the previous reading.
    cpu: Option<(Instant, Duration)>,
    /// Since when the condition has been met.
    since: Option<Instant>,
}

impl ConditionMonitor {
    /// Checks a condition on a process whose runtime has this version.
    ///
    /// # Errors
    /// If the name of the counter is invalid.
    pub fn new(client: Client, version: Option<&RuntimeVersion>, condition: Condition) -> Result<Self, InvalidRequest> {
        let counters = match &condition.figure {
            Figure::Counter { provider, name } => {
                let options = CounterOptions::new(CounterSelection::one(provider, name), INTERVAL, BufferMb::new(BUFFER_MB)?);
                Some(CounterMonitor::new(client.clone(), version, options)?)
            }
            _ => None,
        };
        Ok(Self { condition, client, counters, due: Instant::now(), cpu: None, since: None })
    }

    /// Waits for the next reading. Cancel safe.
    ///
    /// # Errors
    /// [`ConditionError`].
    pub async fn next(&mut self) -> Result<Reading, ConditionError> {
        let client = self.client.clone();
        let values = tokio::select! {
            biased;
            values = self.values() => values?,
            // The end of a process that only /proc shows is noticed by nothing else.
            () = client.process_exit() => return Err(ConditionError::Ended),
        };
        let mut is_above = false;
        for (value, unit) in &values {
            let no_size = || ConditionError::NoSize { figure: self.condition.figure.clone(), unit: unit.clone() };
            is_above |= self.condition.is_met(*value, unit).ok_or_else(no_size)?;
        }
        Ok(self.take(values.first(), is_above, Instant::now()))
    }

    fn take(&mut self, value: Option<&(f64, String)>, is_met: bool, now: Instant) -> Reading {
        self.since = is_met.then(|| self.since.unwrap_or(now));
        let is_met = self.since.is_some_and(|since| now - since >= self.condition.lasting);
        Reading { value: value.map(|(value, unit)| self.condition.figure.text(*value, unit)), is_met }
    }

    /// Waits for the values of the figure with their unit. A counter has one for each combination of tags, or none yet.
    async fn values(&mut self) -> Result<Vec<(f64, String)>, ConditionError> {
        let (Some(monitor), Figure::Counter { provider, name }) = (&mut self.counters, &self.condition.figure) else {
            return self.process_value().await.map(|value| vec![value]);
        };
        loop {
            match monitor.next().await? {
                CounterEvent::Values(snapshot) => {
                    let is_wanted = |counter: &&CounterSnapshot| counter.group == *provider && counter.name == *name;
                    let value = |counter: &CounterSnapshot| Some((counter.history.last()?.1, counter.unit.clone()));
                    return Ok(snapshot.counters.iter().filter(is_wanted).filter_map(value).collect());
                }
                CounterEvent::OtherLimits(_) => {}
                CounterEvent::Ended => return Err(ConditionError::Ended),
            }
        }
    }

    /// Waits until the next reading of /proc is due, and reads it.
    async fn process_value(&mut self) -> Result<(f64, String), ConditionError> {
        loop {
            sleep_until(self.due).await;
            let (now, client) = (Instant::now(), self.client.clone());
            self.due = now + INTERVAL;
            let figure = &self.condition.figure;
            // /proc can be slow. A panic in it is reported by the panic hook.
            let (cpu, resources) = start_blocking(move || (client.cpu_time(), client.resources())).await.unwrap_or_default();
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
            return value.map(|value| (value, "B".to_owned())).ok_or_else(|| ConditionError::Unknown(figure.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessKey;
    use crate::net::endpoint::Endpoint;

    #[test]
    fn condition_must_last_without_interruption() {
        let endpoint = Endpoint { key: ProcessKey { pid: 7, started: 1 }, socket: "none".into() };
        let condition = Condition::parse("cpu>80 for 3s").unwrap();
        let mut monitor = ConditionMonitor::new(Client::new(endpoint), None, condition).unwrap();
        let begin = Instant::now();
        let mut met = |second, value: f64| {
            let is_above = monitor.condition.is_met(value, "").unwrap();
            monitor.take(Some(&(value, String::new())), is_above, begin + Duration::from_secs(second)).is_met
        };
        let readings = [(1, 90.0, false), (3, 90.0, false), (4, 70.0, false), (5, 90.0, false), (7, 90.0, false), (8, 81.0, true)];
        for (second, value, expected) in readings {
            assert_eq!(met(second, value), expected, "{second} s");
        }
    }
}
