//! Vulkan's result codes as errors: one function for each set of codes that the specification
//! allows. What a set does not contain is a fault of the driver and says so.

use ash::vk;

use crate::{DlhalStatus, Error};

/// Commands that can only run out of memory.
pub(super) fn memory(what: &str, result: vk::Result) -> Error {
    match result {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            Error::out_of_memory(format!("{what}: the driver is out of host memory"))
        }
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            Error::out_of_memory(format!("{what}: out of device memory"))
        }
        other => unexpected(what, other),
    }
}

/// `vkAllocateMemory`, and `vkCreateBuffer` and the like, whose addresses or handles can be refused.
pub(super) fn allocation(what: &str, result: vk::Result) -> Error {
    match result {
        vk::Result::ERROR_TOO_MANY_OBJECTS => Error::out_of_memory(format!(
            "{what}: the driver allows no more memory objects (maxMemoryAllocationCount); free some"
        )),
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE => Error::invalid(format!(
            "{what}: the driver does not take this memory (VK_ERROR_INVALID_EXTERNAL_HANDLE)"
        )),
        vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS => Error::out_of_memory(format!(
            "{what}: no device address is free (VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)"
        )),
        other => memory(what, other),
    }
}

/// `vkMapMemory`.
pub(super) fn mapping(what: &str, result: vk::Result) -> Error {
    match result {
        vk::Result::ERROR_MEMORY_MAP_FAILED => Error::out_of_memory(format!(
            "{what}: the memory could not be mapped; the host's address space or its limit on \
             locked memory may be exhausted"
        )),
        other => memory(what, other),
    }
}

/// Descriptor pools.
pub(super) fn descriptors(what: &str, result: vk::Result) -> Error {
    match result {
        vk::Result::ERROR_FRAGMENTATION => {
            Error::out_of_memory(format!("{what}: descriptor memory is fragmented"))
        }
        vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL => {
            Error::out_of_memory(format!("{what}: the descriptor pool is exhausted"))
        }
        other => memory(what, other),
    }
}

/// `vkCreateComputePipelines` and `vkCreateShaderModule`.
pub(super) fn pipeline(what: &str, result: vk::Result) -> Error {
    match result {
        vk::Result::ERROR_INVALID_SHADER_NV => {
            Error::invalid(format!("{what}: the driver rejects the shader"))
        }
        vk::Result::ERROR_UNKNOWN | vk::Result::ERROR_INITIALIZATION_FAILED => Error::unsupported(
            format!("{what}: the driver could not compile the shader ({result:?})"),
        ),
        other => memory(what, other),
    }
}

/// `vkCreateDevice`.
pub(super) fn creation(what: &str, result: vk::Result) -> Error {
    let unavailable = match result {
        vk::Result::ERROR_INITIALIZATION_FAILED => "the driver could not initialise it",
        vk::Result::ERROR_EXTENSION_NOT_PRESENT => "an extension it listed is not there",
        vk::Result::ERROR_FEATURE_NOT_PRESENT => "a feature it reported is not there",
        vk::Result::ERROR_TOO_MANY_OBJECTS => "the driver allows no more devices in this process",
        vk::Result::ERROR_DEVICE_LOST => "the device was lost and has not come back",
        other => return memory(what, other),
    };
    Error::unavailable(format!("{what}: {unavailable} ({result:?})"))
}

/// Commands that wait for or submit work. Device loss is handled before (see
/// [`super::raw_device::RawDevice::failed`]), because it concerns more than the call.
pub(super) fn unexpected(what: &str, result: vk::Result) -> Error {
    Error::new(DlhalStatus::Internal, format!("{what}: the driver returned {result:?}"))
}
