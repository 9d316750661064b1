//! Device attributes: TVM's `DeviceAttrKind` and the target properties of TVM's Vulkan runtime,
//! answered from what the device was created with. What Vulkan cannot know is `None`.

use super::device::Device;
use crate::hal::{DeviceProperties, DeviceType, MemoryKind};

/// What `dlhal_device_get_attr()` can be asked. The numbers up to 16 are those of TVM's
/// DeviceAttrKind.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceAttr {
    /// Bool: whether the device exists. Never fails for kDLVulkan.
    Exist = 0,
    /// Int: threads of a workgroup.
    MaxThreadsPerBlock = 1,
    /// Int: the subgroup size that kernels get by default.
    WarpSize = 2,
    /// Int: bytes of workgroup memory.
    MaxSharedMemoryPerBlock = 3,
    /// Text: the Vulkan version, for example `1.3.255`.
    ComputeVersion = 4,
    /// Text: the device's name.
    DeviceName = 5,
    /// Int: clock rate in kHz. Unknown to Vulkan.
    MaxClockRate = 6,
    /// Int: compute units, where an extension of the vendor tells.
    MultiProcessorCount = 7,
    /// Text: threads in x, y and z: `[1024, 1024, 64]`.
    MaxThreadDimensions = 8,
    /// Int: registers of a workgroup. Unknown to Vulkan.
    MaxRegistersPerBlock = 9,
    /// Text: AMD's architecture name. Unknown to Vulkan.
    GcnArch = 10,
    /// Int: the Vulkan version as a packed number.
    ApiVersion = 11,
    /// Int: the driver's version as a packed number.
    DriverVersion = 12,
    /// Int: bytes of second-level cache. Unknown to Vulkan.
    L2CacheSizeBytes = 13,
    /// Int: bytes of device memory.
    TotalGlobalMemory = 14,
    /// Int: bytes of device memory that can still be allocated.
    AvailableGlobalMemory = 15,
    /// Int: alignment of an image's rows in a buffer.
    ImagePitchAlignment = 16,
    /// Text: `discrete`, `integrated`, `virtual`, `other` or `software`.
    DeviceType = 64,
    /// Text: the device's UUID.
    Uuid = 65,
    /// Text: the PCI address: `0000:01:00.0`.
    PciAddress = 66,
    /// Int: bytes of live allocations.
    LiveBytes = 67,
    /// Int: bytes that one allocation can have.
    MaxAllocation = 68,
    /// Bool: whether the device is software on the host's processor.
    IsSoftware = 69,
    /// Text: the driver's name.
    DriverName = 70,
    /// Text: what is known to be wrong with the driver, one line each.
    Warnings = 71,
    /// Bool: whether the device has timestamps. Without them, timers wait and take the host's time.
    DeviceTimestamps = 72,
}

impl DeviceAttr {
    /// All of them.
    /// cbindgen:ignore
    pub const ALL: [Self; 26] = [
        Self::Exist,
        Self::MaxThreadsPerBlock,
        Self::WarpSize,
        Self::MaxSharedMemoryPerBlock,
        Self::ComputeVersion,
        Self::DeviceName,
        Self::MaxClockRate,
        Self::MultiProcessorCount,
        Self::MaxThreadDimensions,
        Self::MaxRegistersPerBlock,
        Self::GcnArch,
        Self::ApiVersion,
        Self::DriverVersion,
        Self::L2CacheSizeBytes,
        Self::TotalGlobalMemory,
        Self::AvailableGlobalMemory,
        Self::ImagePitchAlignment,
        Self::DeviceType,
        Self::Uuid,
        Self::PciAddress,
        Self::LiveBytes,
        Self::MaxAllocation,
        Self::IsSoftware,
        Self::DriverName,
        Self::Warnings,
        Self::DeviceTimestamps,
    ];

    /// The attribute with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|attr| *attr as i32 == number)
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
}

