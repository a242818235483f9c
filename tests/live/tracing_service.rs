//! A real Perfetto tracing service, and its recordings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Running, Signal, TIMEOUT, cache, folder, poll, send};
use crate::trace_processor::Engine;

/// Returns the service and the trace processor; `None` if not available.
fn tools() -> Option<(PathBuf, Engine)> {
    Some((cache("perfetto-56.0", "bin/traced")?, Engine::newest()?))
}

pub(crate) const EXCEPTIONS: &str = "select count(*) n from slice where category = 'exception'";
/// Samples in methods of the program with known names.
pub(crate) const NAMED_SAMPLES: &str = "select count(*) n from perf_sample s join stack_profile_callsite c on s.callsite_id = c.id join stack_profile_callsite p on \
    p.id in (c.id, c.parent_id) join stack_profile_frame f on p.frame_id = f.id join stack_profile_symbol y on y.symbol_set_id = f.symbol_set_id \
    where y.name like 'Known.%'";

/// A running service with its own sockets.
pub(crate) struct Traced {
    pub(crate) tools: (PathBuf, Engine),
    place: tempfile::TempDir,
    pub(crate) service: Child,
    probes: Option<Child>,
    kernel: Option<MutexGuard<'static, ()>>,
}

/// The kernel has only one tracing instance: stopping one recording stops the others.
static KERNEL: Mutex<()> = Mutex::new(());

impl Traced {
    pub(crate) fn start() -> Option<Self> {
        let (tools, place) = (tools()?, folder());
        let service = spawn(&tools.0, place.path());
        Some(Self { tools, place, service, probes: None, kernel: None })
    }

    /// Starts the kernel's data sources, in a mount namespace with access to kernel tracing. `false` if that is impossible.
    pub(crate) fn with_probes(&mut self) -> bool {
        self.kernel = Some(KERNEL.lock().unwrap_or_else(PoisonError::into_inner));
        let words = "mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null || mountpoint -q /sys/kernel/tracing || exit 3; exec \"$0\"";
        let mut probes = Command::new("unshare");
        probes.args(["-m", "sh", "-c", words]).arg(self.tools.0.join("bin/traced_probes"));
        let probes = probes.envs(sockets(self.place.path())).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.probes = Some(probes);
        let registered = poll(TIMEOUT, || {
            let ended = self.probes.as_mut().unwrap().try_wait().unwrap().is_some();
            (ended || self.query().contains("linux.ftrace")).then_some(!ended)
        });
        if registered == Some(false) {
            self.kernel = None;
        }
        registered.unwrap()
    }

    /// Turns kernel tracing off, as any privileged process may do, or kills its data sources if tracing is not accessible here.
    pub(crate) fn end_kernel_tracing(&mut self) {
        if fs::write("/sys/kernel/tracing/tracing_on", "0").is_err() {
            self.probes.as_mut().unwrap().kill().unwrap();
        }
    }

    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn query(&self) -> String {
        let output = self.perfetto().arg("--query").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn perfetto(&self) -> Command {
        let mut command = Command::new(self.tools.0.join("bin/perfetto"));
        command.envs(sockets(self.place.path())).stderr(Stdio::null());
        command
    }

    /// Returns a command of dn-top with the sockets of this service.
    pub(crate) fn dn_top(&self, arguments: &[&str]) -> Invocation {
        on_sockets(self.place(), arguments)
    }

    /// Starts `perfetto serve`, and waits until its data source is registered.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Running {
        let running = self.dn_top(&[&["perfetto", "serve"], arguments].concat()).start();
        poll(TIMEOUT, || self.query().contains("dotnet ").then_some(())).unwrap_or_else(|| panic!("{}", running.stderr()));
        running
    }

    /// Starts a recording.
    pub(crate) fn record(&self, name: &str, config: &str) -> (Child, PathBuf) {
        let (file, written) = (self.place.path().join(name), self.place.path().join(format!("{name}.txt")));
        fs::write(&written, config).unwrap();
        let mut command = self.perfetto();
        command.arg("--txt").arg("-c").arg(written).arg("-o").arg(&file);
        (command.spawn().unwrap(), file)
    }

    pub(crate) fn number(&self, file: &Path, sql: &str) -> f64 {
        self.tools.1.query(file, sql)[0]["n"].as_f64().unwrap_or(f64::NAN)
    }

    pub(crate) fn assert_no_errors(&self, file: &Path) {
        self.tools.1.assert_no_errors(file, "");
    }

