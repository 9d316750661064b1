//! What a physical device says of itself, read once, as plain data: it can be written to a file on
//! one machine and planned for on another that has no such device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::features::{Features, Reach};
use crate::hal::{DeviceType, PciAddress};

/// Everything that the plan and the device's properties are made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    /// The version that the instance was created for.
    pub(crate) instance_api_version: [u32; 3],
    /// The version that the device implements; the instance's may be lower.
    pub(crate) api_version: [u32; 3],
    /// The device's name.
    pub(crate) name: String,
    /// Its kind.
    pub(crate) device_type: DeviceType,
    /// PCI vendor, or a Khronos vendor number.
    pub(crate) vendor_id: u32,
    /// PCI device.
    pub(crate) device_id: u32,
    /// As the vendor packs it.
    pub(crate) driver_version: u32,
    /// What a pipeline cache of this device and driver carries in its header.
    #[serde(with = "uuid_text")]
    pub(crate) pipeline_cache_uuid: [u8; 16],
    /// The same for the same device in every process and API.
    #[serde(with = "uuid_text")]
    pub(crate) device_uuid: [u8; 16],
    /// The same for the same driver build.
    #[serde(with = "uuid_text")]
    pub(crate) driver_uuid: [u8; 16],
    /// The driver by name.
    pub(crate) driver: Option<DriverNames>,
    /// Where the device sits.
    pub(crate) pci: Option<PciAddress>,
    /// `VkPhysicalDeviceLimits`, as far as it matters here.
    pub(crate) limits: Limits,
    /// Subgroups.
    pub(crate) subgroup: Subgroup,
    /// `VkPhysicalDeviceMaintenance3Properties`
    pub(crate) max_per_set_descriptors: u32,
    /// `VkPhysicalDeviceMaintenance3Properties`
    pub(crate) max_memory_allocation_size: u64,
    /// `VkPhysicalDeviceMaintenance4Properties`
    pub(crate) max_buffer_size: Option<u64>,
    /// `VkPhysicalDeviceExternalMemoryHostPropertiesEXT`
    pub(crate) min_imported_host_pointer_alignment: Option<u64>,
    /// `VkPhysicalDevicePushDescriptorPropertiesKHR`
    pub(crate) max_push_descriptors: Option<u32>,
    /// `VkPhysicalDeviceTimelineSemaphoreProperties`
    pub(crate) max_timeline_semaphore_value_difference: Option<u64>,
    /// `VkPhysicalDeviceFloatControlsProperties`
    pub(crate) float_controls: Option<FloatControls>,
    /// `VkCooperativeMatrixPropertiesKHR`; empty without the extension.
    pub(crate) cooperative_matrices: Vec<CooperativeMatrix>,
    /// Compute units, where an extension of the vendor tells.
    pub(crate) multiprocessor_count: Option<u32>,
    /// Memory types by index.
    pub(crate) memory_types: Vec<MemoryType>,
    /// Memory heaps by index.
    pub(crate) memory_heaps: Vec<MemoryHeap>,
    /// Queue families by index.
    pub(crate) queue_families: Vec<QueueFamily>,
    /// Supported features.
    pub(crate) features: Features,
    /// Extensions with their revisions.
    pub(crate) extensions: BTreeMap<String, u32>,
}

impl Snapshot {
    /// What can be used of the device: the lesser of its version and the instance's, and its
    /// extensions.
    pub(crate) fn reach(&self) -> Reach<'_> {
        let [major, minor, patch] = self.api_version.min(self.instance_api_version);
        Reach {
            api_version: ash::vk::make_api_version(0, major, minor, patch),
            extensions: &self.extensions,
        }
    }
}

/// `VkPhysicalDeviceDriverProperties`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriverNames {
    /// `VkDriverId`
    pub(crate) id: i32,
    /// `NVIDIA`, `llvmpipe`.
    pub(crate) name: String,
    /// Version and build as free text.
    pub(crate) info: String,
    /// The conformance test that it passed, as major, minor, subminor, patch.
    pub(crate) conformance_version: [u8; 4],
}

