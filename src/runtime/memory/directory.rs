//! Which block an address lies in: a sorted snapshot that readers load without a lock. Blocks come
//! and go rarely; each change makes a new snapshot.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::block::Block;

/// Blocks by some address of theirs: the device's, or the host's of mapped ones.
pub(crate) struct Directory {
    sorted: ArcSwap<Vec<Entry>>,
    /// Serialises changes.
    changing: Mutex<()>,
}

#[derive(Clone)]
struct Entry {
    base: u64,
    end: u64,
    block: Arc<Block>,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self { sorted: ArcSwap::from_pointee(Vec::new()), changing: Mutex::new(()) }
    }

    /// Enters a block whose first byte has the address `base`.
    pub(crate) fn insert(&self, base: u64, block: Arc<Block>) {
        let _changing = self.changing.lock();
        let mut entries = self.sorted.load().as_ref().clone();
        let place = entries.partition_point(|entry| entry.base < base);
        entries.insert(place, Entry { base, end: base + block.size(), block });
        self.sorted.store(Arc::new(entries));
    }

    /// Takes a block out.
    pub(crate) fn remove(&self, block: &Arc<Block>) {
        let _changing = self.changing.lock();
        let mut entries = self.sorted.load().as_ref().clone();
        entries.retain(|entry| !Arc::ptr_eq(&entry.block, block));
        self.sorted.store(Arc::new(entries));
    }

    /// Whether a block has one of `size` addresses from `base` on.
    pub(crate) fn overlaps(&self, base: u64, size: u64) -> bool {
        let entries = self.sorted.load();
        let before = entries.partition_point(|entry| entry.base < base.saturating_add(size));
        before.checked_sub(1).and_then(|last| entries.get(last)).is_some_and(|e| e.end > base)
    }

    /// Calls `f` with the block that `address` lies in and the address's place in it.
    pub(crate) fn find<R>(&self, address: u64, f: impl FnOnce(&Arc<Block>, u64) -> R) -> Option<R> {
        let entries = self.sorted.load();
        let after = entries.partition_point(|entry| entry.base <= address);
        let entry = entries.get(after.checked_sub(1)?)?;
        (address < entry.end).then(|| f(&entry.block, address - entry.base))
    }
}
