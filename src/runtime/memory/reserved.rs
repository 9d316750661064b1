//! Addresses for devices that have none: a range of the process's address space that is reserved
//! and never mapped, so that no host pointer can equal one of them.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::{Error, Result};

/// Hands out ranges of one reserved range. A range that was given back is reused only when no fresh
/// one is left, so that a stale address stays stale for long.
pub(crate) struct ReservedRange {
    base: u64,
    size: u64,
    state: Mutex<State>,
}

struct State {
    /// Where what was never handed out starts.
    fresh: u64,
    /// Start and size of ranges given back, the oldest first.
    returned: VecDeque<(u64, u64)>,
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
                let state = State { fresh: first, returned: VecDeque::new() };
                return Ok(Self { base, size, state: Mutex::new(state) });
            }
        }
        Err(Error::out_of_memory(
            "the process may not reserve 64 GiB of addresses (RLIMIT_AS?), which a device without \
             buffer device addresses needs; raise the limit",
        ))
    }

    /// The start of a range of `size` bytes that no block has.
    pub(crate) fn take(&self, size: u64) -> Result<u64> {
        let exhausted = || {
            Error::out_of_memory(format!(
                "{size} bytes do not fit what is left of {} bytes of reserved addresses",
                self.size
            ))
        };
        let size = size.checked_next_multiple_of(ALIGNMENT).ok_or_else(exhausted)?;
        let mut state = self.state.lock();
        let start = state.fresh;
        if size <= (self.base + self.size).saturating_sub(start) {
            state.fresh += size;
            return Ok(start);
        }
        let fits = |&(_, returned): &(u64, u64)| returned >= size;
        let found = state.returned.iter().position(fits).ok_or_else(exhausted)?;
        let (start, returned) = state.returned.remove(found).ok_or_else(exhausted)?;
        if returned > size {
            state.returned.push_front((start + size, returned - size));
        }
        Ok(start)
    }

    /// Whether an address is one of the range's.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address >= self.base && address - self.base < self.size
    }

    /// Takes back the range of a block that is gone.
    pub(crate) fn give(&self, start: u64, size: u64) {
        let size = size.next_multiple_of(ALIGNMENT);
        self.state.lock().returned.push_back((start, size));
    }
}

impl Drop for ReservedRange {
    fn drop(&mut self) {
        // SAFETY: `base` and `size` are the mapping that `new` made; it was never accessible, so
        // nothing refers into it.
        unsafe { libc::munmap(self.base as *mut libc::c_void, self.size as usize) };
    }
}
