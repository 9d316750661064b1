//! A pool: the blocks of one kind of memory, and what of them is free.

use std::sync::Arc;

use super::block::{Block, PageEntry, Pages};
use super::slab::{CLASSES, Class, SLAB_BYTES};
use crate::runtime::usage::Usage;

/// Where an allocation lies in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A slot of a slab, of the slab's class.
    Slot { slab: u32, slot: u32, class: Class },
    /// A run of pages of a shared block.
    Pages { shelf: Shelf, first: u32, count: u32 },
    /// A block of its own.
    Whole,
}

/// Free memory that a request was given.
pub(crate) struct Region {
    pub(crate) block: Arc<Block>,
    pub(crate) place: Place,
    /// Bytes from the start of the block's buffer.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// What a use of it must come after.
    pub(crate) usage: Usage,
}

/// A region without an allocation.
pub(crate) struct FreeRegion {
    /// The record that its addresses lead to.
    pub(crate) record: u32,
    pub(crate) region: Region,
}

/// A slot without an allocation. What a use of it must come after, its record remembers.
pub(crate) struct FreeSlot {
    pub(crate) slab: u32,
    pub(crate) slot: u32,
    pub(crate) block: Arc<Block>,
    /// Bytes from the start of the block's buffer.
    pub(crate) offset: u64,
}

/// Two sizes of shared blocks keep small and large allocations from splitting each other's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    Small,
    Large,
}

/// Pages of the small shelf are slabs' size; larger requests than a few of them take the other.
pub(crate) const SMALL_PAGE_SHIFT: u32 = 16;
const LARGE_PAGE_SHIFT: u32 = 18;
const LARGEST_ON_SMALL_SHELF: u64 = 256 << 10;

impl Shelf {
    pub(crate) fn for_bytes(bytes: u64) -> Self {
        if bytes <= LARGEST_ON_SMALL_SHELF { Self::Small } else { Self::Large }
    }

    pub(crate) fn page_shift(self) -> u32 {
        match self {
            Self::Small => SMALL_PAGE_SHIFT,
            Self::Large => LARGE_PAGE_SHIFT,
        }
    }

    pub(crate) fn pages_for(self, bytes: u64) -> Option<u32> {
        u32::try_from(bytes.checked_next_multiple_of(1 << self.page_shift())? >> self.page_shift())
            .ok()
    }
}

/// See the module's text. It makes and frees nothing of the driver's: blocks are handed in and out.
#[derive(Default)]
pub(crate) struct Pool {
    small: Vec<SharedBlock>,
    large: Vec<SharedBlock>,
    /// Blocks of freed large allocations, kept for the next of about their size.
    idle: Vec<(Arc<Block>, Usage)>,
    /// Slabs with free slots, by class.
    open_slabs: [Vec<u32>; CLASSES],
    slabs: std::collections::HashMap<u32, Slab>,
    /// Slab numbers that have records of a class but no page at present.
    pageless_slabs: [Vec<u32>; CLASSES],
}

struct SharedBlock {
    block: Arc<Block>,
    pages: Pages,
}

struct Slab {
    class: Class,
    block: Arc<Block>,
    page: u32,
    free: Vec<u32>,
}

impl Pool {
    /// A free slot of a class, from a slab that has one.
    pub(crate) fn take_slot(&mut self, class: Class) -> Option<FreeSlot> {
        let open = self.open_slabs.get_mut(class.index())?;
        let number = *open.last()?;
        let slab = self.slabs.get_mut(&number)?;
        let slot = slab.free.pop()?;
        if slab.free.is_empty() {
            open.pop();
        }
        let offset = slab.block.page_offset(slab.page) + u64::from(slot) * class.slot_bytes();
        Some(FreeSlot { slab: number, slot, block: slab.block.clone(), offset })
    }

    /// A slab number that already has records of `class`, from a slab that gave up its page.
    pub(crate) fn take_pageless_slab(&mut self, class: Class) -> Option<u32> {
        self.pageless_slabs.get_mut(class.index())?.pop()
    }

    /// Makes `page`, taken by [`Self::take_pages`], the slab `number`.
    pub(crate) fn open_slab(&mut self, number: u32, class: Class, block: &Arc<Block>, page: u32) {
        block.set_entries(page, 1, PageEntry::Slab(number));
        let free = (0..class.slots()).rev().collect();
        self.slabs.insert(number, Slab { class, block: block.clone(), page, free });
        if let Some(open) = self.open_slabs.get_mut(class.index()) {
            open.push(number);
        }
    }

    /// Gives a slot back. Its page stays a slab until it is reclaimed.
    pub(crate) fn give_slot(&mut self, number: u32, slot: u32) {
        let Some(slab) = self.slabs.get_mut(&number) else { return };
        if slab.free.is_empty()
            && let Some(open) = self.open_slabs.get_mut(slab.class.index())
        {
            open.push(number);
        }
        slab.free.push(slot);
    }

