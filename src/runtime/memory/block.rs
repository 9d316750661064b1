//! Blocks: large pieces of device memory that allocations are carved out of, page by page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::hal::Buffer;
use crate::runtime::usage::Usage;

/// One buffer of the driver, divided into pages. What changes under allocation is in [`Pages`],
/// which the pool guards; this part is read without a lock.
pub(crate) struct Block {
    buffer: Arc<dyn Buffer>,
    /// The host sees its memory.
    is_mapped: bool,
    /// The address of the buffer's first byte.
    base: u64,
    /// Where the first page starts in the buffer.
    start: u64,
    page_shift: u32,
    /// What each page holds, encoded as [`PageEntry`].
    entries: Box<[AtomicU32]>,
}

/// The page shift of a block that is one page, whatever its size.
const WHOLE: u32 = 63;

/// What a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageEntry {
    /// Nothing.
    Free,
    /// The allocation record with this index.
    Allocation(u32),
    /// The slab with this index.
    Slab(u32),
}

impl PageEntry {
    const SLAB: u32 = 1 << 31;

    fn encode(self) -> u32 {
        match self {
            Self::Free => 0,
            Self::Allocation(index) => index + 1,
            Self::Slab(index) => (index + 1) | Self::SLAB,
        }
    }

    fn decode(word: u32) -> Self {
        match word {
            0 => Self::Free,
            slab if slab & Self::SLAB != 0 => Self::Slab((slab & !Self::SLAB) - 1),
            allocation => Self::Allocation(allocation - 1),
        }
    }
}

impl Block {
    /// A shared block over `buffer`, whose first byte has the address `base`. Its pages start where
    /// both the address is a multiple of their size and the offset one of `offset_alignment`, or at
    /// the buffer's start if there is no such place.
    pub(crate) fn new(
        buffer: Arc<dyn Buffer>,
        base: u64,
        page_shift: u32,
        offset_alignment: u64,
    ) -> Self {
        let aligned = base.next_multiple_of(1 << page_shift) - base;
        let start = if aligned.is_multiple_of(offset_alignment) { aligned } else { 0 };
        let pages = buffer.size().saturating_sub(start) >> page_shift;
        let entries = std::iter::repeat_with(AtomicU32::default).take(pages as usize).collect();
        let is_mapped = buffer.mapping().is_some();
        Self { buffer, is_mapped, base, start, page_shift, entries }
    }

    /// A block for one allocation.
    pub(crate) fn dedicated(buffer: Arc<dyn Buffer>, base: u64) -> Self {
        let entries = Box::new([AtomicU32::new(0)]);
        let is_mapped = buffer.mapping().is_some();
        Self { buffer, is_mapped, base, start: 0, page_shift: WHOLE, entries }
    }

    pub(crate) fn buffer(&self) -> &Arc<dyn Buffer> {
        &self.buffer
    }

    /// Whether the host sees its memory.
    pub(crate) fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn size(&self) -> u64 {
        self.buffer.size()
    }

    pub(crate) fn page_count(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Where a page starts in the buffer.
    pub(crate) fn page_offset(&self, page: u32) -> u64 {
        self.start + (u64::from(page) << self.page_shift)
    }

    /// What lies at `offset` of the buffer, and the offset's place in its page.
    pub(crate) fn entry_at(&self, offset: u64) -> (PageEntry, u64) {
        let Some(offset) = offset.checked_sub(self.start) else { return (PageEntry::Free, 0) };
        let page = offset >> self.page_shift;
        let word = self.entries.get(page as usize).map_or(0, |e| e.load(Ordering::Acquire));
        (PageEntry::decode(word), offset - (page << self.page_shift))
    }

    /// Says what a run of pages holds.
    pub(crate) fn set_entries(&self, first: u32, count: u32, entry: PageEntry) {
        let run = first as usize..(first + count) as usize;
        for word in self.entries.get(run).unwrap_or_default() {
            word.store(entry.encode(), Ordering::Release);
        }
    }
}

/// The free pages of a block, as extents that remember the uses of what they held.
///
/// Neighbours are joined only when nothing fits without: memory that is freed and allocated in the
/// same sizes keeps its exact uses, so new work does not wait for work on other memory.
pub(crate) struct Pages {
    extents: Vec<Extent>,
    free: u32,
    total: u32,
}

struct Extent {
    first: u32,
    count: u32,
    usage: Usage,
}

impl Pages {
    /// All of `total` pages free and unused.
    pub(crate) fn new(total: u32) -> Self {
        let whole = Extent { first: 0, count: total, usage: Usage::default() };
        Self { extents: vec![whole], free: total, total }
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.free == self.total
    }

    /// Takes `count` pages: the first one, and what a use of them must come after.
    pub(crate) fn take(&mut self, count: u32) -> Option<(u32, Usage)> {
        if count > self.free {
            return None;
        }
        let found = self.best_fit(count).or_else(|| {
            self.join_neighbours();
            self.best_fit(count)
        })?;
        let extent = self.extents.get_mut(found)?;
        let first = extent.first;
        let usage = if extent.count == count {
            self.extents.swap_remove(found).usage
        } else {
            extent.first += count;
            extent.count -= count;
            extent.usage.clone()
        };
        self.free -= count;
        Some((first, usage))
    }

    /// Gives pages back with the uses that the next owner must come after.
    pub(crate) fn give(&mut self, first: u32, count: u32, usage: Usage) {
        self.free += count;
        self.extents.push(Extent { first, count, usage });
    }

    fn best_fit(&self, count: u32) -> Option<usize> {
        let fitting = self.extents.iter().enumerate().filter(|(_, e)| e.count >= count);
        fitting.min_by_key(|(_, e)| (e.count, e.first)).map(|(index, _)| index)
    }

    fn join_neighbours(&mut self) {
        self.extents.sort_unstable_by_key(|extent| extent.first);
        self.extents.dedup_by(|next, previous| {
            let adjacent = previous.first + previous.count == next.first;
            if adjacent {
                previous.count += next.count;
                previous.usage.merge(&next.usage);
            }
            adjacent
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_run_is_found_again_by_its_size() {
        let mut pages = Pages::new(16);
        let (a, _) = pages.take(4).unwrap();
        let (b, _) = pages.take(2).unwrap();
        pages.give(a, 4, Usage::default());
        pages.give(b, 2, Usage::default());
        assert_eq!(pages.take(2).unwrap().0, b);
        assert_eq!(pages.take(4).unwrap().0, a);
    }

    #[test]
    fn neighbours_join_when_nothing_else_fits() {
        let mut pages = Pages::new(4);
        let runs: Vec<_> = (0..4).map(|_| pages.take(1).unwrap().0).collect();
        assert!(pages.take(1).is_none());
        for run in [3, 1, 0, 2] {
            pages.give(runs[run], 1, Usage::default());
        }
        assert_eq!(pages.take(4).unwrap().0, 0);
        assert!(!pages.is_unused());
    }

    #[test]
    fn entries_survive_encoding() {
        for entry in
            [PageEntry::Free, PageEntry::Allocation(0), PageEntry::Slab(0), PageEntry::Slab(9)]
        {
            assert_eq!(PageEntry::decode(entry.encode()), entry);
        }
    }
}
