//! Recordings: a command buffer of the driver with all that it needs, recycled as one.

use std::sync::Arc;

use ash::vk;

use super::buffer::Buffer;
use super::descriptor::DescriptorArena;
use super::error;
use super::raw_device::RawDevice;
use super::semaphore::Semaphore;
use crate::Result;
use crate::hal::timestamps::SlotUse;
use crate::hal::{self, Buffer as _, CommandBufferUsage, SemaphorePoint};

/// Recordings that wait for reuse, per queue family. More than these are destroyed.
const MAX_IDLE: usize = 256;
/// Slots of each filter that keeps repeated objects from being held twice.
const FILTER: usize = 64;

/// One command buffer with its pool (pools are not to be shared between threads), its descriptors
/// and the objects that its commands name.
pub(super) struct Recording {
    raw: Arc<RawDevice>,
    family: u32,
    pool: vk::CommandPool,
    pub(super) vk: vk::CommandBuffer,
    pub(super) descriptors: DescriptorArena,
    kept: Vec<Kept>,
    buffers: [KeptBuffer; FILTER],
    others: [usize; FILTER],
    /// What its commands do to timestamps, in order.
    pub(super) slot_uses: Vec<SlotUse>,
    /// The last submission on each queue that it was submitted to, by the queue's index.
    points: Vec<(usize, SemaphorePoint)>,
}

/// What commands need of a buffer that is held.
#[derive(Clone, Copy, Default)]
pub(super) struct KeptBuffer {
    pub(super) vk: vk::Buffer,
    pub(super) size: u64,
    /// Where the object is. Nothing else can be there as long as it is held.
    address: usize,
}