    /// A run of pages that holds `bytes`, from a shared block that has one.
    pub(crate) fn take_pages(&mut self, shelf: Shelf, bytes: u64) -> Option<Region> {
        let count = shelf.pages_for(bytes)?;
        self.shelf(shelf).iter_mut().find_map(|shared| {
            let (first, usage) = shared.pages.take(count)?;
            Some(Region {
                block: shared.block.clone(),
                place: Place::Pages { shelf, first, count },
                offset: shared.block.page_offset(first),
                size: u64::from(count) << shelf.page_shift(),
                usage,
            })
        })
    }

    /// Gives pages back.
    pub(crate) fn give_pages(&mut self, block: &Arc<Block>, first: u32, count: u32, usage: Usage) {
        block.set_entries(first, count, PageEntry::Free);
        for shared in self.small.iter_mut().chain(&mut self.large) {
            if Arc::ptr_eq(&shared.block, block) {
                return shared.pages.give(first, count, usage);
            }
        }
    }

    /// Adds a shared block.
    pub(crate) fn add_block(&mut self, shelf: Shelf, block: Arc<Block>) {
        let pages = Pages::new(block.page_count());
        self.shelf(shelf).push(SharedBlock { block, pages });
    }

    /// How many shared blocks a shelf has.
    pub(crate) fn block_count(&mut self, shelf: Shelf) -> usize {
        self.shelf(shelf).len()
    }

    /// An idle block that holds `bytes` and is at most a quarter larger.
    pub(crate) fn take_idle(&mut self, bytes: u64) -> Option<(Arc<Block>, Usage)> {
        let fits = |block: &Block| block.size() >= bytes && block.size() - bytes <= bytes / 4;
        let candidates = self.idle.iter().enumerate().filter(|(_, (block, _))| fits(block));
        let (best, _) = candidates.min_by_key(|(_, (block, _))| block.size())?;
        Some(self.idle.swap_remove(best))
    }

    /// Keeps the block of a freed large allocation.
    pub(crate) fn give_idle(&mut self, block: Arc<Block>, usage: Usage) {
        block.set_entries(0, 1, PageEntry::Free);
        self.idle.push((block, usage));
    }

    /// Turns slabs without live slots back into free pages; `usage_of` tells a slab's past uses.
    /// Whether there was one.
    pub(crate) fn reclaim_slabs(&mut self, usage_of: impl Fn(u32) -> Usage) -> bool {
        let is_empty = |slab: &Slab| slab.free.len() == slab.class.slots() as usize;
        let empty: Vec<u32> =
            self.slabs.iter().filter(|(_, slab)| is_empty(slab)).map(|(&n, _)| n).collect();
        for &number in &empty {
            let Some(slab) = self.slabs.remove(&number) else { continue };
            if let Some(open) = self.open_slabs.get_mut(slab.class.index()) {
                open.retain(|&other| other != number);
            }
            if let Some(pageless) = self.pageless_slabs.get_mut(slab.class.index()) {
                pageless.push(number);
            }
            self.give_pages(&slab.block, slab.page, 1, usage_of(number));
        }
        !empty.is_empty()
    }

    /// Takes out the blocks in which nothing is allocated, idle ones first, until at most `keep`
    /// bytes of such blocks remain.
    pub(crate) fn release_unused(&mut self, keep: u64) -> Vec<Arc<Block>> {
        let mut excess = self.unused_bytes().saturating_sub(keep);
        let mut released = Vec::new();
        let mut release = |block: &Arc<Block>, unused: bool| {
            let go = unused && excess > 0;
            if go {
                excess = excess.saturating_sub(block.size());
                released.push(block.clone());
            }
            !go
        };
        self.idle.retain(|(block, _)| release(block, true));
        self.large.retain(|shared| release(&shared.block, shared.pages.is_unused()));
        self.small.retain(|shared| release(&shared.block, shared.pages.is_unused()));
        released
    }

    /// Bytes of blocks in which nothing is allocated.
    pub(crate) fn unused_bytes(&self) -> u64 {
        let shared = self.small.iter().chain(&self.large).filter(|s| s.pages.is_unused());
        let idle = self.idle.iter().map(|(block, _)| block.size());
        shared.map(|s| s.block.size()).chain(idle).sum()
    }

    fn shelf(&mut self, shelf: Shelf) -> &mut Vec<SharedBlock> {
        match shelf {
            Shelf::Small => &mut self.small,
            Shelf::Large => &mut self.large,
        }
    }
}

const _: () = assert!(1 << SMALL_PAGE_SHIFT == SLAB_BYTES);
