//! Exports of recorded files.

use std::collections::HashSet;

use tokio::sync::mpsc;

use crate::app::{ExportRequest, JobResult, Msg, Ticket};
use crate::model::is_partial_file;
use crate::session::{self, Destination, ExportOptions, ExportPart};

/// Exports a file and reports its progress. Gives up when the receiver is dropped.
pub(super) fn export(request: ExportRequest, ticket: Ticket, inbox: &mpsc::Sender<Msg>) -> Result<JobResult, String> {
    let ExportRequest { source, destination, format, span } = request;
    let mut reported = 0;
    let mut on_progress = |bytes: u64, total: u64| {
        // A growing file may have more bytes than `total` by now.
        let percent = u8::try_from(u128::from(bytes) * 100 / u128::from(total.max(1))).unwrap_or(100).min(99);
        if percent != reported {
            reported = percent;
            // If the loop is busy, the next report suffices.
            let _ = inbox.try_send(Msg::JobProgress { ticket, percent });
        }
        !inbox.is_closed()
    };
    let grows = is_partial_file(&source);
    let (first, last) = span.unwrap_or((i64::MIN, i64::MAX));
    let part = ExportPart { window: first..=last, threads: HashSet::new() };
    let options = ExportOptions::new(format, part);
    let file = Destination::File(destination.clone());
    let passes = session::export(&[source], &options, &file, &mut on_progress).map_err(|error| error.to_string())?;
    let bytes = destination.metadata().ok().map(|facts| facts.len());
    // A recording in progress has no end yet.
    let note = passes.iter().find_map(|exported| exported.pass.trouble()).filter(|_| !grows);
    let note = note.or_else(|| passes.iter().find_map(|exported| exported.finished.note()));
    Ok(JobResult { files: vec![destination.to_string_lossy().into_owned().into()], bytes, note: note.map(Into::into) })
}
