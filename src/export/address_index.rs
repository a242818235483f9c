//! Lookup of objects by address.

/// Base-2 logarithm of the page size in bytes; a page of 1 KiB contains few objects.
const PAGE_BITS: u32 = 10;
/// A larger distance to the next object starts a new run: an object takes at most as many pages.
const MAX_GAP: u64 = 4 << PAGE_BITS;

/// Finds objects by address. A heap walk reports objects region by region, with ascending addresses within each, so there are few runs of ascending
/// addresses; within a run, a page table narrows down the position.
pub(super) struct AddressIndex<'a> {
    addresses: &'a [u64],
    /// Sorted by address.
    runs: Vec<Run>,
    /// For each page of each run, and one past the end: index of the first object that starts in the page or after it.
    pages: Vec<u32>,
    /// The run used last.
    last_run: Run,
}

/// Objects with ascending addresses in small steps.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u64,
    last: u64,
    /// Index of its first page in `pages`.
    pages: usize,
}

impl<'a> AddressIndex<'a> {
    pub(super) fn new(addresses: &'a [u64]) -> Self {
        let (mut runs, mut pages) = (Vec::<Run>::new(), Vec::new());
        for (address, place) in addresses.iter().zip(0_u32..) {
            match runs.last_mut() {
                Some(run) if *address > run.last && address - run.last <= MAX_GAP => run.last = *address,
                _ => runs.push(Run { first: *address, last: *address, pages: pages.len() }),
            }
            let Some(run) = runs.last() else { continue };
            let page = run.pages + ((address - run.first) >> PAGE_BITS) as usize;
            pages.resize(pages.len().max(page + 1), place);
        }
        pages.push(addresses.len() as u32);
        runs.sort_unstable_by_key(|run| run.first);
        Self { addresses, last_run: runs.first().copied().unwrap_or_default(), runs, pages }
    }

    /// Returns the index of an object among the addresses.
    pub(super) fn find(&mut self, address: u64) -> Option<u32> {
        if !(self.last_run.first..=self.last_run.last).contains(&address) {
            let behind = self.runs.partition_point(|run| run.first <= address);
            self.last_run = *self.runs.get(behind.checked_sub(1)?)?;
        }
        let page = self.last_run.pages + usize::try_from(address.checked_sub(self.last_run.first)? >> PAGE_BITS).ok()?;
        let (from, to) = (*self.pages.get(page)?, *self.pages.get(page + 1)?);
        let found = self.addresses.get(from as usize..to as usize)?.binary_search(&address).ok()?;
        Some(from + found as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_whatever_the_region_order() {
        let region = |first: u64, step: u64, count: u64| (0..count).map(move |place| first + place * step);
        // The second region ends where the first begins, the third is far away, and the fourth is a single object.
        let addresses: Vec<u64> = region(0x10_0000, 24, 5000)
            .chain(region(0x10_0000 - 24 * 100, 24, 100))
            .chain(region(0x9000_0000_0000, 4000, 300))
            .chain([0x20])
            .collect();
        let mut places = AddressIndex::new(&addresses);
        assert_eq!(places.runs.len(), 4);
        for (address, place) in addresses.iter().zip(0..) {
            assert_eq!(places.find(*address), Some(place), "{address:x}");
            assert_eq!(places.find(*address + 8), None, "{address:x}");
        }
        assert_eq!([0, u64::MAX].map(|address| places.find(address)), [None; 2]);
        assert_eq!(AddressIndex::new(&[]).find(0), None);
    }

    /// The addresses are those that a process reports, which may be anything.
    #[test]
    fn distant_objects_take_few_pages() {
        for step in [4096, 4097, 16 << 10] {
            let addresses: Vec<u64> = (1..=100).map(|number| number * step).collect();
            let index = AddressIndex::new(&addresses);
            assert!(index.pages.len() <= 4 * addresses.len() + 1, "{step}: {}", index.pages.len());
        }
    }
}
