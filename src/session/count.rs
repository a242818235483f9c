//! Counting what is in a stream, beside the thread that writes it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::observe::{Observer, PACE};
use super::pump::Progress;
use crate::analysis::{EventFilter, Live, Throughput};
use crate::nettrace::{DecodeError, Decoder, Limits, Sink};

/// Chunks that may wait to be counted. Counting is faster than reading; this is for when its thread gets no processor for a moment.
const WAITING: usize = 16;

/// Hands chunks over to be counted and takes their memory back.
pub(super) struct Counter {
    /// A chunk, and how many of its bytes count.
    chunks: SyncSender<(Vec<u8>, usize)>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<Result<bool, DecodeError>>>,
}

impl Counter {
    /// Counts, and has what comes analysed where somebody looks at it.
    pub(super) fn start(progress: Arc<Progress>, analysed: bool) -> Self {
        let (chunks, incoming) = sync_channel::<(Vec<u8>, usize)>(WAITING);
        let (give_back, empty) = channel();
        let count = move || {
            let count = |tally: &Throughput| {
                let totals = tally.snapshot();
                progress.events.store(totals.events, Ordering::Relaxed);
                progress.dropped.store(totals.dropped, Ordering::Relaxed);
            };
            if !analysed {
                return drain(&incoming, &give_back, Throughput::default(), |tally: &mut Throughput, _over| count(tally));
            }
            let mut observer = Observer::default();
            drain(&incoming, &give_back, Live::default().keeping_events(), |live: &mut Live, over| {
                count(live.throughput());
                if let Some(symbols) = progress.names.take() {
                    live.add_symbols(&symbols);
                }
                if let Some(filter) = progress.lens.take() {
                    live.set_event_filter(EventFilter::new(&filter));
                }
                if let Some(findings) = observer.look(live, over) {
                    progress.findings.send_replace(Some(Arc::new(findings)));
                }
            })
        };
        // Without the thread the chunks' receiver is gone: nothing is counted, everything is written.
        let thread = std::thread::Builder::new().name("count".to_owned()).spawn(count).ok();
        Self { chunks, empty, thread }
    }

    /// Memory for the next chunk of this size.
    pub(super) fn buffer(&mut self, size: usize) -> Vec<u8> {
        self.empty.try_recv().unwrap_or_else(|_| vec![0; size])
    }

    /// Has the first `length` bytes of a chunk counted. Waits where too many wait already.
    pub(super) fn count(&mut self, chunk: Vec<u8>, length: usize) {
        // Fails only where the thread is gone, which `finish` tells.
        let _ = self.chunks.send((chunk, length));
    }

    /// Whether the stream came to its proper end, or why that cannot be said.
    pub(super) fn finish(self) -> Result<bool, String> {
        drop(self.chunks);
        match self.thread.map(JoinHandle::join) {
            Some(Ok(Ok(complete))) => Ok(complete),
            Some(Ok(Err(error))) => Err(format!("the stream stopped making sense ({error}); its bytes are kept but no longer counted")),
            Some(Err(_)) | None => Err("counting failed inside dn-top, please report it; all bytes are kept".to_owned()),
        }
    }
}

/// Feeds chunks to a decoder until there are no more, and says whether the stream came to its proper end. `look` is called after each, while none
/// come, and when it is over.
fn drain<S: Sink>(
    incoming: &Receiver<(Vec<u8>, usize)>,
    give_back: &Sender<Vec<u8>>,
    mut sink: S,
    mut look: impl FnMut(&mut S, bool),
) -> Result<bool, DecodeError> {
    let mut decoder = Decoder::new(Limits::default());
    let mut outcome = Ok(());
    loop {
        match incoming.recv_timeout(PACE) {
            Ok((chunk, length)) => {
                if outcome.is_ok() {
                    outcome = decoder.feed(&chunk[..length], &mut sink);
                }
                // Once the pump has read its last there is nobody to give it back to.
                let _ = give_back.send(chunk);
            }
            // Rates fall while nothing comes.
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        look(&mut sink, false);
    }
    let complete = decoder.finish(&mut sink).is_complete();
    look(&mut sink, true);
    outcome.map(|()| complete)
}
