//! Conversions between the HAL's types and Vulkan's.

use std::ffi::CString;

use ash::prelude::VkResult;
use ash::vk;

use super::plan::{EnabledFeatures, Plan};
use crate::hal::{BindingKind, CopyRegion, QueueRole, Stages};

/// Builds the creation info of the device that `plan` describes, for the length of one call.
pub(super) fn with_device_create_info<T>(
    plan: &Plan,
    create: impl FnOnce(&vk::DeviceCreateInfo<'_>) -> VkResult<T>,
) -> VkResult<T> {
    let most = plan.queues.iter().map(|queue| queue.count).max().unwrap_or(1);
    let priorities = vec![1.0_f32; most as usize];
    let queues: Vec<_> = plan
        .queues
        .iter()
        .map(|queue| {
            vk::DeviceQueueCreateInfo::default()
                .queue_family_index(queue.family)
                .queue_priorities(&priorities[..queue.count as usize])
        })
        .collect();
    let names: Vec<CString> =
        plan.extensions.iter().filter_map(|name| CString::new(*name).ok()).collect();
    let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let on = &plan.features;
    let core = vk::PhysicalDeviceFeatures::default()
        .shader_float64(on.shader_float64)
        .shader_int64(on.shader_int64)
        .shader_int16(on.shader_int16)
        .robust_buffer_access(on.robust_buffer_access);
    let mut chain = FeatureChain::new(on);
    let mut features = vk::PhysicalDeviceFeatures2::default().features(core);
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&pointers);
    create(&chain.link(on, info.push_next(&mut features)))
}

/// The structures that enable features, each chained only where one of its features is planned: a
/// device without the feature may not know the structure.
struct FeatureChain {
    storage16: vk::PhysicalDevice16BitStorageFeatures<'static>,
    storage8: vk::PhysicalDevice8BitStorageFeatures<'static>,
    float16_int8: vk::PhysicalDeviceShaderFloat16Int8Features<'static>,
    pointers: vk::PhysicalDeviceVariablePointersFeatures<'static>,
    timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures<'static>,
    address: vk::PhysicalDeviceBufferDeviceAddressFeatures<'static>,
    memory_model: vk::PhysicalDeviceVulkanMemoryModelFeatures<'static>,
    scalar: vk::PhysicalDeviceScalarBlockLayoutFeatures<'static>,
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>,
    atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
}

impl FeatureChain {
    fn new(on: &EnabledFeatures) -> Self {
        Self {
            storage16: vk::PhysicalDevice16BitStorageFeatures::default()
                .storage_buffer16_bit_access(on.storage_buffer_16bit)
                .uniform_and_storage_buffer16_bit_access(on.uniform_and_storage_buffer_16bit)
                .storage_push_constant16(on.storage_push_constant_16),
            storage8: vk::PhysicalDevice8BitStorageFeatures::default()
                .storage_buffer8_bit_access(on.storage_buffer_8bit)
                .uniform_and_storage_buffer8_bit_access(on.uniform_and_storage_buffer_8bit)
                .storage_push_constant8(on.storage_push_constant_8),
            float16_int8: vk::PhysicalDeviceShaderFloat16Int8Features::default()
                .shader_float16(on.shader_float16)
                .shader_int8(on.shader_int8),
            pointers: vk::PhysicalDeviceVariablePointersFeatures::default()
                .variable_pointers(on.variable_pointers)
                .variable_pointers_storage_buffer(on.variable_pointers_storage_buffer),
            timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures::default()
                .timeline_semaphore(on.timeline_semaphore),
            address: vk::PhysicalDeviceBufferDeviceAddressFeatures::default()
                .buffer_device_address(on.buffer_device_address),
            memory_model: vk::PhysicalDeviceVulkanMemoryModelFeatures::default()
                .vulkan_memory_model(on.vulkan_memory_model)
                .vulkan_memory_model_device_scope(on.vulkan_memory_model),
            scalar: vk::PhysicalDeviceScalarBlockLayoutFeatures::default()
                .scalar_block_layout(on.scalar_block_layout),
            subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures::default()
                .subgroup_size_control(on.subgroup_size_control)
                .compute_full_subgroups(on.compute_full_subgroups),
            dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures::default()
                .shader_integer_dot_product(on.integer_dot_product),
            maintenance4: vk::PhysicalDeviceMaintenance4Features::default()
                .maintenance4(on.maintenance4),
            matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default()
                .cooperative_matrix(on.cooperative_matrix),
            atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default()
                .shader_buffer_float32_atomic_add(on.shader_buffer_float32_atomic_add),
        }
    }

