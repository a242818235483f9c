//! Receiver of the decoder's output.

use super::{Counts, Event, Metadata, Problem, Thread, ThreadId, TraceHeader};

/// Receives the decoded elements of a stream, in stream order. All methods have default implementations that do nothing.
///
/// Events of one capture thread are in time order. Events of different threads are not: an event can be older than the previous one, by about
/// the 100 ms in which a runtime collects a batch. A sink that correlates events of several threads requests time order
/// ([`needs_order`](Self::needs_order)) and receives those events a second time, later.
pub trait Sink {
    /// The start of the stream: called once, before everything else.
    fn trace(&mut self, _header: &TraceHeader) {}

    /// A new metadata record. [`Metadata::index`] is consecutive, from 1.
    fn metadata(&mut self, _metadata: &Metadata) {}

    /// Returns whether events of this kind are also passed to [`ordered_event`](Self::ordered_event). Called once, after
    /// [`metadata`](Self::metadata).
    fn needs_order(&self, _metadata: &Metadata) -> bool {
        false
    }

    /// An event.
    fn event(&mut self, _event: &Event<'_>) {}

    /// An event of a kind that needs time order, once no older one can arrive: before the next sequence point, usually about 100 ms later. If
    /// a stream has neither sequence points nor events marked as sorted, and more than 4 MB are held back, the oldest are delivered anyway,
    /// and older events that arrive later are out of order.
    fn ordered_event(&mut self, _event: &Event<'_>) {}

    /// Returns whether the sink benefits from events counted ahead of decoding.
    fn takes_counts(&self) -> bool {
        false
    }

    /// The events of a block, counted. Returns false to receive each of them in [`event`](Self::event) instead. Only called with counts from
    /// [`Decoder::feed_scanned`](super::Decoder::feed_scanned).
    fn counted(&mut self, _counts: &Counts<'_>) -> bool {
        false
    }

    /// Stacks were defined: their number.
    fn stacks(&mut self, _count: u32) {}

    /// A thread definition (V6).
    fn thread(&mut self, _thread: &Thread) {}

    /// Events were dropped by the runtime.
    fn loss(&mut self, _loss: &Loss) {}

    /// Like `loss`, but in sequence with the events in time order. Only called if any event needs time order.
    fn ordered_loss(&mut self, _loss: &Loss) {}

    /// A sequence point: earlier stacks and labels become invalid, and all earlier events have been delivered.
    fn sequence_point(&mut self, _point: &SequencePoint) {}

    /// A part of the stream could not be decoded, or exceeds a limit. A hostile stream can cause any number of calls.
    fn problem(&mut self, _problem: &Problem) {}
}

/// Implements methods of [`Sink`](crate::nettrace::Sink) by forwarding to other sinks, in order, as in `forward_sink!(self => [self.0,
/// self.1]: trace event)`. Events are delivered in time order if any of the sinks needs it; counts can be forwarded to only one sink.
#[macro_export]
macro_rules! forward_sink {
    ($this:ident => $to:tt: $($method:ident)+) => {
        $($crate::nettrace::forward_sink!(@$method $this $to);)+
    };
    (@trace $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to trace(header: &$crate::nettrace::TraceHeader));
    };
    (@metadata $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to metadata(metadata: &$crate::nettrace::Metadata));
    };
    (@needs_order $this:ident [$($to:expr),+]) => {
        fn needs_order(&$this, metadata: &$crate::nettrace::Metadata) -> bool {
            false $(| $crate::nettrace::Sink::needs_order(&$to, metadata))+
        }
    };
    (@event $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to event(event: &$crate::nettrace::Event<'_>));
    };
    (@ordered_event $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to ordered_event(event: &$crate::nettrace::Event<'_>));
    };
    (@takes_counts $this:ident [$to:expr]) => {
        fn takes_counts(&$this) -> bool {
            $crate::nettrace::Sink::takes_counts(&$to)
        }
    };
    (@counted $this:ident [$to:expr]) => {
        fn counted(&mut $this, counts: &$crate::nettrace::Counts<'_>) -> bool {
            $crate::nettrace::Sink::counted(&mut $to, counts)
        }
    };
    (@stacks $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to stacks(count: u32));
    };
    (@thread $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to thread(thread: &$crate::nettrace::Thread));
    };
    (@loss $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to loss(loss: &$crate::nettrace::Loss));
    };
    (@ordered_loss $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to ordered_loss(loss: &$crate::nettrace::Loss));
    };
    (@sequence_point $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to sequence_point(point: &$crate::nettrace::SequencePoint));
    };
    (@problem $this:ident $to:tt) => {
        $crate::nettrace::forward_sink!(@call $this $to problem(problem: &$crate::nettrace::Problem));
    };
    (@call $this:ident [$($to:expr),+] $method:ident($value:ident: $type:ty)) => {
        #[inline]
        fn $method(&mut $this, $value: $type) {
            $($crate::nettrace::Sink::$method(&mut $to, $value);)+
        }
    };
}

impl<S: Sink + ?Sized> Sink for &mut S {
    forward_sink!(self => [**self]: trace metadata needs_order event ordered_event takes_counts counted stacks thread loss ordered_loss sequence_point problem);
}

/// Forwards everything to both, the first one first.
impl<A: Sink, B: Sink> Sink for (A, B) {
    forward_sink!(self => [self.0, self.1]: trace metadata needs_order event ordered_event stacks thread loss ordered_loss sequence_point problem);
}

/// Events that the runtime dropped, detected by gaps in the sequence numbers of a capture thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Number of lost events.
    pub count: u32,
    /// Position of the gap.
    pub kind: LossKind,
    /// The capture thread whose events are missing.
    pub capture_thread: ThreadId,
    /// Timestamp of the event or sequence point after the gap; for the removal of a thread, of the last event so far.
    pub timestamp: i64,
}

/// Position of a gap in the sequence numbers of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossKind {
    /// Between two events of the thread.
    Gap,
    /// Between the last event of the thread and a sequence point (or, in V6, the removal of the thread).
    Tail,
    /// Before the first event of the thread, up to V5. Other readers do not count these: they would also occur in a stream that was joined
    /// late. (In V6 the sequence numbers start at 1 after a thread's definition: missing events are a [`Gap`](Self::Gap).)
    Start,
}

impl LossKind {
    /// In V6 sequence numbers start at 1 after a thread's definition, so the stream should contain all its events.
    pub(super) fn of(self, v6: bool, capture_thread: ThreadId) -> Self {
        if v6 && self == Self::Start && capture_thread != ThreadId::UNKNOWN { Self::Gap } else { self }
    }
}

/// A sequence point: all older events precede it in the stream, all newer ones follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePoint {
    /// Timestamp on the clock of the stream.
    pub timestamp: i64,
    /// Number of listed threads.
    pub threads: u32,
}
