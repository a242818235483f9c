//! Memory that the service shares with a producer.
//!
//! The service may write anything into it at any time, so every word is validated each time it is read, and each search is one pass over the pages.
//! No access can kill this process: only a file sealed against shrinking is mapped, and none of huge pages, whose pool may be empty at the
//! first access to a page.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use thiserror::Error;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

use crate::net::file::{TMPFS, is_on};
use crate::perfetto::chunk::CHUNK_HEADER;
use crate::perfetto::page::{ChunkState, Layout, PAGE_HEADER, PageSize, PageWord};

const MAX_BYTES: usize = 32 << 20;

/// The reason why shared memory is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// Not exactly one file was passed.
    #[error("the tracing service passed {0} files instead of one")]
    Files(usize),
    /// The page size is not one of the protocol.
    #[error("the tracing service requested an unsupported page size")]
    PageSize,
    /// The memory is smaller than a page, or larger than the maximum.
    #[error("the shared memory of the tracing service has an invalid size: {0} bytes")]
    Size(u64),
    /// The memory could be shrunk.
    #[error("the memory of the tracing service is not sealed against changes of its size")]
    Unsealed,
    /// The memory consists of huge pages, which are not reserved for a mapping: an access without a free page is a fatal signal.
    #[error("the memory of the tracing service consists of huge pages")]
    HugePages,
    /// Error of the operating system.
    #[error("the memory of the tracing service cannot be mapped: {0}")]
    Map(String),
}

/// The mapped memory, divided into pages.
#[derive(Debug)]
pub struct SharedMemory {
    region: MmapRegion,
    page: PageSize,
    pages: u32,
    /// Page at which the next search begins.
    next: u32,
}

/// A chunk that is ours until handed over.
#[derive(Debug, PartialEq, Eq)]
pub struct ChunkSlot {
    /// Index of the page.
    pub page: u32,
    /// Index of the chunk in the page.
    pub chunk: u32,
    layout: Layout,
    size: usize,
}