impl Device {
    /// The attribute, or `None` where nobody knows.
    pub fn attribute(&self, attr: DeviceAttr) -> Option<Attribute> {
        use Attribute::{Bool, Int, Text};
        let properties = self.properties();
        let kernel = &properties.kernel;
        let answer = match attr {
            DeviceAttr::Exist => Bool(true),
            DeviceAttr::MaxThreadsPerBlock => Int(kernel.max_workgroup_invocations.into()),
            DeviceAttr::WarpSize => Int(kernel.subgroup_size.into()),
            DeviceAttr::MaxSharedMemoryPerBlock => Int(kernel.max_workgroup_memory_bytes.into()),
            DeviceAttr::ComputeVersion => {
                let (major, minor, patch) = properties.api_version;
                Text(format!("{major}.{minor}.{patch}"))
            }
            DeviceAttr::DeviceName => Text(properties.name.clone()),
            DeviceAttr::MultiProcessorCount => Int(properties.multiprocessor_count?.into()),
            DeviceAttr::MaxThreadDimensions => Text(format!("{:?}", kernel.max_workgroup_size)),
            DeviceAttr::ApiVersion => Int(packed_api_version(properties)),
            DeviceAttr::DriverVersion => Int(properties.driver_version.into()),
            DeviceAttr::TotalGlobalMemory => Int(clamped(properties.total_memory)),
            DeviceAttr::AvailableGlobalMemory => Int(clamped(self.available_memory())),
            DeviceAttr::ImagePitchAlignment => Int(clamped(properties.image_pitch_alignment)),
            DeviceAttr::DeviceType => Text(type_name(properties.device_type).to_owned()),
            DeviceAttr::Uuid => Text(uuid_text(&properties.uuid)),
            DeviceAttr::PciAddress => Text(properties.pci?.to_string()),
            DeviceAttr::LiveBytes => Int(clamped(self.memory_statistics().live_bytes)),
            DeviceAttr::MaxAllocation => {
                let largest = properties.max_buffer_size.min(properties.total_memory);
                // In the steps that allocations are made in.
                Int(clamped(largest / 256 * 256))
            }
            DeviceAttr::IsSoftware => Bool(properties.device_type == DeviceType::Software),
            DeviceAttr::DriverName => Text(properties.driver_name.clone()),
            DeviceAttr::Warnings => Text(properties.warnings.join("\n")),
            DeviceAttr::DeviceTimestamps => Bool(!properties.fallbacks.no_timestamps),
            DeviceAttr::MaxClockRate
            | DeviceAttr::MaxRegistersPerBlock
            | DeviceAttr::GcnArch
            | DeviceAttr::L2CacheSizeBytes => return None,
        };
        Some(answer)
    }

