//! An arena: all memory of one kind. It decides when the driver is asked for a block and when one
//! is given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::allocation::Live;
use super::at_hand::AtHand;
use super::block::{Block, PageEntry};
use super::pool::{FreeRegion, FreeSlot, Place, Pool, Region, Shelf};
use super::registry::Registry;
use super::slab::{Class, GRANULE, SLAB_BYTES};
use super::{Counters, Request};
use crate::hal::{Buffer, BufferDesc, Device, MemoryKind};
use crate::runtime::usage::Usage;
use crate::{DlhalStatus, Error, Result};

/// See the module's text.
pub(crate) struct Arena {
    device: Arc<dyn Device>,
    registry: Arc<Registry>,
    kind: MemoryKind,
    sizes: BlockSizes,
    at_hand: AtHand,
    live: LiveCounts,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pool: Pool,
    /// Records without an allocation, for those outside slabs.
    idle_records: Vec<u32>,
    blocks: u64,
    block_bytes: u64,
}

impl State {
    fn give_region(&mut self, free: FreeRegion) {
        let FreeRegion { record, region } = free;
        if let Place::Pages { first, count, .. } = region.place {
            self.pool.give_pages(&region.block, first, count, region.usage);
        }
        self.idle_records.push(record);
    }
}

/// What is allocated. All threads write here: it lies on cache lines of its own, away from what they
/// read to get here.
#[derive(Default)]
#[repr(align(128))]
struct LiveCounts {
    bytes: AtomicU64,
    allocations: AtomicU64,
    peak_bytes: AtomicU64,
}

