//! Core dumps: requested, waited for, and looked for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::ipc::{DumpRequest, Hresult};
use crate::model::{Process, SafeText, seen_here};
use crate::net::client::Client;
use crate::net::{ExchangeError, untraceable};

/// How long a dump may take. The target is paused all the while, so giving up earlier would not help it.
pub const DUMP_LIMIT: Duration = Duration::from_secs(3600);

/// How long nothing may be written before that is reported. 3.1's dump program now and then never ends when it is started beside a thread that is
/// just being created.
const STALL: Duration = Duration::from_secs(10);

/// A dump that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dumped {
    /// Where, as the target sees it.
    pub path: PathBuf,
    /// Where, as it is reached from here.
    pub seen_here: PathBuf,
    /// Its size; `None` where it may not be looked at from here.
    pub bytes: Option<u64>,
    /// How long it took.
    pub took: Duration,
}

/// Why there is no dump.
#[derive(Debug, Error)]
pub enum DumpError {
    /// Something has the name already. The target would write over it; it was not asked.
    #[error("{} exists already and a dump would overwrite it; choose another path", .0.display())]
    Exists(PathBuf),
    /// The runtime did not do it. Its own words follow, one a line, and what would help.
    #[error("{error}{}", tail(error, *.advice))]
    Exchange {
        /// What it answered.
        error: ExchangeError,
        /// What may have forbidden it, and what would help.
        advice: Option<&'static str>,
    },
    /// The runtime answered "done" and no file is there.
    #[error("the runtime answered that the dump is written, but there is no file at {}; this happens with NativeAOT, and where the dump program was killed", .0.display())]
    Missing(PathBuf),
}

/// The target's own words behind the error, and ours.
fn tail(error: &ExchangeError, advice: Option<&str>) -> String {
    error.details().iter().map(SafeText::as_str).chain(advice).map(|line| format!("\n  {line}")).collect()
}

/// What may have forbidden a dump.
fn advice(error: &ExchangeError, pid: u32) -> Option<&'static str> {
    (error.hresult() == Some(Hresult::FAIL) && may_be_forbidden(&error.details())).then(|| untraceable(pid)).flatten()
}

/// Whether the dump program's words are those of one that may not trace: it reads the memory first, then stops the threads. 3.1's words do not
/// reach us.
fn may_be_forbidden(details: &[SafeText]) -> bool {
    let forbidden = |line: &SafeText| line.contains("ptrace(") || line.contains("/mem) FAILED");
    details.is_empty() || details.iter().any(forbidden)
}

/// Has the target write a dump and looks whether it is there. `report` gets a sentence when nothing has been written for ten seconds.
///
/// # Errors
/// [`DumpError`]. Nothing is asked of the target where a file would be overwritten.
pub async fn dump(
    client: &Client,
    process: &Process,
    request: &DumpRequest,
    report: impl FnOnce(String) + Send,
) -> Result<Dumped, DumpError> {
    let path = PathBuf::from(request.path.as_str());
    let here = seen_here(process, &path);
    if is_there(&here) {
        return Err(DumpError::Exists(here));
    }
    let begun = Instant::now();
    let written = client.dump(request, DUMP_LIMIT);
    let reported = async {
        stalled(&here).await;
        report(advice_on_stall(process, client.dump_writer()));
        std::future::pending().await
    };
    tokio::select! { written = written => written, never = reported => never }
        .map_err(|error| DumpError::Exchange { advice: advice(&error, process.key.pid), error })?;
    let took = begun.elapsed();
    match here.metadata() {
        Ok(file) => Ok(Dumped { path, seen_here: here, bytes: Some(file.len()), took }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(DumpError::Missing(here)),
        Err(_) => Ok(Dumped { path, seen_here: here, bytes: None, took }),
    }
}

/// Returns when a file has not grown for [`STALL`], or is still not there.
async fn stalled(path: &Path) {
    let mut before = 0;
    loop {
        sleep(STALL).await;
        let now = path.symlink_metadata().map_or(0, |file| file.len());
        if std::mem::replace(&mut before, now) == now {
            return;
        }
    }
}

/// What may be done. A dump program that is killed while it attaches to a thread leaves the process stopped, which the second signal undoes.
fn advice_on_stall(process: &Process, writer: Option<u32>) -> String {
    let (name, pid) = (&process.name, process.key.pid);
    let advice = writer.map_or_else(String::new, |writer| {
        format!(
            ": process {writer}, which writes it, may still be reading the memory, or be stuck; `kill -9 {writer}; kill -CONT {pid}` ends it, and {name} continues"
        )
    });
    format!("no part of the dump of {name} has been written for {} s{advice}", STALL.as_secs())
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dump_program_says_that_may_not_trace() {
        for (said, forbidden) in [
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
            let details: Vec<SafeText> = said.into_iter().map(SafeText::new).collect();
            assert_eq!(may_be_forbidden(&details), forbidden, "{said:?}");
        }
    }
}
