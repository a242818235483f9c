//! A fleet of simulated runtimes with the facts that discovery reads, for `--demo` and benchmarks.

use std::f64::consts::TAU;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval};

use super::proc_tree::ProcTree;
use super::{Fault, Rates, Script, Simulated, Spec};
use crate::net::stream::address_in;

const DEMO: &str = include_str!("../../assets/demo.toml");

/// Uptime of the simulated machine when the fleet starts.
const UPTIME: Duration = Duration::from_secs(9 * 86_400);

/// Clock ticks per second, as in the real `/proc`.
pub(super) const TICKS: u64 = 100;

/// Simulated processes in one folder: `proc` has their facts in the format of `/proc`, `tmp` their sockets, `passwd` the names of their
/// users. Dropping it ends them; the folder belongs to the caller.
#[derive(Debug)]
pub struct Fleet {
    runtimes: Vec<Simulated>,
    clock: JoinHandle<()>,
    /// Whether its files are still being written.
    is_running: Arc<Mutex<bool>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DemoFile {
    runtime: Vec<Member>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    pub(super) command: Vec<String>,
    name: String,
    pub(super) version: String,
    pub(super) uid: u32,
    pub(super) threads: u32,
    /// Percentage of a core.
    cpu: f64,
    /// Resident memory, in MB.
    memory: u64,
    rate: Rates,
    environment: Vec<String>,
    #[serde(default)]
    pub(super) container: Option<String>,
    #[serde(default)]
    ns_pid: Option<u32>,
    #[serde(default)]
    pub(super) suspended: bool,
    /// Whether it does not answer.
    #[serde(default)]
    silent: bool,
}

impl Member {
    pub(super) fn quiet(name: &str) -> Self {
        let Spec { name, version, command, environment, .. } = Spec::new(name, "9.0.7", 0);
        let rate = Rates { gc: 1.0, exception: 1.0, contention: 1.0, jit: 1.0, sample: 100.0, custom: 10.0, waves: 0.0 };
        Self { command, name, version, environment, rate, uid: 1000, threads: 20, cpu: 1.0, memory: 100, ..Self::default() }
    }
}

/// Facts about a simulated process, for discovery.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) pid: u32,
    /// The pid in its own namespace.
    pub(super) ns_pid: u32,
    /// Clock ticks since boot.
    pub(super) started: u64,
    pub(super) member: Member,
}

impl Fleet {
    /// Starts the demo processes in `dir`.
    ///
    /// # Errors
    /// If files or sockets cannot be created there.
    pub fn demo(dir: &Path) -> io::Result<Self> {
        let demo: DemoFile = toml::from_str(DEMO).map_err(io::Error::other)?;
        Self::start(dir, demo.runtime)
    }

    /// Starts `count` identical runtimes, for measurements.
    ///
    /// # Errors
    /// If files or sockets cannot be created there.
    pub fn uniform(dir: &Path, count: usize) -> io::Result<Self> {
        Self::start(dir, (0..count).map(|i| Member::quiet(&format!("Service{i:03}"))).collect())
    }

    fn start(dir: &Path, members: Vec<Member>) -> io::Result<Self> {
        let (proc, tmp) = (dir.join("proc"), dir.join("tmp"));
        fs::create_dir_all(&tmp)?;
        fs::write(dir.join("passwd"), "root:x:0:0::/:\napp:x:1000:1000::/:\nbatch:x:1001:1001::/:\n")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let tree = ProcTree::create(proc, now.saturating_sub(UPTIME).as_secs())?;
        tree.uptime(UPTIME)?;
        let mut runtimes = Vec::new();
        let mut processes = Vec::new();
        for (i, member) in members.into_iter().enumerate() {
            let pid = 1200 + 37 * i as u32;
            let ns_pid = member.ns_pid.unwrap_or(pid);
            // Some started days ago, some minutes ago.
            let started = (UPTIME.as_secs() * TICKS) * (i as u64 + 1) / (i as u64 + 2);
            let socket = address_in(&tmp, &format!("dotnet-diagnostic-{ns_pid}-{started}-socket"));
            let spec = Spec {
                pid: ns_pid,
                name: member.name.clone(),
                version: member.version.clone(),
                command: member.command.clone(),
                environment: member.environment.clone(),
                suspended: member.suspended,
                port: None,
                script: Script::Program(member.rate),
                fault: member.silent.then_some(Fault::Silent),
            };
            let facts = Facts { pid, ns_pid, started, member };
            tree.add(&facts, &tmp, &socket)?;
            let runtime = Simulated::start(socket, spec)?;
            processes.push((facts, runtime.suspension()));
            runtimes.push(runtime);
        }
        let is_running = Arc::new(Mutex::new(true));
        let clock = tokio::spawn(advance(tree, processes, Arc::clone(&is_running)));
        Ok(Self { runtimes, clock, is_running })
    }

    /// Number of live runtimes.
    pub fn alive(&self) -> usize {
        self.runtimes.iter().filter(|runtime| runtime.is_alive()).count()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // The files are about to be removed: taking the lock waits for a running update, and no other follows.
        *self.is_running.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.clock.abort();
    }
}

/// Advances CPU time and memory of all processes, and starts those that were resumed. It runs several times per refresh of a dashboard, or
/// the figures would jump; less often in a large fleet, so that it does not distort measurements.
async fn advance(tree: ProcTree, mut processes: Vec<(Facts, watch::Receiver<bool>)>, is_running: Arc<Mutex<bool>>) {
    let begun = Instant::now();
    let mut ticks = interval(Duration::from_millis(20 * processes.len() as u64).clamp(Duration::from_millis(200), Duration::from_secs(1)));
    let mut used = vec![0.0; processes.len()];
    let mut last = 0.0;
    loop {
        let now = ticks.tick().await.duration_since(begun).as_secs_f64();
        let is_running = is_running.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_running {
            return;
        }
        // A reader that finds the facts of a second ago is not misled by them, so errors are ignored.
        let _ = tree.uptime(UPTIME + Duration::from_secs_f64(now));
        for ((facts, suspended), used) in processes.iter_mut().zip(&mut used) {
            let member = &facts.member;
            if suspended.has_changed().unwrap_or(false) && !*suspended.borrow_and_update() {
                let _ = tree.run(facts);
            }
            let wave = 1.0 + member.rate.waves * (now * TAU / 30.0 + f64::from(facts.pid)).sin();
            *used += (now - last) * member.cpu / 100.0 * wave * TICKS as f64;
            let sawtooth = 1.0 + 0.1 * ((now * member.rate.gc / 10.0).fract() - 0.5);
            let _ = tree.tick(facts, *used as u64, (member.memory as f64 * 1e6 * sawtooth) as u64);
        }
        last = now;
    }
}
