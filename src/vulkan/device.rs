//! The Vulkan device.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::buffer::Buffer;
use super::command_buffer::CommandBuffer;
use super::event::Event;
use super::executable::Executable;
use super::instance::Instance;
use super::memory::Heaps;
use super::plan::Plan;
use super::queue::Queue;
use super::raw_device::RawDevice;
use super::semaphore::Semaphore;
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::timestamps::Timestamps;
use crate::hal::{
    self, BufferDesc, CommandBufferUsage, DeviceProperties, ExecutableDesc, MemoryBudget, validate,
};
use crate::{Error, Result};

/// A device with its queues.
struct Device {
    shared: Arc<Shared>,
    queues: Vec<Arc<dyn hal::Queue>>,
}

/// Creates a device as planned. Plan and properties were made from the snapshot.
pub(crate) fn create(
    instance: &Arc<Instance>,
    physical: vk::PhysicalDevice,
    snapshot: Snapshot,
    plan: Plan,
    properties: DeviceProperties,
) -> Result<Arc<dyn hal::Device>> {
    let raw = RawDevice::create(instance, physical, plan, Heaps::new(snapshot))
        .map_err(|error| error.within(&properties.name))?;
    let shared = Shared::create(&raw, properties)?;
    let queues = (0..shared.lanes.len())
        .map(|lane| Arc::new(Queue::new(&shared, lane)) as Arc<dyn hal::Queue>)
        .collect();
    Ok(Arc::new(Device { shared, queues }))
}

impl hal::Device for Device {
    fn properties(&self) -> &DeviceProperties {
        &self.shared.properties
    }

    fn queues(&self) -> &[Arc<dyn hal::Queue>] {
        &self.queues
    }

    fn create_buffer(&self, desc: &BufferDesc) -> Result<Arc<dyn hal::Buffer>> {
        let Shared { raw, properties, .. } = &*self.shared;
        raw.check()?;
        // Buffers that only work in flight still held may be free by now.
        self.shared.drain_all();
        if raw.plan.features.maintenance4 && desc.size > properties.max_buffer_size {
            return Err(Error::out_of_memory(format!(
                "a buffer of {} bytes was asked for; the device allows {} (maxBufferSize)",
                desc.size, properties.max_buffer_size
            )));
        }
        Ok(Arc::new(Buffer::create(raw, properties.non_coherent_atom_size, desc)?))
    }

    unsafe fn import_host_memory(
        &self,
        ptr: NonNull<u8>,
        size: u64,
    ) -> Result<Arc<dyn hal::Buffer>> {
        let raw = &self.shared.raw;
        raw.check()?;
        validate::import(ptr, size, raw.plan.host_import_alignment)?;
        Ok(Arc::new(Buffer::import(raw, ptr, size)?))
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn hal::Semaphore>> {
        self.shared.raw.check()?;
        Ok(Semaphore::create(&self.shared, initial)?)
    }

    fn create_command_buffer(
        &self,
        queue: &Arc<dyn hal::Queue>,
        usage: CommandBufferUsage,
    ) -> Result<Box<dyn hal::CommandBuffer>> {
        let lane = Queue::lane_of(&**queue, &self.shared)?;
        Ok(Box::new(CommandBuffer::create(&self.shared, lane, usage)?))
    }

    fn create_executable(&self, desc: &ExecutableDesc<'_>) -> Result<Arc<dyn hal::Executable>> {
        self.shared.raw.check()?;
        Ok(Arc::new(Executable::create(&self.shared, desc)?))
    }

    fn create_event(&self) -> Result<Arc<dyn hal::Event>> {
        self.shared.raw.check()?;
        Ok(Arc::new(Event::create(&self.shared.raw)?))
    }

    fn create_timestamps(&self, count: u32) -> Result<Arc<dyn hal::Timestamps>> {
        self.shared.raw.check()?;
        validate::timestamps(count, &self.shared.properties)?;
        Ok(Arc::new(Timestamps::create(&self.shared.raw, count)?))
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.shared.drain_all();
        self.shared.raw.memory_budget()
    }

    fn pipeline_cache(&self) -> Result<Vec<u8>> {
        self.shared.raw.check()?;
        self.shared.cache.bytes()
    }

    fn merge_pipeline_cache(&self, bytes: &[u8]) -> Result<bool> {
        self.shared.raw.check()?;
        self.shared.cache.merge(bytes)
    }

    fn trim(&self) {
        self.shared.drain_all();
        self.shared.idle.clear();
    }

    fn wait_idle(&self) -> Result<()> {
        self.shared.lanes.iter().try_for_each(|lane| self.shared.wait_lane_idle(lane))
    }

    fn health(&self) -> Result<()> {
        self.shared.raw.check()
    }

    fn native_handles(&self) -> [u64; 3] {
        use vk::Handle;
        let raw = &self.shared.raw;
        [raw.instance.raw.handle().as_raw(), raw.physical.as_raw(), raw.vk.handle().as_raw()]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
