//! Method names for a recording that was cut off before its rundown: the recorded process can still send them while it runs.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::cli::exit::{Exit, Failure};
use crate::cli::host::Host;
use crate::cli::interrupt::{interrupted, interruptible};
use crate::cli::target::{connect_running, display_name};
use crate::model::{Counted, Process, SafeText};
use crate::net::interrupts::Interrupts;
use crate::net::{RecordedError, RecordedProcess};
use crate::nettrace::{StreamTail, TraceHeader};
use crate::session::{RecordedFile, append_names};

const CANCELED: &str = "the repair was canceled; the incomplete file is removed";

/// The header of a recording, and its end.
struct Subject {
    header: TraceHeader,
    tail: StreamTail,
    largest_id: u32,
}

impl Subject {
    async fn of(file: &Path, interrupts: &mut Interrupts) -> Result<Self, Failure> {
        let file = file.to_owned();
        let read = move |wanted: &dyn Fn() -> bool| {
            let mut tail = StreamTail::default();
            let pass = RecordedFile::open(&file).and_then(|mut file| file.read_or_cancel(&mut tail, &mut |_| wanted()));
            let pass = pass.map_err(Failure::failed)?.ok_or_else(|| interrupted(CANCELED))?;
            Ok(Self { header: pass.header, tail, largest_id: pass.largest_metadata_id })
        };
        interruptible(interrupts, read).await?
    }

    /// Returns the recorded process, if it certainly still runs.
    fn process(&self, host: &Host) -> Result<Result<Process, RecordedError>, Failure> {
        let began_ns = TraceHeader { sync_ticks: 0, ..self.header }.nanoseconds_between(0, self.header.sync_ticks);
        let recorded = RecordedProcess { pid: self.header.process_id, began_ns, code: self.tail.addresses() };
        Ok(host.directory()?.recorded(&recorded))
    }
}

/// Requests the method names from the recorded process and appends them. Returns a message about the result.
pub(super) async fn append(host: &Host, path: &Path, file: &mut File, interrupts: &mut Interrupts) -> Result<String, Failure> {
    const WITHOUT: &str = "nothing was written; omit --names to write the file without method names";
    let subject = Subject::of(path, interrupts).await?;
    let process = subject.process(host)?.map_err(|error| {
        let exit = match &error {
            RecordedError::Denied { .. } => Exit::Denied,
            RecordedError::Ended(_) | RecordedError::Another { .. } => Exit::NoTarget,
            _ => Exit::Failed,
        };
        Failure::new(exit, anyhow::anyhow!("cannot resolve method names: {error}; {WITHOUT}"))
    })?;
    let pid = process.key.pid.to_string();
    let (found, client) = tokio::select! {
        found = connect_running(host, &pid) => found?,
        () = interrupts.next() => return Err(interrupted(CANCELED)),
    };
    if found.key != process.key {
        let ended = RecordedError::Ended(subject.header.process_id);
        return Err(Failure::new(Exit::NoTarget, anyhow::anyhow!("cannot resolve method names: {ended}; {WITHOUT}")));
    }
    let methods = tokio::select! {
        methods = append_names(client, file, subject.tail, subject.largest_id) => methods,
        // The session ends with its connection.
        () = interrupts.next() => return Err(interrupted(CANCELED)),
    };
    let methods = methods.map_err(|why| anyhow::anyhow!("{}: cannot resolve method names: {why}; {WITHOUT}", display_name(&found)))?;
    Ok(format!("appended {} from {}", Counted(methods, "method name"), display_name(&found)))
}

/// Returns a hint on how to add the names, if the recorded process certainly still runs.
///
/// # Errors
/// Only if a signal arrived.
pub(super) async fn names_hint(
    host: &Host,
    made: &Path,
    paths: &[PathBuf],
    interrupts: &mut Interrupts,
) -> Result<Option<String>, Failure> {
    let subject = match Subject::of(made, interrupts).await {
        Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
        subject => subject.ok(),
    };
    let Some(Ok(process)) = subject.and_then(|subject| subject.process(host).ok()) else { return Ok(None) };
    let command = match paths {
        [path] => format!("`dn-top salvage {} -o OTHER --names`", SafeText::from_path(path)),
        _ => "the same command with --names and another file after -o".to_owned(),
    };
    Ok(Some(format!(
        "{}, which was recorded, is still running: {command} requests the names from it, which takes as long as the rundown of a recording",
        display_name(&process)
    )))
}
