//! Device features by name: what a device supports (in its snapshot) and what was enabled (in its
//! plan). Each is known to be supported only where the device's version or extensions define it.

use std::collections::BTreeMap;

use ash::vk;
use serde::{Deserialize, Serialize};

/// A set of device features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Features {
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
    /// With device scope: atomics that worked without the model would be illegal with it otherwise.
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

/// What a device can be asked about: its version and its extensions with their revisions.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    /// The lesser of the device's version and the version that the instance was created for.
    pub(crate) api_version: u32,
    /// The device's extensions.
    pub(crate) extensions: &'a BTreeMap<String, u32>,
}

impl Reach<'_> {
    /// Whether the device has the extension.
    pub(crate) fn has(&self, extension: &str) -> bool {
        self.extensions.contains_key(extension)
    }

    /// Whether the device has what became core in `version`, by either way.
    pub(crate) fn covers(&self, version: u32, extension: &str) -> bool {
        self.api_version >= version || self.has(extension)
    }
}

impl Features {
    /// Asks a physical device of at least Vulkan 1.1. Structures that the device does not define
    /// are left out of the question, and their features are unsupported.
    pub(crate) fn read(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        reach: Reach<'_>,
    ) -> Self {
        let mut storage16 = vk::PhysicalDevice16BitStorageFeatures::default();
        let mut pointers = vk::PhysicalDeviceVariablePointersFeatures::default();
        let mut storage8 = vk::PhysicalDevice8BitStorageFeatures::default();
        let mut float16_int8 = vk::PhysicalDeviceShaderFloat16Int8Features::default();
        let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default();
        let mut address = vk::PhysicalDeviceBufferDeviceAddressFeatures::default();
        let mut memory_model = vk::PhysicalDeviceVulkanMemoryModelFeatures::default();
        let mut scalar = vk::PhysicalDeviceScalarBlockLayoutFeatures::default();
        let mut subgroup_size = vk::PhysicalDeviceSubgroupSizeControlFeatures::default();
        let mut dot = vk::PhysicalDeviceShaderIntegerDotProductFeatures::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Features::default();
        let mut matrix = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
        let mut atomic_float = vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default();

        let mut query = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut storage16)
            .push_next(&mut pointers);
        let (v12, v13) = (vk::API_VERSION_1_2, vk::API_VERSION_1_3);
        if reach.covers(v12, "VK_KHR_8bit_storage") {
            query = query.push_next(&mut storage8);
        }
        if reach.covers(v12, "VK_KHR_shader_float16_int8") {
            query = query.push_next(&mut float16_int8);
        }
        if reach.covers(v12, "VK_KHR_timeline_semaphore") {
            query = query.push_next(&mut timeline);
        }
        if reach.covers(v12, "VK_KHR_buffer_device_address") {
            query = query.push_next(&mut address);
        }
        if reach.covers(v12, "VK_KHR_vulkan_memory_model") {
            query = query.push_next(&mut memory_model);
        }
        if reach.covers(v12, "VK_EXT_scalar_block_layout") {
            query = query.push_next(&mut scalar);
        }
        if reach.covers(v13, "VK_EXT_subgroup_size_control") {
            query = query.push_next(&mut subgroup_size);
        }
        if reach.covers(v13, "VK_KHR_shader_integer_dot_product") {
            query = query.push_next(&mut dot);
        }
        if reach.covers(v13, "VK_KHR_maintenance4") {
            query = query.push_next(&mut maintenance4);
        }
        if reach.has("VK_KHR_cooperative_matrix") {
            query = query.push_next(&mut matrix);
        }
        if reach.has("VK_EXT_shader_atomic_float") {
            query = query.push_next(&mut atomic_float);
        }
        // SAFETY: VUID-vkGetPhysicalDeviceFeatures2-physicalDevice-parameter: the handle was
        // enumerated from this instance; every chained structure is defined for the device.
        unsafe { instance.get_physical_device_features2(physical, &mut query) };
        let core = query.features;

