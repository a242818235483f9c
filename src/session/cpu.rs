//! CPU profile: kernel samples, with names from the runtime, the files mapped by the process, and the kernel.

mod address_names;
mod blocked;
mod collected;
mod collector;
mod file;
mod gc_samples;
mod methods;
mod osr;
mod waits;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, MissedTickBehavior};

use super::blocking::{Blocking, start_blocking};
use super::listener::Listener;
use super::names::{NAME_KEYWORDS, request_names};
use super::{OutputError, StopLimit};
use crate::analysis::{Live, RuntimeWaits, Symbols};
use crate::clr::{RUNTIME_PROVIDER, select};
use crate::ipc::{Rundown, SessionConfig};
use crate::model::{CpuTime, CpuTimeUnavailable, SafeText};
use crate::net::ExchangeError;
use crate::net::client::Client;
use crate::net::perf::{CpuSampler, Frequency, NativeCode, PerfCause, PerfError};
use crate::nettrace::Sink;

pub(super) use address_names::MethodNames;
pub(super) use collector::Collector;
use file::CpuFile;
pub(super) use waits::known_wait;
pub use waits::without_idle_waits;

/// Events that identify waits for locks and GCs: the keywords `GC` and `Contention` of the runtime's provider. They have a session of their
/// own: that of the names is verbose and would include all GC details.
const WAITS_KEYWORDS: u64 = 0x4001;
/// Interval at which waits and methods are passed on to the collector.
const PASS_ON_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which samples that are only shown at the end are named, if their number has grown.
pub(super) const NAMING_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum size of a session's stream, after which it is stopped.
const MAX_STREAM_BYTES: u64 = 1 << 30;

/// Options of a CPU profile.
#[derive(Debug, Clone)]
pub struct CpuRequest {
    /// Sampling frequency.
    pub frequency: Frequency,
    /// Duration; `None` to sample until stopped.
    pub duration: Option<Duration>,
    /// Whether the runtime can name its methods, which NativeAOT cannot.
    pub has_method_names: bool,
    /// Whether the runtime is suspended at startup: it has compiled no methods.
    pub is_suspended: bool,
    /// File to which the samples are also written, in the nettrace format.
    pub file: Option<PathBuf>,
    /// Process name for that file.
    pub name: String,
    /// Interval at which intermediate profiles are delivered; `None` for never.
    pub interval: Option<Duration>,
}

