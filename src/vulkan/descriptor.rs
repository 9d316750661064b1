//! Descriptor sets for devices without push descriptors: pools that a recording fills one after
//! the other and resets as a whole.

use std::sync::Arc;

use ash::prelude::VkResult;
use ash::vk;

use super::error;
use super::layout::Layout;
use super::raw_device::RawDevice;
use crate::Result;

/// Sets of one pool, and its descriptors of each type.
const SETS: u32 = 256;
const STORAGE_BUFFERS: u32 = 1024;
const UNIFORM_BUFFERS: u32 = 256;

/// The descriptor pools of one recording.
pub(super) struct DescriptorArena {
    raw: Arc<RawDevice>,
    pools: Vec<vk::DescriptorPool>,
    /// The pool that is being filled; those before it are full.
    current: usize,
}

impl DescriptorArena {
    pub(super) fn new(raw: &Arc<RawDevice>) -> Self {
        Self { raw: raw.clone(), pools: Vec::new(), current: 0 }
    }

    /// A set of the layout. It lives until [`Self::reset`].
    pub(super) fn allocate(&mut self, layout: &Layout) -> Result<vk::DescriptorSet> {
        while let Some(pool) = self.pools.get(self.current) {
            match self.allocate_from(*pool, layout) {
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) => {
                    self.current += 1;
                }
                outcome => {
                    return outcome
                        .map_err(|result| error::descriptors("vkAllocateDescriptorSets", result));
                }
            }
        }
        let pool = self.create_pool(layout)?;
        self.pools.push(pool);
        self.allocate_from(pool, layout)
            .map_err(|result| error::descriptors("vkAllocateDescriptorSets", result))
    }

    /// Frees every set; only when no submission that uses them is in flight.
    pub(super) fn reset(&mut self) -> Result<()> {
        self.current = 0;
        for pool in &self.pools {
            // SAFETY: VUID-vkResetDescriptorPool-descriptorPool-00313: the recording that uses the
            // sets is not in flight (`Recording::clear`).
            unsafe {
                self.raw.vk.reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty())
            }
            .map_err(|result| error::descriptors("vkResetDescriptorPool", result))?;
        }
        Ok(())
    }

    fn allocate_from(
        &self,
        pool: vk::DescriptorPool,
        layout: &Layout,
    ) -> VkResult<vk::DescriptorSet> {
        let layouts = [layout.set];
        let info =
            vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: VUID-VkDescriptorSetAllocateInfo-apiVersion-07895: since Vulkan 1.1 a pool
        // without room is a result; the layout is not one of push descriptors.
        let sets = unsafe { self.raw.vk.allocate_descriptor_sets(&info) }?;
        sets.first().copied().ok_or(vk::Result::ERROR_UNKNOWN)
    }

    /// A pool with room for at least one set of the layout.
    fn create_pool(&self, layout: &Layout) -> Result<vk::DescriptorPool> {
        let size = |ty, count| vk::DescriptorPoolSize::default().ty(ty).descriptor_count(count);
        let sizes = [
            size(vk::DescriptorType::STORAGE_BUFFER, STORAGE_BUFFERS.max(layout.storage_buffers)),
            size(vk::DescriptorType::UNIFORM_BUFFER, UNIFORM_BUFFERS.max(layout.uniform_buffers)),
        ];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(SETS).pool_sizes(&sizes);
        // SAFETY: VUID-VkDescriptorPoolCreateInfo-descriptorPoolOverallocation-09227: more than no
        // sets; sizes that are not zero.
        unsafe { self.raw.vk.create_descriptor_pool(&info, None) }
            .map_err(|result| error::descriptors("vkCreateDescriptorPool", result))
    }
}

impl Drop for DescriptorArena {
    fn drop(&mut self) {
        for pool in &self.pools {
            // SAFETY: VUID-vkDestroyDescriptorPool-descriptorPool-00303: the recording that uses
            // the sets is not in flight when it is dropped (retire.rs).
            unsafe { self.raw.vk.destroy_descriptor_pool(*pool, None) };
        }
    }
}
