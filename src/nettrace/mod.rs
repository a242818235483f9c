//! The nettrace event stream format, sans-io: a push decoder and an encoder.
//!
//! Bytes of a stream go into a [`Decoder`] in pieces of any size; what they mean comes out through a [`Sink`], borrowed, without an
//! allocation per event. It reads V4 (what every runtime from 3.0 to 10 writes, with V5's metadata tags) and V6. An [`Encoder`] writes V4, a [`CollectorEncoder`] V6.
//! Resident memory is bounded by [`Limits`] whatever arrives. What the format means is in the reference of the format itself
//! (`NetTraceFormat.md` of PerfView); where runtimes differ from it, the runtimes are right, with a comment.
//!
//! No provider and no event is named here: what they mean is in `clr` and `analysis`. No input or output, no clock.

mod append;
mod counts;
mod decoder;
mod encode;
mod error;
mod event;
mod fields;
mod frame;
mod labels;
mod metadata;
mod pending;
mod recent;
mod rows;
mod sequence;
mod sink;
mod stacks;
mod threads;
mod time;
mod trace;

pub use crate::forward_sink;
pub use append::{Appended, Tail, TailError};
pub use counts::{Counts, Cut, Cutter, KindCount};
pub use decoder::{Decoder, Ending, Limits, Repair};
pub use encode::{CollectorEncoder, Encoder, NewEvent};
pub use error::{BlockKind, DecodeError, Limit, Problem, ProblemKind};
pub use event::Event;
pub use fields::{Elements, Field, FieldType, Value, Values};
pub use labels::{Label, Labels};
pub use metadata::Metadata;
pub use recent::{Keep, Pieces, Recent, Refusal, SegmentStore};
pub use sink::{Loss, LossKind, SequencePoint, Sink};
pub use stacks::Stack;
pub use threads::{Thread, ThreadId};
pub use time::UtcTime;
pub use trace::TraceHeader;
