//! Timestamps: the device's time at points between commands, in slots that a command resets, a
//! later one writes, and the host reads once the writing has passed.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::SemaphorePoint;
use crate::{Error, Result};

/// A set of slots, each for one timestamp. Created with no slot reset.
pub trait Timestamps: Send + Sync + 'static {
    /// How many slots.
    fn count(&self) -> u32;
    /// Reads the slots from `first` on, as many as `ticks` has room for. The submissions that wrote
    /// them last must have passed. [`elapsed_ns`] makes a time of two of them.
    fn read(&self, first: u32, ticks: &mut [u64]) -> Result<()>;
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

/// Nanoseconds from one timestamp to a later one of the same queue.
///
/// Only the lowest `valid_bits` of a timestamp count
/// ([`QueueProperties::timestamp_valid_bits`](super::QueueProperties)); the counter may wrap around
/// once between the two. A tick has `period_ns`
/// ([`DeviceProperties::timestamp_period_ns`](super::DeviceProperties)).
pub fn elapsed_ns(start: u64, end: u64, valid_bits: u32, period_ns: f32) -> u64 {
    let mask = u64::MAX.checked_shr(64 - valid_bits.min(64)).unwrap_or(0);
    let ticks = end.wrapping_sub(start) & mask;
    if period_ns == 1.0 { ticks } else { (ticks as f64 * f64::from(period_ns)) as u64 }
}

/// What the submissions so far have done to the slots of a set, so that what an API leaves
/// undefined (writing twice, reading too early) is an error.
pub(crate) struct Slots(Mutex<Vec<Slot>>);

#[derive(Clone)]
enum Slot {
    Unset,
    Reset,
    /// Written by a submission that has passed at the point.
    Written(SemaphorePoint),
}

/// What a recorded command does to slots of a set.
#[derive(Clone)]
pub(crate) struct SlotUse {
    slots: Arc<Slots>,
    range: Range<u32>,
    writes: bool,
}

/// What a submission did to slots. Undone when it is dropped, unless it is kept.
#[derive(Default)]
pub(crate) struct SlotChanges(Vec<(Arc<Slots>, u32, Slot)>);

impl Slots {
    pub(crate) fn new(count: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![Slot::Unset; count as usize])))
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.lock().len() as u32
    }

    /// Whether all slots of a checked range can be read; `passed` tells of a point.
    pub(crate) fn readable(
        &self,
        range: Range<u32>,
        passed: impl Fn(&SemaphorePoint) -> bool,
    ) -> Result<()> {
        let slots = self.0.lock();
        for (slot, state) in range.clone().zip(slots.iter().skip(range.start as usize)) {
            let fault = match state {
                Slot::Written(point) if passed(point) => continue,
                Slot::Written(_) => "is still being written; wait for its submission",
                Slot::Reset => "was reset and not written since",
                Slot::Unset => "was never written",
            };
            return Err(Error::precondition(format!("timestamp slot {slot} {fault}")));
        }
        Ok(())
    }
}

impl SlotUse {
    /// A reset of a checked range.
    pub(crate) fn reset(slots: &Arc<Slots>, range: Range<u32>) -> Self {
        Self { slots: slots.clone(), range, writes: false }
    }

    /// A write of a checked slot.
    pub(crate) fn write(slots: &Arc<Slots>, slot: u32) -> Self {
        Self { slots: slots.clone(), range: slot..slot + 1, writes: true }
    }
}

impl SlotChanges {
    /// Enters what a recording does, in order, for a submission that has passed at `done`.
    pub(crate) fn enter(&mut self, uses: &[SlotUse], done: &SemaphorePoint) -> Result<()> {
        for used in uses {
            let mut slots = used.slots.0.lock();
            let states = slots.iter_mut().skip(used.range.start as usize);
            for (slot, state) in used.range.clone().zip(states) {
                let new = if used.writes { Slot::Written(done.clone()) } else { Slot::Reset };
                let old = std::mem::replace(state, new);
                let ready = matches!(old, Slot::Reset) || !used.writes;
                self.0.push((used.slots.clone(), slot, old));
                if !ready {
                    return Err(Error::precondition(format!(
                        "timestamp slot {slot} is written without a reset since its last write; \
                         record reset_timestamps before it"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The submission was made.
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for SlotChanges {
    fn drop(&mut self) {
        for (slots, slot, old) in self.0.drain(..).rev() {
            if let Some(state) = slots.0.lock().get_mut(slot as usize) {
                *state = old;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_difference_in_ticks_times_their_length() {
        assert_eq!(elapsed_ns(100, 350, 64, 1.0), 250);
        assert_eq!(elapsed_ns(100, 350, 64, 2.5), 625);
        assert_eq!(elapsed_ns(100, 100, 36, 1.0), 0);
    }

    #[test]
    fn a_counter_that_wrapped_around_counts_on() {
        assert_eq!(elapsed_ns((1 << 36) - 10, 15, 36, 1.0), 25);
        assert_eq!(elapsed_ns(u64::MAX, 4, 64, 1.0), 5);
        assert_eq!(elapsed_ns((1 << 32) - 1, 0, 32, 10.0), 10);
    }

    #[test]
    fn bits_that_do_not_count_are_left_out() {
        assert_eq!(elapsed_ns(0xF000_0000_0000_0001, 0x3, 36, 1.0), 2);
        assert_eq!(elapsed_ns(1, 2, 0, 1.0), 0);
    }

    #[test]
    fn a_long_time_in_whole_nanoseconds_is_exact() {
        assert_eq!(elapsed_ns(1, u64::MAX, 64, 1.0), u64::MAX - 1);
    }
}
