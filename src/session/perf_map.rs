//! Perf maps: turning them on and off, and locating their files.

use std::path::PathBuf;

use crate::ipc::{Command, PerfMapKind, Variable};
use crate::model::{Process, reachable_path};
use crate::net::ExchangeError;
use crate::net::client::Client;
use crate::net::target_file;

/// Turns perf maps on (`Some`) or off, and returns the files that exist afterwards.
///
/// # Errors
/// If the runtime refuses.
pub async fn perf_map(client: &Client, process: &Process, kind: Option<PerfMapKind>) -> Result<Vec<PathBuf>, ExchangeError> {
    client.run(&kind.map_or(Command::DisablePerfMap, |kind| Command::EnablePerfMap { kind })).await?;
    // If the environment cannot be read, assume that the variable is not set.
    let folder = folder(&client.environment().await.unwrap_or_default());
    let files = perf_map_files(process.ns_pid, kind.unwrap_or(PerfMapKind::All)).map(|name| reachable_path(process, &folder.join(name)));
    Ok(files.filter(|file| target_file::inspect(file).is_ok_and(|facts| facts.is_file())).collect())
}

/// Returns the folder of the perf maps: the one configured at startup, or `/tmp`, regardless of `TMPDIR` (seen on 9 and 10).
fn folder(environment: &[Variable]) -> PathBuf {
    let reported = |name: &str| environment.iter().find(|variable| variable.name == name && !variable.value.is_empty());
    let reported = reported("DOTNET_PerfMapJitDumpPath").or_else(|| reported("COMPlus_PerfMapJitDumpPath"));
    reported.map_or_else(|| "/tmp".into(), |variable| PathBuf::from(&variable.value))
}

/// Returns the file names; they contain the target's pid in its own namespace.
fn perf_map_files(ns_pid: u32, kind: PerfMapKind) -> impl Iterator<Item = String> {
    let perf = [format!("perf-{ns_pid}.map"), format!("perfinfo-{ns_pid}.map")];
    let jit = format!("jit-{ns_pid}.dump");
    let perf = perf.into_iter().filter(move |_| kind != PerfMapKind::JitDump);
    perf.chain((kind != PerfMapKind::PerfMap).then_some(jit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_map_folder_comes_from_the_environment() {
        let variable = |text: &str| {
            let (name, value) = text.split_once('=').unwrap();
            Variable { name: name.to_owned(), value: value.to_owned() }
        };
        for (environment, place) in [
            (&["TMPDIR=/elsewhere"][..], "/tmp"),
            (&["COMPlus_PerfMapJitDumpPath=/old", "DOTNET_PerfMapJitDumpPath=/new"], "/new"),
            (&["COMPlus_PerfMapJitDumpPath=/old", "DOTNET_PerfMapJitDumpPath="], "/old"),
        ] {
            let environment: Vec<_> = environment.iter().map(|text| variable(text)).collect();
            assert_eq!(folder(&environment), PathBuf::from(place), "{environment:?}");
        }
    }

    #[test]
    fn every_perf_map_kind_has_its_files() {
        let files = |kind| perf_map_files(7, kind).collect::<Vec<_>>();
        assert_eq!(files(PerfMapKind::PerfMap), ["perf-7.map", "perfinfo-7.map"]);
        assert_eq!(files(PerfMapKind::JitDump), ["jit-7.dump"]);
        assert_eq!(files(PerfMapKind::All), ["perf-7.map", "perfinfo-7.map", "jit-7.dump"]);
    }
}
