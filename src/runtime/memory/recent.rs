//! Records looked up lately, by address: a stream's work uses the same few tensors again and again.

use super::Memory;
use crate::Result;

const SLOTS: usize = 256;

/// See the module's text. What it says may be out of date: the record's lock tells.
pub(crate) struct Recent {
    /// The address, and the number of the record that it lay in.
    slots: Box<[(u64, u32); SLOTS]>,
}

impl Default for Recent {
    fn default() -> Self {
        // No allocation lies at address 0.
        Self { slots: Box::new([(0, 0); SLOTS]) }
    }
}

impl Recent {
    /// The number of the record that `address` may lie in.
    #[inline]
    pub(crate) fn find(&mut self, address: u64, memory: &Memory) -> Result<u32> {
        // Allocations begin at multiples of the granule, so the low bits tell little.
        let spread = (address >> 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut self.slots[(spread >> 56) as usize];
        if slot.0 != address || address == 0 {
            *slot = (address, memory.number_of(address)?);
        }
        Ok(slot.1)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.slots.fill((0, 0));
    }
}

const _: () = assert!(SLOTS == 1 << 8, "a slot's number is the top byte of the spread address");