/// Why no profile is available.
#[derive(Debug, Error)]
pub enum CpuError {
    /// The kernel cannot sample the process.
    #[error(transparent)]
    Perf(#[from] PerfError),
    /// The file for the samples cannot be created.
    #[error(transparent)]
    File(#[from] OutputError),
    /// The runtime was not resumed.
    #[error(transparent)]
    Resume(#[from] ExchangeError),
}

/// CPU profile of a process.
#[derive(Debug)]
pub struct CpuProfile {
    /// The samples.
    pub time: CpuTime,
    /// CPU time that one sample represents, in nanoseconds.
    pub period_ns: u64,
    /// Why method names may be missing, if they may.
    pub names_missing: Option<String>,
    /// Whether the process exited before sampling ended.
    pub ended: bool,
    /// The path of the file or why it could not be written; `None` if none was requested.
    pub file: Option<Result<PathBuf, String>>,
}

/// Samples a process, which `resume` resumes if it is suspended at startup, until the duration has elapsed, `stop` completes, or the process exits. If `stop` completes once more, the profile is
/// returned without waiting for the rest of the method names. `show` receives the profile so far at every interval of the request; sampling ends
/// when it returns false.
///
/// # Errors
/// [`CpuError`]: the kernel does not allow sampling, or the file cannot be created.
pub async fn profile_cpu(
    client: Client,
    request: CpuRequest,
    resume: impl Future<Output = Result<(), ExchangeError>>,
    mut stop: impl AsyncFnMut(),
    show: impl FnMut(&CpuTime) -> bool,
) -> Result<CpuProfile, CpuError> {
    let pid = client.endpoint().key.pid;
    let gone = || CpuError::Perf(PerfError { pid, cause: PerfCause::Ended });
    let code = client.native_code().ok_or_else(gone)?;
    // Fail before opening a session if the process cannot be sampled.
    drop(client.sample_cpu(request.frequency)?);
    let period_ns = request.frequency.period_ns();
    let create = |path: &PathBuf| CpuFile::create(path, pid, &request.name, period_ns, &code);
    let file = request.file.as_ref().map(create).transpose()?;
    let mut is_stopped = false;
    // Starting the session costs the process some time, which must not show in the profile.
    let mut names = match request.has_method_names {
        true => Some(listen(&client, NAME_KEYWORDS, 5, Rundown::AtLeast(NAME_KEYWORDS), Live::symbols_only()).await),
        false => None,
    };
    let known = match &names {
        Some(Err(_)) => MethodNames::Missing,
        None => MethodNames::Complete,
        Some(Ok(_)) if request.is_suspended => MethodNames::Complete,
        // This session sends the methods that are already compiled only at its end, too late to find missing callers.
        Some(Ok(names)) => {
            let compiled = tokio::select! {
                compiled = request_names(client.clone()) => compiled.ok(),
                () = stop() => {
                    is_stopped = true;
                    None
                }
                () = client.process_exit() => None,
            };
            match compiled {
                Some(compiled) => {
                    names.with_sink(|live| live.add_symbols(&compiled));
                    MethodNames::Complete
                }
                None => MethodNames::Pending,
            }
        }
    };
    // Without this session, waits inside the runtime cannot be told apart.
    let mut waits = match &names {
        Some(Ok(_)) => listen(&client, WAITS_KEYWORDS, 4, Rundown::None, RuntimeWaits::default()).await.ok(),
        _ => None,
    };
    let CpuSampling { collector, task } = CpuSampling::of(client.sample_cpu(request.frequency)?, code, file);
    resume.await?;
    let listener = names.as_ref().and_then(|names| names.as_ref().ok());
    let ended = tokio::select! {
        biased;
        () = std::future::ready(()), if is_stopped => false,
        () = stop() => false,
        () = client.process_exit() => true,
        () = tokio::time::sleep(request.duration.unwrap_or(Duration::MAX)) => false,
        () = pass_on(&collector, waits.as_ref(), listener) => false,
        () = show_each(request.interval, &collector, (listener, known), show) => false,
    };
    collector.stop();
    // The task does not panic; without its samples there is no profile.
    task.await.map_err(|_| gone())?;
    // What was received until then counts in any case. Sessions that are not stopped end with their connections.
    let names_missing = tokio::select! {
        missing = stop_sessions(&mut names, &mut waits) => missing,
        () = stop() => Some("interrupted while the runtime sent them".to_owned()),
    };
    if let Some(waits) = &waits {
        waits.with_sink(|waits| collector.add_runtime_waits(waits));
    }
    let methods = names.and_then(Result::ok).map(|names| names.sink());
    // Reads files for names.
    let named = start_blocking(move || {
        let known = if names_missing.is_none() { MethodNames::Complete } else { MethodNames::Missing };
        let time = collector.cpu_time(&methods, known);
        let file = collector.finish_file(&methods, known);
        CpuProfile { time, period_ns, names_missing, ended, file }
    });
    named.await.map_err(|_| gone())
}

/// Stops the sessions. Returns why method names may be missing, if they may.
async fn stop_sessions(names: &mut Option<Result<Listener<Live>, String>>, waits: &mut Option<Listener<RuntimeWaits>>) -> Option<String> {
    if let Some(waits) = waits {
        let _ = waits.stop(StopLimit::NO_RUNDOWN).await;
    }
    match names {
        None => None,
        Some(Err(why)) => Some(why.clone()),
        Some(Ok(names)) => names.stop(StopLimit::RUNDOWN).await.err().map(|why| why.to_string()),
    }
}

/// Delivers the profile at every interval, with the names known by then, until `show` returns false. Without an interval, only limits their memory.
async fn show_each(
    interval: Option<Duration>,
    collector: &Arc<Collector>,
    (names, known): (Option<&Listener<Live>>, MethodNames),
    mut show: impl FnMut(&CpuTime) -> bool,
) {
    let every = interval.unwrap_or(NAMING_INTERVAL);
    let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let methods = names.map(Listener::sink);
    loop {
        ticks.tick().await;
        if interval.is_none() && !collector.has_grown() {
            continue;
        }
        let (collector, methods) = (Arc::clone(collector), methods.clone());
        // Reads files for names.
        let time = start_blocking(move || match interval {
            Some(_) => Some(collector.cpu_time(&methods, known)),
            None => {
                collector.name(&methods, known);
                None
            }
        });
        // The task does not panic.
        if !time.await.is_ok_and(|time| time.is_none_or(|time| show(&time))) {
            return;
        }
    }
}

/// Passes new waits and new methods in on-stack replacement to the collector; never completes.
async fn pass_on(collector: &Collector, waits: Option<&Listener<RuntimeWaits>>, names: Option<&Listener<Live>>) {
    loop {
        if let Some(names) = names {
            names.with_sink(|live| collector.set_osr_code(live.symbols()));
        }
        tokio::time::sleep(PASS_ON_INTERVAL).await;
        if let Some(waits) = waits {
            waits.with_sink(|waits| collector.add_runtime_waits(waits));
        }
    }
}

/// Opens a session for events of the runtime's own provider.
async fn listen<S: Sink + Send + 'static>(
    client: &Client,
    keywords: u64,
    level: u32,
    rundown: Rundown,
    sink: S,
) -> Result<Listener<S>, String> {
    let provider = format!("{RUNTIME_PROVIDER}:{keywords:#x}:{level}");
    let selected = select(&[] as &[&str], &[provider], None).map_err(|error| error.to_string())?;
    let config = SessionConfig { rundown, stacks: false, ..selected.config };
    Listener::start(client.clone(), &config, sink, MAX_STREAM_BYTES).await.map_err(|error| error.to_string())
}

/// Kernel samples of a process, taken during a session of its runtime.
#[derive(Debug)]
pub(super) struct CpuSampling {
    pub(super) collector: Arc<Collector>,
    /// Completes once the collector is stopped or has no other owner.
    pub(super) task: Blocking<()>,
}

impl CpuSampling {
    /// Collects samples on a thread of its own; if there is a file, they are also written to it.
    fn of(mut sampler: CpuSampler, code: NativeCode, file: Option<CpuFile>) -> Self {
        let collector = Arc::new(Collector::new(code, sampler.period_ns(), file));
        let collecting = Arc::clone(&collector);
        let task = start_blocking(move || collecting.collect(&mut sampler));
        Self { collector, task }
    }

    /// Starts to sample a process.
    ///
    /// # Errors
    /// The reason if the kernel does not allow it.
    pub(super) async fn start(client: &Client) -> Result<Self, CpuTimeUnavailable> {
        let why = |error: OutputError| Err(CpuTimeUnavailable { why: error.to_string().into(), remedy: SafeText::default() });
        Self::start_with_file(client, String::new(), None).await.unwrap_or_else(why)
    }

    /// Like [`start`](Self::start), and also writes to a file if a path is given; `name` is that of the process.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(super) async fn start_with_file(
        client: &Client,
        name: String,
        file: Option<PathBuf>,
    ) -> Result<Result<Self, CpuTimeUnavailable>, OutputError> {
        let client = client.clone();
        // Visits every thread of the process.
        let started = start_blocking(move || collect(&client, &name, file.as_deref())).await;
        Ok(Err(match started {
            Ok(Ok(started)) => return Ok(Ok(started)),
            Ok(Err(CpuError::File(error))) => return Err(error),
            Ok(Err(CpuError::Perf(error))) => CpuTimeUnavailable { why: error.to_string().into(), remedy: error.remedy().into() },
            Ok(Err(error @ CpuError::Resume(_))) => CpuTimeUnavailable { why: error.to_string().into(), remedy: SafeText::default() },
            Err(_) => CpuTimeUnavailable { why: "sampling failed inside dn-top; please report it".into(), remedy: SafeText::default() },
        }))
    }

    /// Stops and returns all samples, resolved with these methods; `are_all` is false if some may be missing.
    pub(super) async fn finish(self, methods: Symbols, are_all: bool) -> Option<CpuTime> {
        self.collector.stop();
        // A panic in either task is reported by the panic hook.
        self.task.await.ok()?;
        let names = if are_all { MethodNames::Complete } else { MethodNames::Missing };
        // Reads files for names.
        start_blocking(move || self.collector.cpu_time(&methods, names)).await.ok()
    }
}

fn collect(client: &Client, name: &str, file: Option<&Path>) -> Result<CpuSampling, CpuError> {
    let sampler = client.sample_cpu(Frequency::MAX)?;
    let pid = client.endpoint().key.pid;
    let code = client.native_code().ok_or(PerfError { pid, cause: PerfCause::Ended })?;
    let file = file.map(|path| CpuFile::create(path, pid, name, sampler.period_ns(), &code)).transpose()?;
    Ok(CpuSampling::of(sampler, code, file))
}

impl CpuError {
    /// Whether this is a lack of permissions.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Perf(error) => error.is_denied(),
            Self::File(error) => error.is_denied(),
            Self::Resume(_) => false,
        }
    }
}
