//! Errors in a stream: fatal ones, and those that only affect a part of it.

use std::fmt;

use thiserror::Error;

/// Reason why decoding stopped. Everything before it was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not an event stream: its first bytes, at most 8.
    #[error("this is not a nettrace stream: it begins with the bytes {0:02x?}")]
    NotNettrace(Vec<u8>),
    /// The format of .NET Core 2.x, which newer runtimes also write if format 0 is requested.
    #[error(
        "this is a NetPerf stream, the format of .NET Core 2: only nettrace (.NET Core 3.0 and later) is read; convert it with `PerfView`"
    )]
    NetPerf,
    /// The runtime replied to the trace request with an error instead of a stream.
    #[error("this is the runtime's reply to a failed request, not an event stream: error 0x{0:08X}")]
    ErrorReply(u32),
    /// An unknown format version.
    #[error("unsupported nettrace version {0} (supported: 4 to 6)")]
    Version(u32),
    /// The stream structure is damaged, so that the next block cannot be located.
    #[error("the stream is damaged at byte {at}: {what}")]
    Damaged {
        /// Stream offset of the damage.
        at: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// The size in a block's header exceeds the limit, which is above anything that runtimes write.
    #[error("the stream is damaged at byte {at}: a block of {size} bytes exceeds the limit of {limit} bytes")]
    BlockTooLong {
        /// Stream offset of the block.
        at: u64,
        /// Size in the header, in bytes.
        size: u64,
        /// Maximum accepted size in bytes.
        limit: u64,
    },
}

/// An error in a part of a stream. Decoding continues after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{kind}, at byte {at}")]
pub struct Problem {
    /// Kind of error.
    pub kind: ProblemKind,
    /// Stream offset.
    pub at: u64,
}

/// Kinds of nonfatal errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum ProblemKind {
    /// The content of a block is malformed from some offset on; everything before it in the block was delivered.
    #[error("a damaged {0} block: malformed content")]
    DamagedBlock(BlockKind),
    /// A block of an unknown kind was skipped.
    #[error("an unknown block, which was skipped")]
    UnknownBlock,
    /// An event with an undefined metadata ID.
    #[error("an event with an undefined metadata id")]
    UndefinedMetadata,
    /// An event with a stack ID that was not defined since the last sequence point.
    #[error("an event with an undefined stack id")]
    UndefinedStack,
    /// An event, a thread removal or a sequence point with an undefined thread index (V6).
    #[error("an undefined thread index")]
    UndefinedThread,
    /// A metadata ID was redefined with another record. The last definition applies.
    #[error("a redefined metadata id")]
    RedefinedMetadata,
    /// A thread index was redefined for another thread (V6). The last definition applies.
    #[error("a redefined thread index")]
    RedefinedThread,
    /// A `RelLoc` or `DataLoc` field with elements of variable size, which the format does not allow (V6). The elements are read sequentially.
    #[error("a RelLoc or DataLoc field with elements of variable size")]
    VariableElements,
    /// A memory limit was reached. Reported once per limit.
    #[error("{0}")]
    Limit(Limit),
}

impl ProblemKind {
    /// Returns a machine-readable name.
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

    /// Returns whether content of the stream may be missing from the delivered events.
    pub fn loses_content(self) -> bool {
        !matches!(self, Self::RedefinedMetadata | Self::RedefinedThread | Self::VariableElements | Self::Limit(Limit::Order))
    }
}

/// A memory limit, and the effect of reaching it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Limit {
    /// No more metadata records are stored.
    #[error("too many event types: later ones are counted as unknown")]
    Metadata,
    /// Stacks were evicted before the sequence point that ends their lifetime.
    #[error("too many stacks: some events have no stack")]
    Stacks,
    /// Label lists were evicted before the sequence point that ends their lifetime.
    #[error("too many labels: some events have no labels")]
    Labels,
    /// The sequence numbers of some threads were evicted.
    #[error("too many threads: event losses may be undetected")]
    Threads,
    /// Events were delivered before the stream guaranteed that no older event follows.
    #[error("too many events without a sequence point: some are out of order")]
    Order,
}

listed! {
/// Kinds of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// Properties of the whole stream.
    Trace => "trace",
    /// Events.
    Event => "event",
    /// Metadata records.
    Metadata => "metadata",
    /// Stacks referenced by events.
    Stack => "stack",
    /// A point in time at which tables are cleared and losses are counted.
    SequencePoint => "sequence point",
    /// Threads referenced by events (V6).
    Thread => "thread",
    /// Threads that have exited (V6).
    RemoveThread => "thread removal",
    /// Labels referenced by events (V6).
    LabelList => "label list",
}
/// Returns its name.
fn word(self) -> &'static str;
}

impl fmt::Display for BlockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
