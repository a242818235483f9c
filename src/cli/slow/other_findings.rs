//! Findings that are no causes of slowness in a recording, from counters and resources: what grows or is about to reach a limit, and requests that
//! never end.

use std::cell::RefCell;
use std::future::ready;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::analysis::CountersSnapshot;
use crate::app::{Finding, HealthIssue, ResourceHistory, health_issues};
use crate::cli::print::{Value, json};
use crate::diagnosis::{Cause, Slowdown, Thresholds};
use crate::model::{Process, RunState, SafeText, counters_delay};
use crate::net::client::Client;
use crate::session::{WatchOptions, watch};

/// Interval between readings, and between values of the counters.
const INTERVAL: Duration = Duration::from_secs(1);

/// What was found while a process was watched.
#[derive(Default)]
pub(super) struct OtherFindings(Vec<(HealthIssue, Finding)>);

impl OtherFindings {
    /// Watches a process for as long as this work takes.
    ///
    /// # Errors
    /// That of the work, which then ends at once.
    pub(super) async fn during<T, E>(
        process: &Process,
        client: &Client,
        thresholds: &Thresholds,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<(T, Result<Self, String>), E> {
        let (stop, stopped) = watch::channel(false);
        let work = async {
            let done = work.await?;
            // The watch may have ended before.
            let _ = stop.send(true);
            Ok(done)
        };
        tokio::try_join!(work, async { Ok(Self::until(stopped, process, client, thresholds).await) })
    }

    async fn until(
        mut stopped: watch::Receiver<bool>,
        process: &Process,
        client: &Client,
        thresholds: &Thresholds,
    ) -> Result<Self, String> {
        // What grows while a program starts is no leak.
        if process.run_state == RunState::Suspended {
            return Ok(Self::default());
        }
        let delay = counters_delay(process.runtime.as_ref(), client.uptime().unwrap_or_default());
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return Ok(Self::default()),
            () = sleep(delay) => {}
        }
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let (began, seen) = (Instant::now(), RefCell::new((ResourceHistory::new(processors), CountersSnapshot::default())));
        let options = WatchOptions { process: process.clone(), interval: INTERVAL, meters: false };
        watch(client, &options, stopped, |counters, usage| {
            let (history, latest) = &mut *seen.borrow_mut();
            history.push(began.elapsed(), usage.resources, &counters);
            *latest = counters;
            ready(())
        })
        .await?;
        let (history, latest) = seen.into_inner();
        let mut found = health_issues(&latest, None, &history, thresholds);
        found.retain(|(issue, _)| issue.is_no_cause());
        Ok(Self(found))
    }

    /// Leaves out what a cause already reports.
    pub(super) fn besides(mut self, causes: &[Slowdown]) -> Self {
        let is_reported = |cause| causes.iter().any(|slowdown| slowdown.cause == cause && slowdown.is_problem());
        self.0.retain(|(issue, _)| match issue {
            HealthIssue::HeapGrowth => !is_reported(Cause::Gc),
            HealthIssue::PoolThreads => !is_reported(Cause::ThreadPool),
            _ => true,
        });
        self
    }

    pub(super) fn document(&self) -> Value {
        let finding = |(issue, finding): &(HealthIssue, Finding)| {
            json!({
                "finding": issue.label(),
                // Multiple of the threshold, above 1.
                "severity": finding.severity,
                "text": SafeText::new(&finding.text),
                "reason": finding.why,
            })
        };
        self.0.iter().map(finding).collect()
    }

    /// Returns the findings as lines, the worst first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.iter().map(|(_, finding)| format!("! {}: {}", SafeText::new(&finding.text), finding.why)).collect()
    }
}
