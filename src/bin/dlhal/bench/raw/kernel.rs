//! Compute pipelines and their descriptors.

use std::marker::PhantomData;

use ash::vk;
use dlhal::{Error, Result};

use super::{Buffer, Raw, called};

/// What a kernel is made of.
pub(in crate::bench) struct KernelDesc<'a> {
    /// The shader.
    pub(in crate::bench) spirv: &'a [u8],
    /// Storage buffers of each binding.
    pub(in crate::bench) bindings: &'a [u32],
    /// Bytes of push constants.
    pub(in crate::bench) constants: u32,
    /// Whether descriptors are pushed rather than kept in sets.
    pub(in crate::bench) pushed: bool,
}

/// A pipeline; it lives as long as its scope.
#[derive(Clone, Copy)]
pub(in crate::bench) struct Kernel<'s> {
    pub(super) raw: &'s Raw,
    pub(super) pipeline: vk::Pipeline,
    pub(super) layout: vk::PipelineLayout,
    set_layout: vk::DescriptorSetLayout,
    descriptors: u32,
    first_of_last: u32,
}

/// A descriptor set; it lives as long as its scope.
#[derive(Clone, Copy)]
pub(in crate::bench) struct Set<'s> {
    pub(super) handle: vk::DescriptorSet,
    scope: PhantomData<&'s ()>,
}

/// What a scope has to destroy, in the reverse order.
pub(super) enum Made {
    Pipeline(vk::Pipeline),
    Layout(vk::PipelineLayout),
    SetLayout(vk::DescriptorSetLayout),
    Pool(vk::DescriptorPool),
}

impl Made {
    /// Destroys it; the device must not be using it.
    pub(super) fn destroy(self, device: &ash::Device) {
        match self {
            // SAFETY: VUID-vkDestroyPipeline-pipeline-00765: the caller's promise.
            Self::Pipeline(pipeline) => unsafe { device.destroy_pipeline(pipeline, None) },
            // SAFETY: as above.
            Self::Layout(layout) => unsafe { device.destroy_pipeline_layout(layout, None) },
            // SAFETY: as above.
            Self::SetLayout(layout) => unsafe {
                device.destroy_descriptor_set_layout(layout, None);
            },
            // SAFETY: VUID-vkDestroyDescriptorPool-descriptorPool-00303: as above.
            Self::Pool(pool) => unsafe { device.destroy_descriptor_pool(pool, None) },
        }
    }
}

