//! The plan: which extensions, features, queues and memory types a device is created with, decided
//! by one pure function from the snapshot, so that it is tested without a GPU.

/// What a device is created with. The rest of the driver asks this, never the physical device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The version to program against: the least of what loader, device and this library know.
    pub(crate) api_version: u32,
    /// Device extensions to enable, by name.
    pub(crate) extensions: Vec<&'static str>,
    /// Features to enable.
    pub(crate) features: EnabledFeatures,
    /// Queues to create, compute families first.
    pub(crate) queues: Vec<QueueFamilyPlan>,
    /// Memory types for [`crate::hal::MemoryKind::Device`], best first.
    pub(crate) device_memory_types: Vec<u32>,
    /// Memory types for [`crate::hal::MemoryKind::Host`], best first.
    pub(crate) host_memory_types: Vec<u32>,
    /// Use push descriptors; otherwise recycled descriptor pools.
    pub(crate) push_descriptors: bool,
    /// Query device memory by `VK_EXT_memory_budget`.
    pub(crate) memory_budget: bool,
    /// Import host memory; the alignment it needs.
    pub(crate) host_import_alignment: Option<u64>,
    /// Map device memory where the host can see it.
    pub(crate) map_device_memory: bool,
}

/// One queue family to create queues of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFamilyPlan {
    /// Its index.
    pub(crate) family: u32,
    /// How many queues.
    pub(crate) count: u32,
    /// What they are used for.
    pub(crate) role: crate::hal::QueueRole,
    /// Bits of a timestamp that count.
    pub(crate) timestamp_valid_bits: u32,
}

/// Features to enable at device creation; each is present in the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EnabledFeatures {
    pub(crate) timeline_semaphore: bool,
    pub(crate) buffer_device_address: bool,
    pub(crate) shader_float64: bool,
    pub(crate) shader_int64: bool,
    pub(crate) shader_int16: bool,
    pub(crate) shader_float16: bool,
    pub(crate) shader_int8: bool,
    pub(crate) storage_buffer_16bit: bool,
    pub(crate) uniform_and_storage_buffer_16bit: bool,
    pub(crate) storage_push_constant_16: bool,
    pub(crate) storage_buffer_8bit: bool,
    pub(crate) uniform_and_storage_buffer_8bit: bool,
    pub(crate) storage_push_constant_8: bool,
    pub(crate) integer_dot_product: bool,
    pub(crate) cooperative_matrix: bool,
    pub(crate) vulkan_memory_model: bool,
    pub(crate) variable_pointers: bool,
    pub(crate) variable_pointers_storage_buffer: bool,
    pub(crate) subgroup_size_control: bool,
    pub(crate) compute_full_subgroups: bool,
    pub(crate) scalar_block_layout: bool,
    pub(crate) maintenance4: bool,
    pub(crate) shader_buffer_float32_atomic_add: bool,
    pub(crate) robust_buffer_access: bool,
}
