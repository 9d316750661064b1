//! Which SPIR-V a device takes: capabilities, extensions and version, as far as they were enabled.

use std::collections::BTreeSet;

use ash::vk::{self, ShaderStageFlags, SubgroupFeatureFlags};
use spirv::Capability;

use super::plan::Plan;
use super::snapshot::Snapshot;

/// The highest SPIR-V version, as (major, minor).
pub(crate) fn max_spirv_version(plan: &Plan) -> (u8, u8) {
    if plan.api_version >= vk::API_VERSION_1_3 {
        (1, 6)
    } else if plan.api_version >= vk::API_VERSION_1_2 {
        (1, 5)
    } else if plan.extensions.contains(&"VK_KHR_spirv_1_4") {
        (1, 4)
    } else {
        (1, 3)
    }
}

/// The operations of Vulkan 1.1; later ones come with extensions that are not enabled.
const CORE_OPERATIONS: u32 = SubgroupFeatureFlags::BASIC.as_raw()
    | SubgroupFeatureFlags::VOTE.as_raw()
    | SubgroupFeatureFlags::ARITHMETIC.as_raw()
    | SubgroupFeatureFlags::BALLOT.as_raw()
    | SubgroupFeatureFlags::SHUFFLE.as_raw()
    | SubgroupFeatureFlags::SHUFFLE_RELATIVE.as_raw()
    | SubgroupFeatureFlags::CLUSTERED.as_raw()
    | SubgroupFeatureFlags::QUAD.as_raw();

/// Subgroup operations of compute kernels, as `VkSubgroupFeatureFlags`.
pub(crate) fn subgroup_operations(snapshot: &Snapshot) -> u32 {
    let stages = ShaderStageFlags::from_raw(snapshot.subgroup.supported_stages);
    if stages.contains(ShaderStageFlags::COMPUTE) {
        snapshot.subgroup.supported_operations & CORE_OPERATIONS
    } else {
        0
    }
}

