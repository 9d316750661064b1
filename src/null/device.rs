//! The null device.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use super::timeline::Timeline;
use super::{
    Buffer, Call, CommandBuffer, Event, Executable, Options, Queue, Semaphore, Submitted,
    Timestamps,
};
use crate::hal::{
    self, BufferDesc, CommandBufferUsage, DeviceProperties, DeviceType, ExecutableDesc, Fallbacks,
    KernelFeatures, KernelLimits, MemoryBudget, MemoryKind, QueueProperties, QueueRole, validate,
};
use crate::{DlhalStatus, Error, Result};

/// A device in host memory, with what tests need to look inside.
pub struct Device {
    timeline: Arc<Timeline>,
    properties: DeviceProperties,
    limits: Arc<KernelLimits>,
    queues: Vec<Arc<dyn hal::Queue>>,
    cache: Mutex<Vec<u8>>,
}

/// Starts the bytes of the null device's pipeline cache.
const CACHE_HEADER: &[u8] = b"dlhal-null-cache";

impl Device {
    /// A device as `options` say.
    pub fn new(options: Options) -> Arc<Self> {
        let properties = properties(&options);
        let timeline = Timeline::new(options);
        let queues = timeline
            .options
            .queues
            .iter()
            .enumerate()
            .map(|(i, role)| Arc::new(Queue::new(&timeline, i, *role)) as Arc<dyn hal::Queue>)
            .collect();
        let limits = Arc::new(properties.kernel.clone());
        Arc::new(Self { timeline, properties, limits, queues, cache: Mutex::default() })
    }

    /// All that was submitted, in order.
    pub fn log(&self) -> Vec<Submitted> {
        self.timeline.log()
    }

    /// How many submissions have not run.
    pub fn pending(&self) -> usize {
        self.timeline.pending()
    }

    /// Runs `count` submissions, oldest first as far as queues and waits allow.
    pub fn complete(&self, count: usize) -> Result<()> {
        for done in 0..count {
            if !self.timeline.complete_one() {
                return Err(Error::precondition(format!(
                    "{done} of {count} submissions could run; {} are pending",
                    self.pending()
                )));
            }
        }
        Ok(())
    }

    /// Makes one call fail: the next one if `after` is 0, the one after that if it is 1. With
    /// [`DlhalStatus::DeviceLost`] the device is lost by it.
    pub fn fail_call(&self, call: Call, after: u64, status: DlhalStatus) {
        let error = Error::new(status, format!("{call:?} was ordered to fail"));
        self.timeline.add_fault(call, after, error);
    }

    /// Loses the device, as a hang would.
    pub fn lose(&self, message: &str) {
        self.timeline.lose(Error::device_lost(message));
    }

    /// Buffers that exist, those kept by pending submissions included.
    pub fn live_buffers(&self) -> u64 {
        self.timeline.live_buffers()
    }
}

impl hal::Device for Device {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn queues(&self) -> &[Arc<dyn hal::Queue>] {
        &self.queues
    }

    fn create_buffer(&self, desc: &BufferDesc) -> Result<Arc<dyn hal::Buffer>> {
        self.timeline.enter(Call::CreateBuffer)?;
        let mapped = desc.memory == MemoryKind::Host || self.timeline.options.map_device_memory;
        Ok(Buffer::allocate(&self.timeline, desc, mapped)?)
    }

