//! Reads a physical device into a [`Snapshot`]. Nothing else asks a physical device anything that
//! does not change (memory budgets do).

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};

use ash::vk;

use super::features::{Features, Reach};
use super::snapshot::{
    CooperativeMatrix, DriverNames, FloatControls, Limits, MemoryHeap, MemoryType, QueueFamily,
    Snapshot, Subgroup, SubgroupSizeControl,
};
use crate::hal::{DeviceType, PciAddress};
use crate::{Error, Result};

/// Reads `physical`, which `instance` (created for `instance_api_version`) enumerated. Of a device
/// older than Vulkan 1.1 only what 1.0 defines is read; the plan refuses it.
pub(crate) fn snapshot(
    entry: &ash::Entry,
    instance: &ash::Instance,
    instance_api_version: u32,
    physical: vk::PhysicalDevice,
) -> Result<Snapshot> {
    // SAFETY: VUID-vkGetPhysicalDeviceProperties-physicalDevice-parameter: the handle was
    // enumerated from this instance.
    let core = unsafe { instance.get_physical_device_properties(physical) };
    let extensions = extensions(instance, physical)?;
    let reach =
        Reach { api_version: core.api_version.min(instance_api_version), extensions: &extensions };
    let more = if reach.api_version >= vk::API_VERSION_1_1 {
        MoreProperties::read(instance, physical, reach)
    } else {
        MoreProperties::default()
    };
    let features = if reach.api_version >= vk::API_VERSION_1_1 {
        Features::read(instance, physical, reach)
    } else {
        Features::default()
    };
    let cooperative_matrices = if features.cooperative_matrix {
        cooperative_matrices(entry, instance, physical)?
    } else {
        Vec::new()
    };
    // SAFETY: VUID-vkGetPhysicalDeviceMemoryProperties-physicalDevice-parameter: as above.
    let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
    // SAFETY: VUID-vkGetPhysicalDeviceQueueFamilyProperties-physicalDevice-parameter: as above.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };

    Ok(Snapshot {
        instance_api_version: version(instance_api_version),
        api_version: version(core.api_version),
        name: text(&core.device_name),
        device_type: device_type(core.device_type),
        vendor_id: core.vendor_id,
        device_id: core.device_id,
        driver_version: core.driver_version,
        pipeline_cache_uuid: core.pipeline_cache_uuid,
        device_uuid: more.device_uuid,
        driver_uuid: more.driver_uuid,
        driver: more.driver,
        pci: more.pci,
        limits: limits(&core.limits),
        subgroup: more.subgroup,
        max_per_set_descriptors: more.max_per_set_descriptors,
        max_memory_allocation_size: more.max_memory_allocation_size,
        max_buffer_size: more.max_buffer_size,
        min_imported_host_pointer_alignment: more.min_imported_host_pointer_alignment,
        max_push_descriptors: more.max_push_descriptors,
        max_timeline_semaphore_value_difference: more.max_timeline_semaphore_value_difference,
        float_controls: more.float_controls,
        cooperative_matrices,
        multiprocessor_count: more.multiprocessor_count,
        memory_types: memory
            .memory_types_as_slice()
            .iter()
            .map(|kind| MemoryType { flags: kind.property_flags.as_raw(), heap: kind.heap_index })
            .collect(),
        memory_heaps: memory
            .memory_heaps_as_slice()
            .iter()
            .map(|heap| MemoryHeap { size: heap.size, flags: heap.flags.as_raw() })
            .collect(),
        queue_families: families
            .iter()
            .map(|family| QueueFamily {
                flags: family.queue_flags.as_raw(),
                count: family.queue_count,
                timestamp_valid_bits: family.timestamp_valid_bits,
            })
            .collect(),
        features,
        extensions,
    })
}

/// What lies beyond `VkPhysicalDeviceProperties`.
struct MoreProperties {
    device_uuid: [u8; 16],
    driver_uuid: [u8; 16],
    driver: Option<DriverNames>,
    pci: Option<PciAddress>,
    subgroup: Subgroup,
    max_per_set_descriptors: u32,
    max_memory_allocation_size: u64,
    max_buffer_size: Option<u64>,
    min_imported_host_pointer_alignment: Option<u64>,
    max_push_descriptors: Option<u32>,
    max_timeline_semaphore_value_difference: Option<u64>,
    float_controls: Option<FloatControls>,
    multiprocessor_count: Option<u32>,
}

impl Default for MoreProperties {
    fn default() -> Self {
        Self {
            device_uuid: [0; 16],
            driver_uuid: [0; 16],
            driver: None,
            pci: None,
            subgroup: Subgroup {
                size: 1,
                supported_stages: 0,
                supported_operations: 0,
                size_control: None,
            },
            max_per_set_descriptors: 0,
            max_memory_allocation_size: 0,
            max_buffer_size: None,
            min_imported_host_pointer_alignment: None,
            max_push_descriptors: None,
            max_timeline_semaphore_value_difference: None,
            float_controls: None,
            multiprocessor_count: None,
        }
    }
}

