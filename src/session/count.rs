//! Counting what is in a stream, beside the thread that writes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::observe::{Observer, PACE};
use super::progress::Progress;
use super::segments::Segments;
use crate::analysis::{EventFilter, Live, Throughput, Watch};
use crate::clr::Trigger;
use crate::model::Kept;
use crate::nettrace::{Decoder, Event, Keep, Limits, Loss, Metadata, Recent, Sink, TraceHeader};

/// Chunks that may wait to be counted. Counting is faster than reading; this is for when its thread gets no processor for a moment.
const WAITING: usize = 16;

/// What is done with a stream besides being counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Counting {
    /// It is analysed, for somebody who looks at it.
    pub(super) analysed: bool,
    /// An event is waited for.
    pub(super) stop_on: Option<Trigger>,
    /// Its newest part is kept, in files beside this one.
    pub(super) keep: Option<(Keep, PathBuf)>,
}

/// What of a stream is waited for, and kept.
#[derive(Debug)]
struct Side {
    watch: Watch,
    recent: Option<Recent>,
    /// By metadata index: whether it is of the rundown, which comes when a session is stopped, and of which nothing may go.
    rundown: Vec<bool>,
    progress: Arc<Progress>,
}

impl Sink for Side {
    fn trace(&mut self, header: &TraceHeader) {
        if let Some(recent) = &mut self.recent {
            recent.trace(header);
        }
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.watch.metadata(metadata);
        self.rundown.push(metadata.provider.ends_with("Rundown"));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.watch.event(event);
        if let Some(recent) = &mut self.recent {
            if self.rundown.get(event.metadata.index as usize) == Some(&true) && self.progress.stopping.load(Ordering::Relaxed) {
                recent.freeze();
            }
            recent.event(event);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if let Some(recent) = &mut self.recent {
            recent.loss(loss);
        }
    }
}

impl Side {
    /// Tells what there is to tell.
    fn look(&self) {
        let progress = &self.progress;
        if self.watch.has_come() {
            progress.came.notify_one();
        }
        if let Some(recent) = &self.recent {
            let (bytes, span) = recent.kept();
            progress.kept.send_replace(Some(Kept { bytes, span }));
        }
    }
}

/// What is left of a stream that has ended.
#[derive(Debug)]
pub(super) struct Counted {
    /// Whether that was its proper end.
    pub(super) complete: bool,
    /// Why that cannot be said, in words.
    pub(super) trouble: Option<String>,
    /// What was kept of it.
    pub(super) recent: Option<Recent>,
}

/// Hands chunks over to be counted and takes their memory back.
pub(super) struct Counter {
    /// A chunk, and how many of its bytes count.
    chunks: SyncSender<(Vec<u8>, usize)>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<Counted>>,
}

impl Counter {
    /// Counts, and does the rest of what is wanted.
    pub(super) fn start(progress: Arc<Progress>, counting: Counting) -> Self {
        let (chunks, incoming) = sync_channel::<(Vec<u8>, usize)>(WAITING);
        let (give_back, empty) = channel();
        let watch = Watch::new(counting.stop_on);
        let recent = counting.keep.map(|(keep, file)| Recent::new(keep, Box::new(Segments::beside(&file))));
        let side = Side { watch, recent, rundown: vec![false], progress: progress.clone() };
        let count = move || {
            let count = |tally: &Throughput| {
                let totals = tally.snapshot();
                progress.events.store(totals.events, Ordering::Relaxed);
                progress.dropped.store(totals.dropped, Ordering::Relaxed);
            };
            if !counting.analysed {
                return drain(&incoming, &give_back, (Throughput::default(), side), |(tally, side), _over| {
                    count(tally);
                    side.look();
                });
            }
            let mut observer = Observer::default();
            drain(&incoming, &give_back, (Live::default().keeping_events(), side), |(live, side), over| {
                count(live.throughput());
                side.look();
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

    /// What came of it, once all is counted.
    pub(super) fn finish(self) -> Counted {
        drop(self.chunks);
        match self.thread.map(JoinHandle::join) {
            Some(Ok(counted)) => counted,
            Some(Err(_)) | None => {
                let words = "counting failed inside dn-top, please report it; all bytes are kept";
                Counted { complete: false, trouble: Some(words.to_owned()), recent: None }
            }
        }
    }
}

/// Feeds chunks to a decoder until there are no more, and says whether the stream came to its proper end. `look` is called after each, while none
/// come, and when it is over.
fn drain<S: Sink>(
    incoming: &Receiver<(Vec<u8>, usize)>,
    give_back: &Sender<Vec<u8>>,
    mut sink: (S, Side),
    mut look: impl FnMut(&mut (S, Side), bool),
) -> Counted {
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
    let words = |error| format!("the stream stopped making sense ({error}); its bytes are kept but no longer counted");
    Counted { complete: complete && outcome.is_ok(), trouble: outcome.err().map(words), recent: sink.1.recent }
}
