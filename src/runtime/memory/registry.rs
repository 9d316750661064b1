//! Which allocation an address lies in: blocks by address, records by page. Readers take no lock.

use std::sync::{Arc, OnceLock};

use once_cell::sync::OnceCell;

use super::allocation::Allocation;
use super::block::{Block, PageEntry};
use super::directory::Directory;
use super::reserved::ReservedRange;
use super::slab::Class;
use crate::hal::{Buffer, Device, MemoryKind};
use crate::runtime::append_only::AppendOnly;
use crate::runtime::usage::Usage;
use crate::{Error, Result};

/// See the module's text.
pub(crate) struct Registry {
    /// Blocks by device address.
    by_device_address: Directory,
    /// Mapped blocks of host memory by host address.
    by_host_address: Directory,
    /// Addresses of our own: for every buffer where they have none, and for imported ones whose
    /// addresses are another's already.
    reserved: OnceCell<ReservedRange>,
    records: AppendOnly<Allocation>,
    slabs: AppendOnly<OnceLock<SlabRecords>>,
}

/// The records of a slab's slots: consecutive.
struct SlabRecords {
    class: Class,
    first: u32,
}

impl Registry {
    pub(crate) fn new(device: &dyn Device) -> Result<Self> {
        let reserved = OnceCell::new();
        if device.properties().fallbacks.reserved_addresses {
            reserved.get_or_try_init(ReservedRange::new)?;
        }
        Ok(Self {
            by_device_address: Directory::new(),
            by_host_address: Directory::new(),
            reserved,
            records: AppendOnly::new(),
            slabs: AppendOnly::new(),
        })
    }

    /// The number of the record that `address` may lie in; the record's lock tells whether it does.
    pub(crate) fn find(&self, address: u64) -> Result<u32> {
        let (entry, within) = self
            .by_device_address
            .find(address, |block, offset| block.entry_at(offset))
            .unwrap_or((PageEntry::Free, 0));
        let record = match entry {
            PageEntry::Free => None,
            PageEntry::Allocation(record) => Some(record),
            PageEntry::Slab(number) => self
                .slab_records(number)
                .ok()
                .and_then(|slab| slab.class.slot_at(within).map(|slot| slab.first + slot)),
        };
        record.ok_or_else(|| unknown_address(address))
    }

    /// The device address of host memory that was pinned or imported here.
    pub(crate) fn device_address_of_host(&self, host: u64) -> Option<u64> {
        self.by_host_address.find(host, |block, offset| block.base() + offset)
    }

    /// A record by its number.
    pub(crate) fn record(&self, number: u32) -> Result<&Allocation> {
        self.records.get(number).ok_or_else(|| Error::internal("a missing allocation record"))
    }

    /// A new record outside slabs.
    pub(crate) fn new_record(&self) -> Result<u32> {
        self.records.grow(1).ok_or_else(too_many_records)
    }

    /// A new slab number with records for every slot of `class`.
    pub(crate) fn new_slab(&self, class: Class) -> Result<u32> {
        let first = self.records.grow(class.slots()).ok_or_else(too_many_records)?;
        let number = self.slabs.grow(1).ok_or_else(too_many_records)?;
        if let Some(slab) = self.slabs.get(number) {
            slab.get_or_init(|| SlabRecords { class, first });
        }
        Ok(number)
    }

    /// The record of a slot.
    pub(crate) fn slot_record(&self, slab: u32, slot: u32) -> Result<u32> {
        Ok(self.slab_records(slab)?.first + slot)
    }

    /// Says what a slab's page remembers to the records of its slots.
    pub(crate) fn set_slab_usage(&self, slab: u32, usage: &Usage) -> Result<()> {
        let slab = self.slab_records(slab)?;
        for slot in 0..slab.class.slots() {
            self.record(slab.first + slot)?.lock().usage.clone_from(usage);
        }
        Ok(())
    }

    /// What the records of a slab's slots remember, together.
    pub(crate) fn slab_usage(&self, slab: u32) -> Usage {
        let mut usage = Usage::default();
        if let Ok(slab) = self.slab_records(slab) {
            for slot in 0..slab.class.slots() {
                if let Ok(record) = self.record(slab.first + slot) {
                    usage.merge(&record.lock().usage);
                }
            }
        }
        usage
    }

    /// The address of a new buffer's first byte. Some devices address the host's memory as the host
    /// does, so two imports from the same page have the same addresses.
    pub(crate) fn address_of(&self, buffer: &Arc<dyn Buffer>) -> Result<u64> {
        let size = buffer.size();
        match buffer.device_address() {
            Some(address) if !self.by_device_address.overlaps(address, size) => Ok(address),
            _ => self.reserved.get_or_try_init(ReservedRange::new)?.take(size),
        }
    }

    /// Makes a block's addresses known.
    pub(crate) fn enter(&self, block: &Arc<Block>) {
        self.by_device_address.insert(block.base(), block.clone());
        if let Some(host) = host_memory(block) {
            self.by_host_address.insert(host, block.clone());
        }
    }

    /// Forgets a block's addresses.
    pub(crate) fn forget(&self, block: &Arc<Block>) {
        self.by_device_address.remove(block);
        if let Some(reserved) = self.reserved.get().filter(|own| own.contains(block.base())) {
            reserved.give(block.base(), block.size());
        }
        if host_memory(block).is_some() {
            self.by_host_address.remove(block);
        }
    }

    fn slab_records(&self, number: u32) -> Result<&SlabRecords> {
        let slab = self.slabs.get(number).and_then(OnceLock::get);
        slab.ok_or_else(|| Error::internal("a slab without records"))
    }
}

/// Where the host sees a block of its own memory.
fn host_memory(block: &Block) -> Option<u64> {
    let buffer = block.buffer();
    let mapping = buffer.mapping().filter(|_| buffer.memory() == MemoryKind::Host)?;
    Some(mapping.ptr.as_ptr() as u64)
}

fn unknown_address(address: u64) -> Error {
    Error::not_found(format!(
        "address {address:#x} lies in no allocation of this device: it was freed, or is another \
         device's or the host's"
    ))
}

fn too_many_records() -> Error {
    Error::out_of_memory("2^31 allocations are live or remembered; free some")
}
