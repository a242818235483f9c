//! Runtimes that connect to the port of a started program: its own, and those of its child processes.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::HashSet;
use tokio::sync::oneshot;

use super::Launched;
use crate::ipc::{self, EnvironmentName, EnvironmentValue};
use crate::net::port::Port;
use crate::net::stream::port_name;

/// Environment variable with the diagnostic ports to connect to.
pub(super) const VARIABLE: &str = "DOTNET_DiagnosticPorts";

/// Sends the first runtime of the program itself to `connected`, and resumes all others. Without a `pid`, all are resumed.
pub(in crate::session) async fn resume_others(
    port: Port,
    pid: Option<u32>,
    without_port: impl Future<Output = Option<Launched>>,
    connected: oneshot::Sender<Launched>,
    others: Arc<AtomicUsize>,
) {
    let (mut connected, mut seen, mut changes) = (Some(connected), HashSet::default(), port.changes());
    let mut without_port = Some(Box::pin(without_port));
    let free = free_children(&ports(port.path(), "nosuspend"));
    loop {
        for runtime in port.runtimes() {
            if !seen.insert((runtime.key(), runtime.cookie)) {
                continue;
            }
            let (free, own) = (free.clone(), if Some(runtime.key().pid) == pid { connected.take() } else { None });
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
