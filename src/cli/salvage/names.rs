//! Method names for a recording that was cut off before its rundown: the recorded process can still send them while it runs.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::cli::exit::{Exit, Failure};
use crate::cli::host::Host;
use crate::cli::target::{connect_running, display_name};
use crate::model::{Counted, Process, SafeText};
use crate::net::{RecordedError, RecordedProcess};
use crate::nettrace::{StreamTail, TraceHeader};
use crate::session::{RecordedFile, append_names};

/// The header of a recording, and its end.
struct Subject {
    header: TraceHeader,
    tail: StreamTail,
    largest_id: u32,
}

impl Subject {
    fn of(file: &Path) -> Result<Self, Failure> {
        let mut tail = StreamTail::default();
        let pass = RecordedFile::open(file).and_then(|mut file| file.read(&mut tail)).map_err(Failure::failed)?;
        Ok(Self { header: pass.header, tail, largest_id: pass.largest_metadata_id })
    }

    /// Returns the recorded process, if it certainly still runs.
    fn process(&self, host: &Host) -> Result<Result<Process, RecordedError>, Failure> {
        let began_ns = TraceHeader { sync_ticks: 0, ..self.header }.nanoseconds_between(0, self.header.sync_ticks);
        let recorded = RecordedProcess { pid: self.header.process_id, began_ns, code: self.tail.addresses() };
        Ok(host.directory()?.recorded(&recorded))
    }
}

/// Requests the method names from the recorded process and appends them. Returns a message about the result.
pub(super) async fn append(host: &Host, path: &Path, file: &mut File) -> Result<String, Failure> {
    const WITHOUT: &str = "nothing was written; omit --names to write the file without method names";
    let subject = Subject::of(path)?;
    let process = subject.process(host)?.map_err(|error| {
        let exit = match &error {
            RecordedError::Denied { .. } => Exit::Denied,
            RecordedError::Ended(_) | RecordedError::Another { .. } => Exit::NoTarget,
            _ => Exit::Failed,
        };
        Failure::new(exit, anyhow::anyhow!("cannot resolve method names: {error}; {WITHOUT}"))
    })?;
    let (found, client) = connect_running(host, &process.key.pid.to_string()).await?;
    if found.key != process.key {
        let ended = RecordedError::Ended(subject.header.process_id);
        return Err(Failure::new(Exit::NoTarget, anyhow::anyhow!("cannot resolve method names: {ended}; {WITHOUT}")));
    }
    let methods = append_names(client, file, subject.tail, subject.largest_id).await;
    let methods = methods.map_err(|why| anyhow::anyhow!("{}: cannot resolve method names: {why}; {WITHOUT}", display_name(&found)))?;
    Ok(format!("appended {} from {}", Counted(methods, "method name"), display_name(&found)))
}

/// Returns a hint on how to add the names, if the recorded process certainly still runs.
pub(super) fn names_hint(host: &Host, made: &Path, paths: &[PathBuf]) -> Option<String> {
    let process = Subject::of(made).and_then(|subject| subject.process(host)).ok()?.ok()?;
    let command = match paths {
        [path] => format!("`dn-top salvage {} -o OTHER --names`", SafeText::from_path(path)),
        _ => "the same command with --names and another file after -o".to_owned(),
    };
    Some(format!(
        "{}, which was recorded, is still running: {command} requests the names from it, which takes as long as the rundown of a recording",
        display_name(&process)
    ))
}