impl LiveCounts {
    fn add(&self, bytes: u64) {
        let now = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.allocations.fetch_add(1, Ordering::Relaxed);
        if self.peak_bytes.load(Ordering::Relaxed) < now {
            self.peak_bytes.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.allocations.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How large blocks are made.
#[derive(Clone, Copy, Debug)]
struct BlockSizes {
    small: u64,
    large: u64,
    /// Unused blocks beyond this are given back to the driver.
    keep: u64,
}

impl BlockSizes {
    /// Blocks of at most a sixteenth of the device's memory.
    fn for_device(total: u64, kind: MemoryKind) -> Self {
        let (small, large): (u64, u64) = match kind {
            MemoryKind::Device => (16 << 20, 256 << 20),
            MemoryKind::Host => (4 << 20, 64 << 20),
        };
        let limit = (total / 16).max(2 << 20);
        Self { small: small.min(limit), large: large.min(limit), keep: (total / 8).max(64 << 20) }
    }
}

impl Arena {
    pub(crate) fn new(device: Arc<dyn Device>, registry: Arc<Registry>, kind: MemoryKind) -> Self {
        let sizes = BlockSizes::for_device(device.properties().total_memory, kind);
        let at_hand = AtHand::new(device.properties().total_memory);
        Self {
            device,
            registry,
            kind,
            sizes,
            at_hand,
            live: LiveCounts::default(),
            state: Mutex::default(),
        }
    }

    /// Allocates; the address of the first byte.
    pub(crate) fn allocate(&self, request: &Request) -> Result<u64> {
        let address = match Class::for_request(request.size, request.alignment) {
            Some(class) => self.allocate_slot(request, class)?,
            None => self.allocate_region(request)?,
        };
        self.live.add(request.size);
        Ok(address)
    }

    fn allocate_slot(&self, request: &Request, class: Class) -> Result<u64> {
        let free = match self.at_hand.take_slot(class) {
            Some(free) => free,
            None => self.take_slots(class)?,
        };
        let record = self.registry.slot_record(free.slab, free.slot)?;
        let place = Place::Slot { slab: free.slab, slot: free.slot, class };
        let live = self.occupy(request, free.block, place, free.offset, class.slot_bytes());
        let address = live.address;
        self.registry.record(record)?.lock().live = Some(live);
        Ok(address)
    }

    /// The allocation that a request makes of `size` bytes at `offset` of a block.
    fn occupy(
        &self,
        request: &Request,
        block: Arc<Block>,
        place: Place,
        offset: u64,
        size: u64,
    ) -> Live {
        let start = block.base() + offset;
        let address = align_up(start, request.alignment);
        Live {
            address,
            size: request.size,
            reserved: size - (address - start),
            block,
            offset: offset + (address - start),
            place,
            kind: self.kind,
            shares: 1,
            read_only: false,
            imported: false,
            owner: None,
        }
    }

    /// A slot from the pool, and a few more of its slab that come to the thread's hand.
    fn take_slots(&self, class: Class) -> Result<FreeSlot> {
        let mut state = self.state.lock();
        let first = match state.pool.take_slot(class) {
            Some(free) => free,
            None => {
                self.open_slab(&mut state, class)?;
                let free = state.pool.take_slot(class);
                free.ok_or_else(|| Error::internal("a new slab without a free slot"))?
            }
        };
        let more = AtHand::most_slots(class) / 2;
        let more: Vec<FreeSlot> =
            std::iter::from_fn(|| state.pool.take_slot(class)).take(more).collect();
        drop(state);
        more.into_iter().for_each(|free| self.keep_slot(class, free));
        Ok(first)
    }

    fn keep_slot(&self, class: Class, free: FreeSlot) {
        let too_many = self.at_hand.put_slot(class, free);
        if !too_many.is_empty() {
            let mut state = self.state.lock();
            too_many.iter().for_each(|free| state.pool.give_slot(free.slab, free.slot));
        }
    }

    fn allocate_region(&self, request: &Request) -> Result<u64> {
        // Pages start at multiples of the smallest page.
        let slack = if request.alignment > SLAB_BYTES { request.alignment } else { 0 };
        let bytes = request
            .size
            .checked_add(slack)
            .filter(|&bytes| bytes <= self.limit())
            .ok_or_else(|| self.too_large(request.size))?;
        let FreeRegion { record, region } = if bytes > self.sizes.large / 2 {
            self.take_whole(request, bytes)?
        } else {
            let shelf = Shelf::for_bytes(bytes);
            let pages = shelf.pages_for(bytes);
            match pages.and_then(|pages| self.at_hand.take_region(shelf, pages)) {
                Some(free) => free,
                None => self.take_region(shelf, bytes)?,
            }
        };
        let Region { block, place, offset, size, usage } = region;
        let live = self.occupy(request, block, place, offset, size);
        let address = live.address;
        let mut allocation = self.registry.record(record)?.lock();
        allocation.usage = usage;
        allocation.live = Some(live);
        Ok(address)
    }

    fn take_region(&self, shelf: Shelf, bytes: u64) -> Result<FreeRegion> {
        let mut state = self.state.lock();
        let record = self.idle_record(&mut state)?;
        let region = match self.take_pages(&mut state, shelf, bytes) {
            Ok(region) => region,
            Err(error) => {
                state.idle_records.push(record);
                return Err(error);
            }
        };
        if let Place::Pages { first, count, .. } = region.place {
            region.block.set_entries(first, count, PageEntry::Allocation(record));
        }
        Ok(FreeRegion { record, region })
    }

    fn keep_region(&self, free: FreeRegion) {
        if let Some(free) = self.at_hand.put_region(free) {
            let mut state = self.state.lock();
            state.give_region(free);
            self.release_unused(&mut state, self.sizes.keep);
        }
    }

    /// Makes `buffer`, which was imported, an allocation of `size` bytes that starts at `offset`.
    pub(crate) fn adopt(&self, import: Import) -> Result<u64> {
        // Two imports of the same page do not both find its addresses free: the lock is held.
        let mut state = self.state.lock();
        let base = self.registry.address_of(&import.buffer)?;
        let block = Arc::new(Block::dedicated(import.buffer, base));
        let record = self.idle_record(&mut state)?;
        let address = base + import.offset;
        let mut allocation = self.registry.record(record)?.lock();
        allocation.usage = Usage::default();
        allocation.live = Some(Live {
            address,
            size: import.size,
            reserved: block.size() - import.offset,
            block: block.clone(),
            offset: import.offset,
            place: Place::Whole,
            kind: self.kind,
            shares: 1,
            read_only: import.read_only,
            imported: true,
            owner: None,
        });
        drop(allocation);
        block.set_entries(0, 1, PageEntry::Allocation(record));
        self.enter(&mut state, &block);
        self.live.add(import.size);
        Ok(address)
    }

    /// Takes back the memory of an allocation whose record is dead already.
    pub(crate) fn give_back(&self, live: Live, record: u32, usage: Usage) {
        self.live.remove(live.size);
        match live.place {
            Place::Slot { slab, slot, class } => {
                // Less what came before the first aligned address.
                let offset = live.offset - (class.slot_bytes() - live.reserved);
                self.keep_slot(class, FreeSlot { slab, slot, block: live.block, offset });
            }
            Place::Pages { shelf, count, .. } => {
                let size = u64::from(count) << shelf.page_shift();
                // As above.
                let offset = live.offset - (size - live.reserved);
                let region = Region { block: live.block, place: live.place, offset, size, usage };
                self.keep_region(FreeRegion { record, region });
            }
            Place::Whole => {
                let mut state = self.state.lock();
                state.idle_records.push(record);
                state.pool.give_idle(live.block, usage);
                self.release_unused(&mut state, self.sizes.keep);
            }
        }
    }

    /// Drops the block of an imported allocation whose record is dead already.
    pub(crate) fn disown(&self, live: &Live, record: u32) {
        self.live.remove(live.size);
        let mut state = self.state.lock();
        state.idle_records.push(record);
        live.block.set_entries(0, 1, PageEntry::Free);
        self.forget(&mut state, &live.block);
    }

    /// Gives every unused block back to the driver; how many bytes.
    pub(crate) fn trim(&self) -> u64 {
        let mut state = self.state.lock();
        self.reclaim(&mut state);
        self.release_unused(&mut state, 0)
    }

    /// The counts.
    pub(crate) fn counters(&self) -> Counters {
        let state = self.state.lock();
        Counters {
            live_bytes: self.live.bytes.load(Ordering::Relaxed),
            live_allocations: self.live.allocations.load(Ordering::Relaxed),
            peak_bytes: self.live.peak_bytes.load(Ordering::Relaxed),
            block_bytes: state.block_bytes,
            blocks: state.blocks,
            unused_bytes: state.pool.unused_bytes(),
        }
    }

    fn take_pages(&self, state: &mut State, shelf: Shelf, bytes: u64) -> Result<Region> {
        if let Some(region) = state.pool.take_pages(shelf, bytes) {
            return Ok(region);
        }
        if self.reclaim(state)
            && let Some(region) = state.pool.take_pages(shelf, bytes)
        {
            return Ok(region);
        }
        self.add_block(state, shelf, bytes)?;
        let region = state.pool.take_pages(shelf, bytes);
        region.ok_or_else(|| Error::internal("a new block without room for what it was made for"))
    }

    /// Where the driver has no room for a block of the usual size, one for the request alone.
    fn add_block(&self, state: &mut State, shelf: Shelf, bytes: u64) -> Result<()> {
        // A page of slack lets the pages start at a multiple of their size.
        let page = 1 << shelf.page_shift();
        let least = bytes.next_multiple_of(page) + page;
        let usual = match shelf {
            Shelf::Small => self.sizes.small,
            // The first few are smaller, for processes that need little.
            Shelf::Large if state.pool.block_count(shelf) < 2 => self.sizes.large / 4,
            Shelf::Large => self.sizes.large,
        };
        let buffer = match self.create_buffer(usual.max(least) + page) {
            Err(error) if error.status() == DlhalStatus::OutOfMemory && usual > least => {
                self.create_buffer(least)?
            }
            other => other?,
        };
        let base = self.registry.address_of(&buffer)?;
        let alignment = self.device.properties().kernel.storage_buffer_alignment;
        let block = Arc::new(Block::new(buffer, base, shelf.page_shift(), alignment));
        self.enter(state, &block);
        state.pool.add_block(shelf, block);
        Ok(())
    }

    fn take_whole(&self, request: &Request, bytes: u64) -> Result<FreeRegion> {
        // The driver's alignment of a buffer's address may be less than the request's.
        let bytes = (bytes + request.alignment.max(GRANULE)).next_multiple_of(SLAB_BYTES);
        let mut state = self.state.lock();
        let (block, usage) = match state.pool.take_idle(bytes) {
            Some(idle) => idle,
            None => {
                let buffer = self.create_whole(request, bytes)?;
                let base = self.registry.address_of(&buffer)?;
                let end = base.next_multiple_of(request.alignment) + request.size;
                if end > base + buffer.size() {
                    return Err(self.too_large(request.size));
                }
                let block = Arc::new(Block::dedicated(buffer, base));
                self.enter(&mut state, &block);
                (block, Usage::default())
            }
        };
        let record = self.idle_record(&mut state)?;
        block.set_entries(0, 1, PageEntry::Allocation(record));
        let size = block.size();
        let region = Region { block, place: Place::Whole, offset: 0, size, usage };
        Ok(FreeRegion { record, region })
    }

    /// A buffer of `bytes`, or where their padding is what is too much, of what was asked for.
    fn create_whole(&self, request: &Request, bytes: u64) -> Result<Arc<dyn Buffer>> {
        let least = request.size.next_multiple_of(GRANULE);
        match self.create_buffer(bytes) {
            Err(error) if error.status() == DlhalStatus::OutOfMemory && least < bytes => {
                self.create_buffer(least).map_err(|_| error)
            }
            other => other,
        }
    }

    fn open_slab(&self, state: &mut State, class: Class) -> Result<()> {
        let number = match state.pool.take_pageless_slab(class) {
            Some(number) => number,
            None => self.registry.new_slab(class)?,
        };
        let region = self.take_pages(state, Shelf::Small, SLAB_BYTES)?;
        let Place::Pages { first: page, .. } = region.place else {
            return Err(Error::internal("a slab outside a shared block"));
        };
        self.registry.set_slab_usage(number, &region.usage)?;
        state.pool.open_slab(number, class, &region.block, page);
        Ok(())
    }

    /// Takes back what threads have at hand, and the pages of slabs without allocations. Whether
    /// there was any. Whoever waits for the pool holds nothing that threads have at hand, so it can
    /// be taken with the pool held.
    fn reclaim(&self, state: &mut State) -> bool {
        let (slots, regions) = self.at_hand.drain();
        let found = !regions.is_empty();
        for free in slots {
            state.pool.give_slot(free.slab, free.slot);
        }
        regions.into_iter().for_each(|free| state.give_region(free));
        state.pool.reclaim_slabs(|slab| self.registry.slab_usage(slab)) || found
    }

    fn release_unused(&self, state: &mut State, keep: u64) -> u64 {
        let released = state.pool.release_unused(keep);
        released.iter().for_each(|block| self.forget(state, block));
        released.iter().map(|block| block.size()).sum()
    }

    fn enter(&self, state: &mut State, block: &Arc<Block>) {
        self.registry.enter(block);
        state.blocks += 1;
        state.block_bytes += block.size();
    }

    fn forget(&self, state: &mut State, block: &Arc<Block>) {
        self.registry.forget(block);
        state.blocks -= 1;
        state.block_bytes -= block.size();
    }

    fn idle_record(&self, state: &mut State) -> Result<u32> {
        match state.idle_records.pop() {
            Some(record) => Ok(record),
            None => self.registry.new_record(),
        }
    }

    fn create_buffer(&self, size: u64) -> Result<Arc<dyn Buffer>> {
        self.device.create_buffer(&BufferDesc { size, memory: self.kind })
    }

    /// No request above this is worth asking the driver for.
    fn limit(&self) -> u64 {
        match self.kind {
            MemoryKind::Device => self.device.properties().total_memory,
            // The host's memory may be any size; this keeps sums from overflowing.
            MemoryKind::Host => 1 << 46,
        }
    }

    fn too_large(&self, size: u64) -> Error {
        let budget = self.device.memory_budget();
        let available = match budget.available {
            Some(bytes) => format!("{bytes} are free"),
            None => "the driver does not tell how many are free".to_owned(),
        };
        Error::out_of_memory(format!(
            "{size} bytes asked for; the device's memory has {} bytes, of which {available}",
            budget.total
        ))
    }
}

/// The next multiple of `alignment`, a power of two.
fn align_up(address: u64, alignment: u64) -> u64 {
    (address + (alignment - 1)) & !(alignment - 1)
}

/// Host memory that the device uses in place.
pub(crate) struct Import {
    /// What the driver made of it.
    pub(crate) buffer: Arc<dyn Buffer>,
    /// Where the allocation starts in the buffer.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// No copy or kernel may write to it.
    pub(crate) read_only: bool,
}
