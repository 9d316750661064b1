//! Executables: compute pipelines.

use std::any::Any;
use std::ffi::CString;
use std::sync::Arc;

use ash::vk;

use super::error;
use super::layout::Layout;
use super::raw_device::RawDevice;
use super::shared::Shared;
use crate::hal::{self, BindingDesc, ExecutableDesc};
use crate::{Error, Result};

/// A compute pipeline. Recordings that name it hold it.
pub(super) struct Executable {
    raw: Arc<RawDevice>,
    pub(super) layout: Arc<Layout>,
    pub(super) pipeline: vk::Pipeline,
    pub(super) name: String,
    pub(super) bindings: Vec<BindingDesc>,
    push_constant_bytes: u32,
}

/// A shader module that lives as long as the pipeline is being made.
struct ShaderModule<'a> {
    raw: &'a RawDevice,
    vk: vk::ShaderModule,
}

impl Executable {
    pub(super) fn create(shared: &Shared, desc: &ExecutableDesc<'_>) -> Result<Self> {
        let create = || Self::try_create(shared, desc);
        let raw = &shared.raw;
        let created = if raw.plan.pipelines_between_submissions {
            raw.submissions.create_between(create)
        } else {
            create()
        };
        created.map_err(|error| error.within(desc.name))
    }

    /// The executable behind a HAL executable, if it is one of this device.
    #[inline]
    pub(super) fn of<'a>(
        executable: &'a dyn hal::Executable,
        raw: &Arc<RawDevice>,
    ) -> Result<&'a Self> {
        match executable.as_any().downcast_ref::<Self>() {
            Some(executable) if Arc::ptr_eq(&executable.raw, raw) => Ok(executable),
            _ => Err(Error::invalid(format!(
                "{}: the executable is of another device",
                executable.name()
            ))),
        }
    }

    fn try_create(shared: &Shared, desc: &ExecutableDesc<'_>) -> Result<Self> {
        check(shared, desc)?;
        let raw = &shared.raw;
        let layout = shared.layouts.get(raw, desc.bindings, desc.push_constant_bytes)?;
        let pipeline = create_pipeline(shared, &layout, desc)?;
        Ok(Self {
            raw: raw.clone(),
            layout,
            pipeline,
            name: desc.name.to_owned(),
            bindings: desc.bindings.to_vec(),
            push_constant_bytes: desc.push_constant_bytes,
        })
    }
}

impl hal::Executable for Executable {
    fn name(&self) -> &str {
        &self.name
    }

    fn bindings(&self) -> &[BindingDesc] {
        &self.bindings
    }

    fn push_constant_bytes(&self) -> u32 {
        self.push_constant_bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyPipeline-pipeline-00765: recordings in flight hold the executable.
        unsafe { self.raw.vk.destroy_pipeline(self.pipeline, None) };
    }
}

impl Drop for ShaderModule<'_> {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyShaderModule-device-parameter: pipelines do not need the module
        // once they are made.
        unsafe { self.raw.vk.destroy_shader_module(self.vk, None) };
    }
}

/// What the layouts and the pipeline rely on.
fn check(shared: &Shared, desc: &ExecutableDesc<'_>) -> Result<()> {
    let limits = &shared.properties.kernel;
    if !desc.bindings.windows(2).all(|pair| pair[0].binding < pair[1].binding) {
        return Err(Error::invalid(format!(
            "the bindings {:?} must be listed by rising number",
            desc.bindings.iter().map(|b| b.binding).collect::<Vec<_>>()
        )));
    }
    let bytes = desc.push_constant_bytes;
    if bytes > limits.max_push_constant_bytes || !bytes.is_multiple_of(4) {
        return Err(Error::invalid(format!(
            "push constants need {bytes} bytes, the device allows {} (maxPushConstantsSize) in \
             words of 4; rebuild the module with a uniform buffer",
            limits.max_push_constant_bytes
        )));
    }
    let Some(size) = desc.required_subgroup_size else { return Ok(()) };
    let (least, greatest) = limits.subgroup_size_range;
    if !shared.raw.plan.features.subgroup_size_control {
        return Err(Error::unsupported(format!(
            "a subgroup size of {size} is demanded, but this device cannot choose it; it has {}",
            limits.subgroup_size
        )));
    }
    if !size.is_power_of_two() || size < least || size > greatest {
        return Err(Error::unsupported(format!(
            "a subgroup size of {size} is demanded; this device has powers of two from {least} to \
             {greatest}"
        )));
    }
    Ok(())
}

fn create_pipeline(
    shared: &Shared,
    layout: &Layout,
    desc: &ExecutableDesc<'_>,
) -> Result<vk::Pipeline> {
    let raw = &shared.raw;
    let entry_point = CString::new(desc.entry_point).map_err(|_| {
        Error::invalid(format!("the entry point's name {:?} contains a NUL", desc.entry_point))
    })?;
    let module = ShaderModule::create(raw, desc.spirv)?;
    let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default();
    let mut stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module.vk)
        .name(&entry_point);
    if let Some(demanded) = desc.required_subgroup_size {
        size = size.required_subgroup_size(demanded);
        stage = stage.push_next(&mut size);
    }
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.pipeline);
    shared.cache.create_pipeline(raw, &info)
}

impl<'a> ShaderModule<'a> {
    fn create(raw: &'a RawDevice, spirv: &[u32]) -> Result<Self> {
        let info = vk::ShaderModuleCreateInfo::default().code(spirv);
        // SAFETY: VUID-VkShaderModuleCreateInfo-pCode-08737: the module was checked before it came
        // here (`ExecutableDesc`).
        let vk = unsafe { raw.vk.create_shader_module(&info, None) }
            .map_err(|result| error::pipeline("vkCreateShaderModule", result))?;
        Ok(Self { raw, vk })
    }
}
