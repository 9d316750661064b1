//! Slots that threads have at hand: freed ones, and a few taken in advance, so that allocating and
//! freeing small memory takes no lock that threads share. The pool gets them back when it runs out.

use parking_lot::Mutex;

use super::pool::FreeSlot;
use super::slab::{CLASSES, Class};
use crate::runtime::spread;

/// Bytes of a class that one part holds at most, and slots that it holds whatever they take.
const MOST_BYTES: u64 = 32 << 10;
const LEAST_SLOTS: usize = 2;

/// See the module's text. No lock is taken while a part's is held.
pub(crate) struct SlotsAtHand(Box<[Part]>);

/// Its own cache lines, for threads that work side by side.
#[derive(Default)]
#[repr(align(128))]
struct Part(Mutex<[Vec<FreeSlot>; CLASSES]>);

impl SlotsAtHand {
    pub(crate) fn new() -> Self {
        Self(std::iter::repeat_with(Part::default).take(spread::PARTS).collect())
    }

    /// How many slots of a class a part should hold: as many as are taken in advance.
    pub(crate) fn most(class: Class) -> usize {
        ((MOST_BYTES / class.slot_bytes()) as usize).clamp(LEAST_SLOTS, 32)
    }

    /// A slot that the calling thread has at hand.
    pub(crate) fn take(&self, class: Class) -> Option<FreeSlot> {
        self.own().lock()[class.index()].pop()
    }

    /// Keeps a slot at the calling thread's hand; what is too much there goes to the caller.
    pub(crate) fn put(&self, class: Class, slot: FreeSlot) -> Vec<FreeSlot> {
        let mut part = self.own().lock();
        let slots = &mut part[class.index()];
        slots.push(slot);
        let most = Self::most(class);
        if slots.len() > most { slots.drain(..most.div_ceil(2)).collect() } else { Vec::new() }
    }

    /// Every slot that any thread has at hand.
    pub(crate) fn drain(&self) -> Vec<FreeSlot> {
        let mut slots = Vec::new();
        for part in &self.0 {
            part.0.lock().iter_mut().for_each(|own| slots.append(own));
        }
        slots
    }

    fn own(&self) -> &Mutex<[Vec<FreeSlot>; CLASSES]> {
        &self.0[spread::part()].0
    }
}
