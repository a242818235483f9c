//! Pages of the shared memory: the word at the start of each, which holds how it is divided and the state of its chunks.
//!
//! Source: the specification "Tracing API and ABI", "Shared memory"; `include/perfetto/ext/tracing/core/shared_memory_abi.h`. Everything in the memory can
//! be changed by the other side at any time: no value read from there is trusted.

/// Bytes at the start of a page: the word, and four that are reserved.
pub const PAGE_HEADER: usize = 8;
const SMALLEST: u32 = 4096;
const LARGEST: u32 = 32 * 1024;

/// Bytes of a page: 4, 8, 16 or 32 KB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageSize(u32);

impl PageSize {
    /// Largest size.
    pub const LARGEST: Self = Self(LARGEST);
    /// The size where a service names none.
    pub const DEFAULT: Self = Self(SMALLEST);

    /// `None` for what no page has.
    pub fn new(bytes: u32) -> Option<Self> {
        (bytes.is_power_of_two() && (SMALLEST..=LARGEST).contains(&bytes)).then_some(Self(bytes))
    }

    /// In bytes.
    pub fn bytes(self) -> usize {
        self.0 as usize
    }
}

/// Into how many chunks a page is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    number: u32,
    chunks: u32,
}

impl Layout {
    /// Every layout, from that with the smallest chunks.
    pub const ALL: [Self; 5] = [
        Self { number: 5, chunks: 14 },
        Self { number: 4, chunks: 7 },
        Self { number: 3, chunks: 4 },
        Self { number: 2, chunks: 2 },
        Self { number: 1, chunks: 1 },
    ];

    /// How many chunks.
    pub fn chunks(self) -> u32 {
        self.chunks
    }

    /// Bytes of each chunk, its header included.
    pub fn chunk_size(self, page: PageSize) -> usize {
        ((page.bytes() - PAGE_HEADER) / self.chunks as usize) & !3
    }

    /// The layout whose chunks are the smallest that so many bytes fit; the largest chunk where they fit none.
    pub fn for_bytes(bytes: usize, page: PageSize) -> Self {
        let [.., largest] = Self::ALL;
        Self::ALL.into_iter().find(|layout| layout.chunk_size(page) >= bytes).unwrap_or(largest)
    }
}

/// What may be done with a chunk, and by which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// The producer may take it.
    Free,
    /// The producer's.
    BeingWritten,
    /// The service's. No service uses it.
    BeingRead,
    /// The service's, to be moved away.
    Complete,
}

impl ChunkState {
    const ALL: [Self; 4] = [Self::Free, Self::BeingWritten, Self::BeingRead, Self::Complete];
}

/// The word of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWord(pub u32);

impl PageWord {
    /// Divided, all chunks free.
    pub fn divided(layout: Layout) -> Self {
        Self(layout.number << 28)
    }

    /// How the page is divided; `None` for one that is not, or in a way that this program does not know.
    pub fn layout(self) -> Option<Layout> {
        let number = (self.0 >> 28) & 7;
        Layout::ALL.into_iter().find(|layout| layout.number == number)
    }

    /// Whether the page is free and not divided.
    pub fn is_free(self) -> bool {
        self.0 == 0
    }

    /// The state of a chunk, 0 to 13.
    pub fn state(self, chunk: u32) -> ChunkState {
        ChunkState::ALL[((self.0 >> (2 * chunk.min(13))) & 3) as usize]
    }

    /// The same with another state of a chunk.
    #[must_use]
    pub fn with(self, chunk: u32, state: ChunkState) -> Self {
        let shift = 2 * chunk.min(13);
        Self((self.0 & !(3 << shift)) | ((state as u32) << shift))
    }

    /// The first chunk that is free.
    pub fn free_chunk(self) -> Option<u32> {
        (0..self.layout()?.chunks).find(|chunk| self.state(*chunk) == ChunkState::Free)
    }
}
