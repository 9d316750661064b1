//! Timestamps: a query pool.

use std::any::Any;
use std::sync::Arc;

use ash::vk;

use super::error;
use super::raw_device::RawDevice;
use super::semaphore::Semaphore;
use crate::hal::timestamps::Slots;
use crate::hal::{self, SemaphorePoint, validate};
use crate::{Error, Result};

/// A set of slots. Recordings that name it hold it.
pub(super) struct Timestamps {
    raw: Arc<RawDevice>,
    pub(super) vk: vk::QueryPool,
    pub(super) slots: Arc<Slots>,
}

impl Timestamps {
    pub(super) fn create(raw: &Arc<RawDevice>, count: u32) -> Result<Self> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(count);
        // SAFETY: VUID-VkQueryPoolCreateInfo-queryCount-02763: not none (`validate::timestamps`).
        let vk = unsafe { raw.vk.create_query_pool(&info, None) }
            .map_err(|result| error::memory("vkCreateQueryPool", result))?;
        Ok(Self { raw: raw.clone(), vk, slots: Slots::new(count) })
    }

    /// The set behind a HAL set, if it is one of this device.
    pub(super) fn of<'a>(
        timestamps: &'a dyn hal::Timestamps,
        raw: &Arc<RawDevice>,
    ) -> Result<&'a Self> {
        match timestamps.as_any().downcast_ref::<Self>() {
            Some(ours) if Arc::ptr_eq(&ours.raw, raw) => Ok(ours),
            _ => Err(Error::invalid("timestamps of another device were given")),
        }
    }

    fn has_passed(&self, point: &SemaphorePoint) -> bool {
        Semaphore::of(point, &self.raw).is_ok_and(|semaphore| semaphore.passed(point.value))
    }
}

impl hal::Timestamps for Timestamps {
    fn count(&self) -> u32 {
        self.slots.count()
    }

    fn read(&self, first: u32, ticks: &mut [u64]) -> Result<()> {
        self.raw.check()?;
        let range = validate::read_timestamps(self, first, ticks.len())?;
        self.slots.readable(range, |point| self.has_passed(point))?;
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: VUID-vkGetQueryPoolResults-firstQuery-09436, -09437: inside the pool
        // (`validate::read_timestamps`); -None-09401: written, which `readable` has seen.
        unsafe { self.raw.vk.get_query_pool_results(self.vk, first, ticks, flags) }
            .map_err(|result| self.raw.failed("vkGetQueryPoolResults", result))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Timestamps {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyQueryPool-queryPool-00793: recordings in flight hold the set.
        unsafe { self.raw.vk.destroy_query_pool(self.vk, None) };
    }
}
