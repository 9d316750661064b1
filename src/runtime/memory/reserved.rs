//! Addresses for devices that have none: a range of the process's address space that is reserved
//! and never mapped, so that no host pointer can equal one of them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// Hands out ranges of one reserved range, each once: 16 TiB outlast any device's memory, and a
/// range that is not reused makes a stale address stay stale.
pub(crate) struct ReservedRange {
    base: u64,
    size: u64,
    next: AtomicU64,
}

/// Every range starts at a multiple of this, as allocations' alignment is measured from there.
const ALIGNMENT: u64 = 1 << 21;

impl ReservedRange {
    /// Reserves the largest range that the process's limits allow.
    pub(crate) fn new() -> Result<Self> {
        for size in (36..=44).rev().map(|bits| 1u64 << bits) {
            // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory
            // that exists; without access rights and without reservation it costs none.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if base != libc::MAP_FAILED {
                let base = base as u64;
                let first = base.next_multiple_of(ALIGNMENT);
                return Ok(Self { base, size, next: AtomicU64::new(first) });
            }
        }
        Err(Error::out_of_memory(
            "the process may not reserve 64 GiB of addresses (RLIMIT_AS?), which a device without \
             buffer device addresses needs; raise the limit",
        ))
    }

    /// The start of a range of `size` bytes that nothing had before.
    pub(crate) fn take(&self, size: u64) -> Result<u64> {
        let start = size
            .checked_next_multiple_of(ALIGNMENT)
            .filter(|&rounded| rounded <= self.size)
            .map(|rounded| self.next.fetch_add(rounded, Ordering::Relaxed))
            .filter(|start| start + size <= self.base + self.size);
        start.ok_or_else(|| {
            Error::out_of_memory(format!(
                "{size} bytes do not fit what is left of {} bytes of reserved addresses",
                self.size
            ))
        })
    }
}

impl Drop for ReservedRange {
    fn drop(&mut self) {
        // SAFETY: `base` and `size` are the mapping that `new` made; it was never accessible, so
        // nothing refers into it.
        unsafe { libc::munmap(self.base as *mut libc::c_void, self.size as usize) };
    }
}