/// Capabilities, after the table of the specification's appendix on SPIR-V in Vulkan.
pub(crate) fn capabilities(snapshot: &Snapshot, plan: &Plan) -> BTreeSet<u32> {
    let features = &plan.features;
    let subgroup = SubgroupFeatureFlags::from_raw(subgroup_operations(snapshot));
    let floats = snapshot.float_controls.as_ref().filter(|_| plan.float_controls);
    let any_float = |of: fn(&super::snapshot::FloatControls) -> [bool; 3]| {
        floats.is_some_and(|floats| of(floats).contains(&true))
    };
    let rows: [(bool, &[Capability]); 31] = [
        (
            true,
            &[
                Capability::Matrix,
                Capability::Shader,
                Capability::InputAttachment,
                Capability::Sampled1D,
                Capability::Image1D,
                Capability::SampledBuffer,
                Capability::ImageBuffer,
                Capability::ImageQuery,
                Capability::DerivativeControl,
                Capability::DeviceGroup,
            ],
        ),
        (features.shader_float64, &[Capability::Float64]),
        (features.shader_int64, &[Capability::Int64]),
        (features.shader_int16, &[Capability::Int16]),
        (features.shader_float16, &[Capability::Float16]),
        (features.shader_int8, &[Capability::Int8]),
        (features.storage_buffer_16bit, &[Capability::StorageBuffer16BitAccess]),
        (
            features.uniform_and_storage_buffer_16bit,
            &[Capability::UniformAndStorageBuffer16BitAccess],
        ),
        (features.storage_push_constant_16, &[Capability::StoragePushConstant16]),
        (features.storage_buffer_8bit, &[Capability::StorageBuffer8BitAccess]),
        (
            features.uniform_and_storage_buffer_8bit,
            &[Capability::UniformAndStorageBuffer8BitAccess],
        ),
        (features.storage_push_constant_8, &[Capability::StoragePushConstant8]),
        (
            features.integer_dot_product,
            &[
                Capability::DotProduct,
                Capability::DotProductInputAll,
                Capability::DotProductInput4x8Bit,
                Capability::DotProductInput4x8BitPacked,
            ],
        ),
        (features.cooperative_matrix, &[Capability::CooperativeMatrixKHR]),
        (
            features.vulkan_memory_model,
            &[Capability::VulkanMemoryModel, Capability::VulkanMemoryModelDeviceScope],
        ),
        (features.variable_pointers, &[Capability::VariablePointers]),
        (features.variable_pointers_storage_buffer, &[Capability::VariablePointersStorageBuffer]),
        (features.buffer_device_address, &[Capability::PhysicalStorageBufferAddresses]),
        (features.shader_buffer_float32_atomic_add, &[Capability::AtomicFloat32AddEXT]),
        (subgroup.contains(SubgroupFeatureFlags::BASIC), &[Capability::GroupNonUniform]),
        (subgroup.contains(SubgroupFeatureFlags::VOTE), &[Capability::GroupNonUniformVote]),
        (
            subgroup.contains(SubgroupFeatureFlags::ARITHMETIC),
            &[Capability::GroupNonUniformArithmetic],
        ),
        (subgroup.contains(SubgroupFeatureFlags::BALLOT), &[Capability::GroupNonUniformBallot]),
        (subgroup.contains(SubgroupFeatureFlags::SHUFFLE), &[Capability::GroupNonUniformShuffle]),
        (
            subgroup.contains(SubgroupFeatureFlags::SHUFFLE_RELATIVE),
            &[Capability::GroupNonUniformShuffleRelative],
        ),
        (
            subgroup.contains(SubgroupFeatureFlags::CLUSTERED),
            &[Capability::GroupNonUniformClustered],
        ),
        (subgroup.contains(SubgroupFeatureFlags::QUAD), &[Capability::GroupNonUniformQuad]),
        (any_float(|f| f.denorm_preserve), &[Capability::DenormPreserve]),
        (any_float(|f| f.denorm_flush_to_zero), &[Capability::DenormFlushToZero]),
        (any_float(|f| f.signed_zero_inf_nan_preserve), &[Capability::SignedZeroInfNanPreserve]),
        (any_float(|f| f.rounding_mode_rte), &[Capability::RoundingModeRTE]),
    ];
    let mut set: BTreeSet<u32> = rows
        .iter()
        .filter(|(enabled, _)| *enabled)
        .flat_map(|(_, capabilities)| capabilities.iter().map(|one| *one as u32))
        .collect();
    if any_float(|f| f.rounding_mode_rtz) {
        set.insert(Capability::RoundingModeRTZ as u32);
    }
    set
}

/// SPIR-V extensions that come with the version or with an enabled extension.
pub(crate) fn extensions(plan: &Plan) -> BTreeSet<String> {
    let (v11, v12, v13) = (vk::API_VERSION_1_1, vk::API_VERSION_1_2, vk::API_VERSION_1_3);
    let rows = [
        ("SPV_KHR_storage_buffer_storage_class", v11, ""),
        ("SPV_KHR_variable_pointers", v11, ""),
        ("SPV_KHR_16bit_storage", v11, ""),
        ("SPV_KHR_device_group", v11, ""),
        ("SPV_KHR_8bit_storage", v12, "VK_KHR_8bit_storage"),
        ("SPV_KHR_float_controls", v12, "VK_KHR_shader_float_controls"),
        ("SPV_KHR_vulkan_memory_model", v12, "VK_KHR_vulkan_memory_model"),
        ("SPV_KHR_physical_storage_buffer", v12, "VK_KHR_buffer_device_address"),
        ("SPV_EXT_physical_storage_buffer", v12, "VK_KHR_buffer_device_address"),
        ("SPV_KHR_non_semantic_info", v13, "VK_KHR_shader_non_semantic_info"),
        ("SPV_KHR_integer_dot_product", v13, "VK_KHR_shader_integer_dot_product"),
        ("SPV_KHR_cooperative_matrix", u32::MAX, "VK_KHR_cooperative_matrix"),
        ("SPV_EXT_shader_atomic_float_add", u32::MAX, "VK_EXT_shader_atomic_float"),
    ];
    rows.into_iter()
        .filter(|(_, core, extension)| has(plan, *core, extension))
        .map(|(name, _, _)| name.to_owned())
        .collect()
}

