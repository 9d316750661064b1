//! Device memory: allocations carved out of large blocks, found again by any address inside them.
//!
//! Freed memory is given to the next allocation at once, together with the uses that are still in
//! flight; the next use of it is ordered after them like any other, so freeing never waits.

mod allocation;
mod arena;
mod at_hand;
mod block;
mod directory;
mod pool;
mod recent;
mod registry;
mod reserved;
mod slab;

use std::any::Any;
use std::sync::Arc;

use self::arena::Arena;
use self::registry::Registry;
use super::timeline::Point;
use super::usage::Usage;
use crate::hal::{Device, MemoryKind};
use crate::{Error, Result};

pub(crate) use self::allocation::{Allocation, AllocationState};
pub(crate) use self::arena::Import;
pub(crate) use self::block::Block;
use self::pool::Place;
pub(crate) use self::recent::Recent;

/// All memory of one device.
pub(crate) struct Memory {
    registry: Arc<Registry>,
    device: Arena,
    host: Arena,
}

/// What an allocation asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Bytes; may be zero.
    pub(crate) size: u64,
    /// A power of two.
    pub(crate) alignment: u64,
    /// Device memory, or host memory that the device reaches.
    pub(crate) kind: MemoryKind,
}

/// Counts of one kind of memory; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Asked for by live allocations.
    pub(crate) live_bytes: u64,
    /// Live allocations.
    pub(crate) live_allocations: u64,
    /// The highest `live_bytes` so far.
    pub(crate) peak_bytes: u64,
    /// In blocks, used or not.
    pub(crate) block_bytes: u64,
    /// Blocks: each is one memory object of the driver.
    pub(crate) blocks: u64,
    /// In blocks that hold no allocation.
    pub(crate) unused_bytes: u64,
}

impl Counters {
    /// The counts of both kinds together. The peak is the sum of both peaks, an upper bound.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            live_bytes: self.live_bytes + other.live_bytes,
            live_allocations: self.live_allocations + other.live_allocations,
            peak_bytes: self.peak_bytes + other.peak_bytes,
            block_bytes: self.block_bytes + other.block_bytes,
            blocks: self.blocks + other.blocks,
            unused_bytes: self.unused_bytes + other.unused_bytes,
        }
    }
}

/// What remains of an imported allocation after its last owner let go.
pub(crate) struct Disowned {
    /// To be dropped once `points` have passed, under no lock.
    pub(crate) owner: Box<dyn Any + Send>,
    /// The uses still remembered.
    pub(crate) points: Vec<Point>,
    /// Keeps imported memory known to the driver until then.
    pub(crate) block: Option<Arc<Block>>,
}

impl Memory {
    pub(crate) fn new(device: &Arc<dyn Device>) -> Result<Self> {
        let registry = Arc::new(Registry::new(device.as_ref())?);
        let arena = |kind| Arena::new(device.clone(), registry.clone(), kind);
        Ok(Self { device: arena(MemoryKind::Device), host: arena(MemoryKind::Host), registry })
    }

    /// Allocates; the address of the first byte. Contents are undefined.
    pub(crate) fn allocate(&self, request: &Request) -> Result<u64> {
        if !request.alignment.is_power_of_two() {
            let alignment = request.alignment;
            return Err(Error::invalid(format!("alignment {alignment} is not a power of two")));
        }
        self.arena(request.kind).allocate(request)
    }

    /// Makes imported host memory an allocation; its address.
    pub(crate) fn adopt(&self, import: Import) -> Result<u64> {
        self.host.adopt(import)
    }

    /// The record of the allocation that `address` may lie in; its lock tells whether it does.
    pub(crate) fn find(&self, address: u64) -> Result<&Allocation> {
        self.record(self.number_of(address)?)
    }

    /// The number of the record that [`Self::find`] gives.
    pub(crate) fn number_of(&self, address: u64) -> Result<u32> {
        self.registry.find(address)
    }

    /// A record by its number.
    #[inline]
    pub(crate) fn record(&self, number: u32) -> Result<&Allocation> {
        self.registry.record(number)
    }

    /// The device address of host memory that this library pinned or imported, if `host` is one.
    pub(crate) fn device_address_of_host(&self, host: u64) -> Option<u64> {
        self.registry.device_address_of_host(host)
    }

    /// One more owner for the allocation that holds `address`; where it starts.
    pub(crate) fn share(&self, address: u64) -> Result<u64> {
        let mut state = self.find(address)?.lock();
        let live = state.live_at_mut(address)?;
        live.shares = live
            .shares
            .checked_add(1)
            .ok_or_else(|| Error::precondition("the allocation has 2^32 - 1 owners already"))?;
        Ok(live.address)
    }

    /// Gives up one ownership of the allocation that starts at `address`. With the last one the
    /// memory is free for others at once; of an imported one, what must outlast its uses is
    /// returned.
    pub(crate) fn free(&self, address: u64) -> Result<Option<Disowned>> {
        let record = self.registry.find(address)?;
        let mut state = self.registry.record(record)?.lock();
        let live = state.live_at_mut(address)?;
        if live.address != address {
            return Err(Error::invalid(format!(
                "address {address:#x} lies {} bytes inside the allocation that starts at {:#x}; \
                 free that address",
                address - live.address,
                live.address
            )));
        }
        live.shares -= 1;
        if live.shares > 0 {
            return Ok(None);
        }
        let Some(mut live) = state.live.take() else { return Ok(None) };
        let usage = match live.place {
            Place::Slot { .. } if live.owner.is_none() => Usage::default(),
            Place::Slot { .. } => state.usage.clone(),
            Place::Pages { .. } | Place::Whole => std::mem::take(&mut state.usage),
        };
        drop(state);
        let arena = self.arena(live.kind);
        if !live.imported {
            let owner = live.owner.take();
            let disowned =
                owner.map(|owner| Disowned { owner, points: usage.points(), block: None });
            arena.give_back(live, record, usage);
            return Ok(disowned);
        }
        arena.disown(&live, record);
        let owner = live.owner.take().unwrap_or(Box::new(()));
        Ok(Some(Disowned { owner, points: usage.points(), block: Some(live.block) }))
    }

    /// Gives unused blocks back to the driver; how many bytes.
    pub(crate) fn trim(&self) -> u64 {
        self.device.trim() + self.host.trim()
    }

    /// The counts of a kind of memory.
    pub(crate) fn counters(&self, kind: MemoryKind) -> Counters {
        self.arena(kind).counters()
    }

    fn arena(&self, kind: MemoryKind) -> &Arena {
        match kind {
            MemoryKind::Device => &self.device,
            MemoryKind::Host => &self.host,
        }
    }
}
