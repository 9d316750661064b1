//! The device's properties as the layers above see them: what the snapshot says, as far as the plan
//! uses it.

use ash::vk::{self, ShaderStageFlags};

use super::budget::memory_budget;
use super::capabilities;
use super::plan::Plan;
use super::quirks;
use super::snapshot::Snapshot;
use crate::hal::{
    DeviceProperties, Fallbacks, KernelFeatures, KernelLimits, QueueProperties, QueueRole,
};

/// Describes a device of `snapshot` that is created after `plan`.
pub(crate) fn properties(snapshot: &Snapshot, plan: &Plan) -> DeviceProperties {
    let limits = &snapshot.limits;
    let [major, minor, patch] = snapshot.api_version;
    DeviceProperties {
        name: snapshot.name.clone(),
        device_type: snapshot.device_type,
        uuid: snapshot.device_uuid,
        pci: snapshot.pci,
        driver_name: driver_name(snapshot),
        driver_info: snapshot.driver.as_ref().map(|driver| driver.info.clone()).unwrap_or_default(),
        driver_version: snapshot.driver_version,
        api_version: (major, minor, patch),
        vendor_id: snapshot.vendor_id,
        device_id: snapshot.device_id,
        kernel: kernel_limits(snapshot, plan),
        total_memory: memory_budget(snapshot, None).total,
        max_buffer_size: snapshot
            .max_buffer_size
            .filter(|_| plan.features.maintenance4)
            .unwrap_or(snapshot.max_memory_allocation_size),
        max_memory_objects: limits.max_memory_allocation_count,
        non_coherent_atom_size: limits.non_coherent_atom_size,
        host_import_alignment: plan.host_import_alignment,
        timestamp_period_ns: limits.timestamp_period,
        multiprocessor_count: snapshot.multiprocessor_count,
        image_pitch_alignment: limits.optimal_buffer_copy_row_pitch_alignment,
        features: kernel_features(snapshot, plan),
        queues: plan
            .queues
            .iter()
            .map(|family| QueueProperties {
                role: family.role,
                count: family.count,
                timestamp_valid_bits: family.timestamp_valid_bits,
            })
            .collect(),
        fallbacks: Fallbacks {
            fences: !plan.features.timeline_semaphore,
            descriptor_pools: !plan.push_descriptors,
            reserved_addresses: !plan.features.buffer_device_address,
            no_host_import: plan.host_import_alignment.is_none(),
            own_budget: !plan.memory_budget,
            unmapped_device_memory: !plan.map_device_memory,
            no_timestamps: plan.queues.iter().all(|family| {
                family.role != QueueRole::Compute || family.timestamp_valid_bits == 0
            }),
        },
        warnings: quirks::warnings(snapshot),
    }
}

/// The driver's name, or its vendor's number where it tells no name.
pub(crate) fn driver_name(snapshot: &Snapshot) -> String {
    match &snapshot.driver {
        Some(driver) => driver.name.clone(),
        None => format!("driver of vendor {:#06x}", snapshot.vendor_id),
    }
}

fn kernel_limits(snapshot: &Snapshot, plan: &Plan) -> KernelLimits {
    let limits = &snapshot.limits;
    let default_size = snapshot.subgroup.size;
    let subgroup_size_range = snapshot
        .subgroup
        .size_control
        .as_ref()
        .filter(|control| {
            plan.features.subgroup_size_control
                && ShaderStageFlags::from_raw(control.required_subgroup_size_stages)
                    .contains(ShaderStageFlags::COMPUTE)
        })
        .map_or((default_size, default_size), |control| {
            (control.min_subgroup_size, control.max_subgroup_size)
        });
    KernelLimits {
        spirv_capabilities: capabilities::capabilities(snapshot, plan),
        spirv_extensions: capabilities::extensions(plan),
        max_spirv_version: capabilities::max_spirv_version(plan),
        max_workgroup_size: limits.max_compute_work_group_size,
        max_workgroup_invocations: limits.max_compute_work_group_invocations,
        max_workgroup_count: limits.max_compute_work_group_count,
        max_workgroup_memory_bytes: limits.max_compute_shared_memory_size,
        max_push_constant_bytes: limits.max_push_constants_size,
        max_storage_buffers: limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers)
            .min(limits.max_per_stage_resources),
        max_uniform_buffer_range: limits.max_uniform_buffer_range,
        max_storage_buffer_range: u64::from(limits.max_storage_buffer_range),
        storage_buffer_alignment: limits.min_storage_buffer_offset_alignment,
        uniform_buffer_alignment: limits.min_uniform_buffer_offset_alignment,
        subgroup_size: default_size,
        subgroup_size_range,
    }
}

