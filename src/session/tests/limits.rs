//! Limits that hold regardless of the other side's behavior.

use super::*;
use crate::model::Bytes;
use crate::nettrace::{Metadata, NewEvent};
use crate::session::listener::Listener;
use crate::session::trace_session::{Cut, Unfinished};
use tokio::time::sleep;

/// A program that sends a few megabytes a second.
pub(super) fn flood() -> Script {
    Script::Program(Rates { custom: 50_000.0, ..Rates::default() })
}

/// Records until some data has arrived, stops, and returns the outcome.
async fn stopped(fault: Fault, stop_limit: StopLimit) -> (Recording, Bench) {
    let bench = bench(Spec { fault: Some(fault), script: flood(), ..spec() });
    let recorder = bench.start(Plan { stop_limit, ..bench.plan() }).await;
    until(&recorder, |recording| recording.bytes > 100_000).await;
    let recording = stop_recording(recorder).await;
    (recording, bench)
}

#[track_caller]
pub(super) fn assert_incomplete(recording: &Recording, bench: &Bench, words: &str) {
    let Outcome { stopped_by, complete, file, trouble } = outcome(recording);
    assert_eq!((*stopped_by, *complete), (StoppedBy::Interrupt, false));
    assert!(trouble.as_ref().unwrap().contains(words), "{trouble:?}");
    let partial = bench.partial();
    assert_eq!(file.as_deref(), Some(partial.as_path()));
    assert_eq!((read(&partial).1, partial.metadata().unwrap().len()), (recording.events, recording.bytes));
}

/// The stop is not even accepted: the runtime's only server thread is busy.
#[tokio::test]
async fn a_stop_is_limited_by_time() {
    let limit = StopLimit { time: Duration::from_millis(300), bytes: u64::MAX, ..StopLimit::RUNDOWN };
    let (recording, bench) = stopped(Fault::NeverStop, limit).await;
    assert_incomplete(&recording, &bench, "the runtime did not end the session within 0.3 s");
}

#[tokio::test]
async fn recorded_time_ends_at_the_stop() {
    let stop_limit = StopLimit { time: Duration::from_secs(1), bytes: u64::MAX, ..StopLimit::RUNDOWN };
    let bench = bench(Spec { fault: Some(Fault::NeverStop), script: flood(), ..spec() });
    let recorder = bench.start(Plan { stop_limit, ..bench.plan() }).await;
    until(&recorder, |recording| recording.bytes > 100_000).await;
    let before = recorder.progress().borrow().elapsed;
    let recording = stop_recording(recorder).await;
    assert!(recording.elapsed < before + stop_limit.time, "{:?} of {before:?}", recording.elapsed);
}

#[tokio::test]
async fn a_stop_is_limited_by_bytes_whether_it_is_answered_or_not() {
    for fault in [Fault::IgnoreStop, Fault::NeverStop] {
        let limit = StopLimit { time: STEP_TIMEOUT, bytes: 300_000, ..StopLimit::RUNDOWN };
        let (recording, bench) = stopped(fault, limit).await;
        assert_incomplete(&recording, &bench, "the runtime kept sending after the stop, and the connection was closed after");
        // The data received before the stop is more than the loop above waited for, and less than the total.
        assert!(recording.bytes > 400_000 && recording.bytes < 30_000_000, "{}", recording.bytes);
        let trouble = outcome(&recording).trouble.as_deref().unwrap();
        assert!(!trouble.contains(&Bytes(recording.bytes).to_string()), "{trouble}: some were received before");
    }
}

/// Half of the free space remains, whatever the runtime sends.
#[test]
fn a_stop_is_limited_by_the_free_space() {
    let limit = StopLimit::RUNDOWN.within(1000);
    assert_eq!((limit.bytes, limit.buffered, limit.time), (250, 250, StopLimit::RUNDOWN.time));
    assert_eq!(StopLimit::RUNDOWN.within(u64::MAX).bytes, StopLimit::RUNDOWN.bytes);
}

#[tokio::test]
async fn a_process_that_has_exited_needs_no_stop() {
    let refusal = nowhere().stop_session(SessionId(1)).await.unwrap_err();
    let (stream, _writing) = test_stream::pair().await;
    let (session, _stream) = TraceSession::of(nowhere(), Session { id: SessionId(1), stream, downgrades: Vec::new() }, u64::MAX).unwrap();
    assert!(matches!(session.unfinished(Some(refusal)), Unfinished::Closed));
}