    /// Stops a recording; its file must have no errors.
    pub(crate) fn finish(&self, recording: Child, file: &Path) {
        send(recording.id(), Signal::INT);
        ended(recording);
        self.assert_no_errors(file);
    }

    /// Panics unless the file has five collections, and two exceptions around a second of work.
    pub(crate) fn assert_pauses_and_exceptions(&self, file: &Path, pid: u32, with_kernel: bool) {
        let number = |sql: &str| self.number(file, sql);
        assert_eq!(number(&format!("select count(*) n from process where pid = {pid}")), 1.0, "one row for a process");
        let pauses = "select count(*) n from slice join track on slice.track_id = track.id where track.name = 'Pauses'";
        assert!(number(pauses) >= 5.0);
        let outside = " and (slice.ts < (select start_ts from trace_bounds) or slice.ts + slice.dur > (select end_ts from trace_bounds))";
        assert_eq!(number(&format!("{pauses}{outside}")), 0.0);
        let window = "select min(s.ts) a, max(s.ts) b, utid u, count(*) c from slice s join thread_track t on s.track_id = t.id where category = 'exception'";
        assert_eq!(number(&format!("select c n from ({window})")), 2.0);
        if !with_kernel {
            return;
        }
        // A busy thread does not sleep during its slices: it runs, or waits for a CPU that others use.
        let share = number(&format!(
            "with spent as ({window}) select sum(case when t.state in ('Running', 'R', 'R+') then min(t.ts + t.dur, b) - max(t.ts, a) else 0 end) * 1.0 \
             / max(b - a) n from spent join thread_state t on t.utid = u and t.ts < b and t.ts + t.dur > a"
        ));
        let span = number(&format!("select (select max(ts + dur) from sched) - (select b from ({window})) n"));
        assert!(share > 0.9, "{share}; the kernel's events go on for {span} ns after the last slice");
    }

    pub(crate) fn restart(&mut self) {
        self.service.kill().unwrap();
        self.service.wait().unwrap();
        self.service = spawn(&self.tools.0, self.place.path());
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        for child in self.probes.iter_mut().chain([&mut self.service]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(tools: &Path, place: &Path) -> Child {
    let service = Command::new(tools.join("bin/traced")).envs(sockets(place)).stderr(Stdio::null()).spawn().unwrap();
    let listens = || sockets(place).iter().all(|(_, path)| std::os::unix::net::UnixStream::connect(path).is_ok()).then_some(());
    poll(TIMEOUT, listens).unwrap();
    service
}

/// Returns a command of dn-top with the sockets of a service in this folder.
pub(crate) fn on_sockets(place: &Path, arguments: &[&str]) -> Invocation {
    sockets(place).into_iter().fold(Invocation::new(arguments), |invocation, (name, path)| invocation.env(name, path))
}

pub(crate) fn sockets(place: &Path) -> [(&'static str, PathBuf); 2] {
    [("PERFETTO_PRODUCER_SOCK_NAME", place.join("producer")), ("PERFETTO_CONSUMER_SOCK_NAME", place.join("consumer"))]
}

/// Returns the configuration of a recording by dn-top's data source. The duration ends it if the test fails.
pub(crate) fn configuration(buffer_kb: u32, text: &str) -> String {
    let source = format!("data_sources {{ config {{ name: \"dotnet\" legacy_config: \"{text}\" }} }}\n");
    format!("buffers {{ size_kb: {buffer_kb} fill_policy: RING_BUFFER }}\n{source}duration_ms: 120000\n")
}

/// Waits until dn-top has reported the start of this many recordings.
pub(crate) fn began(running: &Running, count: usize) {
    let said = || (running.stderr().matches(" began: ").count() >= count).then_some(());
    poll(TIMEOUT, said).unwrap_or_else(|| panic!("{}", running.stderr()));
}

/// Runs a check on .NET 9 and 10, each with a service of its own.
pub(crate) fn each(check: impl Fn(&Runtime, Traced) + Sync) {
    runtimes::each(runtimes::since(9, runtimes::with("known")), |runtime| {
        if let Some(traced) = Traced::start() {
            check(runtime, traced);
        }
    });
}

/// Waits until a recording has ended by itself.
pub(crate) fn ended(mut child: Child) {
    let status = poll(TIMEOUT, || child.try_wait().unwrap()).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("the recording does not end")
    });
    assert!(status.success(), "{status}");
}