    /// A target property by the name that TVM's Vulkan runtime gives it; `None` for a name that it
    /// does not have.
    pub fn target_property(&self, name: &str) -> Option<Attribute> {
        use Attribute::{Bool, Int, Text};
        let properties = self.properties();
        let kernel = &properties.kernel;
        let features = &properties.features;
        let answer = match name {
            "supports_float16" => Bool(features.float16),
            "supports_float32" => Bool(features.float32),
            "supports_float64" => Bool(features.float64),
            "supports_int8" => Bool(features.int8),
            "supports_int16" => Bool(features.int16),
            "supports_int32" => Bool(features.int32),
            "supports_int64" => Bool(features.int64),
            "supports_8bit_buffer" => Bool(features.storage_8bit),
            "supports_16bit_buffer" => Bool(features.storage_16bit),
            "supports_storage_buffer_storage_class" => Bool(features.storage_buffer_storage_class),
            "supports_push_descriptor" => Bool(features.push_descriptor),
            "supports_dedicated_allocation" => Bool(features.dedicated_allocation),
            "supports_integer_dot_product" => Bool(features.integer_dot_product),
            "supports_cooperative_matrix" => Bool(features.cooperative_matrix),
            "supported_subgroup_operations" => Int(features.subgroup_operations.into()),
            "max_num_threads" => Int(kernel.max_workgroup_invocations.into()),
            "thread_warp_size" => Int(kernel.subgroup_size.into()),
            "max_block_size_x" => Int(kernel.max_workgroup_size[0].into()),
            "max_block_size_y" => Int(kernel.max_workgroup_size[1].into()),
            "max_block_size_z" => Int(kernel.max_workgroup_size[2].into()),
            "max_push_constants_size" => Int(kernel.max_push_constant_bytes.into()),
            "max_uniform_buffer_range" => Int(kernel.max_uniform_buffer_range.into()),
            "max_storage_buffer_range" => Int(clamped(kernel.max_storage_buffer_range)),
            "max_per_stage_descriptor_storage_buffer" => Int(kernel.max_storage_buffers.into()),
            "max_shared_memory_per_block" => Int(kernel.max_workgroup_memory_bytes.into()),
            "device_name" => Text(properties.name.clone()),
            "device_type" => Text(tvm_type_name(properties.device_type).to_owned()),
            "driver_name" => Text(properties.driver_name.clone()),
            "driver_version" => Int(properties.driver_version.into()),
            "vulkan_api_version" => Int(packed_api_version(properties)),
            "max_spirv_version" => Int(packed_spirv_version(kernel.max_spirv_version)),
            _ => return None,
        };
        Some(answer)
    }

    /// Names of all target properties.
    pub const TARGET_PROPERTIES: [&'static str; 31] = [
        "supports_float16",
        "supports_float32",
        "supports_float64",
        "supports_int8",
        "supports_int16",
        "supports_int32",
        "supports_int64",
        "supports_8bit_buffer",
        "supports_16bit_buffer",
        "supports_storage_buffer_storage_class",
        "supports_push_descriptor",
        "supports_dedicated_allocation",
        "supports_integer_dot_product",
        "supports_cooperative_matrix",
        "supported_subgroup_operations",
        "max_num_threads",
        "thread_warp_size",
        "max_block_size_x",
        "max_block_size_y",
        "max_block_size_z",
        "max_push_constants_size",
        "max_uniform_buffer_range",
        "max_storage_buffer_range",
        "max_per_stage_descriptor_storage_buffer",
        "max_shared_memory_per_block",
        "device_name",
        "device_type",
        "driver_name",
        "driver_version",
        "vulkan_api_version",
        "max_spirv_version",
    ];

    /// Whether host memory of the kind is what the memory at `address` is made of.
    pub fn memory_kind(&self, address: u64) -> crate::Result<MemoryKind> {
        let allocation = self.memory().find(address)?.lock();
        Ok(allocation.live_at(address)?.kind)
    }
}

/// Our name of a device's kind.
pub fn type_name(device_type: DeviceType) -> &'static str {
    match device_type {
        DeviceType::Discrete => "discrete",
        DeviceType::Integrated => "integrated",
        DeviceType::Virtual => "virtual",
        DeviceType::Other => "other",
        DeviceType::Software => "software",
    }
}

/// A UUID as text, in the usual five groups.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
    groups.map(|group| hex[group].to_owned()).join("-")
}

/// The names that TVM's Vulkan runtime gives to `VkPhysicalDeviceType`.
fn tvm_type_name(device_type: DeviceType) -> &'static str {
    match device_type {
        DeviceType::Software => "cpu",
        other => type_name(other),
    }
}

/// As `VK_MAKE_API_VERSION` packs it.
fn packed_api_version(properties: &DeviceProperties) -> i64 {
    let (major, minor, patch) = properties.api_version;
    i64::from(major << 22 | minor << 12 | patch)
}

/// As a SPIR-V header has it.
fn packed_spirv_version((major, minor): (u8, u8)) -> i64 {
    i64::from(major) << 16 | i64::from(minor) << 8
}

fn clamped(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