        let on = |flag: vk::Bool32| flag != vk::FALSE;
        Self {
            timeline_semaphore: on(timeline.timeline_semaphore),
            buffer_device_address: on(address.buffer_device_address),
            shader_float64: on(core.shader_float64),
            shader_int64: on(core.shader_int64),
            shader_int16: on(core.shader_int16),
            shader_float16: on(float16_int8.shader_float16),
            shader_int8: on(float16_int8.shader_int8),
            storage_buffer_16bit: on(storage16.storage_buffer16_bit_access),
            uniform_and_storage_buffer_16bit: on(storage16.uniform_and_storage_buffer16_bit_access),
            storage_push_constant_16: on(storage16.storage_push_constant16),
            storage_buffer_8bit: on(storage8.storage_buffer8_bit_access),
            uniform_and_storage_buffer_8bit: on(storage8.uniform_and_storage_buffer8_bit_access),
            storage_push_constant_8: on(storage8.storage_push_constant8),
            integer_dot_product: on(dot.shader_integer_dot_product),
            cooperative_matrix: on(matrix.cooperative_matrix),
            vulkan_memory_model: on(memory_model.vulkan_memory_model)
                && on(memory_model.vulkan_memory_model_device_scope),
            variable_pointers: on(pointers.variable_pointers),
            variable_pointers_storage_buffer: on(pointers.variable_pointers_storage_buffer),
            subgroup_size_control: on(subgroup_size.subgroup_size_control),
            compute_full_subgroups: on(subgroup_size.compute_full_subgroups),
            scalar_block_layout: on(scalar.scalar_block_layout),
            maintenance4: on(maintenance4.maintenance4),
            shader_buffer_float32_atomic_add: on(atomic_float.shader_buffer_float32_atomic_add),
            robust_buffer_access: on(core.robust_buffer_access),
        }
    }

    /// Those of the features that the device's version or extensions define. A driver (or a layer
    /// that hides extensions) that reports others is not taken at its word.
    pub(crate) fn within(self, reach: Reach<'_>) -> Self {
        let (v12, v13) = (vk::API_VERSION_1_2, vk::API_VERSION_1_3);
        let storage8 = reach.covers(v12, "VK_KHR_8bit_storage");
        let float16_int8 = reach.covers(v12, "VK_KHR_shader_float16_int8");
        let subgroup_size = reach.covers(v13, "VK_EXT_subgroup_size_control");
        let dot = reach.covers(v13, "VK_KHR_shader_integer_dot_product");
        Self {
            timeline_semaphore: self.timeline_semaphore
                && reach.covers(v12, "VK_KHR_timeline_semaphore"),
            buffer_device_address: self.buffer_device_address
                && reach.covers(v12, "VK_KHR_buffer_device_address"),
            shader_float16: self.shader_float16 && float16_int8,
            shader_int8: self.shader_int8 && float16_int8,
            storage_buffer_8bit: self.storage_buffer_8bit && storage8,
            uniform_and_storage_buffer_8bit: self.uniform_and_storage_buffer_8bit && storage8,
            storage_push_constant_8: self.storage_push_constant_8 && storage8,
            integer_dot_product: self.integer_dot_product && dot,
            cooperative_matrix: self.cooperative_matrix && reach.has("VK_KHR_cooperative_matrix"),
            vulkan_memory_model: self.vulkan_memory_model
                && reach.covers(v12, "VK_KHR_vulkan_memory_model"),
            subgroup_size_control: self.subgroup_size_control && subgroup_size,
            compute_full_subgroups: self.compute_full_subgroups && subgroup_size,
            scalar_block_layout: self.scalar_block_layout
                && reach.covers(v12, "VK_EXT_scalar_block_layout"),
            maintenance4: self.maintenance4 && reach.covers(v13, "VK_KHR_maintenance4"),
            shader_buffer_float32_atomic_add: self.shader_buffer_float32_atomic_add
                && reach.has("VK_EXT_shader_atomic_float"),
            ..self
        }
    }
}
