//! From the socket to the tracing service: pump for the events of a recording that includes the kernel's scheduling. They are counted and
//! analyzed in the same way as events written to a file.

use std::sync::Arc;

use super::stream::{Converter, Inlet, ThreadNames};
use crate::export::LiveProcess;
use crate::model::Count;
use crate::net::stream::BlockingStream;
use crate::session::count::{Counted, Counter, Counting};
use crate::session::progress::Progress;
use crate::session::pump::{FirstError, Pumped, read_all};
use crate::session::trace_session::{EventStream, TraceSession};

/// Reads until the stream ends, and converts everything to packets.
pub(in crate::session) struct ServicePump {
    pub(in crate::session) session: Arc<TraceSession>,
    pub(in crate::session) process: LiveProcess,
    pub(in crate::session) names: ThreadNames,
    pub(in crate::session) inlet: Inlet,
    pub(in crate::session) counting: Counting,
    pub(in crate::session) progress: Arc<Progress>,
}

impl ServicePump {
    /// Blocks until the end of the stream.
    pub(in crate::session) fn run(self, stream: EventStream<BlockingStream>) -> Pumped {
        let Self { session, process, names, inlet, counting, progress } = self;
        let counter = Counter::start(progress, counting, None, Some(session.clone()));
        let mut converter = Converter::new(process, names, inlet);
        let (mut trouble, mut decoded) = (FirstError::default(), true);
        read_all(stream, &counter, &mut trouble, |bytes, _| {
            // Decoding errors are reported by the counter.
            decoded = decoded && converter.feed(bytes).is_ok();
            bytes.len()
        });
        let packets = converter.finish(&session);
        let Counted { complete, trouble: uncounted, .. } = counter.finish();
        trouble.add(uncounted);
        let broken = trouble.0.is_some();
        if packets.dropped > 0 {
            trouble.note(|| format!("{} packets were dropped: the tracing service did not accept them in time", Count(packets.dropped)));
        }
        Pumped { complete: complete && decoded, broken, trouble }
    }
}
