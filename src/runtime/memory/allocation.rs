//! The record of one allocation. Records are never freed and are reused, so that a stale address
//! leads to a record that says no, not to freed memory.

use std::any::Any;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::block::Block;
use super::pool::Place;
use crate::hal::MemoryKind;
use crate::runtime::usage::Usage;
use crate::{Error, Result};

/// See the module's text. Records of different threads share no cache line.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Allocation {
    state: Mutex<AllocationState>,
}

/// What is guarded by an allocation's lock. Whoever holds it excludes every other use of the
/// memory from being ordered, so it is held briefly, and while it is, no other lock is taken but
/// those of further allocations, by rising number.
///
/// In this order a use of the memory reads the first two of the record's three cache lines.
#[derive(Default)]
#[repr(C)]
pub(crate) struct AllocationState {
    /// The uses of the memory, former owners' included.
    pub(crate) usage: Usage,
    /// The memory, while allocated.
    pub(crate) live: Option<Live>,
}

/// What is true of an allocation as long as it is one. What each use looks at comes first.
#[repr(C)]
pub(crate) struct Live {
    /// The address of its first byte.
    pub(crate) address: u64,
    /// Bytes that were asked for.
    pub(crate) size: u64,
    /// Bytes that it occupies.
    pub(crate) reserved: u64,
    /// The block that it lies in.
    pub(crate) block: Arc<Block>,
    /// Bytes from the start of the block's buffer.
    pub(crate) offset: u64,
    /// Imported as read-only: no copy or kernel may write to it.
    pub(crate) read_only: bool,
    /// Memory of somebody else's, used in place.
    pub(crate) imported: bool,
    /// Device memory, or host memory that the device reaches.
    pub(crate) kind: MemoryKind,
    /// Owners: the allocating call and every export. The memory goes when the last one lets go.
    pub(crate) shares: u32,
    /// Where its pool finds the memory again.
    pub(crate) place: Place,
    /// What must be dropped after the last use: an imported tensor.
    pub(crate) owner: Option<Box<dyn Any + Send>>,
}

impl Allocation {
    /// Takes the allocation's lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, AllocationState> {
        self.state.lock()
    }
}

impl AllocationState {
    /// The allocation, if `address` lies in it.
    pub(crate) fn live_at(&self, address: u64) -> Result<&Live> {
        self.live.as_ref().filter(|live| live.contains(address)).ok_or_else(|| freed(address))
    }

    /// As [`Self::live_at`].
    pub(crate) fn live_at_mut(&mut self, address: u64) -> Result<&mut Live> {
        self.live.as_mut().filter(|live| live.contains(address)).ok_or_else(|| freed(address))
    }
}

const _: () = {
    let used = std::mem::offset_of!(AllocationState, live) + std::mem::offset_of!(Live, imported);
    // The lock's word comes before the state.
    assert!(8 + used < 128 && size_of::<Allocation>() <= 192);
};

#[cold]
fn freed(address: u64) -> Error {
    Error::not_found(format!(
        "address {address:#x} lies in no live allocation of this device: it was freed, or lies \
         past an allocation's end"
    ))
}

impl Live {
    /// Bytes from `address`, which lies in it, to its end, if `size` are among them and may be
    /// written where they are to be.
    pub(crate) fn check_range(&self, address: u64, size: u64, writes: bool) -> Result<u64> {
        let available = self.size - (address - self.address).min(self.size);
        if size > available {
            return Err(Error::invalid(format!(
                "{size} bytes at address {address:#x} reach past the end of the allocation of {} \
                 bytes at {:#x}, of which {available} are left there",
                self.size, self.address
            )));
        }
        if writes && self.read_only {
            return Err(Error::invalid(format!(
                "the tensor at address {address:#x} was imported read-only and would be written \
                 to; import or copy it writable"
            )));
        }
        Ok(available)
    }

    /// Whether an address lies in it. That of a zero-byte allocation lies in it.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.size.max(1)
    }
}
