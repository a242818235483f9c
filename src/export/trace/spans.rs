//! Samples of a thread as nested calls: a frame that stays on the stack from one sample to the next is one call.

use std::collections::BTreeMap;
use std::io;

use crate::nettrace::ThreadId;

use super::stacks::{FrameId, NodeId, Stacks};
use super::writer::Sample;

/// The open calls of all threads, in an order that does not depend on a hash seed.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<ThreadId, Spans>);

impl Calls {
    /// Adds the next sample of a thread, and reports the calls that ended and began, each with its thread and time.
    pub(super) fn sample(
        &mut self,
        sample: &Sample,
        stacks: &Stacks,
        mut edge: impl FnMut(ThreadId, i64, Edge) -> io::Result<()>,
    ) -> io::Result<()> {
        let Sample { thread, at, duration, node, .. } = *sample;
        let spans = self.0.entry(thread).or_default();
        if spans.extend(at, duration, node) { Ok(()) } else { spans.sample(at, duration, node, stacks, |at, call| edge(thread, at, call)) }
    }

    /// Ends all calls, and reports them.
    pub(super) fn end(self, mut edge: impl FnMut(ThreadId, i64, Edge) -> io::Result<()>) -> io::Result<()> {
        self.0.into_iter().try_for_each(|(thread, mut spans)| spans.end(|at, call| edge(thread, at, call)))
    }
}

/// The open calls of a thread.
#[derive(Debug, Default)]
struct Spans {
    open: Vec<FrameId>,
    /// Node of the innermost open call.
    node: NodeId,
    path: Vec<FrameId>,
    /// Time of the last sample.
    until: i64,
}

/// The begin or end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Begin(FrameId),
    End(FrameId),
}

impl Spans {
    /// Extends the open calls by the next sample if that begins and ends no call: most threads wait most of the time. Returns whether it does so.
    fn extend(&mut self, at: i64, duration: i64, node: NodeId) -> bool {
        let goes_on = node == self.node && !self.ends_before(at.saturating_sub(duration), duration);
        if goes_on {
            self.until = self.until.max(at);
        }
        goes_on
    }

    /// Whether there is time without samples before this one.
    fn ends_before(&self, start: i64, duration: i64) -> bool {
        // A round of the sampler takes time itself, and the position of a thread within it varies.
        start > self.until.saturating_add(duration / 2)
    }

    /// Adds the next sample, which represents the time before it, and reports the calls that ended and began: ends first, innermost first. If
    /// samples overlap in time, the first one counts.
    fn sample(
        &mut self,
        at: i64,
        duration: i64,
        node: NodeId,
        stacks: &Stacks,
        mut edge: impl FnMut(i64, Edge) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut start = at.saturating_sub(duration);
        if self.ends_before(start, duration) {
            self.end(&mut edge)?;
        } else {
            start = self.until;
        }
        stacks.path(node, &mut self.path);
        let same = self.open.iter().zip(&self.path).take_while(|(open, next)| open == next).count();
        for frame in self.open.drain(same..).rev() {
            edge(start, Edge::End(frame))?;
        }
        for frame in &self.path[same..] {
            edge(start, Edge::Begin(*frame))?;
        }
        self.open.extend_from_slice(&self.path[same..]);
        (self.node, self.until) = (node, at.max(start));
        Ok(())
    }

    /// Ends all calls.
    fn end(&mut self, mut edge: impl FnMut(i64, Edge) -> io::Result<()>) -> io::Result<()> {
        let until = self.until;
        self.node = 0;
        self.open.drain(..).rev().try_for_each(|frame| edge(until, Edge::End(frame)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::{Images, Symbols};
    use crate::nettrace::{Decoder, Encoder, Event, Limits, Metadata, NewEvent, Sink, TraceHeader};

    struct Nodes(Stacks, Vec<NodeId>);

    impl Sink for Nodes {
        fn event(&mut self, event: &Event<'_>) {
            self.1.push(self.0.add(event));
        }
    }

    /// Returns the nodes of no stack, a method, another that it calls, and a third one.
    fn nodes() -> Nodes {
        let mut encoder = Encoder::new(TraceHeader { pointer_size: 8, ..TraceHeader::default() });
        let metadata = encoder.metadata(&Metadata::default());
        for frames in [&[][..], &[0x1000], &[0x2000, 0x1001], &[0x3000]] {
            let stack = encoder.stack(frames);
            encoder.event(&NewEvent { metadata, stack, ..NewEvent::default() });
        }
        encoder.end();
        let mut nodes = Nodes(Stacks::new(Symbols::default(), Images::default()), Vec::new());
        Decoder::new(Limits::default()).feed(&encoder.take(), &mut nodes).unwrap();
        nodes
    }

    /// Returns the calls that begin and end with these samples: time, duration and number of the stack of each. Before each, they may be interrupted.
    fn edges(samples: &[(i64, i64, usize, bool)], extends: bool) -> Vec<(i64, bool, FrameId)> {
        let (Nodes(stacks, nodes), mut spans, mut edges) = (nodes(), Spans::default(), Vec::new());
        let mut add = |at: i64, edge: Edge| {
            edges.push(match edge {
                Edge::Begin(frame) => (at, true, frame),
                Edge::End(frame) => (at, false, frame),
            });
            Ok(())
        };
        for (at, duration, stack, is_interrupted) in samples {
            if *is_interrupted {
                spans.end(&mut add).unwrap();
            }
            if !(extends && spans.extend(*at, *duration, nodes[*stack])) {
                spans.sample(*at, *duration, nodes[*stack], &stacks, &mut add).unwrap();
            }
        }
        spans.end(&mut add).unwrap();
        edges
    }

    proptest! {
        #[test]
        fn extending_calls_makes_no_difference(steps in vec((-3..30_i64, 1..12_i64, 0..4_usize, prop::bool::weighted(0.1)), 0..40)) {
            let mut now = 100;
            let samples: Vec<_> = steps.into_iter().map(|(step, duration, stack, is_interrupted)| {
                now += step;
                (now, duration, stack, is_interrupted)
            }).collect();
            prop_assert_eq!(edges(&samples, true), edges(&samples, false));
        }
    }

    #[test]
    fn calls_last_as_long_as_their_samples() {
        for (samples, expected) in [
            // A gap of half a duration is not one.
            (&[(10, 10, 1, false), (25, 10, 1, false)][..], &[(0, true, 0), (25, false, 0)][..]),
            (&[(10, 10, 1, false), (26, 10, 1, false)], &[(0, true, 0), (10, false, 0), (16, true, 0), (26, false, 0)]),
            (&[(10, 10, 1, false), (20, 10, 2, false)], &[(0, true, 0), (10, true, 1), (20, false, 1), (20, false, 0)]),
            // The first of two that overlap counts.
            (&[(10, 10, 1, false), (5, 10, 3, false)], &[(0, true, 0), (10, false, 0), (10, true, 2), (10, false, 2)]),
        ] {
            assert_eq!(edges(samples, true), expected, "{samples:?}");
        }
    }
}
