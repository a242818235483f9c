//! The nettrace event stream format, sans-io: a push decoder and an encoder.
//!
//! A [`Decoder`] takes a stream in pieces of any size and passes its contents to a [`Sink`], borrowed, without an allocation per event. It
//! supports V4 (written by all runtimes from 3.0 to 10, with V5's metadata tags) and V6. An [`Encoder`] writes V4, a [`CollectorEncoder`] V6.
//! Resident memory is bounded by [`Limits`] for any input. The reference of the format is `NetTraceFormat.md` of PerfView; where runtimes
//! differ from it, the code follows the runtimes and has a comment.
//!
//! Independent of providers and events, which are handled in `clr` and `analysis`. No I/O, no clock.

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
mod stream_buffer;
mod threads;
mod time;
mod trace;

pub use crate::forward_sink;
pub use append::{AppendError, StreamContinuation, StreamTail};
pub use counts::{BlockScanner, Counts, KindCount, ScannedBlocks};
pub use decoder::{Decoder, Ending, Limits, Repair};
pub use encode::{CollectorEncoder, Encoder, NewEvent};
pub use error::{BlockKind, DecodeError, Limit, Problem, ProblemKind};
pub use event::Event;
pub use fields::{Elements, Field, FieldType, Value, Values};
pub use labels::{Label, Labels};
pub use metadata::{ByMetadata, Metadata};
pub use recent::{FlightRecorder, Pieces, RetentionLimits, SegmentStore, StoreError};
pub use sink::{Loss, LossKind, SequencePoint, Sink};
pub use stacks::Stack;
pub use stream_buffer::StreamBuffer;
pub use threads::{Thread, ThreadId};
pub use time::UtcTime;
pub use trace::TraceHeader;
