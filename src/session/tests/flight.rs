//! Flight recorders: what is kept is counted and analyzed once more when it is saved.

use std::sync::atomic::Ordering;

use super::*;
use crate::analysis::{NativeFunction, Origin, Symbols};
use crate::nettrace::{Metadata, NewEvent};

const RARE: u64 = 10;
const COMMON: u64 = 1000;
const SAMPLES: u64 = 3;

/// A stream without end: rare events, many common ones, and samples of a method that is not in it.
fn stream() -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 77, ..TraceHeader::default() });
    let named = |name: &str, event_id| Metadata { provider: "P".to_owned(), event_id, name: name.to_owned(), ..Metadata::default() };
    let sample = Metadata { provider: "Microsoft-DotNETCore-SampleProfiler".to_owned(), ..Metadata::default() };
    let kinds = [(named("Rare", 1), RARE), (named("Common", 2), COMMON), (sample, SAMPLES)];
    let stack = encoder.stack(&[0x1010]);
    let mut timestamp = 0;
    for (kind, count) in kinds {
        let metadata = encoder.metadata(&kind);
        for _ in 0..count {
            // As many as are kept for display.
            timestamp += 4_000_000;
            encoder.event(&NewEvent {
                metadata,
                timestamp,
                thread: 1,
                capture_thread: 1,
                stack,
                payload: &[2, 0, 0, 0],
                ..NewEvent::default()
            });
        }
    }
    encoder.flush();
    encoder.take()
}

/// Passes the stream to a flight recorder after `prepare`, and waits until it is saved. Returns the folder and its state.
async fn saved(prepare: impl FnOnce(&Progress)) -> (tempfile::TempDir, Arc<Progress>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let keep = RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None };
    let (pumped, mut writing, progress) = pump(file, Some((keep, path))).await;
    prepare(&progress);
    writing.write_all(&stream()).unwrap();
    drop(writing);
    // On Windows, the runtime of the test must run for the stream to be read.
    let pumped = tokio::task::spawn_blocking(|| pumped.join().unwrap()).await.unwrap();
    assert!(!pumped.complete && pumped.trouble.0.is_none(), "{pumped:?}");
    (folder, progress)
}

#[tokio::test]
async fn saved_events_are_analyzed_with_the_same_names_and_filter() {
    let mut symbols = Symbols::default();
    let origin = Origin::Managed;
    symbols.add_native(&NativeFunction { address: 0x1010, start: 0x1000, size: 0x100, name: "App.Run", image: "", origin });
    let (_folder, progress) = saved(|progress| {
        progress.names.put(symbols);
        progress.event_filter.put("rare".to_owned());
    })
    .await;
    let analysis = progress.analysis.borrow().clone().unwrap();
    assert_eq!(analysis.snapshot.totals.events, RARE + COMMON + SAMPLES);
    let names: Vec<_> = analysis.recent.events.iter().map(|(event, _)| event.kind.name.as_str()).collect();
    assert_eq!(names, ["Rare"; RARE as usize]);
    let counts = analysis.profile.count(SampleFilter::ALL);
    assert!(counts.samples().all() > 0 && counts.unresolved() == 0, "{}", counts.unresolved());
}

#[tokio::test]
async fn saved_events_are_counted_even_if_the_recording_is_abandoned() {
    let (folder, progress) = saved(|progress| progress.abandoned.store(true, Ordering::Relaxed)).await;
    let (_, events, bytes) = read(&folder.path().join("a"));
    let totals = progress.totals();
    assert_eq!((totals.events, totals.bytes, events), (RARE + COMMON + SAMPLES, bytes, totals.events));
}

/// The final totals of a flight recorder match its file, which includes the rundown.
#[tokio::test]
async fn flight_recorder_writes_its_buffer_on_stop() {
    let rates = Rates { gc: 2.0, exception: 5.0, contention: 5.0, jit: 5.0, sample: 200.0, custom: 20_000.0, waves: 0.0 };
    let bench = bench(Spec { script: Script::Program(rates), ..spec() });
    let keep = Some(RetentionLimits { bytes: RetentionLimits::MIN_BYTES, span: None });
    let recorder = bench.start(Plan { keep, ..bench.plan() }).await;
    until(&recorder, |recording| recording.bytes > 3 * RetentionLimits::MIN_BYTES).await;
    let partial = bench.partial();
    assert_eq!(partial.metadata().unwrap().len(), 0, "it is written at the end");
    let segments = || {
        let files = std::fs::read_dir(bench.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| file.to_str().is_some_and(|file| file.contains("a.nettrace.partial.0"))).collect::<Vec<_>>()
    };
    assert!((8..=20).contains(&segments().len()), "{:?}", segments());
    let progress = recorder.progress();
    let kept = progress.borrow().kept.clone().unwrap();
    assert!(kept.bytes < 2 * RetentionLimits::MIN_BYTES && kept.span > Duration::ZERO, "{kept:?}");
    let seen = progress.borrow().events;
    let recording = stop_recording(recorder).await;
    assert_eq!(*outcome(&recording), Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some(bench.file()), trouble: None });
    assert_eq!(read(&bench.file()), (Ending::Complete, recording.events, recording.bytes));
    assert!(recording.events < seen && recording.bytes < 2 * RetentionLimits::MIN_BYTES, "{recording:?}");
    assert!(segments().is_empty(), "{:?}", segments());
    let analysis = recording.analysis.unwrap();
    assert!(analysis.events.iter().any(|rate| rate.event.provider.ends_with("Rundown")), "the names of methods are in it");
}