/// Sessions without a file have the same limits.
#[tokio::test]
async fn listener_stops_at_the_same_limits() {
    let limit = StopLimit { time: Duration::from_millis(300), bytes: u64::MAX, ..StopLimit::RUNDOWN };
    let bytes = StopLimit { time: STEP_TIMEOUT, bytes: 100_000, ..StopLimit::RUNDOWN };
    for (fault, script, most, limit, why) in [
        (Some(Fault::NeverStop), flood(), u64::MAX, limit, Cut::Time(limit.time)),
        (Some(Fault::IgnoreStop), flood(), u64::MAX, bytes, Cut::Rundown(0)),
        (Some(Fault::NeverStop), flood(), u64::MAX, bytes, Cut::Rundown(0)),
        (None, flood(), 200_000, bytes, Cut::Budget(200_000)),
        (
            None,
            Script::Canned(vec![0x55; 100_000].into()),
            u64::MAX,
            limit,
            Cut::Undecodable(crate::nettrace::DecodeError::NotNettrace(vec![0x55; 8])),
        ),
    ] {
        let case = format!("{fault:?} {why}");
        let ends_by_itself = matches!(why, Cut::Budget(_) | Cut::Undecodable(_));
        let bench = bench(Spec { fault, script, ..spec() });
        let mut listener = Listener::start(bench.client.clone(), &config(), Throughput::default(), most).await.unwrap();
        let until = async {
            while !(listener.is_over() || !ends_by_itself && listener.with_sink(|tally| tally.snapshot().events) > 0) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(STEP_TIMEOUT, until).await.expect(&case);
        let ended = timeout(STEP_TIMEOUT, listener.stop(limit)).await.expect(&case);
        match (ended, why) {
            (Err(Unfinished::Cut(Cut::Rundown(_))), Cut::Rundown(_)) => {}
            (Err(Unfinished::Cut(cut)), why) => assert_eq!(cut, why),
            other => panic!("{case}: {other:?}"),
        }
    }
}

/// The file was removed or replaced before it is renamed.
#[tokio::test]
async fn a_lost_file_is_reported() {
    for replace in [false, true] {
        let bench = bench(spec());
        let recorder = bench.start(bench.plan()).await;
        has_events(&recorder).await;
        let partial = bench.partial();
        std::fs::rename(&partial, bench.dir.path().join("elsewhere")).unwrap();
        if replace {
            std::fs::write(&partial, "another").unwrap();
        }
        let recording = stop_recording(recorder).await;
        let Outcome { stopped_by, complete, file, trouble } = outcome(&recording);
        assert_eq!((*stopped_by, *complete, file), (StoppedBy::Error, false, &None));
        assert!(trouble.as_ref().unwrap().contains("a.nettrace.partial was removed or replaced while it was written"), "{trouble:?}");
        assert!(!bench.file().exists());
    }
}

/// A stream of this many events of about 100 bytes.
fn stream(events: u64) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 77, ..TraceHeader::default() });
    let metadata = encoder.metadata(&Metadata { provider: "P".to_owned(), name: "A".to_owned(), ..Metadata::default() });
    for _ in 0..events {
        encoder.event(&NewEvent { metadata, payload: &[7; 100], ..NewEvent::default() });
    }
    encoder.end();
    encoder.take()
}

/// Reading continues at full speed while counting is blocked, and in the end everything is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn blocked_counting_does_not_stall_reading() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    // More than may be queued for analysis.
    let events = 800_000;
    let bytes = stream(events);
    let (pumped, mut writing, progress) = pump(File::options().read(true).write(true).create_new(true).open(&file).unwrap(), None).await;
    // Blocks the counting thread when it publishes.
    let held = progress.analysis.borrow();
    writing.write_all(&bytes).expect("the reader is gone");
    // All but the bytes in the socket buffer.
    while progress.totals().bytes < bytes.len() as u64 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(progress.totals().events < events);
    drop(held);
    // Bytes that are only in the file are counted without waiting for more.
    let counted = async {
        while progress.totals().events < events {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(STEP_TIMEOUT * 3, counted).await.expect("the rest waits for more bytes");
    drop(writing);
    let pumped = pumped.join().unwrap();
    assert!(pumped.complete && pumped.trouble.0.is_none(), "{pumped:?}");
    assert_eq!(progress.totals().events, events);
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    let unanalyzed = progress.unanalyzed.load(std::sync::atomic::Ordering::Relaxed);
    assert!(unanalyzed > events / 4 && unanalyzed < events, "{unanalyzed} of {events}");
}

/// The same for bytes that are in no file and arrive in small pieces: the reader of a flight recorder blocks until there is room, but
/// analysis is suspended before that.
#[test]
fn small_pieces_are_packed_in_the_backlog() {
    let bytes = stream(10_000);
    let backlog = super::super::backlog::Backlog::default();
    // Nothing is consumed, and nothing blocks.
    for piece in bytes.chunks(1000) {
        let mut buffer = backlog.buffer();
        buffer[..piece.len()].copy_from_slice(piece);
        backlog.add(buffer, piece.len());
    }
    assert_eq!(backlog.bytes(), bytes.len() as u64);
}
