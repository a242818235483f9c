//! Where the decoder's findings go.

use super::{Counts, Event, Metadata, Problem, Thread, ThreadId, TraceHeader};

/// Takes what the decoder finds, in the order of the stream. Every method does nothing unless it is implemented.
///
/// Events of one capture thread come in the order of time. Across threads they do not: an event may be older than the one before it,
/// by about the 100 ms in which a runtime gathers a batch. A sink that pairs events of several threads requests them in the order of time
/// ([`needs_order`](Self::needs_order)) and gets them a second time, later.
pub trait Sink {
    /// The start of the stream: comes once, before everything else.
    fn trace(&mut self, _header: &TraceHeader) {}

    /// A kind of event that was not known yet. [`Metadata::index`] is one more than in the call before; the first is 1.
    fn metadata(&mut self, _metadata: &Metadata) {}

    /// Whether events of this kind are also to come to [`ordered_event`](Self::ordered_event). Called once, behind [`metadata`](Self::metadata).
    fn needs_order(&self, _metadata: &Metadata) -> bool {
        false
    }

    /// An event.
    fn event(&mut self, _event: &Event<'_>) {}

    /// An event of a kind that is wanted in the order of time, when no older one can come: before the next sequence point, mostly about 100 ms later. Where a
    /// stream has neither sequence points nor events that are marked as sorted, and more than 4 MB are held back, the older half comes nevertheless,
    /// and what is older than that comes out of order.
    fn ordered_event(&mut self, _event: &Event<'_>) {}

    /// Whether it can make use of events that were counted before they are decoded.
    fn takes_counts(&self) -> bool {
        false
    }

    /// The events of a block, instead of each of them; `false` where each is wanted, which then come to [`event`](Self::event). Only where
    /// [`Decoder::feed_cut`](super::Decoder::feed_cut) was given counts.
    fn counted(&mut self, _counts: &Counts<'_>) -> bool {
        false
    }

    /// So many stacks were defined.
    fn stacks(&mut self, _count: u32) {}

    /// A thread was described (V6).
    fn thread(&mut self, _thread: &Thread) {}

    /// Events were dropped by the runtime.
    fn loss(&mut self, _loss: &Loss) {}

    /// The same among the events that come in the order of time, where any do.
    fn ordered_loss(&mut self, _loss: &Loss) {}

    /// A sequence point: stacks and labels from before it are gone, and no event from before it is held back.
    fn sequence_point(&mut self, _point: &SequencePoint) {}

    /// A part of the stream could not be read, or is not kept. Can come as often as a hostile stream likes.
    fn problem(&mut self, _problem: &Problem) {}
}

/// Implements methods of [`Sink`](crate::nettrace::Sink) by calling them on other sinks, in this order, as in `forward_sink!(self => [self.0, self.1]: trace event)`.
/// A kind of event comes in the order of time where one of them requests that; counts are for one sink only.
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

/// Both get everything, the first one first.
impl<A: Sink, B: Sink> Sink for (A, B) {
    forward_sink!(self => [self.0, self.1]: trace metadata needs_order event ordered_event stacks thread loss ordered_loss sequence_point problem);
}

/// Events that the runtime dropped: it numbers the events of each capture thread, and numbers are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// How many events.
    pub count: u32,
    /// How it was noticed, and so where they are missing.
    pub kind: LossKind,
    /// The capture thread whose events are missing.
    pub capture_thread: ThreadId,
    /// Timestamp of the event or sequence point before which they are missing; where a thread is removed, of the last event so far.
    pub timestamp: i64,
}

/// How a loss was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossKind {
    /// Between two events of the thread.
    Gap,
    /// Between the last event of the thread and a sequence point (or, in V6, the removal of the thread).
    Tail,
    /// Before the first event of the thread, up to V5. Other readers do not count these: a stream that was joined late would show them as well. (In V6 a
    /// thread's numbers begin at 1 behind its description: what is missing there is a [`Gap`](Self::Gap).)
    Start,
}

impl LossKind {
    /// In V6 numbers begin at 1 behind the description of a thread, so that the stream has all of it.
    pub(super) fn of(self, v6: bool, capture_thread: ThreadId) -> Self {
        if v6 && self == Self::Start && capture_thread != ThreadId::UNKNOWN { Self::Gap } else { self }
    }
}

/// A sequence point: everything older than its timestamp stands before it in the stream, everything newer behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePoint {
    /// Its moment, on the clock of all timestamps.
    pub timestamp: i64,
    /// How many threads it lists.
    pub threads: u32,
}
