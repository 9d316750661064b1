//! Drivers list adapters; an adapter becomes a device; a device makes everything else.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{
    Buffer, BufferDesc, CommandBuffer, CommandBufferUsage, DeviceProperties, DeviceType, Event,
    Executable, ExecutableDesc, Queue, Semaphore, Timestamps,
};
use crate::Result;

/// One API with its loader. Dropping the last reference, devices included, closes it.
pub trait Driver: Send + Sync + 'static {
    /// What the driver found, in its own stable order: discrete, integrated, virtual, other,
    /// software. Unusable ones are listed with the reason.
    fn adapters(&self) -> &[Adapter];
    /// Creates a device of the adapter at `index` of [`Self::adapters`].
    fn create_device(&self, index: usize) -> Result<Arc<dyn Device>>;
}

/// A device as found, before anything is created.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// What it is.
    pub info: AdapterInfo,
    /// Why it cannot be used; `Ok` if it can.
    pub usable: Result<()>,
}

/// What is known of an adapter even when it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    /// The device's name.
    pub name: String,
    /// Its kind.
    pub device_type: DeviceType,
    /// The same for the same device in every process and API.
    pub uuid: [u8; 16],
    /// The driver's name and version as it tells them.
    pub driver: String,
}

/// Memory of the device-local heaps, in bytes; `used + available <= total` always holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// All of it.
    pub total: u64,
    /// What the device can still give to this process, or `None` where the driver does not tell.
    pub available: Option<u64>,
}

/// A device: makes buffers, semaphores, command buffers, executables, events and timestamps.
pub trait Device: Send + Sync + 'static {
    /// What it is and can do.
    fn properties(&self) -> &DeviceProperties;
    /// Its queues: compute ones first. At least one.
    fn queues(&self) -> &[Arc<dyn Queue>];
    /// Creates a buffer with memory of its own. Out of memory: size, heap and free bytes are in the
    /// message.
    fn create_buffer(&self, desc: &BufferDesc) -> Result<Arc<dyn Buffer>>;
    /// Makes `size` bytes of host memory at `ptr` usable by the device without a copy. Both must be
    /// multiples of [`DeviceProperties::host_import_alignment`].
    ///
    /// # Safety
    /// The memory must stay mapped, readable and writable until the buffer and all work that uses
    /// it are gone.
    unsafe fn import_host_memory(&self, ptr: NonNull<u8>, size: u64) -> Result<Arc<dyn Buffer>>;
    /// Creates a timeline semaphore.
    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>>;
    /// Creates a command buffer for the family of `queue`.
    fn create_command_buffer(
        &self,
        queue: &Arc<dyn Queue>,
        usage: CommandBufferUsage,
    ) -> Result<Box<dyn CommandBuffer>>;
    /// Makes a kernel ready. Its compilation goes through the device's pipeline cache.
    fn create_executable(&self, desc: &ExecutableDesc<'_>) -> Result<Arc<dyn Executable>>;
    /// Creates an event.
    fn create_event(&self) -> Result<Arc<dyn Event>>;
    /// Creates `count` slots for timestamps, 1 to 65,536. `Unsupported` on a device without them
    /// ([`Fallbacks::no_timestamps`](super::Fallbacks)).
    fn create_timestamps(&self, count: u32) -> Result<Arc<dyn Timestamps>>;
    /// What memory there is.
    fn memory_budget(&self) -> MemoryBudget;
    /// The pipeline cache as bytes that only this device and driver version accept.
    fn pipeline_cache(&self) -> Result<Vec<u8>>;
    /// Adds to the pipeline cache. Bytes of another device or driver, or corrupt ones, are ignored:
    /// the result tells whether they were taken.
    fn merge_pipeline_cache(&self, bytes: &[u8]) -> Result<bool>;
    /// Gives back what finished work still holds, buffers that are otherwise gone among it, and what
    /// is kept for reuse.
    fn trim(&self);
    /// Waits until every queue is idle.
    fn wait_idle(&self) -> Result<()>;
    /// Fails with the first failure's text once the device is lost.
    fn health(&self) -> Result<()>;
    /// The driver's own handles (`VkInstance`, `VkPhysicalDevice`, `VkDevice`), for interoperation.
    fn native_handles(&self) -> [u64; 3];
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