impl ChunkSlot {
    /// Capacity in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl SharedMemory {
    /// Maps the file passed with the command.
    ///
    /// # Errors
    /// [`MemoryError`]: chunks must be sent in the commits instead.
    pub fn map(files: Vec<OwnedFd>, page: Option<PageSize>) -> Result<Self, MemoryError> {
        let [file] = <[OwnedFd; 1]>::try_from(files).map_err(|files| MemoryError::Files(files.len()))?;
        let page = page.ok_or(MemoryError::PageSize)?;
        let seals = fcntl_get_seals(&file).map_err(|_| MemoryError::Unsealed)?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(MemoryError::Unsealed);
        }
        if !is_on(&file, TMPFS).map_err(|error| MemoryError::Map(error.to_string()))? {
            return Err(MemoryError::HugePages);
        }
        let size = fstat(&file).map_err(|error| MemoryError::Map(error.to_string()))?.st_size as u64;
        let bytes = usize::try_from(size).ok().filter(|bytes| (page.bytes()..=MAX_BYTES).contains(bytes)).ok_or(MemoryError::Size(size))?;
        let pages = bytes / page.bytes();
        let file = FileOffset::new(File::from(file), 0);
        let region = MmapRegion::from_file(file, pages * page.bytes()).map_err(|error| MemoryError::Map(error.to_string()))?;
        Ok(Self { region, page, pages: pages as u32, next: 0 })
    }

    /// Takes a free chunk, preferably one that fits `bytes`. `None` if all are in use.
    pub fn take(&mut self, bytes: usize) -> Option<ChunkSlot> {
        let wanted = Layout::for_bytes(bytes, self.page);
        let fits = |word: PageWord| word.is_free() || word.layout() == Some(wanted);
        self.search(|word| fits(word).then_some(wanted)).or_else(|| self.search(|word| word.layout()))
    }

    /// Takes a chunk of the first page that has a free one and is divided in this layout, or can be.
    fn search(&mut self, layout_of: impl Fn(PageWord) -> Option<Layout>) -> Option<ChunkSlot> {
        for step in 0..self.pages {
            let page = (self.next + step) % self.pages;
            let word = self.load(page)?;
            let Some(layout) = layout_of(word) else { continue };
            let divided = if word.is_free() { PageWord::divided(layout) } else { word };
            let Some(chunk) = divided.free_chunk() else { continue };
            if self.exchange(page, word, divided.with(chunk, ChunkState::BeingWritten)) {
                self.next = page;
                return Some(ChunkSlot { page, chunk, layout, size: layout.chunk_size(self.page) });
            }
        }
        None
    }

    /// Copies a chunk into its slot and hands it over to the service. Returns `false` if that failed: the word of the page may have been changed.
    pub fn put(&self, slot: &ChunkSlot, image: &[u8]) -> bool {
        let Some((header, payload)) = image.split_first_chunk::<CHUNK_HEADER>() else { return false };
        let start = slot.page as usize * self.page.bytes() + PAGE_HEADER + slot.chunk as usize * slot.size;
        if image.len() > slot.size {
            return false;
        }
        let copy = |at: usize, bytes: &[u8]| self.region.get_slice(at, bytes.len()).map(|slice| slice.copy_from(bytes)).is_ok();
        // The header is written last; nothing is read before the state of the chunk changes.
        copy(start + CHUNK_HEADER, payload) && copy(start, header) && self.complete(slot)
    }

    fn complete(&self, slot: &ChunkSlot) -> bool {
        // Other chunks of the page may change concurrently, but only a limited number of times.
        (0..=slot.layout.chunks()).any(|_| match self.load(slot.page) {
            Some(word) if word.layout() == Some(slot.layout) && word.state(slot.chunk) == ChunkState::BeingWritten => {
                self.exchange(slot.page, word, word.with(slot.chunk, ChunkState::Complete))
            }
            _ => false,
        })
    }

    fn word(&self, page: u32) -> Option<&AtomicU32> {
        self.region.get_atomic_ref(page as usize * self.page.bytes()).ok()
    }

    fn load(&self, page: u32) -> Option<PageWord> {
        Some(PageWord(self.word(page)?.load(Ordering::Acquire)))
    }

    fn exchange(&self, page: u32, from: PageWord, to: PageWord) -> bool {
        self.word(page).is_some_and(|word| word.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;

    /// Creates memory as a service does, and returns the service's file for it.
    fn shared(pages: u64) -> (SharedMemory, File) {
        let file = memfd_create("memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, pages * 4096).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let service_file = File::from(file.try_clone().unwrap());
        (SharedMemory::map(vec![file], Some(PageSize::DEFAULT)).unwrap(), service_file)
    }

    fn word(file: &File, page: u64) -> u32 {
        let mut word = [0; 4];
        file.read_exact_at(&mut word, page * 4096).unwrap();
        u32::from_le_bytes(word)
    }

    /// M4, M5, M7: fills every chunk of every layout; after that, nothing is left.
    #[test]
    fn m4_m5_all_chunks_of_all_layouts_can_be_filled() {
        for layout in Layout::ALL {
            let (mut memory, service_file) = shared(2);
            let size = layout.chunk_size(PageSize::DEFAULT);
            for number in 0..2 * layout.chunks() {
                let slot = memory.take(size).unwrap();
                assert_eq!((slot.page, slot.chunk, slot.size()), (number / layout.chunks(), number % layout.chunks(), size));
                assert!(memory.put(&slot, &vec![number as u8; size]));
                let mut image = vec![0; size];
                service_file.read_exact_at(&mut image, u64::from(slot.page) * 4096 + 8 + u64::from(slot.chunk) * size as u64).unwrap();
                assert_eq!(image, vec![number as u8; size]);
            }
            assert_eq!(memory.take(100), None, "M8: full is full");
            service_file.write_all_at(&[0; 4], 4096).unwrap();
            assert_eq!(memory.take(4000).map(|slot| slot.page), Some(1), "M4: a page that is free again is divided again");
        }
    }

    #[test]
    fn m14_page_word_change_during_a_write_is_detected() {
        for foreign_word in [0, 0x1000_0000, 0x1000_0003, 0x2000_0001, u32::MAX] {
            let (mut memory, service_file) = shared(1);
            let slot = memory.take(4000).unwrap();
            assert_eq!(word(&service_file, 0), 0x1000_0001);
            service_file.write_all_at(&foreign_word.to_le_bytes(), 0).unwrap();
            assert!(!memory.put(&slot, &[7; 100]), "{foreign_word:#x}");
            assert_eq!(word(&service_file, 0), foreign_word, "what is not ours stays as it is");
        }
        let (mut memory, _) = shared(2);
        let slot = memory.take(4000).unwrap();
        assert!(!memory.put(&slot, &[7; 4089]) && !memory.put(&slot, &[7; 7]), "an image that does not fit, or is none");
    }

    #[test]
    fn p12_only_one_sealed_file_of_valid_size_is_mapped() {
        let file = |bytes: u64, seals: SealFlags| {
            let file = memfd_create("memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
            ftruncate(&file, bytes).unwrap();
            fcntl_add_seals(&file, seals).unwrap();
            file
        };
        let map = |files: Vec<OwnedFd>| SharedMemory::map(files, Some(PageSize::DEFAULT)).map(|memory| memory.region.size());
        let good = || file(8192, SealFlags::SHRINK);
        assert_eq!(map(vec![good()]), Ok(8192));
        assert_eq!(map(vec![]), Err(MemoryError::Files(0)));
        assert_eq!(map(vec![good(), good()]), Err(MemoryError::Files(2)));
        assert_eq!(map(vec![file(8192, SealFlags::GROW)]), Err(MemoryError::Unsealed));
        assert_eq!(map(vec![File::open("/dev/null").unwrap().into()]), Err(MemoryError::Unsealed));
        assert_eq!(map(vec![file(4095, SealFlags::SHRINK)]), Err(MemoryError::Size(4095)));
        assert_eq!(map(vec![file((32 << 20) + 1, SealFlags::SHRINK)]), Err(MemoryError::Size((32 << 20) + 1)));
        assert_eq!(SharedMemory::map(vec![good()], None).map(|_| ()), Err(MemoryError::PageSize));
    }

    /// A huge page is needed at the first access only. If there is none, the access ends the process with SIGBUS.
    #[test]
    fn memory_of_huge_pages_is_not_mapped() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let Ok(file) = memfd_create("memory", flags) else {
            eprintln!("skipped: this kernel has no huge pages of 2 MB");
            return;
        };
        ftruncate(&file, 2 << 20).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let mapped = SharedMemory::map(vec![file], Some(PageSize::DEFAULT));
        assert_eq!(mapped.map(|memory| memory.pages), Err(MemoryError::HugePages));
    }

    proptest! {
        /// M14: for any words, a search ends and touches only free chunks.
        #[test]
        fn m14_chunk_search_handles_any_page_words(words in prop::collection::vec(any::<u32>(), 4), bytes in 0_usize..5000) {
            let (mut memory, service_file) = shared(4);
            for (page, word) in (0..).zip(&words) {
                service_file.write_all_at(&word.to_le_bytes(), page * 4096).unwrap();
            }
            let slot = memory.take(bytes);
            for (page, before) in (0..).zip(&words) {
                let after = word(&service_file, page);
                if slot.as_ref().is_none_or(|slot| u64::from(slot.page) != page) {
                    prop_assert_eq!(after, *before);
                }
            }
            if let Some(slot) = slot {
                let before = PageWord(words[slot.page as usize]);
                prop_assert!(before.is_free() || before.state(slot.chunk) == ChunkState::Free);
                prop_assert!(memory.put(&slot, &[1; 20]));
            }
        }
    }
}
