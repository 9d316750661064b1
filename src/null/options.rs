//! What a null device is like.

use std::fmt;
use std::sync::Arc;

use super::KernelCall;
use crate::Result;
use crate::hal::QueueRole;

/// What a dispatch calls. It must not submit to, or wait for, the device that calls it.
pub type Kernel = Arc<dyn Fn(&KernelCall<'_>) -> Result<()> + Send + Sync>;

/// Calls that can be made to fail; see [`super::Device::fail_call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `Device::create_buffer`
    CreateBuffer,
    /// `Device::import_host_memory`
    ImportHostMemory,
    /// `Device::create_semaphore`
    CreateSemaphore,
    /// `Device::create_command_buffer`
    CreateCommandBuffer,
    /// `Device::create_executable`
    CreateExecutable,
    /// `Device::create_timestamps`
    CreateTimestamps,
    /// `Queue::submit`
    Submit,
}

/// How long a command takes on a null device, in ticks of its timestamps.
pub const TICKS_PER_COMMAND: u64 = 1000;

/// What a null device is like. [`Options::default`] is one compute queue, device memory that the
/// host does not see, device addresses, and completion at submission.
#[derive(Clone)]
pub struct Options {
    /// The device's name.
    pub name: String,
    /// The queues, compute ones first.
    pub queues: Vec<QueueRole>,
    /// Whether the host sees device memory.
    pub map_device_memory: bool,
    /// Whether mappings say that they are coherent. Memory is, in truth.
    pub coherent: bool,
    /// Whether buffers have device addresses.
    pub device_addresses: bool,
    /// Alignment for importing host memory; `None` to refuse it.
    pub host_import_alignment: Option<u64>,
    /// Bytes of memory; an allocation past it is out of memory.
    pub total_memory: u64,
    /// Whether the memory budget tells what is left.
    pub memory_budget: bool,
    /// Bits of a timestamp that count; 0 for a device without timestamps.
    pub timestamp_valid_bits: u32,
    /// Nanoseconds of a tick. Each command takes [`TICKS_PER_COMMAND`] of them, whatever it does.
    pub timestamp_period_ns: f32,
    /// Ticks at the device's creation.
    pub first_tick: u64,
    /// Submissions complete only by [`super::Device::complete`].
    pub manual_completion: bool,
    /// What dispatches do; `None` for nothing.
    pub kernel: Option<Kernel>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "null".to_owned(),
            queues: vec![QueueRole::Compute],
            map_device_memory: false,
            coherent: true,
            device_addresses: true,
            host_import_alignment: Some(4096),
            total_memory: 1 << 32,
            memory_budget: true,
            timestamp_valid_bits: 64,
            timestamp_period_ns: 1.0,
            first_tick: 0,
            manual_completion: false,
            kernel: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .field("queues", &self.queues)
            .field("map_device_memory", &self.map_device_memory)
            .field("manual_completion", &self.manual_completion)
            .field("kernel", &self.kernel.is_some())
            .finish_non_exhaustive()
    }
}
