//! One command buffer with its pool, its queue and a fence.

use ash::vk;
use dlhal::Result;

use super::kernel::{whole, write};
use super::{Buffer, Kernel, Lane, Raw, Set, called};

/// A command buffer; it lives as long as its scope.
#[derive(Clone, Copy)]
pub(in crate::bench) struct Commands<'s> {
    raw: &'s Raw,
    pool: vk::CommandPool,
    buffer: vk::CommandBuffer,
    fence: vk::Fence,
    queue: vk::Queue,
}

/// How the host waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Waiting {
    /// In the driver, asleep.
    Asleep,
    /// Looking at the fence again and again.
    Polling,
}

const SHADER: vk::PipelineStageFlags = vk::PipelineStageFlags::COMPUTE_SHADER;
const TRANSFER: vk::PipelineStageFlags = vk::PipelineStageFlags::TRANSFER;
const HOST: vk::PipelineStageFlags = vk::PipelineStageFlags::HOST;

impl<'s> Commands<'s> {
    pub(super) fn create(
        raw: &'s Raw,
        lane: Lane,
        keep: impl FnOnce(vk::CommandPool, vk::Fence),
    ) -> Result<Self> {
        let (queue, family) = raw.queue(lane)?;
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the family is one that the device was created with.
        let pool =
            called("vkCreateCommandPool", unsafe { raw.device.create_command_pool(&info, None) })?;
        let info = vk::FenceCreateInfo::default();
        // SAFETY: the info is whole.
        let fence = match unsafe { raw.device.create_fence(&info, None) } {
            Ok(fence) => fence,
            Err(error) => {
                keep(pool, vk::Fence::null());
                return called("vkCreateFence", Err(error));
            }
        };
        keep(pool, fence);
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool was just created.
        let buffers = called("vkAllocateCommandBuffers", unsafe {
            raw.device.allocate_command_buffers(&info)
        })?;
        Ok(Self { raw, pool, buffer: buffers[0], fence, queue })
    }

    /// Records anew what `record` asks for.
    pub(in crate::bench) fn record(&self, record: impl FnOnce(&Self)) -> Result<()> {
        let flags = vk::CommandPoolResetFlags::empty();
        // SAFETY: VUID-vkResetCommandPool-commandPool-00040: every submission is waited for before
        // the next recording.
        called("vkResetCommandPool", unsafe {
            self.raw.device.reset_command_pool(self.pool, flags)
        })?;
        let info = vk::CommandBufferBeginInfo::default();
        // SAFETY: VUID-vkBeginCommandBuffer-commandBuffer-00049: as above.
        called("vkBeginCommandBuffer", unsafe {
            self.raw.device.begin_command_buffer(self.buffer, &info)
        })?;
        record(self);
        // SAFETY: it was begun above.
        called("vkEndCommandBuffer", unsafe { self.raw.device.end_command_buffer(self.buffer) })
    }

    /// Chooses a kernel.
    pub(in crate::bench) fn bind(&self, kernel: &Kernel<'s>) {
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the pipeline is the scope's and so lives as long as this.
        unsafe { self.raw.device.cmd_bind_pipeline(self.buffer, point, kernel.pipeline) };
    }

    /// Chooses a kernel's buffers.
    pub(in crate::bench) fn bind_set(&self, kernel: &Kernel<'s>, set: &Set<'s>) {
        let (point, sets) = (vk::PipelineBindPoint::COMPUTE, [set.handle]);
        // SAFETY: the set was allocated for this kernel's layout, and lives as long as this.
        unsafe {
            self.raw.device.cmd_bind_descriptor_sets(
                self.buffer,
                point,
                kernel.layout,
                0,
                &sets,
                &[],
            );
        }
    }