impl MoreProperties {
    fn read(instance: &ash::Instance, physical: vk::PhysicalDevice, reach: Reach<'_>) -> Self {
        let (v12, v13) = (vk::API_VERSION_1_2, vk::API_VERSION_1_3);
        let has_driver = reach.covers(v12, "VK_KHR_driver_properties");
        let has_timeline = reach.covers(v12, "VK_KHR_timeline_semaphore");
        let has_float_controls = reach.covers(v12, "VK_KHR_shader_float_controls");
        let has_size_control = reach.covers(v13, "VK_EXT_subgroup_size_control");
        let has_maintenance4 = reach.covers(v13, "VK_KHR_maintenance4");
        let has_pci = reach.has("VK_EXT_pci_bus_info");
        let has_host_import = reach.has("VK_EXT_external_memory_host");
        let has_push = reach.has("VK_KHR_push_descriptor");
        let has_sm = reach.has("VK_NV_shader_sm_builtins");
        let has_amd = reach.has("VK_AMD_shader_core_properties2");
        let has_arm = reach.has("VK_ARM_shader_core_builtins");

        let mut id = vk::PhysicalDeviceIDProperties::default();
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut timeline = vk::PhysicalDeviceTimelineSemaphoreProperties::default();
        let mut float_controls = vk::PhysicalDeviceFloatControlsProperties::default();
        let mut size_control = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut host_import = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
        let mut sm = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        let mut amd = vk::PhysicalDeviceShaderCoreProperties2AMD::default();
        let mut arm = vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM::default();

        let mut query = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut id)
            .push_next(&mut subgroup)
            .push_next(&mut maintenance3);
        if has_driver {
            query = query.push_next(&mut driver);
        }
        if has_timeline {
            query = query.push_next(&mut timeline);
        }
        if has_float_controls {
            query = query.push_next(&mut float_controls);
        }
        if has_size_control {
            query = query.push_next(&mut size_control);
        }
        if has_maintenance4 {
            query = query.push_next(&mut maintenance4);
        }
        if has_pci {
            query = query.push_next(&mut pci);
        }
        if has_host_import {
            query = query.push_next(&mut host_import);
        }
        if has_push {
            query = query.push_next(&mut push);
        }
        if has_sm {
            query = query.push_next(&mut sm);
        }
        if has_amd {
            query = query.push_next(&mut amd);
        }
        if has_arm {
            query = query.push_next(&mut arm);
        }
        // SAFETY: VUID-vkGetPhysicalDeviceProperties2-physicalDevice-parameter: the handle was
        // enumerated from this instance; every chained structure is defined for the device.
        unsafe { instance.get_physical_device_properties2(physical, &mut query) };

        Self {
            device_uuid: id.device_uuid,
            driver_uuid: id.driver_uuid,
            driver: has_driver.then(|| driver_names(&driver)),
            pci: has_pci.then_some(PciAddress {
                domain: pci.pci_domain,
                bus: pci.pci_bus,
                device: pci.pci_device,
                function: pci.pci_function,
            }),
            subgroup: Subgroup {
                size: subgroup.subgroup_size,
                supported_stages: subgroup.supported_stages.as_raw(),
                supported_operations: subgroup.supported_operations.as_raw(),
                size_control: has_size_control.then_some(SubgroupSizeControl {
                    min_subgroup_size: size_control.min_subgroup_size,
                    max_subgroup_size: size_control.max_subgroup_size,
                    max_compute_workgroup_subgroups: size_control.max_compute_workgroup_subgroups,
                    required_subgroup_size_stages: size_control
                        .required_subgroup_size_stages
                        .as_raw(),
                }),
            },
            max_per_set_descriptors: maintenance3.max_per_set_descriptors,
            max_memory_allocation_size: maintenance3.max_memory_allocation_size,
            max_buffer_size: has_maintenance4.then_some(maintenance4.max_buffer_size),
            min_imported_host_pointer_alignment: has_host_import
                .then_some(host_import.min_imported_host_pointer_alignment),
            max_push_descriptors: has_push.then_some(push.max_push_descriptors),
            max_timeline_semaphore_value_difference: has_timeline
                .then_some(timeline.max_timeline_semaphore_value_difference),
            float_controls: has_float_controls.then(|| controls(&float_controls)),
            multiprocessor_count: if has_sm {
                Some(sm.shader_sm_count)
            } else if has_amd {
                Some(amd.active_compute_unit_count)
            } else if has_arm {
                Some(arm.shader_core_count)
            } else {
                None
            },
        }
    }
}

