//! Timestamps of a clock that commands advance, so that every time is known beforehand.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Semaphore;
use crate::hal::timestamps::Slots;
use crate::hal::{self, SemaphorePoint, validate};
use crate::{Error, Result};

/// A set of slots.
pub struct Timestamps {
    id: u64,
    pub(super) slots: Arc<Slots>,
    ticks: Mutex<Vec<u64>>,
}

impl Timestamps {
    /// The set's number in order of creation, from 1, as commands in the log name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn new(id: u64, count: u32) -> Arc<Self> {
        let ticks = Mutex::new(vec![0; count as usize]);
        Arc::new(Self { id, slots: Slots::new(count), ticks })
    }

    pub(super) fn of(timestamps: &dyn hal::Timestamps) -> Result<&Self> {
        timestamps.as_any().downcast_ref().ok_or_else(|| {
            Error::invalid("timestamps of another driver were given to the null driver")
        })
    }

    pub(super) fn write(&self, slot: u32, ticks: u64) {
        if let Some(place) = self.ticks.lock().get_mut(slot as usize) {
            *place = ticks;
        }
    }
}

impl hal::Timestamps for Timestamps {
    fn count(&self) -> u32 {
        self.slots.count()
    }

    fn read(&self, first: u32, ticks: &mut [u64]) -> Result<()> {
        let range = validate::read_timestamps(self, first, ticks.len())?;
        self.slots.readable(range.clone(), has_passed)?;
        for (slot, read) in range.zip(ticks) {
            *read = self.ticks.lock().get(slot as usize).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn has_passed(point: &SemaphorePoint) -> bool {
    Semaphore::of(&*point.semaphore).is_ok_and(|semaphore| semaphore.has_reached(point.value))
}
