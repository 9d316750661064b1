//! Fences: how completion is known where there are no timeline semaphores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ash::vk;

use super::error;
use super::raw_device::RawDevice;
use crate::Result;

/// A fence of one submission; reused once nobody else holds it.
pub(super) struct Fence {
    raw: Arc<RawDevice>,
    pub(super) vk: vk::Fence,
    signalled: AtomicBool,
}

impl Fence {
    pub(super) fn new(raw: &Arc<RawDevice>) -> Result<Arc<Self>> {
        // SAFETY: VUID-vkCreateFence-device-parameter: the device lives.
        let vk = unsafe { raw.vk.create_fence(&vk::FenceCreateInfo::default(), None) }
            .map_err(|result| error::memory("vkCreateFence", result))?;
        Ok(Arc::new(Self { raw: raw.clone(), vk, signalled: AtomicBool::new(false) }))
    }

    /// Makes a fence that nobody else holds ready for another submission.
    pub(super) fn reset(&mut self) -> Result<()> {
        // SAFETY: VUID-vkResetFences-pFences-01123: its submission is done (`signalled`), or it
        // was never submitted.
        unsafe { self.raw.vk.reset_fences(&[self.vk]) }
            .map_err(|result| error::memory("vkResetFences", result))?;
        *self.signalled.get_mut() = false;
        Ok(())
    }

    /// Whether the submission is done.
    pub(super) fn signalled(&self) -> Result<bool> {
        if self.signalled.load(Ordering::Acquire) {
            return Ok(true);
        }
        // SAFETY: VUID-vkGetFenceStatus-fence-parameter: the fence lives.
        let done = unsafe { self.raw.vk.get_fence_status(self.vk) }
            .map_err(|result| self.raw.failed("vkGetFenceStatus", result))?;
        if done {
            self.signalled.store(true, Ordering::Release);
        }
        Ok(done)
    }

    /// Sleeps until the submission is done or `timeout` has passed.
    pub(super) fn wait(&self, timeout: Duration) -> Result<()> {
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: VUID-vkWaitForFences-pFences-parameter: the fence lives.
        match unsafe { self.raw.vk.wait_for_fences(&[self.vk], true, nanoseconds) } {
            Ok(()) => {
                self.signalled.store(true, Ordering::Release);
                Ok(())
            }
            Err(vk::Result::TIMEOUT) => Ok(()),
            Err(result) => Err(self.raw.failed("vkWaitForFences", result)),
        }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyFence-fence-01120: the queue holds the fence until it is signalled
        // or the device is lost.
        unsafe { self.raw.vk.destroy_fence(self.vk, None) };
    }
}
