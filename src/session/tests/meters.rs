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
