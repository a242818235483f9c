//! Core dumps: requesting one, waiting for it, and locating the file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::blocking::read_process;
use crate::ipc::{DumpKind, DumpRequest, Hresult, TargetPath};
use crate::model::{Bytes, FreeSpace, Obstacle, Process, RunState, SafeText, has_own_root, reachable_path};
use crate::net::client::Client;
use crate::net::target_file;
use crate::net::{ExchangeError, untraceable};

/// Timeout of a dump. The target stays paused until the dump is written, so giving up earlier would not help it.
const DUMP_TIMEOUT: Duration = Duration::from_secs(3600);

/// How long the file may stay unchanged before a stall is reported. The `createdump` of 3.1 occasionally hangs when it is started while a
/// thread is being created.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between two looks at the file.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// What happens while a dump is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpNotice {
    /// The file has grown to this number of bytes.
    Written(u64),
    /// The file has not grown for ten seconds.
    Stalled(String),
}

/// A dump that has been written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dumped {
    /// Path as seen by the target.
    pub path: PathBuf,
    /// Path as seen by us.
    pub reachable_path: PathBuf,
    /// Size; `None` if the file is not accessible to us.
    pub bytes: Option<u64>,
    /// The crash report as seen by us, if one was requested and written.
    pub crash_report: Option<PathBuf>,
    /// Time taken.
    pub took: Duration,
}

/// Why no dump was written.
#[derive(Debug, Error)]
pub enum DumpError {
    /// The path exists. The target would overwrite it, so no request was sent.
    #[error("{} exists already and a dump would overwrite it; choose another path", .0.display())]
    Exists(PathBuf),
    /// The folder of the path does not exist. A request would only pause the target, so none was sent.
    #[error("the folder {} does not exist{}; choose one that does{}", folder.display(), where_it_is(*.has_own_root), such_as(*.has_own_root))]
    NoFolder {
        /// The folder, as seen by the target.
        folder: PathBuf,
        /// Whether the target has a different root file system.
        has_own_root: bool,
    },
    /// The folder is in memory, and the dump is expected to exceed a memory limit of the target. No request was sent.
    #[error(
        "the folder is in memory, of which the limit of the process leaves {left}: the kernel would kill it during this dump of about {expected}; \
         choose a folder on a disk, or a smaller type"
    )]
    Memory {
        /// Expected size.
        expected: Bytes,
        /// Memory that may still be used.
        left: Bytes,
    },
    /// Whether the path exists cannot be found out.
    #[error("{} cannot be inspected, and a dump could overwrite a file there: {error}; choose another path", path.display())]
    Hidden {
        /// The requested path, as seen by us.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The runtime failed to write it. The message includes the runtime's own error output, one line each, and advice.
    #[error("{error}{}", tail(error, *.advice))]
    Exchange {
        /// The error.
        error: ExchangeError,
        /// Possible cause of a denial, and what to do about it.
        advice: Option<&'static Obstacle>,
    },
    /// The runtime reported success but there is no file.
    #[error("the runtime reported success, but there is no dump at {}; {cause}", path.display())]
    Missing {
        /// The requested path, as seen by us.
        path: PathBuf,
        /// When this happens.
        cause: &'static str,
    },
}

fn where_it_is(has_own_root: bool) -> &'static str {
    if has_own_root { " in the file system of the process" } else { "" }
}

fn such_as(has_own_root: bool) -> &'static str {
    if has_own_root { " there, such as /tmp" } else { "" }
}

/// Returns when a runtime reports success although it has written no dump.
fn cause_of_missing(process: &Process, kind: DumpKind) -> &'static str {
    // The dump program cannot find the data structures of a runtime that has not started.
    if process.run_state == RunState::Suspended && kind != DumpKind::Full {
        "a process that is suspended at startup writes only full dumps: use the type full, or resume it first"
    } else {
        "this happens with NativeAOT, and if the dump program was killed"
    }
}

/// The target's error output and our advice, to append to the error.
fn tail(error: &ExchangeError, advice: Option<&'static Obstacle>) -> String {
    let lines = error.details().into_iter().map(|line| line.to_string());
    lines.chain(advice.map(|advice| advice.to_string())).map(|line| format!("\n  {line}")).collect()
}

/// Returns what may have prevented a dump, and a remedy.
fn advice(error: &ExchangeError, pid: u32) -> Option<&'static Obstacle> {
    (error.hresult() == Some(Hresult::FAIL) && may_be_forbidden(&error.details())).then(|| untraceable(pid)).flatten()
}

/// Whether the output of `createdump` shows a lack of ptrace permission: it reads the memory first, then stops the threads. The output of 3.1
/// is not available to us.
fn may_be_forbidden(details: &[SafeText]) -> bool {
    let forbidden = |line: &SafeText| line.contains("ptrace(") || line.contains("/mem) FAILED");
    details.is_empty() || details.iter().any(forbidden)
}

