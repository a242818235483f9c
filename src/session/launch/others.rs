//! Runtimes that connect to the port of a started program: its own, and those of its child processes.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::HashSet;
use tokio::sync::oneshot;

use super::Launched;
use crate::ipc::{self, Cookie, EnvironmentName, EnvironmentValue};
use crate::model::ProcessKey;
use crate::net::port::Port;
use crate::net::stream::port_name;

/// Environment variable with the diagnostic ports to connect to.
pub(super) const VARIABLE: &str = "DOTNET_DiagnosticPorts";

/// Number of known runtimes from which on those that have left are forgotten: a hostile process can connect with any number of cookies. A program
/// with more child processes than this at a time is remembered whole.
const MAX_KNOWN: usize = 4096;

/// The runtimes that have connected, so that none is resumed twice.
#[derive(Debug, Default)]
struct KnownRuntimes(HashSet<(ProcessKey, Cookie)>);

impl KnownRuntimes {
    /// Adds a runtime; returns whether it is new. `connected` are those that are connected now.
    fn add(&mut self, runtime: (ProcessKey, Cookie), connected: impl Iterator<Item = (ProcessKey, Cookie)>) -> bool {
        if self.0.len() >= MAX_KNOWN && !self.0.contains(&runtime) {
            let connected: HashSet<_> = connected.collect();
            self.0.retain(|known| connected.contains(known));
        }
        self.0.insert(runtime)
    }
}

/// The runtime that is not resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Recorded {
    /// All are resumed.
    None,
    /// The first runtime of this process, which was started here.
    Process(u32),
    /// The first that connects.
    First,
}

/// Sends the runtime to record to `connected`, and resumes all others.
pub(in crate::session) async fn resume_others(
    port: Arc<Port>,
    recorded: Recorded,
    without_port: impl Future<Output = Option<Launched>>,
    connected: oneshot::Sender<Launched>,
    others: Arc<AtomicUsize>,
) {
    let (mut connected, mut known, mut changes) = (Some(connected), KnownRuntimes::default(), port.changes());
    let mut without_port = Some(Box::pin(without_port));
    // The environment of a program that was not started here is left as it is.
    let free = if recorded == Recorded::First { None } else { free_children(&ports(port.path(), "nosuspend")) };
    loop {
        let runtimes = port.runtimes();
        let ids: Vec<_> = runtimes.iter().map(|runtime| (runtime.key(), runtime.cookie)).collect();
        for (runtime, id) in runtimes.into_iter().zip(&ids) {
            if !known.add(*id, ids.iter().copied()) {
                continue;
            }
            let is_own = match recorded {
                Recorded::None => false,
                Recorded::Process(pid) => runtime.key().pid == pid,
                Recorded::First => true,
            };
            let (free, own) = (free.clone(), if is_own { connected.take() } else { None });
            if own.is_some() {
                // It may hold a connection to the same runtime, which serves no other client until that is closed.
                without_port = None;
            } else {
                others.fetch_add(1, Ordering::Relaxed);
            }
            tokio::spawn(async move {
                // .NET 5 does not support this: its child processes are resumed here. A process that has exited needs neither this nor a resume.
                if let Some(free) = free {
                    let _ = runtime.client.run(&free).await;
                }
                match own {
                    // A dropped receiver means that the program is about to be ended.
                    Some(connected) => {
                        let key = runtime.key();
                        drop(connected.send(Launched { client: runtime.client, key, assembly: None, missed: None }));
                    }
                    None => drop(runtime.client.run(&ipc::Command::ResumeRuntime).await),
                }
            });
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            Some(found) = async { Some(without_port.as_mut()?.await) } => {
                without_port = None;
                if let Some(launched) = found
                    && let Some(connected) = connected.take()
                {
                    drop(connected.send(launched));
                }
            }
        }
    }
}

/// Returns the command that makes child processes connect to `ports` without being suspended, so that no process has to resume them.
fn free_children(ports: &OsStr) -> Option<ipc::Command> {
    let (name, value) = (EnvironmentName::new(VARIABLE).ok()?, EnvironmentValue::new(ports.to_str()?).ok()?);
    Some(ipc::Command::SetEnvironmentVariable { name, value: Some(value) })
}

/// Our port, followed by those already configured.
pub(super) fn ports(ours: &Path, tag: &str) -> OsString {
    let mut value = port_name(ours).as_os_str().to_owned();
    value.push(format!(",{tag},connect"));
    if let Some(others) = std::env::var_os(VARIABLE).filter(|others| !others.is_empty()) {
        value.push(";");
        value.push(others);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_that_have_left_are_forgotten_once_there_are_many() {
        let runtime = |number: u32| (ProcessKey { pid: number, started: 1 }, Cookie([7; 16]));
        let mut known = KnownRuntimes::default();
        let most = MAX_KNOWN as u32;
        for number in 0..4 * most {
            // The first one stays.
            let connected = || [runtime(0), runtime(number)].into_iter();
            assert!(known.add(runtime(number), connected()) && !known.add(runtime(number), connected()), "{number}");
            assert!(known.0.len() <= MAX_KNOWN + 1);
        }
        assert!(!known.add(runtime(0), std::iter::empty()));
        // All that are connected are remembered.
        let mut known = KnownRuntimes::default();
        (0..most + 64).for_each(|number| assert!(known.add(runtime(number), (0..=number).map(runtime))));
        assert!((0..most + 64).all(|number| !known.add(runtime(number), std::iter::empty())));
    }
}
