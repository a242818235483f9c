//! Pages of the shared memory: the word at the start of each encodes its layout and the state of its chunks.
//!
//! Source: the specification "Tracing API and ABI", "Shared memory"; `include/perfetto/ext/tracing/core/shared_memory_abi.h`. The other side can
//! change anything in the memory at any time: no value read from it is trusted.

/// Bytes at the start of a page: the word, and four reserved bytes.
pub const PAGE_HEADER: usize = 8;
const MIN_BYTES: u32 = 4096;
const MAX_BYTES: u32 = 32 * 1024;

/// Size of a page: 4, 8, 16 or 32 KB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageSize(u32);

impl PageSize {
    /// Largest size.
    pub const MAX: Self = Self(MAX_BYTES);
    /// Size if the service does not specify one.
    pub const DEFAULT: Self = Self(MIN_BYTES);

    /// Returns `None` if the size is not valid.
    pub fn new(bytes: u32) -> Option<Self> {
        (bytes.is_power_of_two() && (MIN_BYTES..=MAX_BYTES).contains(&bytes)).then_some(Self(bytes))
    }

    /// Size in bytes.
    pub fn bytes(self) -> usize {
        self.0 as usize
    }
}

/// Division of a page into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    number: u32,
    chunks: u32,
}

impl Layout {
    /// All layouts, starting with the smallest chunks.
    pub const ALL: [Self; 5] = [
        Self { number: 5, chunks: 14 },
        Self { number: 4, chunks: 7 },
        Self { number: 3, chunks: 4 },
        Self { number: 2, chunks: 2 },
        Self { number: 1, chunks: 1 },
    ];

    /// Number of chunks.
    pub fn chunks(self) -> u32 {
        self.chunks
    }

    /// Size of each chunk in bytes, including its header.
    pub fn chunk_size(self, page: PageSize) -> usize {
        ((page.bytes() - PAGE_HEADER) / self.chunks as usize) & !3
    }

    /// Returns the layout with the smallest chunks that fit this many bytes, or that with the largest chunk if none do.
    pub fn for_bytes(bytes: usize, page: PageSize) -> Self {
        let [.., largest] = Self::ALL;
        Self::ALL.into_iter().find(|layout| layout.chunk_size(page) >= bytes).unwrap_or(largest)
    }
}

listed! {
/// State of a chunk, which determines the side that may access it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// Available to the producer.
    Free,
    /// Owned by the producer.
    BeingWritten,
    /// Owned by the service. Not used by any service.
    BeingRead,
    /// Owned by the service, to be moved to a buffer.
    Complete,
}
}

/// The word at the start of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWord(pub u32);

impl PageWord {
    /// Returns the word of a divided page with all chunks free.
    pub fn divided(layout: Layout) -> Self {
        Self(layout.number << 28)
    }

    /// Returns the layout; `None` if the page is not divided, or its layout is unknown.
    pub fn layout(self) -> Option<Layout> {
        let number = (self.0 >> 28) & 7;
        Layout::ALL.into_iter().find(|layout| layout.number == number)
    }

    /// Whether the page is free and not divided.
    pub fn is_free(self) -> bool {
        self.0 == 0
    }

    /// Returns the state of a chunk, 0 to 13.
    pub fn state(self, chunk: u32) -> ChunkState {
        ChunkState::ALL[((self.0 >> (2 * chunk.min(13))) & 3) as usize]
    }

    /// Returns the word with another state of a chunk.
    #[must_use]
    pub fn with(self, chunk: u32, state: ChunkState) -> Self {
        let shift = 2 * chunk.min(13);
        Self((self.0 & !(3 << shift)) | ((state as u32) << shift))
    }

    /// Returns the first free chunk.
    pub fn free_chunk(self) -> Option<u32> {
        (0..self.layout()?.chunks).find(|chunk| self.state(*chunk) == ChunkState::Free)
    }
}
