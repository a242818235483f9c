//! Reading a recorded file, in memory that does not depend on its size.

use std::cmp::Reverse;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::analysis::Live;
use crate::model::{EventRate, FileContents, Findings, Span, TraceFile};
use crate::nettrace::{Decoder, Ending, Limits, Sink};

/// One read takes at most this much.
const CHUNK: usize = 256 * 1024;

/// Takes nothing.
struct Nothing;

impl Sink for Nothing {}

/// What a file says of itself at its beginning.
///
/// # Errors
/// A sentence: there is no such file, or it is no trace.
pub fn trace_file(path: &Path) -> Result<TraceFile, String> {
    let failed = |error| format!("{} cannot be opened: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = vec![0; CHUNK];
    while decoder.trace().is_none() {
        let count = file.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            return Err(format!("{} ends before its header does: it holds no events", path.display()));
        }
        if let Err(error) = decoder.feed(&buffer[..count], &mut Nothing)
            && decoder.trace().is_none()
        {
            return Err(format!("{} cannot be read: {error}", path.display()));
        }
    }
    let header = decoder.trace();
    let started = header.and_then(|header| header.sync_utc).map_or(0, |time| time.unix_ms());
    Ok(TraceFile {
        path: path.to_owned(),
        bytes,
        process_id: header.map_or(0, |header| header.process_id),
        start_unix_ms: u64::try_from(started).unwrap_or(0),
    })
}

/// Reads a file, or what is in a part of it; events outside of that only tell where methods are. `go_on` is told how many bytes were read, and says
/// whether anybody still wants the rest: `None` where nobody does.
///
/// # Errors
/// A sentence.
pub fn read_trace(path: &Path, span: Option<Span>, mut go_on: impl FnMut(u64) -> bool) -> Result<Option<FileContents>, String> {
    let failed = |error| format!("{} cannot be read: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    let mut live = span.map_or_else(Live::default, |(from, to)| Live::within(from..=to)).keeping_events();
    let mut decoder = Decoder::new(Limits::default());
    let mut buffer = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        // The error comes again from finish, with how far the file makes sense.
        if count == 0 || decoder.feed(&buffer[..count], &mut live).is_err() {
            break;
        }
        bytes += count as u64;
        if !go_on(bytes) {
            return Ok(None);
        }
    }
    let ending = decoder.finish(&mut live);
    let trouble = match &ending {
        Ending::Complete => None,
        Ending::Truncated { whole_bytes, loose_bytes } => {
            Some(format!("cut off: {loose_bytes} bytes after the last whole block at byte {whole_bytes}"))
        }
        Ending::Broken { error, .. } => Some(format!("{error}; what comes before is counted")),
    };
    let at = span.map_or(live.newest(), |(_, to)| to);
    let duration = Duration::from_nanos(live.throughput().snapshot().duration_ns);
    let findings =
        Findings { snapshot: live.snapshot(at), events: events(&live, duration), recent: live.recent(), profile: live.profile() };
    Ok(Some(FileContents { findings: Arc::new(findings), bytes, newest: live.newest(), duration, complete: ending.is_complete(), trouble }))
}

/// The most frequent events, with their rates over all of the time.
fn events(live: &Live, duration: Duration) -> Vec<EventRate> {
    let mut counts = live.throughput().counts();
    counts.sort_by_key(|event| Reverse(event.count));
    counts.truncate(Findings::EVENTS);
    let seconds = duration.as_secs_f64().max(0.001);
    counts.into_iter().map(|event| EventRate { rate: event.count as f64 / seconds, event }).collect()
}