fn kernel_features(snapshot: &Snapshot, plan: &Plan) -> KernelFeatures {
    let features = &plan.features;
    let core_1_1 = plan.api_version >= vk::API_VERSION_1_1;
    KernelFeatures {
        float16: features.shader_float16,
        float32: true,
        float64: features.shader_float64,
        int8: features.shader_int8,
        int16: features.shader_int16,
        int32: true,
        int64: features.shader_int64,
        storage_8bit: features.storage_buffer_8bit,
        storage_16bit: features.storage_buffer_16bit,
        storage_buffer_storage_class: core_1_1,
        push_descriptor: plan.push_descriptors,
        dedicated_allocation: core_1_1,
        integer_dot_product: features.integer_dot_product,
        cooperative_matrix: features.cooperative_matrix,
        subgroup_operations: capabilities::subgroup_operations(snapshot),
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::super::plan::plan;
    use super::super::snapshot::recorded::{h200, lavapipe, minimum_1_1};
    use super::*;

    fn of(snapshot: &Snapshot, options: &Options) -> DeviceProperties {
        properties(snapshot, &plan(snapshot, options).unwrap())
    }

    #[test]
    fn each_forced_fallback_shows_in_the_properties_alone() {
        let none = Fallbacks::default();
        let wish = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            of(&lavapipe(), &options).fallbacks
        };
        assert_eq!(wish(|_| ()), none);
        assert_eq!(wish(|o| o.force_fences = true), Fallbacks { fences: true, ..none });
        assert_eq!(
            wish(|o| o.force_descriptor_pools = true),
            Fallbacks { descriptor_pools: true, ..none }
        );
        assert_eq!(
            wish(|o| o.force_reserved_addresses = true),
            Fallbacks { reserved_addresses: true, ..none }
        );
        assert_eq!(
            wish(|o| o.force_no_host_import = true),
            Fallbacks { no_host_import: true, ..none }
        );
        assert_eq!(wish(|o| o.force_own_budget = true), Fallbacks { own_budget: true, ..none });
        assert_eq!(
            wish(|o| o.force_unmapped_device_memory = true),
            Fallbacks { unmapped_device_memory: true, ..none }
        );
        assert_eq!(
            wish(|o| o.force_no_timestamps = true),
            Fallbacks { no_timestamps: true, ..none }
        );
    }

    #[test]
    fn the_minimum_device_does_without_everything_optional() {
        let properties = of(&minimum_1_1(), &Options::default());
        assert_eq!(
            properties.fallbacks,
            Fallbacks {
                fences: true,
                descriptor_pools: true,
                reserved_addresses: true,
                no_host_import: true,
                own_budget: true,
                unmapped_device_memory: true,
                no_timestamps: true,
            }
        );
        assert_eq!(properties.kernel.max_push_constant_bytes, 128);
        assert_eq!(properties.kernel.max_workgroup_invocations, 128);
        assert_eq!(properties.kernel.max_workgroup_memory_bytes, 16384);
        assert_eq!(properties.kernel.max_storage_buffers, 4);
        assert_eq!(properties.driver_name, "driver of vendor 0x1234");
        assert!(properties.features.float32 && properties.features.int32);
        assert!(!properties.features.float16 && !properties.features.int64);
        assert_eq!(properties.kernel.subgroup_size_range, (1, 1));
    }

    #[test]
    fn a_subgroup_size_can_be_chosen_only_where_kernels_may_demand_one() {
        let mut snapshot = h200();
        let control = snapshot.subgroup.size_control.as_mut().unwrap();
        (control.min_subgroup_size, control.max_subgroup_size) = (8, 64);
        let range = |s: &Snapshot| of(s, &Options::default()).kernel.subgroup_size_range;
        assert_eq!(range(&snapshot), (8, 64));
        let control = snapshot.subgroup.size_control.as_mut().unwrap();
        control.required_subgroup_size_stages = ShaderStageFlags::FRAGMENT.as_raw();
        assert_eq!(range(&snapshot), (32, 32));
        snapshot.features.subgroup_size_control = false;
        assert_eq!(range(&snapshot), (32, 32));
    }

    #[test]
    fn total_memory_of_the_h200_is_its_large_heap() {
        let properties = of(&h200(), &Options::default());
        assert_eq!(properties.total_memory, h200().memory_heaps[0].size);
        assert!(properties.total_memory > 139 << 30);
    }

    #[test]
    fn without_maintenance4_an_allocation_is_all_that_is_known_of_a_buffers_size() {
        let mut snapshot = h200();
        snapshot.features.maintenance4 = false;
        let properties = of(&snapshot, &Options::default());
        assert_eq!(properties.max_buffer_size, snapshot.max_memory_allocation_size);
    }
}
