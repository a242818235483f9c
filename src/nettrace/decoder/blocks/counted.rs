//! Event blocks: uses precomputed counts if possible, otherwise decodes the block.

use super::super::super::counts::{BlockCounts, Counts, Run};
use super::super::super::event::block_header;
use super::super::super::{Limit, Loss, Sink, ThreadId};
use super::{Blocks, Damage};
use crate::wire::Reader;

impl Blocks {
    pub(super) fn events(&mut self, block: &[u8], at: u64, sink: &mut impl Sink) -> Damage {
        let mut reader = Reader::new(block);
        let Some(compressed) = block_header(&mut reader) else { return Some(0) };
        let damage = match (self.context.v6, compressed) {
            _ if self.counted(at, sink) => None,
            (false, true) => self.rows::<false, true>(&mut reader, at, sink),
            (true, true) => self.rows::<true, true>(&mut reader, at, sink),
            (false, false) => self.rows::<false, false>(&mut reader, at, sink),
            (true, false) => self.rows::<true, false>(&mut reader, at, sink),
        };
        if self.sequences.has_overflowed() {
            self.report_limit(Limit::Threads, at, sink);
        }
        damage
    }

    /// Uses the precomputed counts of a block if all its references are defined and the sink accepts them.
    fn counted(&mut self, at: u64, sink: &mut impl Sink) -> bool {
        while self.counted.next_if(|counts| counts.at < at).is_some() {}
        let Some(mut counts) = self.counted.next_if(|counts| counts.at == at) else { return false };
        let Self { context, sequences, .. } = self;
        let thread = |thread: u64| if context.v6 { context.threads.get(thread) } else { Some(ThreadId::of(thread)) };
        for kind in &mut counts.kinds {
            kind.metadata = context.metadata.get(kind.metadata).index;
        }
        let is_known = counts.kinds.iter().all(|kind| kind.metadata != 0)
            && counts.stacks.is_none_or(|(first, last)| context.stacks.has_all(first, last))
            && counts.runs.iter().all(|run| thread(run.thread).is_some());
        let Some(threads) = counts.threads.iter().map(|index| thread(*index)).collect::<Option<Vec<_>>>() else { return false };
        let BlockCounts { kinds, oldest, newest, .. } = &counts;
        if self.orders || !is_known || !sink.counted(&Counts { kinds, threads: &threads, oldest: *oldest, newest: *newest }) {
            return false;
        }
        for Run { thread: index, first, last, timestamp } in counts.runs {
            if let (Some((count, kind)), Some(capture_thread)) = (sequences.events(index, first, last), thread(index)) {
                let kind = kind.of(context.v6, capture_thread);
                sink.loss(&Loss { count, kind, capture_thread, timestamp });
            }
        }
        self.now = counts.last;
        true
    }
}
