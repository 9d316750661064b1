//! The plan: which extensions, features, queues and memory types a device is created with, decided
//! by one pure function from the snapshot, so that it is tested without a GPU.

use ash::vk;

pub(crate) use super::features::Features as EnabledFeatures;
use super::options::Options;
use super::snapshot::{QueueFamily, Snapshot};
use super::{memory_types, quirks};
use crate::hal::QueueRole;
use crate::{Error, Result};

/// The newest version that this library is written for.
pub(crate) const NEWEST: u32 = vk::API_VERSION_1_3;

/// Queues beyond these add creation time and driver memory, but no overlap worth having.
const MAX_COMPUTE_QUEUES: u32 = 4;
/// One for each direction.
const MAX_TRANSFER_QUEUES: u32 = 2;

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
    /// Bindings that can be pushed at once; kernels with more use descriptor pools. 0 without.
    pub(crate) max_push_descriptors: u32,
    /// Query device memory by `VK_EXT_memory_budget`.
    pub(crate) memory_budget: bool,
    /// Whether shaders may ask for float controls.
    pub(crate) float_controls: bool,
    /// Import host memory; the alignment it needs.
    pub(crate) host_import_alignment: Option<u64>,
    /// Map device memory where the host can see it.
    pub(crate) map_device_memory: bool,
    /// Create pipelines while nothing is submitted.
    pub(crate) pipelines_between_submissions: bool,
}

/// One queue family to create queues of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFamilyPlan {
    /// Its index.
    pub(crate) family: u32,
    /// How many queues.
    pub(crate) count: u32,
    /// What they are used for.
    pub(crate) role: QueueRole,
    /// Bits of a timestamp that count; 0 to do without timestamps.
    pub(crate) timestamp_valid_bits: u32,
}

/// Plans a device, or says what it lacks. Every optional feature may be missing; `options` takes
/// away more.
pub(crate) fn plan(snapshot: &Snapshot, options: &Options) -> Result<Plan> {
    let api_version = snapshot.reach().api_version.min(NEWEST);
    if api_version < vk::API_VERSION_1_1 {
        let [major, minor, patch] = snapshot.api_version;
        return Err(Error::unsupported(format!(
            "{}: the device implements Vulkan {major}.{minor}.{patch} (instance: {}), at least 1.1 \
             is needed",
            snapshot.name,
            snapshot.instance_api_version.map(|part| part.to_string()).join(".")
        )));
    }
    let queues = queues(snapshot, options)?;
    let memory = memory_types::choose(snapshot, options)?;
    let features = features(snapshot, options);

    let has = |name: &str| snapshot.extensions.contains_key(name);
    let push_descriptors = has("VK_KHR_push_descriptor")
        && snapshot.max_push_descriptors.is_some_and(|count| count > 0)
        && !options.force_descriptor_pools;
    let memory_budget = has("VK_EXT_memory_budget") && !options.force_own_budget;
    let host_import_alignment = snapshot
        .min_imported_host_pointer_alignment
        .filter(|alignment| alignment.is_power_of_two())
        .filter(|_| has("VK_EXT_external_memory_host") && !options.force_no_host_import);

    let float_controls = snapshot.float_controls.is_some() && !options.force_no_float_controls;
    let mut extensions = promoted_extensions(snapshot, api_version, &features, float_controls);
    let mut enable = |name: &'static str, wanted: bool| {
        if wanted {
            extensions.push(name);
        }
    };
    enable("VK_KHR_push_descriptor", push_descriptors);
    enable("VK_EXT_memory_budget", memory_budget);
    enable("VK_EXT_external_memory_host", host_import_alignment.is_some());
    enable("VK_KHR_cooperative_matrix", features.cooperative_matrix);
    enable("VK_EXT_shader_atomic_float", features.shader_buffer_float32_atomic_add);
    // VUID-VkDeviceCreateInfo-pProperties-04451: a device that has it must be created with it.
    enable("VK_KHR_portability_subset", has("VK_KHR_portability_subset"));

    Ok(Plan {
        api_version,
        extensions,
        features,
        queues,
        device_memory_types: memory.device,
        host_memory_types: memory.host,
        push_descriptors,
        max_push_descriptors: snapshot
            .max_push_descriptors
            .filter(|_| push_descriptors)
            .unwrap_or(0),
        memory_budget,
        float_controls,
        host_import_alignment,
        map_device_memory: memory.map_device,
        pipelines_between_submissions: quirks::pipelines_between_submissions(snapshot)
            || options.force_pipelines_between_submissions,
    })
}

/// The features to enable: all that are supported and have a use.
fn features(snapshot: &Snapshot, options: &Options) -> EnabledFeatures {
    let supported = snapshot.features.within(snapshot.reach());
    EnabledFeatures {
        timeline_semaphore: supported.timeline_semaphore && !options.force_fences,
        buffer_device_address: supported.buffer_device_address && !options.force_reserved_addresses,
        // It costs speed on every access, so it is for finding faults only.
        robust_buffer_access: supported.robust_buffer_access && options.robust_buffer_access,
        // VUID-VkDeviceCreateInfo: full subgroups are of no use where sizes cannot be chosen.
        compute_full_subgroups: supported.compute_full_subgroups && supported.subgroup_size_control,
        // The memory model comes in with kernels that use it, cooperative matrices among them.
        cooperative_matrix: supported.cooperative_matrix && supported.vulkan_memory_model,
        ..supported
    }
}