    /// Writes three buffers' descriptors into the command buffer.
    pub(in crate::bench) fn push_buffers(&self, kernel: &Kernel<'s>, buffers: [&Buffer<'s>; 3]) {
        let Some(push) = &self.raw.push else { return };
        let infos = buffers.map(whole);
        let writes = [write((0, &infos[..1])), write((1, &infos[1..2])), write((2, &infos[2..]))];
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the kernel's layout was made for pushed descriptors of these bindings.
        unsafe { push.cmd_push_descriptor_set(self.buffer, point, kernel.layout, 0, &writes) };
    }

    /// Sets a kernel's constants.
    pub(in crate::bench) fn constants<const N: usize>(&self, kernel: &Kernel<'s>, words: [u32; N]) {
        let words = words.map(u32::to_ne_bytes);
        let stage = vk::ShaderStageFlags::COMPUTE;
        // SAFETY: VUID-vkCmdPushConstants-offset-01796: the layout has as many bytes of constants.
        unsafe {
            self.raw.device.cmd_push_constants(
                self.buffer,
                kernel.layout,
                stage,
                0,
                words.as_flattened(),
            );
        }
    }

    /// Runs the kernel.
    pub(in crate::bench) fn dispatch(&self, groups: u32) {
        // SAFETY: VUID-vkCmdDispatch-groupCountX-00386: callers stay within 65,535 or the limit.
        unsafe { self.raw.device.cmd_dispatch(self.buffer, groups, 1, 1) };
    }

    /// Copies the first `size` bytes.
    pub(in crate::bench) fn copy(&self, from: &Buffer<'s>, to: &Buffer<'s>, size: u64) {
        let regions = [vk::BufferCopy { src_offset: 0, dst_offset: 0, size }];
        // SAFETY: both buffers are at least as large, and live as long as this.
        unsafe {
            self.raw.device.cmd_copy_buffer(self.buffer, from.handle, to.handle, &regions);
        }
    }

    /// Fills a buffer.
    pub(in crate::bench) fn fill(&self, buffer: &Buffer<'_>) {
        // SAFETY: VUID-vkCmdFillBuffer-size-00028: all of it, and the size is a multiple of 4.
        unsafe {
            self.raw.device.cmd_fill_buffer(self.buffer, buffer.handle, 0, vk::WHOLE_SIZE, 7);
        }
    }

    /// Lets kernels wait for the kernels before them.
    pub(in crate::bench) fn kernel_barrier(&self) {
        self.barrier(SHADER, SHADER);
    }

    /// Lets copies wait for the copies before them.
    pub(in crate::bench) fn copy_barrier(&self) {
        self.barrier(TRANSFER, TRANSFER);
    }

    /// Lets copies wait for the kernels before them.
    pub(in crate::bench) fn kernel_to_copy_barrier(&self) {
        self.barrier(SHADER, TRANSFER);
    }

    /// Lets the host see what copies have written.
    pub(in crate::bench) fn copy_to_host_barrier(&self) {
        self.barrier(TRANSFER, HOST);
    }

    fn barrier(&self, before: vk::PipelineStageFlags, after: vk::PipelineStageFlags) {
        let barriers = [vk::MemoryBarrier::default()
            .src_access_mask(written(before))
            .dst_access_mask(used(after))];
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the accesses are such as the stages make.
        unsafe {
            self.raw.device.cmd_pipeline_barrier(
                self.buffer,
                before,
                after,
                flags,
                &barriers,
                &[],
                &[],
            );
        }
    }

    /// Hands what was recorded to the queue.
    pub(in crate::bench) fn submit(&self) -> Result<()> {
        let buffers = [self.buffer];
        let submissions = [vk::SubmitInfo::default().command_buffers(&buffers)];
        // SAFETY: VUID-vkQueueSubmit-fence-00063, -pCommandBuffers-00071: the submission before was
        // waited for, which reset the fence. One thread uses the queues.
        called("vkQueueSubmit", unsafe {
            self.raw.device.queue_submit(self.queue, &submissions, self.fence)
        })
    }

    /// Waits until what was submitted is done.
    pub(in crate::bench) fn wait(&self, waiting: Waiting) -> Result<()> {
        let fences = [self.fence];
        match waiting {
            // SAFETY: the fence is this device's.
            Waiting::Asleep => called("vkWaitForFences", unsafe {
                self.raw.device.wait_for_fences(&fences, true, u64::MAX)
            })?,
            Waiting::Polling => while !self.is_done()? {},
        }
        // SAFETY: VUID-vkResetFences-pFences-01123: its submission is done.
        called("vkResetFences", unsafe { self.raw.device.reset_fences(&fences) })
    }

    fn is_done(&self) -> Result<bool> {
        // SAFETY: the fence is this device's.
        called("vkGetFenceStatus", unsafe { self.raw.device.get_fence_status(self.fence) })
    }

    /// Submits and waits.
    pub(in crate::bench) fn run(&self, waiting: Waiting) -> Result<()> {
        self.submit()?;
        self.wait(waiting)
    }
}

fn written(stage: vk::PipelineStageFlags) -> vk::AccessFlags {
    if stage == SHADER { vk::AccessFlags::SHADER_WRITE } else { vk::AccessFlags::TRANSFER_WRITE }
}

fn used(stage: vk::PipelineStageFlags) -> vk::AccessFlags {
    match stage {
        SHADER => vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE,
        TRANSFER => vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE,
        _ => vk::AccessFlags::HOST_READ,
    }
}
