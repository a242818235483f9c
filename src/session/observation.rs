//! A process whose events are analyzed for some time and not stored.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::cpu::CpuSampling;
use super::listener::Listener;
use super::threads::Threads;
use super::{StartError, StopLimit, Unfinished};
use crate::analysis::{Live, RecentSnapshot, RuntimeWaits};
use crate::ipc::SessionConfig;
use crate::model::{CpuConstraints, CpuTimeUnavailable, RecordingAnalysis, ThreadUse};
use crate::net::client::Client;
use crate::net::interrupts::Interrupts;

/// Interval between readings of the threads.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// A running session whose events are only analyzed.
#[derive(Debug)]
pub struct Observation {
    listener: Listener<(Live, RuntimeWaits)>,
    began: Instant,
    cpu_use: Option<CpuMeasurement>,
}

/// CPU time that the threads of a process get.
#[derive(Debug)]
struct CpuMeasurement {
    client: Client,
    sampling: Option<CpuSampling>,
    threads: Threads,
    used: Arc<[ThreadUse]>,
}

/// Result of an observation.
#[derive(Debug)]
pub struct Observed {
    /// Analyses of the events.
    pub live: Live,
    /// Why the stream is incomplete; `None` if it is complete.
    pub unfinished: Option<Unfinished>,
    /// Whether it was ended by an interrupt.
    pub interrupted: bool,
    /// Duration of the observation, by our clock.
    pub elapsed: Duration,
    cpu_use: Option<CpuMeasurement>,
}

/// Result of an observation that looks for the cause of slowness.
#[derive(Debug)]
pub struct SlowObserved {
    /// All analyses, with CPU time if the kernel sampled it.
    pub analysis: RecordingAnalysis,
    /// CPU time of each thread during the observation.
    pub threads: Arc<[ThreadUse]>,
    /// Limits on the CPU time they got.
    pub cpu_constraints: CpuConstraints,
}

impl Observation {
    /// Opens a session whose events are added to these analyses.
    ///
    /// # Errors
    /// If the runtime does not open it.
    pub async fn start(client: Client, config: &SessionConfig, live: Live) -> Result<Self, StartError> {
        let listener = Listener::start(client, config, (live, RuntimeWaits::default()), u64::MAX).await?;
        Ok(Self { listener, began: Instant::now(), cpu_use: None })
    }

    /// Opens a session and starts kernel sampling of the process; if that fails, returns the reason as well.
    ///
    /// # Errors
    /// If the runtime does not open the session.
    pub async fn start_with_cpu(client: Client, config: &SessionConfig) -> Result<(Self, Option<CpuTimeUnavailable>), StartError> {
        let (sampling, missing) = match CpuSampling::start(&client).await {
            Ok(sampling) => (Some(sampling), None),
            Err(missing) => (None, Some(missing)),
        };
        let observation = Self::start(client.clone(), config, Live::default()).await?;
        let cpu_use = CpuMeasurement { client, sampling, threads: Threads::default(), used: Arc::default() };
        Ok((Self { cpu_use: Some(cpu_use), ..observation }, missing))
    }

    /// Observes for this duration since the start, or until the process exits or an interrupt. `None` if another interrupt occurs before the
    /// rundown is complete: the session then ends with its connection.
    pub async fn finish(mut self, duration: Duration, interrupts: &mut Interrupts) -> Option<Observed> {
        let end = self.began + duration;
        let interrupted = tokio::select! {
            () = sleep_until(end) => false,
            () = self.observe() => false,
            () = interrupts.next() => true,
        };
        let Self { mut listener, began, mut cpu_use } = self;
        if let Some(cpu_use) = &mut cpu_use {
            cpu_use.sampling.iter().for_each(|sampling| sampling.collector.stop());
            cpu_use.read_last(&listener).await;
        }
        let elapsed = began.elapsed();
        let unfinished = tokio::select! {
            stopped = listener.stop(StopLimit::RUNDOWN) => stopped.err(),
            () = interrupts.next() => return None,
        };
        let (live, mut waits) = listener.into_sink().unwrap_or_default();
        if let Some(cpu_use) = &cpu_use {
            cpu_use.pass_on(&mut waits);
        }
        Some(Observed { live, unfinished, interrupted, elapsed, cpu_use })
    }

    async fn observe(&mut self) {
        let Some(cpu_use) = &mut self.cpu_use else { return self.listener.ended().await };
        while !self.listener.is_over() {
            cpu_use.read(&self.listener);
            sleep(READ_INTERVAL).await;
        }
    }
}

impl CpuMeasurement {
    fn pass_on(&self, waits: &mut RuntimeWaits) {
        if let Some(sampling) = &self.sampling {
            sampling.collector.add_runtime_waits(waits);
        }
    }

    fn read(&mut self, listener: &Listener<(Live, RuntimeWaits)>) {
        listener.with_sink(|(_, waits)| self.pass_on(waits));
        if let Some(used) = self.threads.read_if_due(&self.client) {
            self.take(used, listener);
        }
    }

    async fn read_last(&mut self, listener: &Listener<(Live, RuntimeWaits)>) {
        listener.with_sink(|(_, waits)| self.pass_on(waits));
        let used = self.threads.read_last(&self.client).await;
        self.take(used, listener);
    }

    fn take(&mut self, used: Arc<[ThreadUse]>, listener: &Listener<(Live, RuntimeWaits)>) {
        let (at, times) = self.threads.cpu_times();
        listener.with_sink(|(live, _)| live.add_cpu_times(at, times));
        self.used = used;
    }
}

impl Observed {
    /// Returns whether everything sent was received and understood.
    pub fn is_complete(&self) -> bool {
        self.unfinished.is_none() && !self.live.throughput().loses_content()
    }

    /// Returns all analyses, and the CPU time of the threads.
    pub async fn into_slow(mut self) -> SlowObserved {
        self.live.apply_cpu_times();
        let (live, cpu_use) = (&self.live, self.cpu_use);
        let (threads, cpu_constraints, sampling) = match cpu_use {
            Some(CpuMeasurement { sampling, threads, used, .. }) => (used, threads.cpu_constraints(), sampling),
            None => (Arc::default(), CpuConstraints::default(), None),
        };
        let cpu = match sampling {
            Some(sampling) => sampling.finish(live.symbols().clone(), self.unfinished.is_none()).await,
            None => None,
        };
        let (snapshot, profile) = (live.snapshot(live.end()), live.profile());
        let analysis = RecordingAnalysis { snapshot, events: Vec::new(), recent: RecentSnapshot::default(), profile, cpu };
        SlowObserved { analysis, threads, cpu_constraints }
    }
}
