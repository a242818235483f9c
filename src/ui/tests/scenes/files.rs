//! Recorded files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::app::test_app::{START_UNIX_MS, TestApp, options, walked_heap};
use crate::app::{Effect, Msg, Options};
use crate::model::{FileContents, FileKind, TraceFile};

use super::super::analysis::scripted;

/// An open recorded file after reading: fifty seconds of it.
pub(crate) fn opened(width: u16, height: u16) -> TestApp {
    let path = PathBuf::from("/srv/traces/OrderService_4242.nettrace.partial");
    let file = TraceFile { kind: FileKind::Trace, path, bytes: 182_000_000, process_id: 4242, start_unix_ms: START_UNIX_MS };
    let mut app = TestApp::with(Options { files: vec![file], ..options() }, width, height);
    app.send(Msg::Tick);
    let Some(Effect::ReadFile { ticket, .. }) = app.take_effects().pop() else { unreachable!("it is read at once") };
    let mut analysis = scripted().as_ref().clone();
    // A file does not have the CPU times of threads.
    analysis.profile.has_cpu_times = false;
    let contents = FileContents {
        analysis: Arc::new(analysis),
        bytes: 182_000_000,
        end: 50_000_000_000,
        duration: Duration::from_secs(42),
        complete: false,
        trouble: Some("cut off: 311 bytes after the last complete block at byte 181999689".into()),
    };
    app.send(Msg::FileRead { ticket, result: Ok(contents) });
    app
}

/// An open heap file after reading.
pub(super) fn heap(width: u16, height: u16) -> TestApp {
    let path = PathBuf::from("/srv/heaps/OrderService_4242_20261121_083121.gcdump");
    let file = TraceFile { kind: FileKind::Heap, path, bytes: 5_000_000, process_id: 0, start_unix_ms: START_UNIX_MS };
    let mut app = TestApp::with(Options { files: vec![file], ..options() }, width, height);
    app.send(Msg::Tick);
    let Some(Effect::ReadHeap { ticket, .. }) = app.take_effects().pop() else { unreachable!("it is read at once") };
    app.send(Msg::HeapWalked { ticket, result: Ok(walked_heap(1)) });
    app
}

/// The list of files that can be opened.
pub(super) fn picking(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = TestApp::populated(width, height);
    app.press("L");
    list(&mut app);
    app.press(keys);
    app
}

/// The list of files to compare an open one with.
pub(crate) fn comparing(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = opened(width, height);
    app.press("=");
    list(&mut app);
    app.press(keys);
    app
}

/// An open file compared with another: a recording half as long, with fewer collections and no timeouts.
pub(crate) fn compared(width: u16, height: u16, keys: &str) -> TestApp {
    let mut app = comparing(width, height, "↓↓⏎");
    let Some(Effect::ReadFile { ticket, .. }) = app.take_effects().pop() else { return app };
    let mut analysis = scripted().as_ref().clone();
    let snapshot = &mut analysis.snapshot;
    snapshot.recorded_ns /= 2;
    snapshot.totals.dropped = 0;
    snapshot.gc.collections = [3, 2, 1];
    snapshot.gc.pauses.total_ns /= 7;
    snapshot.exceptions.types.retain(|kind| !kind.name.contains("Timeout"));
    snapshot.counters.counters.clear();
    let duration = Duration::from_secs(21);
    let contents = FileContents { analysis: analysis.into(), bytes: 512, end: 25_000_000_000, duration, complete: true, trouble: None };
    app.send(Msg::FileRead { ticket, result: Ok(contents) });
    app.press(keys);
    app
}

/// Answers with the list of files.
fn list(app: &mut TestApp) {
    // In a terminal that is too small, keys have no effect.
    let Some(Effect::FindFiles { ticket, .. }) = app.take_effects().pop() else { return };
    let file = |name: &str, bytes, process_id, start_unix_ms| TraceFile {
        kind: FileKind::Trace,
        path: format!("/srv/traces/{name}").into(),
        bytes,
        process_id,
        start_unix_ms,
    };
    let files = vec![
        file("OrderService_4242_20261121_083021.nettrace", 182_000_000, 4242, START_UNIX_MS),
        file("evil\u{1b}[2J\u{202e}.nettrace", 512, 7, START_UNIX_MS - 86_400_000),
        file("no-clock.nettrace", 1_310_000, 0, 0),
    ];
    app.send(Msg::FilesFound { ticket, files });
}
