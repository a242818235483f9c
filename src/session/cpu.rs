//! A profile of processor time: samples of the kernel, with the names that the runtime, the files of the process and the kernel give.

mod blocked;
mod collector;
mod file;
mod waits;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::listener::Listener;
use super::names::ask;
use super::output::OutputError;
use super::trace_session::StopLimit;
use crate::analysis::{Live, RuntimeWaits, Symbols};
use crate::clr::select;
use crate::ipc::{Rundown, SessionConfig};
use crate::model::{CpuTime, NoCpuTime, SafeText};
use crate::net::client::Client;
use crate::net::perf::{Frequency, PerfError};

pub(super) use collector::{Collector, MethodNames};
use file::CpuFile;
pub(super) use waits::{known_wait, shown};

/// Methods that the runtime loads, JIT-compiled or not, and its modules: `Loader`, `Jit` and `NGen` of its provider, and of its rundown.
const NAMES: (&str, u64) = ("Microsoft-Windows-DotNETRuntime:0x38:5", 0x38);
/// What shows which waits are for locks and collections: `GC` and `Contention` of the runtime's provider.
const WAITS: &str = "Microsoft-Windows-DotNETRuntime:0x4001:4";
/// How often waits are looked at.
const WAITS_PACE: Duration = Duration::from_millis(500);
/// What the session of names may send before it is stopped.
const NAMES_BYTES: u64 = 1 << 30;

/// What to sample.
#[derive(Debug, Clone)]
pub struct CpuRequest {
    /// How often.
    pub frequency: Frequency,
    /// For how long; until it is stopped where there is none.
    pub duration: Option<Duration>,
    /// Whether the runtime can name its methods, which NativeAOT cannot.
    pub has_method_names: bool,
    /// The file that the samples are written to as well, in the nettrace format.
    pub file: Option<PathBuf>,
    /// The name of the process for that file.
    pub name: String,
    /// How often the profile so far is handed over; never where there is none.
    pub interval: Option<Duration>,
}

