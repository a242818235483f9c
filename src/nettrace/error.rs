//! What can be wrong with a stream: what ends the decoding, and what only costs a part of it.

use std::fmt;

use thiserror::Error;

/// Why a stream cannot be read on. Everything before it was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It does not begin like any stream of events.
    #[error("this is not a nettrace stream: it begins with the bytes {0:02x?}")]
    NotNettrace([u8; 8]),
    /// The format of .NET Core 2.x, and what newer runtimes write when they are asked for format 0.
    #[error(
        "this is a NetPerf stream, the format of .NET Core 2: only nettrace (.NET Core 3.0 and later) is read; convert it with `PerfView`"
    )]
    NetPerf,
    /// The runtime answered the request for a trace with an error instead of a stream.
    #[error("this is no stream of events but the runtime's answer to a failed request, error 0x{0:08X}")]
    ErrorReply(u32),
    /// A version of the format that is not known here.
    #[error("nettrace version {0} is not known; versions 4 to 6 are")]
    Version(u32),
    /// The structure of the stream is broken, so that the next block cannot be found.
    #[error("the stream is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset from the start of the stream.
        at: u64,
        /// What was found there.
        what: &'static str,
    },
    /// A block says that it is longer than any that a runtime writes.
    #[error("the stream is damaged at byte {at}: a block of {size} bytes, more than the {limit} that are allowed")]
    BlockTooLong {
        /// Offset of the block from the start of the stream.
        at: u64,
        /// Its size as it says itself, bytes.
        size: u64,
        /// The longest that is read, bytes.
        limit: u64,
    },
}

/// What went wrong in a part of a stream. Decoding goes on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Trouble {
    /// The content of a block makes no sense from some byte on; what stood before it in the block was delivered.
    #[error("a damaged {kind} block at byte {block}: its content makes no sense from byte {at} on")]
    DamagedBlock {
        /// What kind of block.
        kind: BlockKind,
        /// Offset of its content from the start of the stream.
        block: u64,
        /// Offset from the start of the stream.
        at: u64,
    },
    /// A block of a kind that is not known; it was left out.
    #[error("an unknown block of {size} bytes at byte {at} was skipped")]
    UnknownBlock {
        /// Offset from the start of the stream.
        at: u64,
        /// Its size, bytes.
        size: u64,
    },
    /// There is more in the stream than is kept in memory. Said once for each limit.
    #[error("{0}")]
    Limit(Limit),
}

/// A limit of memory, and what is missing once it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Limit {
    /// No more metadata records are kept.
    #[error("too many kinds of events: those defined later are counted as unknown")]
    Metadata,
    /// Stacks were forgotten before the sequence point that ends their life.
    #[error("too many stacks: some events have none")]
    Stacks,
    /// Label lists were forgotten before the sequence point that ends their life.
    #[error("too many labels: some events have none")]
    Labels,
    /// The sequence numbers of some threads were forgotten.
    #[error("too many threads: lost events may go unnoticed")]
    Threads,
}

/// The kinds of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// What the whole stream has in common.
    Trace,
    /// Events.
    Event,
    /// Kinds of events.
    Metadata,
    /// Stacks that events refer to.
    Stack,
    /// A point in time at which tables are dropped and losses are counted.
    SequencePoint,
    /// Threads that events refer to (V6).
    Thread,
    /// Threads that are gone (V6).
    RemoveThread,
    /// Labels that events refer to (V6).
    LabelList,
}

impl fmt::Display for BlockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace => "trace",
            Self::Event => "event",
            Self::Metadata => "metadata",
            Self::Stack => "stack",
            Self::SequencePoint => "sequence point",
            Self::Thread => "thread",
            Self::RemoveThread => "thread removal",
            Self::LabelList => "label list",
        })
    }
}