/// Something that commands name, held until they have run.
enum Kept {
    Buffer(#[allow(dead_code, reason = "held for its lifetime")] Arc<dyn hal::Buffer>),
    Executable(#[allow(dead_code, reason = "held for its lifetime")] Arc<dyn hal::Executable>),
    Event(#[allow(dead_code, reason = "held for its lifetime")] Arc<dyn hal::Event>),
    Timestamps(#[allow(dead_code, reason = "held for its lifetime")] Arc<dyn hal::Timestamps>),
}

impl Recording {
    /// A recording in the initial state.
    pub(super) fn create(raw: &Arc<RawDevice>, family: u32) -> Result<Box<Self>> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: VUID-vkCreateCommandPool-queueFamilyIndex-01937: the family is a planned one.
        let pool = unsafe { raw.vk.create_command_pool(&info, None) }
            .map_err(|result| error::memory("vkCreateCommandPool", result))?;
        let mut recording = Box::new(Self {
            raw: raw.clone(),
            family,
            pool,
            vk: vk::CommandBuffer::null(),
            descriptors: DescriptorArena::new(raw),
            kept: Vec::new(),
            buffers: [KeptBuffer::default(); FILTER],
            others: [0; FILTER],
            slot_uses: Vec::new(),
            points: Vec::new(),
        });
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: VUID-vkAllocateCommandBuffers-pAllocateInfo::commandBufferCount-arraylength: one.
        let buffers = unsafe { raw.vk.allocate_command_buffers(&info) }
            .map_err(|result| error::memory("vkAllocateCommandBuffers", result))?;
        recording.vk = buffers.first().copied().unwrap_or_default();
        Ok(recording)
    }

    /// Starts recording.
    pub(super) fn begin(&self, usage: CommandBufferUsage) -> Result<()> {
        let info = vk::CommandBufferBeginInfo::default().flags(match usage {
            CommandBufferUsage::OneTime => vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT,
            CommandBufferUsage::Repeated => vk::CommandBufferUsageFlags::SIMULTANEOUS_USE,
        });
        // SAFETY: VUID-vkBeginCommandBuffer-commandBuffer-00049: in the initial state, after
        // creation or `clear`.
        unsafe { self.raw.vk.begin_command_buffer(self.vk, &info) }
            .map_err(|result| error::memory("vkBeginCommandBuffer", result))
    }

    /// Back to the initial state; only when no submission of it is in flight.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.points.clear();
        // SAFETY: VUID-vkResetCommandPool-commandPool-00040: nothing of the pool is in flight (the
        // caller asked `in_flight`).
        unsafe { self.raw.vk.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty()) }
            .map_err(|result| error::memory("vkResetCommandPool", result))?;
        self.descriptors.reset()?;
        self.kept.clear();
        self.slot_uses.clear();
        self.buffers = [KeptBuffer::default(); FILTER];
        self.others = [0; FILTER];
        Ok(())
    }

    pub(super) fn family(&self) -> u32 {
        self.family
    }

    /// Notes that it was submitted to the queue `lane`; `point` tells when that has passed. An
    /// earlier submission to the same queue passes before.
    pub(super) fn submitted(&mut self, lane: usize, point: &SemaphorePoint) {
        match self.points.iter_mut().find(|(index, _)| *index == lane) {
            Some((_, last)) => last.clone_from(point),
            None => self.points.push((lane, point.clone())),
        }
    }

    /// Whether it was submitted since it was cleared.
    pub(super) fn was_submitted(&self) -> bool {
        !self.points.is_empty()
    }

    /// Whether the device may still run it.
    pub(super) fn in_flight(&self) -> bool {
        self.points.iter().any(|(_, point)| {
            Semaphore::of(point, &self.raw).is_ok_and(|semaphore| !semaphore.passed(point.value))
        })
    }

    /// The queue that it was first submitted to.
    pub(super) fn lane(&self) -> usize {
        self.points.first().map_or(0, |(lane, _)| *lane)
    }

    /// Holds a buffer; fails for one of another device.
    #[inline]
    pub(super) fn keep_buffer(&mut self, buffer: &Arc<dyn hal::Buffer>) -> Result<KeptBuffer> {
        let address = Arc::as_ptr(buffer).cast::<()>() as usize;
        let slot = &mut self.buffers[slot(address)];
        if slot.address != address {
            let ours = Buffer::of(&**buffer, &self.raw)?;
            *slot = KeptBuffer { vk: ours.vk(), size: ours.size(), address };
            self.kept.push(Kept::Buffer(buffer.clone()));
        }
        Ok(*slot)
    }

    #[inline]
    pub(super) fn keep_executable(&mut self, executable: &Arc<dyn hal::Executable>) {
        if self.is_new(Arc::as_ptr(executable).cast::<()>() as usize) {
            self.kept.push(Kept::Executable(executable.clone()));
        }
    }

    pub(super) fn keep_event(&mut self, event: &Arc<dyn hal::Event>) {
        if self.is_new(Arc::as_ptr(event).cast::<()>() as usize) {
            self.kept.push(Kept::Event(event.clone()));
        }
    }

    pub(super) fn keep_timestamps(&mut self, timestamps: &Arc<dyn hal::Timestamps>) {
        if self.is_new(Arc::as_ptr(timestamps).cast::<()>() as usize) {
            self.kept.push(Kept::Timestamps(timestamps.clone()));
        }
    }

    /// False for an object that is held already.
    #[inline]
    fn is_new(&mut self, address: usize) -> bool {
        std::mem::replace(&mut self.others[slot(address)], address) != address
    }
}

/// Where a filter remembers the object at `address`. One that another crowds out is held once more,
/// which costs memory but no correctness.
#[inline]
fn slot(address: usize) -> usize {
    // The low bits of heap addresses are alike; the multiplication spreads the others.
    let spread = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
    (spread >> 58) % FILTER
}

impl Drop for Recording {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyCommandPool-commandPool-00041: recordings in flight are kept by
        // their queue (retire.rs).
        unsafe { self.raw.vk.destroy_command_pool(self.pool, None) };
    }
}

/// Recordings of all families that wait for reuse.
#[allow(clippy::vec_box, reason = "they move between here, command buffers and queues")]
#[derive(Default)]
pub(super) struct IdleRecordings(parking_lot::Mutex<Vec<Box<Recording>>>);

impl IdleRecordings {
    /// A cleared recording for `family`, reused or new.
    pub(super) fn take(&self, raw: &Arc<RawDevice>, family: u32) -> Result<Box<Recording>> {
        let reused = {
            let mut idle = self.0.lock();
            let place = idle.iter().rposition(|recording| recording.family() == family);
            place.map(|place| idle.swap_remove(place))
        };
        reused.map_or_else(|| Recording::create(raw, family), Ok)
    }

    /// Destroys those that wait.
    pub(super) fn clear(&self) {
        let idle = std::mem::take(&mut *self.0.lock());
        drop(idle);
    }

    /// Clears a recording that is not in flight and keeps it. One that cannot be cleared goes, and
    /// so does one of a lost device, which allows nothing else.
    pub(super) fn give_back(&self, mut recording: Box<Recording>) {
        if !recording.raw.is_lost() && recording.clear().is_ok() {
            let mut idle = self.0.lock();
            if idle.len() < MAX_IDLE {
                idle.push(recording);
            }
        }
    }
}
