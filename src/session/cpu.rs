//! A profile of processor time: samples of the kernel, with the names that the runtime, the files of the process and the kernel give.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::listener::Listener;
use super::trace_session::StopLimit;
use crate::analysis::{CpuSamples, CpuStack, Live, MissingFrames, NativeFunction, Origin, Profile, Symbols, ThreadId};
use crate::clr::select;
use crate::ipc::{Rundown, SessionConfig};
use crate::net::client::Client;
use crate::net::perf::{CodeFunction, CodeKind, CpuSampler, CpuThread, Frequency, NativeCode, PerfError, SampleLoss};

/// Methods that the runtime loads, JIT-compiled or not, and its modules: `Loader`, `Jit` and `NGen` of its provider, and of its rundown.
const NAMES: (&str, u64) = ("Microsoft-Windows-DotNETRuntime:0x38:5", 0x38);
/// What the session of names may send before it is stopped.
const NAMES_BYTES: u64 = 1 << 30;
/// The time between two looks at the ring buffers. They have room for many times that.
const PACE: Duration = Duration::from_millis(10);

/// What to sample.
#[derive(Debug, Clone, Copy)]
pub struct CpuRequest {
    /// How often.
    pub frequency: Frequency,
    /// For how long; until it is stopped where there is none.
    pub duration: Option<Duration>,
    /// Whether the runtime can name its methods, which NativeAOT cannot.
    pub has_method_names: bool,
}

/// Where a process spent its processor time.
#[derive(Debug)]
pub struct CpuProfile {
    /// The samples. All are of threads that ran.
    pub profile: Profile,
    /// What a sample stands for, nanoseconds of processor time.
    pub period_ns: u64,
    /// How long samples were taken.
    pub elapsed: Duration,
    /// All threads, each with its processor time, which is exact.
    pub threads: Vec<CpuThread>,
    /// What there are no samples of.
    pub loss: SampleLoss,
    /// Whether samples show what runs in the kernel.
    pub sees_kernel: bool,
    /// Samples of stacks that the kernel cut off.
    pub cut: u64,
    /// Samples of stacks whose callers are missing, because code in between does not keep the frame pointer.
    pub broken: u64,
    /// Why names of methods may be missing, where they may.
    pub names_missing: Option<String>,
    /// Whether the process ended meanwhile.
    pub ended: bool,
}

/// What was sampled.
struct Sampled {
    samples: CpuSamples,
    code: NativeCode,
    elapsed: Duration,
    threads: Vec<CpuThread>,
    loss: SampleLoss,
    sees_kernel: bool,
}

/// Samples a process until the time is over, `stop` is, or the process ends.
///
/// # Errors
/// [`PerfError`] says why the kernel does not allow it.
pub async fn profile_cpu(client: Client, request: CpuRequest, stop: impl Future<Output = ()>) -> Result<CpuProfile, PerfError> {
    let gone = || PerfError::Ended(client.endpoint().key.pid);
    let code = client.native_code().ok_or_else(gone)?;
    // A process that cannot be sampled gets no session either.
    drop(client.sample_cpu(request.frequency)?);
    // That it starts takes the process some time, which is not to be in the profile.
    let names = match request.has_method_names {
        true => Some(names(&client).await),
        false => None,
    };
    let began = Instant::now();
    let sampler = client.sample_cpu(request.frequency)?;
    let period_ns = sampler.period_ns();
    let over = Arc::new(AtomicBool::new(false));
    let sampling = {
        let over = Arc::clone(&over);
        tokio::task::spawn_blocking(move || sample(sampler, code, began, &over))
    };
    let ended = tokio::select! {
        () = stop => false,
        () = client.process_exit() => true,
        () = tokio::time::sleep(request.duration.unwrap_or(Duration::MAX)) => false,
    };
    over.store(true, Ordering::Relaxed);
    // It does not panic; and without its samples there is nothing.
    let Ok(mut sampled) = sampling.await else { return Err(gone()) };
    let (mut symbols, names_missing) = match names {
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
        sampled.add_native_names(&mut symbols, names_missing.is_none());
        let Sampled { samples, elapsed, threads, loss, sees_kernel, .. } = sampled;
        let (cut, broken) = samples.missing();
        CpuProfile { profile: samples.profile(&symbols), period_ns, elapsed, threads, loss, sees_kernel, cut, broken, names_missing, ended }
    });
    named.await.map_err(|_| gone())
}

/// Opens a session that gives names of methods.
async fn names(client: &Client) -> Result<Listener<Live>, String> {
    let selected = select(&[] as &[&str], &[NAMES.0], None).map_err(|error| error.to_string())?;
    let config = SessionConfig { rundown: Rundown::AtLeast(NAMES.1), stacks: false, ..selected.config };
    Listener::start(client.clone(), &config, Live::only_symbols(), NAMES_BYTES).await.map_err(|error| error.to_string())
}

/// Takes samples in until it is over; then no more are taken.
fn sample(mut sampler: CpuSampler, mut code: NativeCode, began: Instant, over: &AtomicBool) -> Sampled {
    let mut samples = CpuSamples::new(sampler.period_ns());
    loop {
        // What was written until then is taken in once more.
        let is_last = over.load(Ordering::Relaxed);
        sampler.drain(|sample| {
            let chain = code.chain(sample.user);
            let missing = if sample.cut { Some(MissingFrames::Cut) } else { chain.broken.then_some(MissingFrames::Broken) };
            samples.add(&CpuStack {
                thread: ThreadId::of(sample.thread),
                at: i64::try_from(sample.time_ns).unwrap_or(i64::MAX),
                kernel: sample.kernel,
                user: chain.frames,
                missing,
            });
        });
        if is_last {
            let (threads, elapsed) = (sampler.threads(), began.elapsed());
            return Sampled { samples, code, elapsed, threads, loss: sampler.loss(), sees_kernel: sampler.sees_kernel() };
        }
        thread::sleep(PACE);
    }
}

impl Sampled {
    /// Adds what has an address in a sample and is no managed method.
    fn add_native_names(&mut self, symbols: &mut Symbols, all_methods_known: bool) {
        self.code.refresh();
        for address in self.samples.addresses() {
            if symbols.find(address).is_some() {
                continue;
            }
            let function = match CpuSamples::kernel_address(address) {
                Some(in_kernel) => {
                    let function = self.code.kernel_function(in_kernel);
                    Some(CodeFunction { start: address - (in_kernel - function.start), ..function })
                }
                None => self.code.function(address),
            };
            let Some(CodeFunction { start, size, name, image, kind }) = function else { continue };
            let origin = match kind {
                CodeKind::Image => Origin::Native,
                CodeKind::Kernel => Origin::Kernel,
                CodeKind::Assembly => Origin::Managed,
                CodeKind::Generated if all_methods_known => Origin::Stub,
                CodeKind::Generated => Origin::Unknown,
            };
            let name = match (name.as_str(), image.as_str(), kind) {
                ("", "", _) if all_methods_known => "[runtime stubs]".to_owned(),
                ("", "", _) => "[JIT-compiled code]".to_owned(),
                ("", image, _) => format!("[{image}]"),
                _ => name,
            };
            symbols.add_native(&NativeFunction { address, start, size, name: &name, image: &image, origin });
        }
    }
}
