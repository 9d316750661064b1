//! Memory that threads have at hand: what they freed lately, and a few slots taken in advance, so
//! that allocating and freeing takes no lock that threads share. The pool gets it back when it runs
//! out, and when it is trimmed.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::pool::{FreeRegion, FreeSlot, Place, Shelf};
use super::slab::{CLASSES, Class};
use crate::runtime::spread;

/// Bytes of a class that a thread has at hand at most, and slots whatever they take.
const MOST_SLOT_BYTES: u64 = 32 << 10;
const LEAST_SLOTS: usize = 2;
const MOST_SLOTS: usize = 32;
/// Regions that a thread has at hand at most.
const MOST_REGIONS: usize = 2;

/// See the module's text. No lock is taken while a part's is held.
pub(crate) struct AtHand {
    parts: Box<[Part]>,
    /// Bytes of regions that a part holds at most.
    most_region_bytes: u64,
}

/// Its own cache lines, for threads that work side by side.
#[derive(Default)]
#[repr(align(128))]
struct Part(Mutex<Things>);

#[derive(Default)]
struct Things {
    slots: [Vec<FreeSlot>; CLASSES],
    /// The oldest first.
    regions: VecDeque<FreeRegion>,
}

impl AtHand {
    /// For memory of `total` bytes; all threads together have at most an eighth of it at hand.
    pub(crate) fn new(total: u64) -> Self {
        Self {
            parts: std::iter::repeat_with(Part::default).take(spread::PARTS).collect(),
            most_region_bytes: total / 8 / spread::PARTS as u64,
        }
    }

    /// How many slots of a class to have at hand at most.
    pub(crate) fn most_slots(class: Class) -> usize {
        ((MOST_SLOT_BYTES / class.slot_bytes()) as usize).clamp(LEAST_SLOTS, MOST_SLOTS)
    }

    /// A slot that the calling thread has at hand.
    pub(crate) fn take_slot(&self, class: Class) -> Option<FreeSlot> {
        self.own().lock().slots[class.index()].pop()
    }

    /// Keeps a slot at the calling thread's hand; what is too much there goes to the caller.
    pub(crate) fn put_slot(&self, class: Class, slot: FreeSlot) -> Vec<FreeSlot> {
        let mut things = self.own().lock();
        let slots = &mut things.slots[class.index()];
        slots.push(slot);
        let most = Self::most_slots(class);
        if slots.len() > most { slots.drain(..most.div_ceil(2)).collect() } else { Vec::new() }
    }

    /// A region of `count` pages that the calling thread has at hand.
    pub(crate) fn take_region(&self, shelf: Shelf, count: u32) -> Option<FreeRegion> {
        let mut things = self.own().lock();
        let fits = |free: &FreeRegion| match free.region.place {
            Place::Pages { shelf: own, count: pages, .. } => own == shelf && pages == count,
            Place::Whole | Place::Slot { .. } => false,
        };
        let place = things.regions.iter().rposition(fits)?;
        things.regions.remove(place)
    }

    /// Keeps a region at the calling thread's hand; what is too much there goes to the caller.
    pub(crate) fn put_region(&self, free: FreeRegion) -> Option<FreeRegion> {
        if free.region.size > self.most_region_bytes / MOST_REGIONS as u64 {
            return Some(free);
        }
        let mut things = self.own().lock();
        things.regions.push_back(free);
        if things.regions.len() > MOST_REGIONS { things.regions.pop_front() } else { None }
    }

    /// Everything that any thread has at hand.
    pub(crate) fn drain(&self) -> (Vec<FreeSlot>, Vec<FreeRegion>) {
        let (mut slots, mut regions) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let mut things = part.0.lock();
            things.slots.iter_mut().for_each(|own| slots.append(own));
            regions.extend(things.regions.drain(..));
        }
        (slots, regions)
    }

    fn own(&self) -> &Mutex<Things> {
        &self.parts[spread::part()].0
    }
}