fn has(plan: &Plan, core: u32, extension: &str) -> bool {
    plan.api_version >= core || plan.extensions.contains(&extension)
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::super::plan::plan;
    use super::super::snapshot::recorded::{h200, lavapipe, minimum_1_1};
    use super::*;

    fn of(snapshot: &Snapshot) -> BTreeSet<u32> {
        capabilities(snapshot, &plan(snapshot, &Options::default()).unwrap())
    }

    #[test]
    fn the_minimum_device_takes_shaders_and_basic_subgroups_only() {
        let set = of(&minimum_1_1());
        assert!(set.contains(&(Capability::Shader as u32)));
        assert!(set.contains(&(Capability::GroupNonUniform as u32)));
        for beyond in [
            Capability::Float16,
            Capability::Float64,
            Capability::Int8,
            Capability::Int16,
            Capability::Int64,
            Capability::StorageBuffer8BitAccess,
            Capability::UniformAndStorageBuffer16BitAccess,
            Capability::PhysicalStorageBufferAddresses,
            Capability::GroupNonUniformArithmetic,
            Capability::DotProduct,
        ] {
            assert!(!set.contains(&(beyond as u32)), "{beyond:?}");
        }
    }

    #[test]
    fn each_feature_brings_its_capability_and_goes_with_it() {
        type Field = fn(&mut super::super::features::Features) -> &mut bool;
        let pairs: [(Field, Capability); 10] = [
            (|f| &mut f.shader_float16, Capability::Float16),
            (|f| &mut f.shader_float64, Capability::Float64),
            (|f| &mut f.shader_int8, Capability::Int8),
            (|f| &mut f.shader_int16, Capability::Int16),
            (|f| &mut f.shader_int64, Capability::Int64),
            (|f| &mut f.storage_buffer_8bit, Capability::StorageBuffer8BitAccess),
            (|f| &mut f.storage_buffer_16bit, Capability::StorageBuffer16BitAccess),
            (|f| &mut f.vulkan_memory_model, Capability::VulkanMemoryModel),
            (|f| &mut f.integer_dot_product, Capability::DotProduct),
            (|f| &mut f.buffer_device_address, Capability::PhysicalStorageBufferAddresses),
        ];
        let all = of(&lavapipe());
        for (field, capability) in pairs {
            assert!(all.contains(&(capability as u32)), "{capability:?} with its feature");
            let mut without = lavapipe();
            *field(&mut without.features) = false;
            assert!(!of(&without).contains(&(capability as u32)), "{capability:?} without");
        }
    }

    #[test]
    fn subgroup_operations_of_other_stages_do_not_count() {
        let mut snapshot = lavapipe();
        snapshot.subgroup.supported_stages = ShaderStageFlags::FRAGMENT.as_raw();
        assert_eq!(subgroup_operations(&snapshot), 0);
        assert!(!of(&snapshot).contains(&(Capability::GroupNonUniform as u32)));
    }

    #[test]
    fn subgroup_operations_of_extensions_that_are_not_enabled_do_not_count() {
        assert_eq!(subgroup_operations(&h200()), 0xff);
    }

    #[test]
    fn the_spirv_version_follows_the_api_version() {
        let version = |api: [u32; 3]| {
            let mut snapshot = h200();
            snapshot.api_version = api;
            max_spirv_version(&plan(&snapshot, &Options::default()).unwrap())
        };
        assert_eq!(version([1, 3, 0]), (1, 6));
        assert_eq!(version([1, 2, 0]), (1, 5));
        assert_eq!(version([1, 1, 0]), (1, 4), "by VK_KHR_spirv_1_4");
        let minimum = minimum_1_1();
        assert_eq!(max_spirv_version(&plan(&minimum, &Options::default()).unwrap()), (1, 3));
    }

    #[test]
    fn spirv_extensions_come_only_with_what_was_enabled() {
        let names = |snapshot: &Snapshot| extensions(&plan(snapshot, &Options::default()).unwrap());
        let minimum = names(&minimum_1_1());
        assert!(minimum.contains("SPV_KHR_storage_buffer_storage_class"));
        assert!(!minimum.contains("SPV_KHR_8bit_storage"));
        assert!(names(&lavapipe()).contains("SPV_KHR_8bit_storage"));
        assert!(names(&h200()).contains("SPV_KHR_cooperative_matrix"));
    }
}
