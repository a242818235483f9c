//! When sessions with meters are stopped.

use super::*;
use crate::nettrace::{Metadata, NewEvent};

#[tokio::test]
async fn session_can_be_stopped_once_its_stream_shows_a_collection_of_meters() {
    let source = "System.Diagnostics.Metrics";
    let bench = bench(spec());
    let config = SessionConfig::new(Provider::new(source, 2, Level::Verbose).unwrap().into());
    let (session, _stream) = TraceSession::open(bench.client.clone(), &config, u64::MAX).await.unwrap();
    let mut encoder = Encoder::new(TraceHeader::default());
    let mut decoder = Decoder::new(Limits::LIVE);
    for (provider, name, is_stoppable) in [
        (source, "InitialInstrumentEnumerationComplete", false),
        (source, "CollectionStart", false),
        ("Another", "CollectionStop", false),
        (source, "CollectionStop", true),
    ] {
        let metadata = encoder.metadata(&Metadata { provider: provider.to_owned(), name: name.to_owned(), ..Metadata::default() });
        encoder.event(&NewEvent { metadata, ..NewEvent::default() });
        encoder.flush();
        decoder.feed(&encoder.take(), &mut Throughput::default()).unwrap();
        session.examine(&decoder);
        let stoppable = timeout(Duration::ZERO, bench.client.until_stoppable(session.id)).await;
        assert_eq!(stoppable.is_ok(), is_stoppable, "{provider} {name}");
    }
}

/// The recorded time includes the wait, in which events are still recorded; only after it a rundown is sent.
#[tokio::test]
async fn recording_that_waits_for_meters_at_its_stop_is_still_recorded() {
    let bench = bench(spec());
    let config = SessionConfig::new(Provider::new("System.Diagnostics.Metrics", 2, Level::Verbose).unwrap().into());
    let recorder = bench.start(Plan { config, ..bench.plan() }).await;
    tokio::time::pause();
    recorder.stop();
    until(&recorder, |recording| matches!(recording.phase, Phase::Stopping { bytes: 0, .. })).await;
    for seconds in 1..=3 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let waiting = until(&recorder, |recording| recording.elapsed >= Duration::from_secs(seconds)).await;
        assert!(matches!(waiting.phase, Phase::Stopping { bytes: 0, .. }), "{:?}", waiting.phase);
    }
    tokio::time::advance(Duration::from_secs(4)).await;
    tokio::time::resume();
    let recording = recorder.finished().await;
    assert!(outcome(&recording).complete && recording.elapsed >= Duration::from_secs(6), "{:?}", recording.elapsed);
}
