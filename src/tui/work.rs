//! Work of individual effects that does not need the runner.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tasks::blocking;
use crate::app::JobResult;
use crate::app::tabs::Stacks;
use crate::ipc::Command;
use crate::model::{Counted, Process};
use crate::net::client::Client;
use crate::net::{Clients, RemovedSockets, remove_stale_sockets};
use crate::session;

/// Converts sampled stacks for a tab.
pub(super) fn stacks(sampled: session::ThreadStacks) -> Arc<Stacks> {
    let session::ThreadStacks { groups, names, waits, ended } = sampled;
    let trouble = ended.err().map(|why| format!("Some method names may be missing: {why}.").into());
    Arc::new(Stacks { groups, names: names.into_iter().collect(), waits, trouble })
}

/// Sends a command that changes the process, with the contents of the file if it needs one.
pub(super) async fn control(client: &Client, mut command: Command, file: Option<&Path>) -> Result<(), String> {
    if let (Command::AttachProfiler { data, .. }, Some(file)) = (&mut command, file) {
        let file = file.to_owned();
        let read = move || session::client_data(&file).map_err(|error| format!("{:#}", anyhow::Error::new(error)));
        *data = blocking(read).await.unwrap_or_else(|_| Err("reading the profiler's data failed inside dn-top".to_owned()))?;
    }
    client.run(&command).await.map(drop).map_err(|error| error.to_string())
}

/// Closes the port after resuming the suspended processes.
pub(super) async fn close_port(clients: &Clients, waiting: &[Process]) -> Result<(), String> {
    for process in waiting {
        if let Some(Err(error)) = clients.resume(process).await {
            return Err(format!("The port is still served: {} cannot be resumed: {error}", process.name));
        }
    }
    clients.close_port();
    Ok(())
}

/// Removes stale sockets, and reports their number.
pub(super) fn clean_up(folders: &BTreeSet<PathBuf>) -> Result<JobResult, String> {
    let mut all = RemovedSockets::default();
    for folder in folders {
        let found = remove_stale_sockets(folder).map_err(|error| format!("Cannot list {}: {error}", folder.display()))?;
        all.removed += found.removed;
        all.kept += found.kept;
    }
    let sockets = |count: usize| Counted(count as u64, "socket");
    let note = (all.kept > 0).then(|| format!("{} kept: of other users, or less than a minute old", sockets(all.kept)).into());
    Ok(JobResult { files: vec![format!("{} removed", sockets(all.removed)).into()], note, ..JobResult::default() })
}
