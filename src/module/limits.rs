//! Whether a device can run a kernel: a shader's needs against a device's limits.

use super::function::{Function, ScalarBlock};
use super::signature::LaunchTag;
use super::spirv::capability_name;
use crate::hal::KernelLimits;
use crate::{Error, Result};

/// Refuses a kernel that the device cannot run, with the need, the limit, and what would help.
///
/// Each kernel of a module is judged alone, so one that needs more does not keep the others from
/// running.
pub fn check_function(function: &Function, limits: &KernelLimits) -> Result<()> {
    check(function, limits).map_err(|error| error.within(format!("kernel `{}`", function.name())))
}

/// Refuses a launch whose dynamic workgroup memory does not fit beside the declared.
pub fn check_dynamic_shared_memory(
    function: &Function,
    dynamic_bytes: u64,
    limits: &KernelLimits,
) -> Result<()> {
    check_shared_memory(function.workgroup_bytes(), dynamic_bytes, limits)
        .map_err(|error| error.within(format!("kernel `{}`", function.name())))
}

fn check(function: &Function, limits: &KernelLimits) -> Result<()> {
    for tag in &function.launch_tags {
        if let LaunchTag::Unknown(tag) = tag {
            return Err(Error::unsupported(format!(
                "launch tag `{tag}` is not known to this library"
            )));
        }
    }
    if let Some(index) = function.signature.extra_tags.iter().position(|tag| *tag != 0) {
        return Err(Error::unsupported(format!(
            "argument {index} has the extra tag {}, which this library cannot serve",
            function.signature.extra_tags[index]
        )));
    }
    let shader = &function.shader;
    if shader.version > limits.max_spirv_version {
        let (major, minor) = shader.version;
        return Err(Error::unsupported(format!(
            "the shader is SPIR-V {major}.{minor}, the device takes up to {}.{}; compile for an \
             older version",
            limits.max_spirv_version.0, limits.max_spirv_version.1
        )));
    }
    let missing: Vec<_> = shader
        .capabilities
        .iter()
        .filter(|capability| !limits.spirv_capabilities.contains(capability))
        .map(|capability| capability_name(*capability))
        .collect();
    if !missing.is_empty() {
        return Err(Error::unsupported(format!(
            "the shader needs the SPIR-V capability {}, which this device does not offer; compile \
             for a target without it",
            missing.join(", ")
        )));
    }
    let unknown = |name: &&String| {
        // These only annotate; every device takes them.
        !name.starts_with("SPV_GOOGLE_") && !limits.spirv_extensions.contains(*name)
    };
    if let Some(extension) = shader.extensions.iter().find(unknown) {
        return Err(Error::unsupported(format!(
            "the shader needs the SPIR-V extension {extension}, which this device does not offer; \
             compile for a target without it"
        )));
    }
    check_workgroup(function, limits)?;
    check_bindings(function, limits)
}

fn check_workgroup(function: &Function, limits: &KernelLimits) -> Result<()> {
    let size = function.local_size();
    for axis in 0..3 {
        if size[axis] > limits.max_workgroup_size[axis] {
            return Err(Error::unsupported(format!(
                "local size {} in {} exceeds the device's {} (maxComputeWorkGroupSize); use fewer \
                 threads",
                size[axis],
                ['x', 'y', 'z'][axis],
                limits.max_workgroup_size[axis]
            )));
        }
    }
    let invocations = size.iter().map(|n| u128::from(*n)).product::<u128>();
    if invocations > u128::from(limits.max_workgroup_invocations) {
        return Err(Error::unsupported(format!(
            "local size {}×{}×{} is {invocations} invocations, the device allows {} \
             (maxComputeWorkGroupInvocations); use fewer threads",
            size[0], size[1], size[2], limits.max_workgroup_invocations
        )));
    }
    check_shared_memory(function.workgroup_bytes(), 0, limits)?;
    match function.entry.subgroup_size {
        Some(wanted)
            if !(limits.subgroup_size_range.0..=limits.subgroup_size_range.1).contains(&wanted) =>
        {
            Err(Error::unsupported(format!(
                "the shader demands subgroups of {wanted}, the device has {} to {}",
                limits.subgroup_size_range.0, limits.subgroup_size_range.1
            )))
        }
        _ => Ok(()),
    }
}

/// Declared and dynamic workgroup memory against the limit.
fn check_shared_memory(declared: u64, dynamic: u64, limits: &KernelLimits) -> Result<()> {
    let limit = u64::from(limits.max_workgroup_memory_bytes);
    if declared.checked_add(dynamic).is_some_and(|total| total <= limit) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{declared} bytes of workgroup memory and {dynamic} dynamic bytes exceed the device's \
         {limit} (maxComputeSharedMemorySize); use smaller tiles"
    )))
}

fn check_bindings(function: &Function, limits: &KernelLimits) -> Result<()> {
    let buffers = function.buffers().count();
    if buffers as u64 > u64::from(limits.max_storage_buffers) {
        return Err(Error::unsupported(format!(
            "{buffers} buffer arguments exceed the device's {} storage buffers \
             (maxPerStageDescriptorStorageBuffers); fuse fewer operators",
            limits.max_storage_buffers
        )));
    }
    match function.scalars {
        ScalarBlock::PushConstants { size } if size > limits.max_push_constant_bytes => {
            Err(Error::unsupported(format!(
                "push constants need {size} bytes, the device allows {} (maxPushConstantsSize); \
                 rebuild the module with a uniform buffer",
                limits.max_push_constant_bytes
            )))
        }
        ScalarBlock::Uniform { size, .. } if size > limits.max_uniform_buffer_range => {
            Err(Error::unsupported(format!(
                "the uniform block needs {size} bytes, the device allows {} \
                 (maxUniformBufferRange); pass fewer scalars",
                limits.max_uniform_buffer_range
            )))
        }
        _ => Ok(()),
    }
}
