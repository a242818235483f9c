//! Recordings that are analyzed while they are recorded.

use super::*;
use crate::model::MethodNameResolution;
use crate::nettrace::{Metadata, NewEvent};

/// The final snapshot matches the contents of the file, with names from the rundown.
#[tokio::test]
async fn events_are_analyzed_while_recording() {
    let bench = bench(spec());
    let recorder = bench.start(bench.plan()).await;
    until(&recorder, |recording| recording.analysis.as_ref().is_some_and(|analysis| analysis.snapshot.totals.events > 0)).await;
    let recording = stop_recording(recorder).await;
    let analysis = recording.analysis.as_deref().unwrap();
    assert_eq!(analysis.snapshot.totals.events, recording.events);
    assert_eq!(analysis.events.iter().map(|rate| rate.event.count).sum::<u64>(), recording.events);
    assert!(analysis.events.is_sorted_by(|a, b| a.event.count >= b.event.count));

    let recorder = bench.start(Plan { analyzed: false, file: bench.dir.path().join("b.nettrace"), ..bench.plan() }).await;
    until(&recorder, |recording| recording.events > 10).await;
    assert_eq!(stop_recording(recorder).await.analysis, None);
}

/// Names missing in a session that only samples are obtained from a second session, and nothing of that is in the file.
#[tokio::test]
async fn names_of_older_methods_are_resolved_while_recording() {
    let bench = bench(spec());
    let sampler = Provider::new("Microsoft-DotNETCore-SampleProfiler", 0, Level::Informational).unwrap();
    let plan = Plan { config: SessionConfig::new(sampler.into()), ..bench.plan() };
    let recorder = bench.start(plan).await;
    let named = |recording: &Recording| {
        let samples = |analysis: &Arc<RecordingAnalysis>| {
            let counts = analysis.profile.count(SampleFilter::ALL);
            counts.samples().all() > 0 && counts.unresolved() == 0
        };
        recording.phase == Phase::Recording && recording.analysis.as_ref().is_some_and(samples)
    };
    let recording = until(&recorder, named).await;
    assert!(matches!(recording.names, MethodNameResolution::Found { methods: 8, .. }), "{:?}", recording.names);
    let recording = stop_recording(recorder).await;
    assert!(outcome(&recording).complete);
    assert_eq!(read(&bench.file()), (Ending::Complete, recording.events, recording.bytes));

    // Throw sites are named without samples.
    let recorder = bench.start(Plan { file: bench.dir.path().join("b.nettrace"), ..bench.plan() }).await;
    let has_named_site = |recording: &Recording| {
        let recent = recording.analysis.iter().flat_map(|analysis| &analysis.snapshot.exceptions.recent);
        let is_found = matches!(recording.names, MethodNameResolution::Found { methods: 8, .. });
        is_found && recent.flat_map(|exception| &exception.frames).any(|frame| !frame.starts_with("0x"))
    };
    until(&recorder, has_named_site).await;
    stop_recording(recorder).await;

    // If nothing has a stack, no names are requested.
    let own = Provider::new("Demo-Web", u64::MAX, Level::Verbose).unwrap();
    let plan = Plan { config: SessionConfig::new(own.into()), file: bench.dir.path().join("c.nettrace"), ..bench.plan() };
    let recorder = bench.start(plan).await;
    until(&recorder, |recording| recording.events > 0 && recording.elapsed.as_secs() >= 3).await;
    assert_eq!(stop_recording(recorder).await.names, MethodNameResolution::NotStarted);
}

/// Single events can be selected during the recording.
#[tokio::test]
async fn event_filter_selects_the_recent_events() {
    let bench = bench(spec());
    let plan = bench.plan();
    let filter = plan.event_filter.clone();
    let recorder = bench.start(plan).await;
    let kinds = |recording: &Recording| {
        let events = recording.analysis.as_ref().map(|analysis| analysis.recent.events.as_slice()).unwrap_or_default();
        events.iter().map(|(event, _)| event.kind.provider.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    until(&recorder, |recording| kinds(recording).len() > 1).await;
    filter.put("demo-web item".to_owned());
    let chosen = |recording: &Recording| kinds(recording).into_iter().eq(["Demo-Web".to_owned()]);
    let recording = until(&recorder, chosen).await;
    let (event, stack) = &recording.analysis.as_ref().unwrap().recent.events[0];
    let names: Vec<_> = event.payload.fields().map(|(name, _)| name).collect();
    assert_eq!((event.kind.name.as_str(), &names[..], stack.len()), ("Item", &["id", "name", "value"][..], 3));
    stop_recording(recorder).await;
}

#[tokio::test]
async fn losses_are_shown_in_the_time_in_which_they_become_known() {
    let mut encoder = Encoder::new(TraceHeader { process_id: 77, ..TraceHeader::default() });
    let metadata = encoder.metadata(&Metadata { provider: "P".to_owned(), ..Metadata::default() });
    encoder.event(&NewEvent { metadata, ..NewEvent::default() });
    encoder.add_loss(0, 5);
    encoder.event(&NewEvent { metadata, ..NewEvent::default() });
    encoder.flush();
    let bench = bench(Spec { script: Script::Canned(encoder.take().into()), ..spec() });
    let recorder = bench.start(bench.plan()).await;
    let lossy = |recording: &Recording| recording.history.iter().filter(|rate| rate.dropped).count();
    let recording = until(&recorder, |recording| lossy(recording) > 0 && !recording.history[recording.history.len() - 1].dropped).await;
    assert_eq!((recording.dropped, lossy(&recording)), (5, 1));
}