impl<'s> Kernel<'s> {
    pub(super) fn create(
        raw: &'s Raw,
        desc: &KernelDesc<'_>,
        mut keep: impl FnMut(Made),
    ) -> Result<Self> {
        let descriptors: u32 = desc.bindings.iter().sum();
        if descriptors > raw.limits().max_per_stage_descriptor_storage_buffers {
            return Err(Error::unsupported(format!(
                "the kernel has {descriptors} buffers, the device allows {} \
                 (maxPerStageDescriptorStorageBuffers)",
                raw.limits().max_per_stage_descriptor_storage_buffers
            )));
        }
        let bindings: Vec<_> = (0u32..)
            .zip(desc.bindings)
            .map(|(binding, &count)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(count)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let flags = if desc.pushed {
            raw.pushes()?;
            vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR
        } else {
            vk::DescriptorSetLayoutCreateFlags::empty()
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        // SAFETY: the info is whole; the flag's extension is enabled.
        let set_layout = called("vkCreateDescriptorSetLayout", unsafe {
            raw.device.create_descriptor_set_layout(&info, None)
        })?;
        keep(Made::SetLayout(set_layout));
        let ranges = [vk::PushConstantRange {
            stage_flags: vk::ShaderStageFlags::COMPUTE,
            offset: 0,
            size: desc.constants,
        }];
        let layouts = [set_layout];
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&layouts)
            .push_constant_ranges(&ranges);
        // SAFETY: VUID-VkPushConstantRange-size-00298: no kernel has more than the 128 bytes that
        // every device allows.
        let layout = called("vkCreatePipelineLayout", unsafe {
            raw.device.create_pipeline_layout(&info, None)
        })?;
        keep(Made::Layout(layout));
        let pipeline = pipeline(raw, desc.spirv, layout)?;
        keep(Made::Pipeline(pipeline));
        let first_of_last = descriptors - desc.bindings.last().copied().unwrap_or(0);
        Ok(Self { raw, pipeline, layout, set_layout, descriptors, first_of_last })
    }

    pub(super) fn empty_set<'a>(&self, mut keep: impl FnMut(Made)) -> Result<Set<'a>> {
        let sizes = [vk::DescriptorPoolSize {
            ty: vk::DescriptorType::STORAGE_BUFFER,
            descriptor_count: self.descriptors,
        }];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        let device = &self.raw.device;
        // SAFETY: the info is whole.
        let pool = called("vkCreateDescriptorPool", unsafe {
            device.create_descriptor_pool(&info, None)
        })?;
        keep(Made::Pool(pool));
        let layouts = [self.set_layout];
        let info =
            vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: the pool has room for one set of this layout.
        let sets =
            called("vkAllocateDescriptorSets", unsafe { device.allocate_descriptor_sets(&info) })?;
        Ok(Set { handle: sets[0], scope: PhantomData })
    }

    /// Puts a kernel's buffers in order into a set that the device does not use.
    pub(in crate::bench) fn write_set(&self, set: &Set<'_>, buffers: &[&Buffer<'_>]) {
        let infos: Vec<_> = buffers.iter().map(|buffer| whole(buffer)).collect();
        // The last binding may be an array; those before it are one buffer each.
        let (single, array) = infos.split_at(self.first_of_last as usize);
        let mut writes: Vec<_> = (0u32..).zip(single.chunks(1)).map(write).collect();
        writes.push(write((self.first_of_last, array)));
        let writes: Vec<_> = writes.into_iter().map(|write| write.dst_set(set.handle)).collect();
        // SAFETY: VUID-VkWriteDescriptorSet-dstBinding-00315: the bindings are the layout's.
        unsafe { self.raw.device.update_descriptor_sets(&writes, &[]) };
    }
}

/// All of a buffer, as a descriptor has it.
pub(super) fn whole(buffer: &Buffer<'_>) -> vk::DescriptorBufferInfo {
    vk::DescriptorBufferInfo { buffer: buffer.handle, offset: 0, range: buffer.size }
}

/// Buffers for a binding.
pub(super) fn write(
    (binding, infos): (u32, &[vk::DescriptorBufferInfo]),
) -> vk::WriteDescriptorSet<'_> {
    vk::WriteDescriptorSet::default()
        .dst_binding(binding)
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        .buffer_info(infos)
}

fn pipeline(raw: &Raw, spirv: &[u8], layout: vk::PipelineLayout) -> Result<vk::Pipeline> {
    let words = super::super::kernels::words(spirv);
    let info = vk::ShaderModuleCreateInfo::default().code(&words);
    // SAFETY: the shader is one of bench/shaders or the library's, made by glslc for Vulkan 1.1.
    let module =
        called("vkCreateShaderModule", unsafe { raw.device.create_shader_module(&info, None) })?;
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(c"main");
    let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
    let cache = vk::PipelineCache::null();
    // SAFETY: VUID-VkComputePipelineCreateInfo-layout-07988: the layout has the shader's bindings.
    let made = unsafe { raw.device.create_compute_pipelines(cache, &infos, None) };
    // SAFETY: a shader module is not needed once the pipeline exists.
    unsafe { raw.device.destroy_shader_module(module, None) };
    match made {
        Ok(pipelines) => Ok(pipelines[0]),
        Err((_, error)) => called("vkCreateComputePipelines", Err(error)),
    }
}
