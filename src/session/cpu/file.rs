//! The file of a CPU profile: samples are written continuously, names at the end.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::analysis::{CpuSamples, CpuStack, Origin, OsrCallers, Symbols};
use crate::clr::payload::SampleLosses;
use crate::export::CpuTrace;
use crate::model::CpuThread;
use crate::net::clock::monotonic_ns;
use crate::net::perf::{CodeKind, NativeCode};
use crate::nettrace::{TraceHeader, UtcTime};
use crate::session::{OutputError, OutputFile};

/// Interval between writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait written as one event. A wait is reported when it ends but is written at its beginning; longer ones are split.
const LONGEST_WAIT_NS: i64 = 2_000_000_000;
/// Maximum number of native files whose identity is read. Large programs map some hundred, nearly all before they are sampled: their headers are in
/// memory, so that reading them does not delay sampling.
const MAX_IDENTITIES: usize = 1 << 10;

/// A file that is being written. It is deleted unless it is finished.
#[derive(Debug)]
pub(in crate::session) struct CpuFile {
    output: OutputFile,
    file: File,
    trace: CpuTrace,
    /// Number of files whose identity may still be read.
    identities_left: usize,
    next_write: Instant,
    /// The first error. Nothing is written after it.
    error: Option<io::Error>,
}

impl CpuFile {
    /// Creates the file for samples that each represent `period_ns` nanoseconds.
    ///
    /// # Errors
    /// If the file exists already, or cannot be created.
    pub(in crate::session) fn create(path: &Path, pid: u32, name: &str, period_ns: u64, code: &NativeCode) -> Result<Self, OutputError> {
        let (output, file) = OutputFile::create(path)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let header = TraceHeader {
            sync_utc: Some(UtcTime::from_unix_ms(now.as_millis() as i64)),
            sync_ticks: monotonic_ns(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
            sampling_interval_ns: u32::try_from(period_ns).unwrap_or(u32::MAX),
            ..TraceHeader::default()
        };
        let mut trace = CpuTrace::new(&header, pid, name);
        trace.mapping(Symbols::GC_CODE, 0, Symbols::RUNTIME_IMAGE.as_bytes(), || None);
        let mut this =
            Self { output, file, trace, identities_left: MAX_IDENTITIES, next_write: Instant::now() + WRITE_INTERVAL, error: None };
        this.add_mappings(code);
        Ok(this)
    }

    /// Adds a sample of a thread that was running, or that was blocked for `waited_ns` nanoseconds before it.
    pub(super) fn sample(&mut self, sample: &CpuStack<'_>, waited_ns: Option<u64>) {
        match waited_ns {
            _ if self.error.is_some() => {}
            None => self.trace.sample(sample),
            Some(ns) => self.trace.wait(sample, ns),
        }
    }

    /// Writes samples and new mappings from time to time; all samples taken before `until_ns` have arrived. Those written are old enough for the
    /// callers missing in them to have been found.
    pub(super) fn write(&mut self, until_ns: i64, code: &NativeCode, callers: &OsrCallers) {
        if Instant::now() < self.next_write {
            return;
        }
        self.next_write = Instant::now() + WRITE_INTERVAL;
        if self.error.is_none() {
            self.add_mappings(code);
            self.error = self.file.write_all(&self.trace.write_until(until_ns - LONGEST_WAIT_NS, callers)).err();
        }
    }

    /// Writes the remaining samples, the names of these addresses, and the thread times; then gives the file its final name.
    ///
    /// # Errors
    /// An error message.
    pub(super) fn finish(
        mut self,
        addresses: &[u64],
        symbols: &Symbols,
        code: &NativeCode,
        (threads, losses): (&[CpuThread], &SampleLosses),
        callers: &OsrCallers,
    ) -> Result<PathBuf, String> {
        let bytes = self.trace.write_until(i64::MAX, callers);
        self.add_mappings(code);
        let Self { output, mut file, mut trace, error, .. } = self;
        let write = || {
            error.map_or(Ok(()), Err)?;
            file.write_all(&bytes)?;
            add_names(&mut trace, addresses, symbols);
            threads.iter().for_each(|thread| add_times(&mut trace, thread));
            trace.losses(losses);
            file.write_all(&trace.finish())?;
            file.sync_all()
        };
        write().map_err(|error| format!("{}: {error}", output.partial().display()))?;
        output.persist().map_err(|error| error.to_string())
    }

    fn add_mappings(&mut self, code: &NativeCode) {
        for mapping in code.mappings() {
            let identities_left = &mut self.identities_left;
            let identity = || {
                code.kind_at(mapping.range.start).filter(|kind| *kind == CodeKind::Image)?;
                *identities_left = identities_left.checked_sub(1)?;
                code.identity(mapping)
            };
            self.trace.mapping(mapping.range.clone(), mapping.file_offset, &mapping.path, identity);
        }
    }
}

fn add_names(trace: &mut CpuTrace, addresses: &[u64], symbols: &Symbols) {
    let mut last = None;
    for address in addresses {
        let (Some(method), Some((start, size))) = (symbols.find(*address), symbols.code_at(*address)) else { continue };
        let name = format!("{}{}", symbols.full_name(method), symbols.parameters(method));
        // Stubs are recognized by the prefix of their names.
        let name = if symbols.is_stub(method) { &name[name.find("IL_STUB").unwrap_or(0)..] } else { &name };
        // A name in brackets stands for an image without function names.
        if last.replace(start) == Some(start) || name.starts_with('[') {
            continue;
        }
        match symbols.origin(method) {
            Origin::Managed => trace.function(start, size, &CpuTrace::method_name(symbols.module(method), name)),
            _ => trace.function(CpuSamples::kernel_address(start).unwrap_or(start), size, name),
        }
    }
}

fn add_times(trace: &mut CpuTrace, CpuThread { thread, name, cpu, runnable, waits, .. }: &CpuThread) {
    let times = [("cpu", *cpu), ("runnable", *runnable)].into_iter().chain(waits.iter().copied());
    for (state, time) in times.filter(|(_, time)| !time.is_zero()) {
        trace.thread_time(*thread, name.as_str(), state, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}