fn extensions(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Result<BTreeMap<String, u32>> {
    // SAFETY: VUID-vkEnumerateDeviceExtensionProperties-physicalDevice-parameter: the handle was
    // enumerated from this instance.
    let list = unsafe { instance.enumerate_device_extension_properties(physical) }
        .map_err(|error| Error::unavailable(format!("listing device extensions: {error}")))?;
    Ok(list.iter().map(|one| (text(&one.extension_name), one.spec_version)).collect())
}

fn cooperative_matrices(
    entry: &ash::Entry,
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Result<Vec<CooperativeMatrix>> {
    let functions = ash::khr::cooperative_matrix::Instance::new(entry, instance);
    // SAFETY: VUID-vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR-physicalDevice-parameter: the
    // handle was enumerated from this instance, and the device has the extension.
    let list = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) }
        .map_err(|error| Error::unavailable(format!("listing cooperative matrices: {error}")))?;
    Ok(list
        .iter()
        .map(|one| CooperativeMatrix {
            m: one.m_size,
            n: one.n_size,
            k: one.k_size,
            a_type: one.a_type.as_raw(),
            b_type: one.b_type.as_raw(),
            c_type: one.c_type.as_raw(),
            result_type: one.result_type.as_raw(),
            saturating_accumulation: one.saturating_accumulation != vk::FALSE,
            scope: one.scope.as_raw(),
        })
        .collect())
}

fn driver_names(driver: &vk::PhysicalDeviceDriverProperties<'_>) -> DriverNames {
    let conformance = driver.conformance_version;
    DriverNames {
        id: driver.driver_id.as_raw(),
        name: text(&driver.driver_name),
        info: text(&driver.driver_info),
        conformance_version: [
            conformance.major,
            conformance.minor,
            conformance.subminor,
            conformance.patch,
        ],
    }
}

fn controls(from: &vk::PhysicalDeviceFloatControlsProperties<'_>) -> FloatControls {
    let on = |flags: [vk::Bool32; 3]| flags.map(|flag| flag != vk::FALSE);
    FloatControls {
        signed_zero_inf_nan_preserve: on([
            from.shader_signed_zero_inf_nan_preserve_float16,
            from.shader_signed_zero_inf_nan_preserve_float32,
            from.shader_signed_zero_inf_nan_preserve_float64,
        ]),
        denorm_preserve: on([
            from.shader_denorm_preserve_float16,
            from.shader_denorm_preserve_float32,
            from.shader_denorm_preserve_float64,
        ]),
        denorm_flush_to_zero: on([
            from.shader_denorm_flush_to_zero_float16,
            from.shader_denorm_flush_to_zero_float32,
            from.shader_denorm_flush_to_zero_float64,
        ]),
        rounding_mode_rte: on([
            from.shader_rounding_mode_rte_float16,
            from.shader_rounding_mode_rte_float32,
            from.shader_rounding_mode_rte_float64,
        ]),
        rounding_mode_rtz: on([
            from.shader_rounding_mode_rtz_float16,
            from.shader_rounding_mode_rtz_float32,
            from.shader_rounding_mode_rtz_float64,
        ]),
    }
}

fn limits(from: &vk::PhysicalDeviceLimits) -> Limits {
    Limits {
        max_uniform_buffer_range: from.max_uniform_buffer_range,
        max_storage_buffer_range: from.max_storage_buffer_range,
        max_push_constants_size: from.max_push_constants_size,
        max_memory_allocation_count: from.max_memory_allocation_count,
        max_per_stage_descriptor_uniform_buffers: from.max_per_stage_descriptor_uniform_buffers,
        max_per_stage_descriptor_storage_buffers: from.max_per_stage_descriptor_storage_buffers,
        max_per_stage_resources: from.max_per_stage_resources,
        max_descriptor_set_uniform_buffers: from.max_descriptor_set_uniform_buffers,
        max_descriptor_set_storage_buffers: from.max_descriptor_set_storage_buffers,
        max_compute_shared_memory_size: from.max_compute_shared_memory_size,
        max_compute_work_group_count: from.max_compute_work_group_count,
        max_compute_work_group_invocations: from.max_compute_work_group_invocations,
        max_compute_work_group_size: from.max_compute_work_group_size,
        min_memory_map_alignment: from.min_memory_map_alignment as u64,
        min_uniform_buffer_offset_alignment: from.min_uniform_buffer_offset_alignment,
        min_storage_buffer_offset_alignment: from.min_storage_buffer_offset_alignment,
        non_coherent_atom_size: from.non_coherent_atom_size,
        optimal_buffer_copy_offset_alignment: from.optimal_buffer_copy_offset_alignment,
        optimal_buffer_copy_row_pitch_alignment: from.optimal_buffer_copy_row_pitch_alignment,
        timestamp_period: from.timestamp_period,
    }
}

fn device_type(from: vk::PhysicalDeviceType) -> DeviceType {
    match from {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceType::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceType::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceType::Virtual,
        vk::PhysicalDeviceType::CPU => DeviceType::Software,
        _ => DeviceType::Other,
    }
}

fn version(from: u32) -> [u32; 3] {
    [vk::api_version_major(from), vk::api_version_minor(from), vk::api_version_patch(from)]
}

/// A fixed-size C string; one without an end (against the specification) is cut at the last byte.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&char| char as u8).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
