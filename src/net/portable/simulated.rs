//! Facts of simulated processes: a directory has a `PID.toml` for each, and a `PID.usage` with processor time in milliseconds and memory in
//! bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::Facts;
use crate::model::ProcessKey;

#[derive(Debug, Deserialize)]
struct Simulated {
    /// Seconds since the Unix epoch.
    started: u64,
    ns_pid: u32,
    uid: u32,
    user: String,
    threads: u32,
    command: Vec<String>,
    container: String,
    /// `None` if it has no runtime.
    socket: Option<PathBuf>,
}

pub(super) fn list(folder: &Path) -> io::Result<Vec<Facts>> {
    let pids = fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".toml")?.parse().ok());
    Ok(pids.filter_map(|pid| read(folder, pid).ok()).collect())
}

pub(super) fn read(folder: &Path, pid: u32) -> io::Result<Facts> {
    let text = |extension: &str| fs::read_to_string(folder.join(format!("{pid}.{extension}")));
    let process: Simulated = toml::from_str(&text("toml")?).map_err(io::Error::other)?;
    let usage = text("usage").unwrap_or_default();
    let mut numbers = usage.split(' ').filter_map(|number| number.parse::<u64>().ok());
    let (cpu, memory) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Ok(Facts {
        key: Some(ProcessKey { pid, started: process.started }),
        ns_pid: Some(process.ns_pid),
        name: process.command.first().cloned().unwrap_or_default(),
        arguments: process.command,
        account: Some(format!("S-1-5-21-{}", process.uid)),
        cpu: Duration::from_millis(cpu),
        memory,
        private: memory,
        threads: process.threads,
        is_running: Some(folder.join(format!("{pid}.running")).exists()),
        container: Some(process.container).filter(|id| !id.is_empty()),
        socket: process.socket,
        user: Some(process.user),
        ..Facts::default()
    })
}