/// Limits under their names in `VkPhysicalDeviceLimits`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) max_uniform_buffer_range: u32,
    pub(crate) max_storage_buffer_range: u32,
    pub(crate) max_push_constants_size: u32,
    pub(crate) max_memory_allocation_count: u32,
    pub(crate) max_per_stage_descriptor_uniform_buffers: u32,
    pub(crate) max_per_stage_descriptor_storage_buffers: u32,
    pub(crate) max_per_stage_resources: u32,
    pub(crate) max_descriptor_set_uniform_buffers: u32,
    pub(crate) max_descriptor_set_storage_buffers: u32,
    pub(crate) max_compute_shared_memory_size: u32,
    pub(crate) max_compute_work_group_count: [u32; 3],
    pub(crate) max_compute_work_group_invocations: u32,
    pub(crate) max_compute_work_group_size: [u32; 3],
    pub(crate) min_memory_map_alignment: u64,
    pub(crate) min_uniform_buffer_offset_alignment: u64,
    pub(crate) min_storage_buffer_offset_alignment: u64,
    pub(crate) non_coherent_atom_size: u64,
    pub(crate) optimal_buffer_copy_offset_alignment: u64,
    pub(crate) optimal_buffer_copy_row_pitch_alignment: u64,
    pub(crate) timestamp_period: f32,
}

/// `VkPhysicalDeviceSubgroupProperties` and, where sizes can be chosen,
/// `VkPhysicalDeviceSubgroupSizeControlProperties`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subgroup {
    /// Invocations of a subgroup by default.
    pub(crate) size: u32,
    /// `VkShaderStageFlags` that have subgroup operations.
    pub(crate) supported_stages: u32,
    /// `VkSubgroupFeatureFlags`
    pub(crate) supported_operations: u32,
    /// Which sizes can be chosen.
    pub(crate) size_control: Option<SubgroupSizeControl>,
}

/// `VkPhysicalDeviceSubgroupSizeControlProperties`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubgroupSizeControl {
    pub(crate) min_subgroup_size: u32,
    pub(crate) max_subgroup_size: u32,
    pub(crate) max_compute_workgroup_subgroups: u32,
    /// `VkShaderStageFlags` that can demand a size.
    pub(crate) required_subgroup_size_stages: u32,
}

/// `VkPhysicalDeviceFloatControlsProperties` of 16, 32 and 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FloatControls {
    pub(crate) signed_zero_inf_nan_preserve: [bool; 3],
    pub(crate) denorm_preserve: [bool; 3],
    pub(crate) denorm_flush_to_zero: [bool; 3],
    pub(crate) rounding_mode_rte: [bool; 3],
    pub(crate) rounding_mode_rtz: [bool; 3],
}

/// One shape of `VkCooperativeMatrixPropertiesKHR`; types are `VkComponentTypeKHR`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CooperativeMatrix {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
    pub(crate) a_type: i32,
    pub(crate) b_type: i32,
    pub(crate) c_type: i32,
    pub(crate) result_type: i32,
    pub(crate) saturating_accumulation: bool,
    /// `VkScopeKHR`
    pub(crate) scope: i32,
}

/// `VkMemoryType`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryType {
    /// `VkMemoryPropertyFlags`
    pub(crate) flags: u32,
    /// Index of the heap.
    pub(crate) heap: u32,
}

/// `VkMemoryHeap`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryHeap {
    /// Bytes.
    pub(crate) size: u64,
    /// `VkMemoryHeapFlags`
    pub(crate) flags: u32,
}

/// `VkQueueFamilyProperties`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueFamily {
    /// `VkQueueFlags`
    pub(crate) flags: u32,
    /// Queues.
    pub(crate) count: u32,
    /// Bits of a timestamp that count.
    pub(crate) timestamp_valid_bits: u32,
}

/// UUIDs as hexadecimal text.
mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(uuid: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{:032x}", u128::from_be_bytes(*uuid)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 16], D::Error> {
        let text = String::deserialize(from)?;
        let number = (text.len() == 32).then(|| u128::from_str_radix(&text, 16).ok()).flatten();
        let uuid = number.ok_or_else(|| D::Error::custom(format!("{text} is no UUID")))?;
        Ok(uuid.to_be_bytes())
    }
}

/// Recorded devices, for tests.
#[cfg(test)]
pub(crate) mod recorded {
    use super::Snapshot;

    fn read(json: &str) -> Snapshot {
        serde_json::from_str(json).unwrap()
    }

    /// Mesa 25.0.7's lavapipe, as recorded.
    pub(crate) fn lavapipe() -> Snapshot {
        read(include_str!("../../tests/data/snapshots/lavapipe_25_0_7.json"))
    }

    /// Debian 12's own lavapipe of Mesa 22.3.6, as recorded.
    pub(crate) fn lavapipe_22() -> Snapshot {
        read(include_str!("../../tests/data/snapshots/lavapipe_22_3_6.json"))
    }

    /// An NVIDIA H200.
    pub(crate) fn h200() -> Snapshot {
        read(include_str!("../../tests/data/snapshots/h200.json"))
    }

    /// The least that Vulkan 1.1 allows.
    pub(crate) fn minimum_1_1() -> Snapshot {
        read(include_str!("../../tests/data/snapshots/minimum_1_1_by_hand.json"))
    }
}
