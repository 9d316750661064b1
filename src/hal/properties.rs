//! What a device is and can do, as plain data. `None` means that the driver cannot know.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The kind of a device. The order is the order in which devices are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeviceType {
    /// A card of its own.
    Discrete,
    /// Part of the processor.
    Integrated,
    /// A share of a device, given to a virtual machine.
    Virtual,
    /// None of the other kinds.
    Other,
    /// Software on the host's processor.
    Software,
}

/// Where a device sits on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus in the domain.
    pub bus: u32,
    /// Device on the bus.
    pub device: u32,
    /// Function of the device.
    pub function: u32,
}

impl std::fmt::Display for PciAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// What a kernel may ask of a device: only what was enabled counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// SPIR-V capabilities (their numbers) that modules may declare.
    pub spirv_capabilities: BTreeSet<u32>,
    /// SPIR-V extensions that modules may declare, by name.
    pub spirv_extensions: BTreeSet<String>,
    /// The highest SPIR-V version, as (major, minor).
    pub max_spirv_version: (u8, u8),
    /// Threads of a workgroup in x, y, z.
    pub max_workgroup_size: [u32; 3],
    /// Threads of a workgroup in all.
    pub max_workgroup_invocations: u32,
    /// Workgroups of a dispatch in x, y, z.
    pub max_workgroup_count: [u32; 3],
    /// Bytes of workgroup memory.
    pub max_workgroup_memory_bytes: u32,
    /// Bytes of push constants.
    pub max_push_constant_bytes: u32,
    /// Storage buffers of a kernel.
    pub max_storage_buffers: u32,
    /// Bytes of a uniform buffer that a kernel sees.
    pub max_uniform_buffer_range: u32,
    /// Bytes of a storage buffer that a kernel sees.
    pub max_storage_buffer_range: u64,
    /// A storage buffer's offset must be a multiple of this.
    pub storage_buffer_alignment: u64,
    /// A uniform buffer's offset must be a multiple of this.
    pub uniform_buffer_alignment: u64,
    /// The subgroup size that kernels get by default.
    pub subgroup_size: u32,
    /// Least and greatest subgroup size that a kernel can demand; equal where it cannot choose.
    pub subgroup_size_range: (u32, u32),
}

impl KernelLimits {
    /// What every device of Vulkan 1.1 offers: the specification's required limits, no feature.
    pub fn vulkan_1_1_minimum() -> Self {
        use spirv::Capability as C;
        Self {
            spirv_capabilities: [C::Matrix, C::Shader, C::DeviceGroup, C::GroupNonUniform]
                .into_iter()
                .map(|capability| capability as u32)
                .collect(),
            spirv_extensions: [
                "SPV_KHR_storage_buffer_storage_class",
                "SPV_KHR_variable_pointers",
                "SPV_KHR_16bit_storage",
                "SPV_KHR_device_group",
            ]
            .map(str::to_owned)
            .into(),
            max_spirv_version: (1, 3),
            max_workgroup_size: [128, 128, 64],
            max_workgroup_invocations: 128,
            max_workgroup_count: [65535; 3],
            max_workgroup_memory_bytes: 16384,
            max_push_constant_bytes: 128,
            max_storage_buffers: 4,
            max_uniform_buffer_range: 16384,
            max_storage_buffer_range: 1 << 27,
            storage_buffer_alignment: 256,
            uniform_buffer_alignment: 256,
            subgroup_size: 1,
            subgroup_size_range: (1, 128),
        }
    }
}

/// One queue family that the device was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueProperties {
    /// What its queues are best at.
    pub role: super::QueueRole,
    /// How many were created.
    pub count: u32,
    /// Bits of a timestamp that count; 0 without timestamps.
    pub timestamp_valid_bits: u32,
}