/// A request that has been checked.
#[derive(Debug)]
pub struct CheckedDump {
    /// Path of the dump as seen by us.
    pub path: PathBuf,
    /// What may go wrong nevertheless, without its article.
    pub warning: Option<String>,
}

/// Checks a request before the process is paused.
///
/// # Errors
/// [`DumpError::Exists`], [`DumpError::NoFolder`], [`DumpError::Memory`], or [`DumpError::Hidden`] in another root directory.
pub async fn check_dump(client: &Client, process: &Process, request: &DumpRequest) -> Result<CheckedDump, DumpError> {
    let path = free_path(process, &request.path)?;
    let Some(folder) = path.parent().map(Path::to_owned) else { return Ok(CheckedDump { path, warning: None }) };
    let space = read_process(client, move |client| free_space(client, &folder)).await.flatten();
    check_memory(space, process.usage.dump_bytes(request.kind))?;
    Ok(CheckedDump { path, warning: space.and_then(FreeSpace::dump_warning) })
}

/// Returns whether a path of a process leads to a folder.
pub fn is_folder(process: &Process, path: &TargetPath) -> bool {
    target_file::inspect(&reachable_path(process, Path::new(path.as_str()))).is_ok_and(|facts| facts.is_dir())
}

/// Returns the path of a dump as seen by us, if it is free and its folder exists.
fn free_path(process: &Process, path: &TargetPath) -> Result<PathBuf, DumpError> {
    let is_folder = path.as_str().ends_with(std::path::is_separator);
    let path = Path::new(path.as_str());
    let here = reachable_path(process, path);
    let is_missing = |folder: &Path| target_file::inspect(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if let (Some(folder), Some(_)) = (path.parent(), here.parent().filter(|folder| is_missing(folder))) {
        return Err(DumpError::NoFolder { folder: folder.to_owned(), has_own_root: has_own_root(process) });
    }
    // The path of a folder that does not exist.
    if is_folder && is_missing(&here) {
        return Err(DumpError::NoFolder { folder: path.to_owned(), has_own_root: has_own_root(process) });
    }
    // In another root directory, a link that leads nowhere counts as free.
    if has_own_root(process) {
        return if_free(target_file::inspect(&here), here);
    }
    if here.symlink_metadata().is_ok() { Err(DumpError::Exists(here)) } else { Ok(here) }
}

/// Returns the path if its file was not found. A directory that is closed to us may be open to the target, which has always been let write there.
fn if_free<T>(inspected: io::Result<T>, path: PathBuf) -> Result<PathBuf, DumpError> {
    match inspected {
        Ok(_) => Err(DumpError::Exists(path)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(path),
        Err(error) => Err(DumpError::Hidden { path, error }),
    }
}

/// Returns the space that a target has in a folder, as seen by us; `None` if it cannot be found out. Blocks on the file system.
pub fn free_space(client: &Client, folder: &Path) -> Option<FreeSpace> {
    target_file::free_space(folder, client.resources().memory).ok()
}

/// Refuses a dump that is expected to exceed a memory limit of the target. On a full disk, in contrast, the runtime only fails to write it.
fn check_memory(space: Option<FreeSpace>, expected: u64) -> Result<(), DumpError> {
    match space.filter(|space| space.is_memory && space.bytes < expected) {
        Some(space) => Err(DumpError::Memory { expected: Bytes(expected), left: Bytes(space.bytes) }),
        None => Ok(()),
    }
}

/// Requests a dump from the target and checks that the file exists. `report` receives the progress, as far as the file is visible to us.
///
/// # Errors
/// [`DumpError`]. No request is sent if a file would be overwritten.
pub async fn dump(
    client: &Client,
    process: &Process,
    request: &DumpRequest,
    report: impl FnMut(DumpNotice) + Send,
) -> Result<Dumped, DumpError> {
    let path = PathBuf::from(request.path.as_str());
    let here = check_dump(client, process, request).await?.path;
    let report_path = crash_report_of(&here);
    let changed = || target_file::inspect(&report_path).and_then(|facts| facts.modified()).ok();
    let (begun, before) = (Instant::now(), changed());
    let written = client.dump(request, DUMP_TIMEOUT);
    let reported = observe(&here, || advice_on_stall(process, client.dump_writer()), report);
    tokio::select! { written = written => written, never = reported => never }
        .map_err(|error| DumpError::Exchange { advice: advice(&error, process.key.pid), error })?;
    let took = begun.elapsed();
    let bytes = match target_file::inspect(&here) {
        Ok(file) => Some(file.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DumpError::Missing { path: here, cause: cause_of_missing(process, request.kind) });
        }
        Err(_) => None,
    };
    let crash_report = (request.flags.crash_report && changed() != before).then_some(report_path);
    Ok(Dumped { path, reachable_path: here, bytes, crash_report, took })
}

/// Returns the path of the crash report that `createdump` writes next to a dump.
fn crash_report_of(dump: &Path) -> PathBuf {
    let mut path = dump.as_os_str().to_owned();
    path.push(".crashreport.json");
    path.into()
}

/// Reports the growth of a file, and once that it has not grown for [`STALL_TIMEOUT`], or still does not exist. Never returns.
async fn observe<T>(path: &Path, advice: impl Fn() -> String, mut report: impl FnMut(DumpNotice)) -> T {
    let (mut before, mut grown_at, mut is_stall_reported) = (0, Instant::now(), false);
    loop {
        sleep(PROGRESS_INTERVAL).await;
        let now = target_file::inspect(path).map_or(0, |file| file.len());
        if std::mem::replace(&mut before, now) != now {
            grown_at = Instant::now();
            report(DumpNotice::Written(now));
        } else if !is_stall_reported && grown_at.elapsed() >= STALL_TIMEOUT {
            is_stall_reported = true;
            report(DumpNotice::Stalled(advice()));
        }
    }
}

/// Message about a stalled dump. A `createdump` that is killed while it attaches to a thread leaves the process stopped; the second signal
/// resumes it.
fn advice_on_stall(process: &Process, writer: Option<u32>) -> String {
    let (name, pid) = (&process.name, process.key.pid);
    let advice = writer.map_or_else(String::new, |writer| {
        format!(
            ": process {writer}, which writes it, may still be reading the memory, or be stuck; `kill -9 {writer}; kill -CONT {pid}` ends it, and {name} continues"
        )
    });
    format!("the dump of {name} has made no progress for {} s{advice}", STALL_TIMEOUT.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn growth_and_stall_of_a_dump_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (path, notices) = (folder.path().join("a.dmp"), std::sync::Mutex::new(Vec::new()));
        let seconds = |seconds: u64| sleep(Duration::from_millis(seconds * 1000 + 500));
        let growth = async {
            seconds(2).await;
            for size in [10, 30] {
                std::fs::write(&path, vec![0; size]).unwrap();
                seconds(1).await;
            }
            seconds(30).await;
        };
        let observed = observe::<()>(&path, || "advice".to_owned(), |notice| notices.lock().unwrap().push(notice));
        tokio::select! { () = growth => {}, () = observed => {} }
        let expected = [DumpNotice::Written(10), DumpNotice::Written(30), DumpNotice::Stalled("advice".to_owned())];
        assert_eq!(*notices.lock().unwrap(), expected);
    }

    #[test]
    fn path_is_free_if_nothing_is_found_there() {
        let free = |error: io::ErrorKind| if_free::<()>(Err(error.into()), PathBuf::from("/a/b")).map_err(|error| error.to_string());
        for error in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
            assert_eq!(free(error), Ok(PathBuf::from("/a/b")));
        }
        let refused = "/a/b cannot be inspected, and a dump could overwrite a file there: unsupported; choose another path";
        assert_eq!(free(io::ErrorKind::Unsupported), Err(refused.to_owned()));
        assert!(matches!(if_free(Ok(()), PathBuf::from("/a/b")), Err(DumpError::Exists(_))));
    }

    #[test]
    fn dump_beyond_the_memory_limit_is_refused() {
        let check = |is_memory, bytes| check_memory(Some(FreeSpace { bytes, is_memory, memory_left: None }), 100_000_000);
        assert!(check(true, 100_000_000).is_ok() && check(false, 1).is_ok() && check_memory(None, 1).is_ok());
        let refused = check(true, 99_000_000).unwrap_err().to_string();
        assert!(refused.contains("leaves 99.0 MB: the kernel would kill it during this dump of about 100 MB; choose"), "{refused}");
    }

    #[test]
    fn missing_ptrace_permission_is_recognized() {
        for (output, forbidden) in [
            (None, true),
            (
                Some(
                    "[createdump] The process or container does not have permissions or access: open(/proc/5008/mem) FAILED Permission denied (13)",
                ),
                true,
            ),
            (Some("[createdump] ptrace(ATTACH, 7) FAILED Operation not permitted (1)"), true),
            (Some("[createdump] Only full dumps are supported by single file apps."), false),
            (Some("[createdump] Could not create output file '/d/a.dmp': No space left on device (28)"), false),
        ] {
            let details: Vec<SafeText> = output.into_iter().map(SafeText::new).collect();
            assert_eq!(may_be_forbidden(&details), forbidden, "{output:?}");
        }
    }
}