    unsafe fn import_host_memory(
        &self,
        ptr: NonNull<u8>,
        size: u64,
    ) -> Result<Arc<dyn hal::Buffer>> {
        self.timeline.enter(Call::ImportHostMemory)?;
        validate::import(ptr, size, self.properties.host_import_alignment)?;
        Ok(Buffer::import(&self.timeline, ptr, size))
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn hal::Semaphore>> {
        self.timeline.enter(Call::CreateSemaphore)?;
        Ok(Semaphore::new(&self.timeline, self.timeline.next_id(), initial))
    }

    fn create_command_buffer(
        &self,
        queue: &Arc<dyn hal::Queue>,
        usage: CommandBufferUsage,
    ) -> Result<Box<dyn hal::CommandBuffer>> {
        self.timeline.enter(Call::CreateCommandBuffer)?;
        if !queue.as_any().is::<Queue>() {
            return Err(Error::invalid("a queue of another driver was given to the null driver"));
        }
        let (role, options) = (queue.role(), &self.timeline.options);
        let (limits, valid_bits) = (self.limits.clone(), options.timestamp_valid_bits);
        Ok(Box::new(CommandBuffer::new(role, usage, limits, valid_bits)))
    }

    fn create_executable(&self, desc: &ExecutableDesc<'_>) -> Result<Arc<dyn hal::Executable>> {
        self.timeline.enter(Call::CreateExecutable)?;
        Ok(Arc::new(Executable {
            name: desc.name.to_owned(),
            spirv: desc.spirv.to_vec(),
            bindings: desc.bindings.to_vec(),
            push_constant_bytes: desc.push_constant_bytes,
        }))
    }

    fn create_event(&self) -> Result<Arc<dyn hal::Event>> {
        self.timeline.health()?;
        Ok(Arc::new(Event { id: self.timeline.next_id() }))
    }

    fn create_timestamps(&self, count: u32) -> Result<Arc<dyn hal::Timestamps>> {
        self.timeline.enter(Call::CreateTimestamps)?;
        validate::timestamps(count, &self.properties)?;
        Ok(Timestamps::new(self.timeline.next_id(), count))
    }

    fn memory_budget(&self) -> MemoryBudget {
        let total = self.timeline.options.total_memory;
        let free = total.saturating_sub(self.timeline.used());
        MemoryBudget { total, available: self.timeline.options.memory_budget.then_some(free) }
    }

    fn pipeline_cache(&self) -> Result<Vec<u8>> {
        self.timeline.health()?;
        Ok([CACHE_HEADER, &self.cache.lock()].concat())
    }

    fn merge_pipeline_cache(&self, bytes: &[u8]) -> Result<bool> {
        self.timeline.health()?;
        let Some(added) = bytes.strip_prefix(CACHE_HEADER) else { return Ok(false) };
        self.cache.lock().extend_from_slice(added);
        Ok(true)
    }

    fn trim(&self) {
        // Finished work holds nothing here, and nothing is kept.
    }

    fn wait_idle(&self) -> Result<()> {
        self.timeline.wait_idle()
    }

    fn health(&self) -> Result<()> {
        self.timeline.health()
    }

    fn native_handles(&self) -> [u64; 3] {
        [0; 3]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.timeline.shut_down();
    }
}

pub(super) fn properties(options: &Options) -> DeviceProperties {
    DeviceProperties {
        name: options.name.clone(),
        device_type: DeviceType::Software,
        uuid: *b"dlhal null devic",
        pci: None,
        driver_name: "null".to_owned(),
        driver_info: "no device".to_owned(),
        driver_version: 1,
        api_version: (1, 0, 0),
        vendor_id: 0,
        device_id: 0,
        kernel: limits(options),
        total_memory: options.total_memory,
        max_buffer_size: options.total_memory,
        max_memory_objects: 4096,
        non_coherent_atom_size: 64,
        host_import_alignment: options.host_import_alignment,
        timestamp_period_ns: options.timestamp_period_ns,
        multiprocessor_count: None,
        image_pitch_alignment: 1,
        features: KernelFeatures {
            float32: true,
            int32: true,
            storage_buffer_storage_class: true,
            ..KernelFeatures::default()
        },
        queues: queue_properties(options),
        fallbacks: Fallbacks {
            reserved_addresses: !options.device_addresses,
            no_host_import: options.host_import_alignment.is_none(),
            own_budget: !options.memory_budget,
            unmapped_device_memory: !options.map_device_memory,
            no_timestamps: options.timestamp_valid_bits == 0,
            ..Fallbacks::default()
        },
        warnings: Vec::new(),
    }
}

/// The least that Vulkan 1.1 guarantees, where it guarantees something.
fn limits(options: &Options) -> KernelLimits {
    KernelLimits {
        spirv_capabilities: [spirv::Capability::Shader as u32].into(),
        spirv_extensions: ["SPV_KHR_storage_buffer_storage_class".to_owned()].into(),
        max_spirv_version: (1, 3),
        max_workgroup_size: [128, 128, 64],
        max_workgroup_invocations: 128,
        max_workgroup_count: [65_535; 3],
        max_workgroup_memory_bytes: 16_384,
        max_push_constant_bytes: 128,
        max_storage_buffers: 16,
        max_uniform_buffer_range: 16_384,
        max_storage_buffer_range: options.total_memory.min(1 << 27),
        storage_buffer_alignment: 256,
        uniform_buffer_alignment: 256,
        subgroup_size: 1,
        subgroup_size_range: (1, 1),
    }
}

fn queue_properties(options: &Options) -> Vec<QueueProperties> {
    [QueueRole::Compute, QueueRole::Transfer]
        .into_iter()
        .map(|role| QueueProperties {
            role,
            count: options.queues.iter().filter(|r| **r == role).count() as u32,
            timestamp_valid_bits: options.timestamp_valid_bits,
        })
        .filter(|queue| queue.count > 0)
        .collect()
}