/// Which optional features are done without, for lack of them or because it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fallbacks {
    /// Fences and host waits instead of timeline semaphores.
    pub fences: bool,
    /// Descriptor pools instead of push descriptors.
    pub descriptor_pools: bool,
    /// Reserved addresses instead of buffer device addresses.
    pub reserved_addresses: bool,
    /// No import of host memory.
    pub no_host_import: bool,
    /// Own accounting instead of the driver's memory budget.
    pub own_budget: bool,
    /// Device memory is treated as unseen by the host.
    pub unmapped_device_memory: bool,
    /// No timestamps on compute queues.
    pub no_timestamps: bool,
}

/// What a device is and can do.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceProperties {
    /// The device's name.
    pub name: String,
    /// Its kind.
    pub device_type: DeviceType,
    /// The same for the same device in every process and API; 16 bytes.
    pub uuid: [u8; 16],
    /// Where it sits, if the driver tells.
    pub pci: Option<PciAddress>,
    /// The driver's name (`NVIDIA`, `llvmpipe`) and its text about itself.
    pub driver_name: String,
    /// Free text of the driver: version and build.
    pub driver_info: String,
    /// The driver's version, packed as the vendor does.
    pub driver_version: u32,
    /// The API version that the device implements, as (major, minor, patch).
    pub api_version: (u32, u32, u32),
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device, the model rather than the unit.
    pub device_id: u32,
    /// What kernels may ask for.
    pub kernel: KernelLimits,
    /// Bytes of all device-local memory.
    pub total_memory: u64,
    /// Bytes that one buffer can have, as far as the driver tells; more is tried, not refused.
    pub max_buffer_size: u64,
    /// Device memory objects that may live at once.
    pub max_memory_objects: u32,
    /// Flush and invalidate granularity.
    pub non_coherent_atom_size: u64,
    /// Alignment that imported host memory needs; `None` where it cannot be imported.
    pub host_import_alignment: Option<u64>,
    /// Nanoseconds of one timestamp tick.
    pub timestamp_period_ns: f32,
    /// Compute units, where an extension of the vendor tells.
    pub multiprocessor_count: Option<u32>,
    /// Alignment of the rows of an image in a buffer.
    pub image_pitch_alignment: u64,
    /// Features that kernels may use, as TVM's target properties name them.
    pub features: KernelFeatures,
    /// The queues.
    pub queues: Vec<QueueProperties>,
    /// What is done without.
    pub fallbacks: Fallbacks,
    /// Known faults of this driver that make results wrong, with what to install instead.
    pub warnings: Vec<String>,
}

impl DeviceProperties {
    /// Bits of a timestamp that count on queues of `role`; 0 without timestamps or such queues.
    pub fn timestamp_valid_bits(&self, role: super::QueueRole) -> u32 {
        let family = self.queues.iter().find(|queue| queue.role == role);
        family.map_or(0, |queue| queue.timestamp_valid_bits)
    }
}

/// Enabled features, named after TVM's target properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFeatures {
    /// `supports_float16`
    pub float16: bool,
    /// `supports_float32`
    pub float32: bool,
    /// `supports_float64`
    pub float64: bool,
    /// `supports_int8`
    pub int8: bool,
    /// `supports_int16`
    pub int16: bool,
    /// `supports_int32`
    pub int32: bool,
    /// `supports_int64`
    pub int64: bool,
    /// `supports_8bit_buffer`
    pub storage_8bit: bool,
    /// `supports_16bit_buffer`
    pub storage_16bit: bool,
    /// `supports_storage_buffer_storage_class`
    pub storage_buffer_storage_class: bool,
    /// `supports_push_descriptor`
    pub push_descriptor: bool,
    /// `supports_dedicated_allocation`
    pub dedicated_allocation: bool,
    /// `supports_integer_dot_product`
    pub integer_dot_product: bool,
    /// `supports_cooperative_matrix`
    pub cooperative_matrix: bool,
    /// `supported_subgroup_operations`: `VkSubgroupFeatureFlagBits`
    pub subgroup_operations: u32,
}
