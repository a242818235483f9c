//! CPU, memory and threads of processes over the last minutes, from the process scans.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::model::{Process, ProcessKey};

/// Number of scans kept per process.
const MAX_SCANS: usize = 300;

/// One scan of one process.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scan {
    /// Time since the start of dn-top, nanoseconds.
    at: i64,
    /// Percent of one core; NaN if unknown.
    cpu: f64,
    /// Resident set, bytes.
    rss: u64,
    threads: u32,
}

/// Values with their times in nanoseconds, oldest first.
pub(super) type History = Vec<(i64, f64)>;

/// The scans of all listed processes.
#[derive(Debug, Default)]
pub(super) struct UsageHistory {
    scans: BTreeMap<ProcessKey, VecDeque<Scan>>,
}

impl UsageHistory {
    /// Adds a scan. Processes no longer listed are removed.
    pub(super) fn push(&mut self, processes: &[Process], now: Duration) {
        let at = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let mut before = std::mem::take(&mut self.scans);
        for process in processes {
            let mut scans = before.remove(&process.key).unwrap_or_default();
            if scans.len() >= MAX_SCANS {
                scans.pop_front();
            }
            let usage = &process.usage;
            scans.push_back(Scan { at, cpu: usage.cpu_percent.unwrap_or(f64::NAN), rss: usage.rss_bytes, threads: usage.threads });
            self.scans.insert(process.key, scans);
        }
    }

    fn history(&self, key: ProcessKey, value: impl Fn(&Scan) -> f64) -> History {
        self.scans.get(&key).into_iter().flatten().map(|scan| (scan.at, value(scan))).collect()
    }

    /// Percent of one core over time.
    pub(super) fn cpu(&self, key: ProcessKey) -> History {
        self.history(key, |scan| scan.cpu)
    }

    /// Resident set size over time, bytes.
    pub(super) fn rss(&self, key: ProcessKey) -> History {
        self.history(key, |scan| or_nan(scan.rss as f64))
    }

    /// Operating system threads over time.
    pub(super) fn threads(&self, key: ProcessKey) -> History {
        self.history(key, |scan| or_nan(f64::from(scan.threads)))
    }
}

/// Returns NaN for 0, which stands for an unknown value.
fn or_nan(value: f64) -> f64 {
    if value > 0.0 { value } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::process;

    #[test]
    fn usage_history_keeps_five_minutes_and_drops_ended_processes() {
        let (one, other) = (process(1, "one"), process(2, "other"));
        let mut history = UsageHistory::default();
        history.push(&[one.clone(), other.clone()], Duration::from_secs(1));
        for second in 2..=400 {
            history.push(std::slice::from_ref(&one), Duration::from_secs(second));
        }
        let threads = history.threads(one.key);
        assert_eq!((threads.len(), threads[0].0, threads[299].0), (MAX_SCANS, 101_000_000_000, 400_000_000_000));
        assert!(history.cpu(other.key).is_empty());
    }

    #[test]
    fn unknown_values_are_not_zero() {
        let mut process = process(1, "one");
        process.usage.threads = 0;
        process.usage.rss_bytes = 0;
        let mut history = UsageHistory::default();
        history.push(std::slice::from_ref(&process), Duration::from_secs(1));
        assert!(history.threads(process.key)[0].1.is_nan() && history.rss(process.key)[0].1.is_nan());
    }
}
