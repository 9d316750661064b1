//! Owns what one measurement makes, and destroys it in the end, once the device is idle.

use std::cell::RefCell;

use ash::vk;
use dlhal::Result;

use super::kernel::Made;
use super::{Buffer, Commands, Kernel, KernelDesc, Kind, Lane, Raw, Set};

/// Buffers, kernels and command buffers that live until it is dropped.
pub(in crate::bench) struct Scope<'r> {
    raw: &'r Raw,
    buffers: RefCell<Vec<(vk::Buffer, vk::DeviceMemory)>>,
    made: RefCell<Vec<Made>>,
    recordings: RefCell<Vec<(vk::CommandPool, vk::Fence)>>,
}

impl<'r> Scope<'r> {
    /// An empty one.
    pub(in crate::bench) fn new(raw: &'r Raw) -> Self {
        let (buffers, made, recordings) = Default::default();
        Self { raw, buffers, made, recordings }
    }

    /// A buffer.
    pub(in crate::bench) fn buffer(&self, size: u64, kind: Kind) -> Result<Buffer<'_>> {
        let buffer = self.raw.create_buffer(size, kind)?;
        self.buffers.borrow_mut().push((buffer.handle, buffer.memory));
        Ok(buffer)
    }

    /// A kernel.
    pub(in crate::bench) fn kernel(&self, desc: &KernelDesc<'_>) -> Result<Kernel<'_>> {
        Kernel::create(self.raw, desc, |made| self.made.borrow_mut().push(made))
    }

    /// A descriptor set of a kernel, with its buffers in order.
    pub(in crate::bench) fn set(
        &self,
        kernel: &Kernel<'_>,
        buffers: &[&Buffer<'_>],
    ) -> Result<Set<'_>> {
        let set = self.empty_set(kernel)?;
        kernel.write_set(&set, buffers);
        Ok(set)
    }

    /// A descriptor set of a kernel, to be written before it is used.
    pub(in crate::bench) fn empty_set(&self, kernel: &Kernel<'_>) -> Result<Set<'_>> {
        kernel.empty_set(|made| self.made.borrow_mut().push(made))
    }

    /// A command buffer for a queue.
    pub(in crate::bench) fn commands(&self, lane: Lane) -> Result<Commands<'_>> {
        Commands::create(self.raw, lane, |pool, fence| {
            self.recordings.borrow_mut().push((pool, fence));
        })
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let device = &self.raw.device;
        // SAFETY: one thread uses the queues. A lost device is idle.
        let _ = unsafe { device.device_wait_idle() };
        for (pool, fence) in self.recordings.take() {
            // SAFETY: VUID-vkDestroyCommandPool-commandPool-00041: the device is idle.
            unsafe { device.destroy_command_pool(pool, None) };
            // SAFETY: VUID-vkDestroyFence-fence-01120: as above.
            unsafe { device.destroy_fence(fence, None) };
        }
        self.made.take().into_iter().rev().for_each(|made| made.destroy(device));
        for (buffer, memory) in self.buffers.take() {
            self.raw.destroy(buffer, memory);
        }
    }
}