/// The extensions that give a planned feature where the version does not have it in its core.
fn promoted_extensions(
    snapshot: &Snapshot,
    api_version: u32,
    features: &EnabledFeatures,
    float_controls: bool,
) -> Vec<&'static str> {
    let (v12, v13) = (vk::API_VERSION_1_2, vk::API_VERSION_1_3);
    let any_8bit = features.storage_buffer_8bit
        || features.uniform_and_storage_buffer_8bit
        || features.storage_push_constant_8;
    let float16_int8 = features.shader_float16 || features.shader_int8;
    let wanted: [(&'static str, u32, bool); 13] = [
        ("VK_KHR_timeline_semaphore", v12, features.timeline_semaphore),
        ("VK_KHR_buffer_device_address", v12, features.buffer_device_address),
        ("VK_KHR_8bit_storage", v12, any_8bit),
        ("VK_KHR_shader_float16_int8", v12, float16_int8),
        ("VK_KHR_vulkan_memory_model", v12, features.vulkan_memory_model),
        ("VK_EXT_scalar_block_layout", v12, features.scalar_block_layout),
        ("VK_KHR_driver_properties", v12, snapshot.driver.is_some()),
        ("VK_KHR_shader_float_controls", v12, float_controls),
        // VUID-vkCreateDevice-ppEnabledExtensionNames-01387: it depends on float controls.
        ("VK_KHR_spirv_1_4", v12, float_controls),
        ("VK_EXT_subgroup_size_control", v13, features.subgroup_size_control),
        ("VK_KHR_shader_integer_dot_product", v13, features.integer_dot_product),
        ("VK_KHR_maintenance4", v13, features.maintenance4),
        ("VK_KHR_shader_non_semantic_info", v13, true),
    ];
    wanted
        .into_iter()
        .filter(|(name, core, wanted)| {
            *wanted && api_version < *core && snapshot.extensions.contains_key(*name)
        })
        .map(|(name, _, _)| name)
        .collect()
}

/// One family for dispatches and, beside it, one of copy engines where there is one.
///
/// Of several compute families the one with the most queues is taken, for overlap of streams; of
/// equals the one without graphics, whose queues are not shared with what is on the screen. One
/// family only, so that every command buffer of dispatches runs on every compute queue.
fn queues(snapshot: &Snapshot, options: &Options) -> Result<Vec<QueueFamilyPlan>> {
    let families: Vec<(u32, &QueueFamily, vk::QueueFlags)> = (0..)
        .zip(&snapshot.queue_families)
        .map(|(index, family)| (index, family, vk::QueueFlags::from_raw(family.flags)))
        .filter(|(_, family, _)| family.count > 0)
        .collect();
    // A period of nothing would make every time nothing.
    let timestamps = snapshot.limits.timestamp_period > 0.0 && !options.force_no_timestamps;
    let plan = |index: u32, family: &QueueFamily, role: QueueRole, most: u32| QueueFamilyPlan {
        family: index,
        count: family.count.min(if options.force_one_queue { 1 } else { most }),
        role,
        timestamp_valid_bits: if timestamps { family.timestamp_valid_bits } else { 0 },
    };
    let compute = families
        .iter()
        .filter(|(_, _, flags)| flags.contains(vk::QueueFlags::COMPUTE))
        .max_by_key(|(index, family, flags)| {
            let no_graphics = !flags.contains(vk::QueueFlags::GRAPHICS);
            (family.count.min(MAX_COMPUTE_QUEUES), no_graphics, std::cmp::Reverse(*index))
        });
    let Some((index, family, _)) = compute else {
        let flags = snapshot
            .queue_families
            .iter()
            .map(|family| {
                format!("{:?} x {}", vk::QueueFlags::from_raw(family.flags), family.count)
            })
            .collect::<Vec<_>>();
        return Err(Error::unsupported(format!(
            "{}: no queue family can compute; its families: {}",
            snapshot.name,
            if flags.is_empty() { "none".to_owned() } else { flags.join(", ") }
        )));
    };
    let mut queues = vec![plan(*index, family, QueueRole::Compute, MAX_COMPUTE_QUEUES)];
    let other_work = vk::QueueFlags::GRAPHICS
        | vk::QueueFlags::COMPUTE
        | vk::QueueFlags::VIDEO_DECODE_KHR
        | vk::QueueFlags::VIDEO_ENCODE_KHR
        | vk::QueueFlags::OPTICAL_FLOW_NV;
    let transfer = families.iter().find(|(_, _, flags)| {
        flags.contains(vk::QueueFlags::TRANSFER) && !flags.intersects(other_work)
    });
    if let Some((index, family, _)) = transfer
        && !options.force_one_queue
    {
        queues.push(plan(*index, family, QueueRole::Transfer, MAX_TRANSFER_QUEUES));
    }
    Ok(queues)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