    fn link<'a>(
        &'a mut self,
        on: &EnabledFeatures,
        mut info: vk::DeviceCreateInfo<'a>,
    ) -> vk::DeviceCreateInfo<'a> {
        let storage16 = on.storage_buffer_16bit
            || on.uniform_and_storage_buffer_16bit
            || on.storage_push_constant_16;
        let storage8 = on.storage_buffer_8bit
            || on.uniform_and_storage_buffer_8bit
            || on.storage_push_constant_8;
        macro_rules! chain {
            ($($wanted:expr => $structure:ident,)*) => {
                $(if $wanted { info = info.push_next(&mut self.$structure); })*
            };
        }
        chain! {
            storage16 => storage16,
            storage8 => storage8,
            on.shader_float16 || on.shader_int8 => float16_int8,
            on.variable_pointers || on.variable_pointers_storage_buffer => pointers,
            on.timeline_semaphore => timeline,
            on.buffer_device_address => address,
            on.vulkan_memory_model => memory_model,
            on.scalar_block_layout => scalar,
            on.subgroup_size_control || on.compute_full_subgroups => subgroup_size,
            on.integer_dot_product => dot,
            on.maintenance4 => maintenance4,
            on.cooperative_matrix => matrix,
            on.shader_buffer_float32_atomic_add => atomic_float,
        }
        info
    }
}

/// A binding's descriptor type.
pub(super) fn descriptor_type(kind: BindingKind) -> vk::DescriptorType {
    match kind {
        BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
        BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
    }
}

/// A piece of a copy.
#[inline]
pub(super) fn region(region: &CopyRegion) -> vk::BufferCopy {
    vk::BufferCopy {
        src_offset: region.src_offset,
        dst_offset: region.dst_offset,
        size: region.size,
    }
}

/// The stages and writes that come before a barrier. A family without dispatches does not know
/// their stage, nor has it any to order.
#[inline]
pub(super) fn before(stages: Stages, role: QueueRole) -> (vk::PipelineStageFlags, vk::AccessFlags) {
    let writes = [
        (Stages::TRANSFER, vk::AccessFlags::TRANSFER_WRITE),
        (Stages::COMPUTE, vk::AccessFlags::SHADER_WRITE),
        (Stages::HOST, vk::AccessFlags::HOST_WRITE),
    ];
    select(stages, role, writes, vk::PipelineStageFlags::TOP_OF_PIPE)
}

/// The stages and accesses that come after a barrier.
#[inline]
pub(super) fn after(stages: Stages, role: QueueRole) -> (vk::PipelineStageFlags, vk::AccessFlags) {
    let transfer = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE;
    let shader = vk::AccessFlags::SHADER_READ
        | vk::AccessFlags::SHADER_WRITE
        | vk::AccessFlags::UNIFORM_READ;
    let host = vk::AccessFlags::HOST_READ | vk::AccessFlags::HOST_WRITE;
    let accesses = [(Stages::TRANSFER, transfer), (Stages::COMPUTE, shader), (Stages::HOST, host)];
    select(stages, role, accesses, vk::PipelineStageFlags::BOTTOM_OF_PIPE)
}

#[inline]
fn select(
    stages: Stages,
    role: QueueRole,
    accesses: [(Stages, vk::AccessFlags); 3],
    nothing: vk::PipelineStageFlags,
) -> (vk::PipelineStageFlags, vk::AccessFlags) {
    let flags = [
        vk::PipelineStageFlags::TRANSFER,
        vk::PipelineStageFlags::COMPUTE_SHADER,
        vk::PipelineStageFlags::HOST,
    ];
    let mut selected = (vk::PipelineStageFlags::empty(), vk::AccessFlags::empty());
    for (flag, (stage, access)) in flags.into_iter().zip(accesses) {
        if stages.contains(stage) && (stage != Stages::COMPUTE || role == QueueRole::Compute) {
            selected.0 |= flag;
            selected.1 |= access;
        }
    }
    if selected.0.is_empty() {
        selected.0 = nothing;
    }
    selected
}