/// Why there is no profile.
#[derive(Debug, Error)]
pub enum CpuError {
    /// The kernel does not sample the process.
    #[error(transparent)]
    Perf(#[from] PerfError),
    /// There is no file for the samples.
    #[error(transparent)]
    File(#[from] OutputError),
}

/// Where a process spent its processor time.
#[derive(Debug)]
pub struct CpuProfile {
    /// The samples.
    pub time: CpuTime,
    /// What a sample stands for, nanoseconds of processor time.
    pub period_ns: u64,
    /// Why names of methods may be missing, where they may.
    pub names_missing: Option<String>,
    /// Whether the process ended before the sampling did.
    pub ended: bool,
    /// The file, or why there is none, where one was requested.
    pub file: Option<Result<PathBuf, String>>,
}

/// Samples a process until the time is over, `stop` is, or the process ends. `show` gets the profile so far at every interval of the request, and
/// returns whether more of them are wanted: where not, the sampling ends.
///
/// # Errors
/// [`CpuError`]: the kernel does not allow it, or the file cannot be made.
pub async fn profile_cpu(
    client: Client,
    request: CpuRequest,
    stop: impl Future<Output = ()>,
    show: impl FnMut(&CpuTime) -> bool,
) -> Result<CpuProfile, CpuError> {
    let pid = client.endpoint().key.pid;
    let gone = || CpuError::Perf(PerfError::Ended(pid));
    let code = client.native_code().ok_or_else(gone)?;
    // A process that cannot be sampled gets no session either.
    drop(client.sample_cpu(request.frequency)?);
    let period_ns = request.frequency.period_ns();
    let create = |path: &PathBuf| CpuFile::create(path, pid, &request.name, period_ns, &code);
    let file = request.file.as_ref().map(create).transpose()?;
    let mut stop = std::pin::pin!(stop);
    let mut is_stopped = false;
    // That it starts takes the process some time, which is not to be in the profile.
    let names = match request.has_method_names {
        true => Some(names(&client).await),
        false => None,
    };
    let known = match (request.interval, &names) {
        (_, Some(Err(_))) => MethodNames::Missing,
        (_, None) => MethodNames::Complete,
        (None, _) => MethodNames::Coming,
        // This session sends those of methods that are compiled already only at its end.
        (Some(_), Some(Ok(names))) => {
            let compiled = tokio::select! {
                compiled = ask(client.clone()) => compiled.ok(),
                () = &mut stop => {
                    is_stopped = true;
                    None
                }
                () = client.process_exit() => None,
            };
            match compiled {
                Some(compiled) => {
                    names.look(|live| live.add_symbols(&compiled));
                    MethodNames::Complete
                }
                None => MethodNames::Coming,
            }
        }
    };
    // Without it, what threads wait for in the runtime is not told apart.
    let mut waits = match &names {
        Some(Ok(_)) => waits(&client).await.ok(),
        _ => None,
    };
    let mut sampler = client.sample_cpu(request.frequency)?;
    let collector = Arc::new(Collector::new(code, period_ns, file));
    let collecting = Arc::clone(&collector);
    let sampling = tokio::task::spawn_blocking(move || collecting.collect(&mut sampler));
    let ended = tokio::select! {
        biased;
        () = std::future::ready(()), if is_stopped => false,
        () = &mut stop => false,
        () = client.process_exit() => true,
        () = tokio::time::sleep(request.duration.unwrap_or(Duration::MAX)) => false,
        () = pass_on_waits(&collector, waits.as_ref()) => false,
        () = show_each(request.interval, &collector, (names.as_ref().and_then(|names| names.as_ref().ok()), known), show) => false,
    };
    collector.stop();
    // It does not panic; and without its samples there is nothing.
    sampling.await.map_err(|_| gone())?;
    if let Some(waits) = &mut waits {
        // What came until then counts, however it ends.
        let _ = waits.stop(StopLimit::NO_RUNDOWN).await;
        waits.look(|waits| collector.add_runtime_waits(waits));
    }
    let (symbols, names_missing) = match names {
        None => (Symbols::default(), None),
        Some(Err(why)) => (Symbols::default(), Some(why)),
        Some(Ok(mut listener)) => {
            let stopped = listener.stop(StopLimit::RUNDOWN).await;
            let symbols = listener.into_sink().map(Live::into_symbols).unwrap_or_default();
            (symbols, stopped.err().map(|why| why.to_string()))
        }
    };
    // Files are read for that.
    let named = tokio::task::spawn_blocking(move || {
        let known = if names_missing.is_none() { MethodNames::Complete } else { MethodNames::Missing };
        let time = collector.cpu_time(&symbols, known);
        let file = collector.finish_file(&symbols, known);
        CpuProfile { time, period_ns, names_missing, ended, file }
    });
    named.await.map_err(|_| gone())
}

/// Hands the profile over at every interval, with the names that have come by then, until no more is wanted; never where there is no interval.
async fn show_each(
    interval: Option<Duration>,
    collector: &Arc<Collector>,
    (names, known): (Option<&Listener<Live>>, MethodNames),
    mut show: impl FnMut(&CpuTime) -> bool,
) {
    let Some(interval) = interval else { return std::future::pending().await };
    let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut symbols = Arc::new(Symbols::default());
    loop {
        ticks.tick().await;
        // While they are copied, the stream is not read: most of the time nothing new has come.
        let size = |symbols: &Symbols| (symbols.methods(), symbols.bodies());
        let copied = names.and_then(|names| names.look(|live| (size(live.symbols()) != size(&symbols)).then(|| live.symbols().clone())));
        symbols = copied.map_or(symbols, Arc::new);
        let (collector, symbols) = (Arc::clone(collector), Arc::clone(&symbols));
        // Files are read for names.
        let time = tokio::task::spawn_blocking(move || collector.cpu_time(&symbols, known));
        // It does not panic.
        if !time.await.is_ok_and(|time| show(&time)) {
            return;
        }
    }
}

/// Gives the collector the waits as they come; for ever.
async fn pass_on_waits(collector: &Collector, waits: Option<&Listener<RuntimeWaits>>) {
    let Some(waits) = waits else { return std::future::pending().await };
    loop {
        tokio::time::sleep(WAITS_PACE).await;
        waits.look(|waits| collector.add_runtime_waits(waits));
    }
}

/// Opens a session that shows waits. Names take all details of methods, and here those of all collections would come with them.
async fn waits(client: &Client) -> Result<Listener<RuntimeWaits>, String> {
    let selected = select(&[] as &[&str], &[WAITS], None).map_err(|error| error.to_string())?;
    let config = SessionConfig { rundown: Rundown::None, stacks: false, ..selected.config };
    Listener::start(client.clone(), &config, RuntimeWaits::default(), NAMES_BYTES).await.map_err(|error| error.to_string())
}

/// Opens a session that gives names of methods.
async fn names(client: &Client) -> Result<Listener<Live>, String> {
    let selected = select(&[] as &[&str], &[NAMES.0], None).map_err(|error| error.to_string())?;
    let config = SessionConfig { rundown: Rundown::AtLeast(NAMES.1), stacks: false, ..selected.config };
    Listener::start(client.clone(), &config, Live::only_symbols(), NAMES_BYTES).await.map_err(|error| error.to_string())
}

/// Samples that the kernel takes of a process beside a session of its runtime.
#[derive(Debug)]
pub(super) struct CpuSampling {
    pub(super) collector: Arc<Collector>,
    /// Ends once the collector was stopped, or has no other owner.
    pub(super) task: JoinHandle<()>,
}

impl CpuSampling {
    /// Begins to sample a process.
    ///
    /// # Errors
    /// Why the kernel does not.
    pub(super) async fn start(client: &Client) -> Result<Self, NoCpuTime> {
        let why = |error: OutputError| Err(NoCpuTime { why: error.to_string().into(), remedy: SafeText::default() });
        Self::start_with_file(client, String::new(), None).await.unwrap_or_else(why)
    }

    /// The same, into a file as well where a path is given; `name` is that of the process.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) async fn start_with_file(
        client: &Client,
        name: String,
        file: Option<PathBuf>,
    ) -> Result<Result<Self, NoCpuTime>, OutputError> {
        let client = client.clone();
        // It looks at every thread.
        let started = tokio::task::spawn_blocking(move || collect(&client, &name, file.as_deref())).await;
        Ok(Err(match started {
            Ok(Ok(started)) => return Ok(Ok(started)),
            Ok(Err(CpuError::File(error))) => return Err(error),
            Ok(Err(CpuError::Perf(error))) => NoCpuTime { why: error.to_string().into(), remedy: error.remedy().into() },
            Err(_) => NoCpuTime { why: "sampling failed inside dn-top; please report it".into(), remedy: SafeText::default() },
        }))
    }

    /// Takes no more samples.
    pub(super) fn stop(&self) {
        self.collector.stop();
    }

    /// All samples after the stop, with the names of these methods, which may not be all.
    pub(super) async fn finish(self, methods: Symbols, are_all: bool) -> Option<CpuTime> {
        self.stop();
        // The panic hook reports a panic in either.
        self.task.await.ok()?;
        let names = if are_all { MethodNames::Complete } else { MethodNames::Missing };
        // Files are read for names.
        tokio::task::spawn_blocking(move || self.collector.cpu_time(&methods, names)).await.ok()
    }
}

fn collect(client: &Client, name: &str, file: Option<&Path>) -> Result<CpuSampling, CpuError> {
    let mut sampler = client.sample_cpu(Frequency::HIGHEST)?;
    let pid = client.endpoint().key.pid;
    let code = client.native_code().ok_or(PerfError::Ended(pid))?;
    let file = file.map(|path| CpuFile::create(path, pid, name, sampler.period_ns(), &code)).transpose()?;
    let collector = Arc::new(Collector::new(code, sampler.period_ns(), file));
    let collecting = Arc::clone(&collector);
    let task = tokio::task::spawn_blocking(move || collecting.collect(&mut sampler));
    Ok(CpuSampling { collector, task })
}

impl CpuError {
    /// Whether it is a matter of rights.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Perf(error) => error.is_denied(),
            Self::File(error) => error.is_denied(),
        }
    }
}
