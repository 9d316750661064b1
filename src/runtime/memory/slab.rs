//! Slabs: pages divided into equal slots for small allocations.

/// Bytes of the page that a slab divides.
pub(crate) const SLAB_BYTES: u64 = 64 << 10;
/// Every slot is a multiple of this. No Vulkan device has a larger `nonCoherentAtomSize` or
/// `min{Storage,Uniform}BufferOffsetAlignment` (the specification's limit for them), so slots never
/// share an atom, and every slot can be bound.
pub(crate) const GRANULE: u64 = 256;
/// Larger allocations get pages of their own.
pub(crate) const LARGEST_SLOT: u64 = 32 << 10;

/// Slot sizes in granules: four to each doubling, so at most a fifth of a slot is unused.
const CLASS_GRANULES: [u8; 22] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 85, 128];

/// How many classes there are.
pub(crate) const CLASSES: usize = CLASS_GRANULES.len();

/// A slot size, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// The smallest class whose slots hold `size` bytes at multiples of `alignment`; `None` if the
    /// allocation needs pages.
    pub(crate) fn for_request(size: u64, alignment: u64) -> Option<Self> {
        let fits = |&granules: &u8| {
            let slot = u64::from(granules) * GRANULE;
            slot >= size && (alignment <= GRANULE || slot.is_multiple_of(alignment))
        };
        CLASS_GRANULES.iter().position(fits).map(|class| Self(class as u8))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn slot_bytes(self) -> u64 {
        CLASS_GRANULES.get(self.index()).map_or(LARGEST_SLOT, |&g| u64::from(g) * GRANULE)
    }

    pub(crate) fn slots(self) -> u32 {
        (SLAB_BYTES / self.slot_bytes()) as u32
    }

    /// The slot that `offset`, which lies in the slab, lies in; `None` past the last one.
    pub(crate) fn slot_at(self, offset: u64) -> Option<u32> {
        let bytes = self.slot_bytes();
        let slot = offset / bytes;
        // One division is all that this may cost: it is on the way of every launch and copy.
        ((slot + 1) * bytes <= SLAB_BYTES).then_some(slot as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_was_asked_for_and_wastes_little() {
        for size in 1..=LARGEST_SLOT {
            let slot = Class::for_request(size, 1).unwrap().slot_bytes();
            assert!(slot >= size);
            let allowed = (size + size / 2).max(GRANULE);
            assert!(slot <= allowed.next_multiple_of(GRANULE), "{size} bytes in a slot of {slot}");
        }
        assert_eq!(Class::for_request(LARGEST_SLOT + 1, 1), None);
    }

    #[test]
    fn every_byte_of_a_slab_lies_in_its_slot_or_past_the_last() {
        for class in (0..CLASSES as u8).map(Class) {
            for offset in 0..SLAB_BYTES {
                let slot = (offset / class.slot_bytes()) as u32;
                assert_eq!(class.slot_at(offset), (slot < class.slots()).then_some(slot));
            }
        }
    }

    #[test]
    fn slots_of_an_aligned_request_are_aligned() {
        for alignment in (0..=15).map(|bits| 1 << bits) {
            let class = Class::for_request(1, alignment).unwrap();
            assert!(alignment <= GRANULE || class.slot_bytes().is_multiple_of(alignment));
        }
        assert_eq!(Class::for_request(1, SLAB_BYTES), None);
    }
}
