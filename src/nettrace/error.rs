//! What can be wrong with a stream: what ends the decoding, and what only costs a part of it.

use std::fmt;

use thiserror::Error;

/// Why a stream cannot be read on. Everything before it was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It does not begin like any stream of events.
    #[error("this is not a nettrace stream: it begins with the bytes {0:02x?}")]
    NotNettrace([u8; 8]),
    /// The format of .NET Core 2.x, and what newer runtimes write for format 0.
    #[error(
        "this is a NetPerf stream, the format of .NET Core 2: only nettrace (.NET Core 3.0 and later) is read; convert it with `PerfView`"
    )]
    NetPerf,
    /// The runtime answered the request for a trace with an error instead of a stream.
    #[error("this is not a stream of events but the runtime's answer to a failed request, error 0x{0:08X}")]
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
    /// The size in a block's header is larger than that of any that a runtime writes.
    #[error("the stream is damaged at byte {at}: a block of {size} bytes, more than the {limit} that are allowed")]
    BlockTooLong {
        /// Offset of the block from the start of the stream.
        at: u64,
        /// The size in its header, bytes.
        size: u64,
        /// The longest that is read, bytes.
        limit: u64,
    },
}

/// Something wrong with a part of a stream. Decoding continues behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{kind}, at byte {at}")]
pub struct Problem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// Where, as an offset from the start of the stream.
    pub at: u64,
}

/// What can be wrong with a part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum ProblemKind {
    /// The content of a block is malformed from some byte on; what stood before it in the block was delivered.
    #[error("a damaged {0} block: malformed content")]
    DamagedBlock(BlockKind),
    /// A block of a kind that is not known; it was left out.
    #[error("an unknown block, which was skipped")]
    UnknownBlock,
    /// An event of a kind that no block defined before.
    #[error("an event of a kind that is not defined")]
    UndefinedMetadata,
    /// An event with a stack that no block defined since the last sequence point.
    #[error("an event with a stack that is not defined")]
    UndefinedStack,
    /// An event, a removal or a sequence point that names a thread that no block described (V6).
    #[error("a thread index that is not defined")]
    UndefinedThread,
    /// A kind of event is defined while its id already means another. The last definition counts.
    #[error("a metadata id that is defined twice")]
    RedefinedMetadata,
    /// A thread is described while its index already means another (V6). The last description counts.
    #[error("a thread index that is defined twice")]
    RedefinedThread,
    /// A field with the position of its elements, and of elements that differ in size, which the format does not allow (V6). They are read one behind
    /// the other.
    #[error("a field with elements elsewhere that differ in size")]
    VariableElements,
    /// There is more in the stream than is kept in memory. Reported once for each limit.
    #[error("{0}")]
    Limit(Limit),
}

impl ProblemKind {
    /// A word for programs that read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DamagedBlock(_) => "damaged_block",
            Self::UnknownBlock => "unknown_block",
            Self::UndefinedMetadata => "undefined_metadata",
            Self::UndefinedStack => "undefined_stack",
            Self::UndefinedThread => "undefined_thread",
            Self::RedefinedMetadata => "redefined_metadata",
            Self::RedefinedThread => "redefined_thread",
            Self::VariableElements => "variable_elements",
            Self::Limit(Limit::Metadata) => "metadata_limit",
            Self::Limit(Limit::Stacks) => "stack_limit",
            Self::Limit(Limit::Labels) => "label_limit",
            Self::Limit(Limit::Threads) => "thread_limit",
            Self::Limit(Limit::Order) => "order_limit",
        }
    }

    /// Whether content of the stream may be missing from what was delivered.
    pub fn loses_content(self) -> bool {
        !matches!(self, Self::RedefinedMetadata | Self::RedefinedThread | Self::VariableElements | Self::Limit(Limit::Order))
    }
}

/// A limit of memory, and what is missing once it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
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
    /// Events were handed over before the stream marked that no older one comes.
    #[error("too many events without a sequence point: some are out of order")]
    Order,
}

/// The kinds of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
