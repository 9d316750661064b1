//! Pipeline layouts: one per device for executables with the same bindings and constants, so that
//! what is bound for one stays bound for the next.

use std::collections::HashMap;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::raw_device::RawDevice;
use super::{conv, error};
use crate::Result;
use crate::hal::{BindingDesc, BindingKind};

/// A pipeline layout with the template that fills its descriptor set.
pub(super) struct Layout {
    raw: Arc<RawDevice>,
    pub(super) set: vk::DescriptorSetLayout,
    pub(super) pipeline: vk::PipelineLayout,
    /// Reads an array of `VkDescriptorBufferInfo`, one for each binding; null without bindings.
    pub(super) template: vk::DescriptorUpdateTemplate,
    /// Whether descriptors are pushed; otherwise they are written to sets.
    pub(super) push: bool,
    pub(super) storage_buffers: u32,
    pub(super) uniform_buffers: u32,
}

/// The layouts of a device, by content.
#[derive(Default)]
pub(super) struct Layouts(Mutex<HashMap<Content, Arc<Layout>>>);

/// Bindings and bytes of push constants.
type Content = (Vec<BindingDesc>, u32);

impl Layouts {
    pub(super) fn get(
        &self,
        raw: &Arc<RawDevice>,
        bindings: &[BindingDesc],
        push_constant_bytes: u32,
    ) -> Result<Arc<Layout>> {
        let mut layouts = self.0.lock();
        let key = (bindings.to_vec(), push_constant_bytes);
        if let Some(layout) = layouts.get(&key) {
            return Ok(layout.clone());
        }
        let layout = Arc::new(Layout::create(raw, bindings, push_constant_bytes)?);
        layouts.insert(key, layout.clone());
        Ok(layout)
    }
}

impl Layout {
    fn create(
        raw: &Arc<RawDevice>,
        bindings: &[BindingDesc],
        push_constant_bytes: u32,
    ) -> Result<Self> {
        let count = |kind| bindings.iter().filter(|b| b.kind == kind).count() as u32;
        // Filled step by step: on failure the drop destroys what was made.
        let mut layout = Self {
            raw: raw.clone(),
            set: vk::DescriptorSetLayout::null(),
            pipeline: vk::PipelineLayout::null(),
            template: vk::DescriptorUpdateTemplate::null(),
            push: raw.push_descriptors.is_some()
                && bindings.len() <= raw.plan.max_push_descriptors as usize,
            storage_buffers: count(BindingKind::StorageBuffer),
            uniform_buffers: count(BindingKind::UniformBuffer),
        };
        layout.create_set(bindings)?;
        layout.create_pipeline(push_constant_bytes)?;
        if !bindings.is_empty() {
            layout.create_template(bindings)?;
        }
        Ok(layout)
    }

    fn create_set(&mut self, bindings: &[BindingDesc]) -> Result<()> {
        let bindings: Vec<_> = bindings
            .iter()
            .map(|binding| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding.binding)
                    .descriptor_type(conv::descriptor_type(binding.kind))
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let flags = if self.push {
            vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR
        } else {
            vk::DescriptorSetLayoutCreateFlags::empty()
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
        // SAFETY: VUID-VkDescriptorSetLayoutCreateInfo-binding-00279: binding numbers differ
        // (`Executable::create`); -flags-00281: at most maxPushDescriptors are pushed.
        self.set = unsafe { self.raw.vk.create_descriptor_set_layout(&info, None) }
            .map_err(|result| error::memory("vkCreateDescriptorSetLayout", result))?;
        Ok(())
    }

    fn create_pipeline(&mut self, push_constant_bytes: u32) -> Result<()> {
        let (sets, ranges) = (
            [self.set],
            [vk::PushConstantRange::default()
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .size(push_constant_bytes)],
        );
        let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
        if push_constant_bytes > 0 {
            info = info.push_constant_ranges(&ranges);
        }
        // SAFETY: VUID-VkPushConstantRange-size-00296, -00298: words within the device's limit
        // (`Executable::create`).
        self.pipeline = unsafe { self.raw.vk.create_pipeline_layout(&info, None) }
            .map_err(|result| error::memory("vkCreatePipelineLayout", result))?;
        Ok(())
    }

    fn create_template(&mut self, bindings: &[BindingDesc]) -> Result<()> {
        let stride = size_of::<vk::DescriptorBufferInfo>();
        let entries: Vec<_> = bindings
            .iter()
            .enumerate()
            .map(|(index, binding)| {
                vk::DescriptorUpdateTemplateEntry::default()
                    .dst_binding(binding.binding)
                    .descriptor_count(1)
                    .descriptor_type(conv::descriptor_type(binding.kind))
                    .offset(index * stride)
                    .stride(stride)
            })
            .collect();
        let info =
            vk::DescriptorUpdateTemplateCreateInfo::default().descriptor_update_entries(&entries);
        let info = if self.push {
            info.template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
                .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
                .pipeline_layout(self.pipeline)
                .set(0)
        } else {
            info.template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET)
                .descriptor_set_layout(self.set)
        };
        // SAFETY: VUID-VkDescriptorUpdateTemplateCreateInfo-templateType-04615, -00350: the
        // layouts live and match the template's type; entries name bindings of the layout.
        self.template = unsafe { self.raw.vk.create_descriptor_update_template(&info, None) }
            .map_err(|result| error::memory("vkCreateDescriptorUpdateTemplate", result))?;
        Ok(())
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        let device = &self.raw.vk;
        // SAFETY: VUID-vkDestroyDescriptorUpdateTemplate-descriptorSetLayout-00356: used by
        // recordings only while they record.
        unsafe { device.destroy_descriptor_update_template(self.template, None) };
        // SAFETY: VUID-vkDestroyPipelineLayout-pipelineLayout-02004: executables hold their
        // layout, recordings hold their executables.
        unsafe { device.destroy_pipeline_layout(self.pipeline, None) };
        // SAFETY: VUID-vkDestroyDescriptorSetLayout-descriptorSetLayout-00284: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set, None) };
    }
}
