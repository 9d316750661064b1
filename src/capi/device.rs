//! Devices: which there are, what they can do, what they hold.

use std::ffi::{c_char, c_void};

use dlpark::ffi::DLDevice;

use super::args::{self, Out, SizedOut};
use super::boundary::boundary;
use super::dltensor;
use super::objects;
use super::output::Buffer;
use super::types::{DeviceAttrNumber, DlhalMemoryStatistics, DlhalValue};
use super::values;
use crate::runtime::{Attribute, DeviceAttr, DeviceRef, self_test, system, thread};
use crate::{DlhalStatus, Error, Result};

/// How many kDLVulkan devices there are; the first call looks for them.
///
/// They are numbered in a stable order: discrete, integrated, virtual, other, software. The
/// environment variable DLHAL_VISIBLE_DEVICES (indices or UUIDs, separated by commas) selects and
/// orders them. A software device is only counted when it is the only kind or is selected.
///
/// @param count  gets the number; 0 where there is no loader, driver or usable device, and then
///               dlhal_diagnose() says why.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_count(count: *mut i32) -> DlhalStatus {
    boundary(|| {
        let count = Out::new(count, "count")?;
        let number = system::device_count()?;
        count.write(i32::try_from(number).unwrap_or(i32::MAX));
        Ok(())
    })
}

/// Makes `device` the calling thread's current device, which only dlhal_get_device() reads: every
/// other function takes the device it works on.
///
/// @return DLHAL_STATUS_NOT_FOUND when there is no such device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_set_device(device: DLDevice) -> DlhalStatus {
    boundary(|| {
        thread::set_current_device(existing(device)?);
        Ok(())
    })
}

/// The calling thread's current device.
///
/// @param device  gets it; kDLVulkan 0 where none was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_get_device(device: *mut DLDevice) -> DlhalStatus {
    boundary(|| {
        let device = Out::new(device, "device")?;
        device.write(dltensor::to_dl_device(thread::current_device()));
        Ok(())
    })
}

/// An attribute of a device that is a number or a truth value.
///
/// @param device  a kDLVulkan device.
/// @param attr    which attribute.
/// @param value   gets it. DLHAL_VALUE_NONE where the driver does not tell, and for an attribute
///                that is a string.
/// @return DLHAL_STATUS_NOT_FOUND when there is no such device, except for DLHAL_DEVICE_ATTR_EXIST;
///         DLHAL_STATUS_INVALID_ARGUMENT for an attribute that is not listed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_attr(
    device: DLDevice,
    attr: DeviceAttrNumber,
    value: *mut DlhalValue,
) -> DlhalStatus {
    boundary(|| {
        let value = Out::new(value, "value")?;
        value.write(values::to_c(attribute(device, attr)?.as_ref()));
        Ok(())
    })
}

/// An attribute of a device as text: a string as it is, a number in decimal, a truth value as
/// `true` or `false`, and an empty text for what the driver does not tell.
///
/// @param device  a kDLVulkan device.
/// @param attr    which attribute.
/// @param buffer, capacity, needed  get the text.
/// @return as dlhal_device_get_attr().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_attr_string(
    device: DLDevice,
    attr: DeviceAttrNumber,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let buffer = Buffer::text(buffer, capacity, needed)?;
        buffer.write_text(&values::to_text(attribute(device, attr)?))
    })
}

/// A property by the name that TVM's Vulkan target gives it, for example `max_num_threads` or
/// `supports_float16`.
///
/// @param device  a kDLVulkan device.
/// @param name    the property's name.
/// @param value   gets it; DLHAL_VALUE_NONE for a property that is a string.
/// @return DLHAL_STATUS_NOT_FOUND when there is no such device or property.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_target_property(
    device: DLDevice,
    name: *const c_char,
    value: *mut DlhalValue,
) -> DlhalStatus {
    boundary(|| {
        let name = args::string(name, "name")?;
        let value = Out::new(value, "value")?;
        value.write(values::to_c(Some(&target_property(device, name)?)));
        Ok(())
    })
}

/// A property by the name that TVM's Vulkan target gives it, as text.
///
/// @param device  a kDLVulkan device.
/// @param name    the property's name.
/// @param buffer, capacity, needed  get the text; see dlhal_device_get_attr_string().
/// @return as dlhal_device_get_target_property().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_target_property_string(
    device: DLDevice,
    name: *const c_char,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let name = args::string(name, "name")?;
        let buffer = Buffer::text(buffer, capacity, needed)?;
        buffer.write_text(&values::to_text(Some(target_property(device, name)?)))
    })
}

/// The compiled kernels of a device, for a later process to start with. Only the same device and
/// driver version take them.
///
/// @param device  a kDLVulkan device.
/// @param buffer, capacity, needed  get the bytes. The size may grow between two calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_pipeline_cache(
    device: DLDevice,
    buffer: *mut c_void,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let buffer = Buffer::bytes(buffer, capacity, needed)?;
        buffer.write_bytes(&objects::device(device)?.hal().pipeline_cache()?)
    })
}

/// Adds compiled kernels that dlhal_device_get_pipeline_cache() gave.
///
/// @param device       a kDLVulkan device.
/// @param bytes, size  the bytes; those of another device or driver, or corrupt ones, are ignored.
/// @param taken        gets whether they were taken; may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_set_pipeline_cache(
    device: DLDevice,
    bytes: *const c_void,
    size: usize,
    taken: *mut bool,
) -> DlhalStatus {
    boundary(|| {
        let bytes = args::bytes(bytes, size, "bytes")?;
        let taken = Out::optional(taken, "taken")?;
        let was_taken = objects::device(device)?.hal().merge_pipeline_cache(bytes)?;
        if let Some(taken) = taken {
            taken.write(was_taken);
        }
        Ok(())
    })
}

/// What memory a device holds for this process.
///
/// @param device      a kDLVulkan device.
/// @param statistics  gets it; its `struct_size` must be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_memory_statistics(
    device: DLDevice,
    statistics: *mut DlhalMemoryStatistics,
) -> DlhalStatus {
    boundary(|| {
        let statistics = SizedOut::new(statistics, "statistics")?;
        statistics.write(objects::device(device)?.memory_statistics().into());
        Ok(())
    })
}

/// Gives memory that no allocation uses back to the driver.
///
/// @param device    a kDLVulkan device.
/// @param released  gets the bytes given back; may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_trim(device: DLDevice, released: *mut u64) -> DlhalStatus {
    boundary(|| {
        let released = Out::optional(released, "released")?;
        let bytes = objects::device(device)?.trim();
        if let Some(released) = released {
            released.write(bytes);
        }
        Ok(())
    })
}

/// Waits until all work of all streams of a device is done.
///
/// @param device  a kDLVulkan device.
/// @return the first failure of that work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_sync(device: DLDevice) -> DlhalStatus {
    boundary(|| objects::device(device)?.sync())
}

/// Runs a workgroup reduction of the kind that faulty drivers compute wrongly.
///
/// @param device  a kDLVulkan device.
/// @return DLHAL_STATUS_UNSUPPORTED when the result is wrong; the message says what to install.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_self_test(device: DLDevice) -> DlhalStatus {
    boundary(|| self_test::run(&*objects::device(device)?))
}

/// The driver's own handles, for use together with another user of the same device.
///
/// @param device   a kDLVulkan device.
/// @param handles  gets three: VkInstance, VkPhysicalDevice, VkDevice. They live until
///                 dlhal_shutdown().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_device_get_native_handles(
    device: DLDevice,
    handles: *mut u64,
) -> DlhalStatus {
    boundary(|| {
        let handles = Out::new(handles.cast::<[u64; 3]>(), "handles")?;
        handles.write(objects::device(device)?.hal().native_handles());
        Ok(())
    })
}

fn existing(device: DLDevice) -> Result<DeviceRef> {
    let name = dltensor::device_ref(device);
    let count = system::device_count()?;
    let exists = usize::try_from(name.device_id).is_ok_and(|id| id < count);
    if name.device_type != DeviceRef::VULKAN {
        return Err(Error::invalid(format!("{name} is not a kDLVulkan device")));
    }
    if !exists {
        return Err(Error::not_found(format!("{name} does not exist: there are {count} devices")));
    }
    Ok(name)
}

fn attribute(device: DLDevice, number: DeviceAttrNumber) -> Result<Option<Attribute>> {
    let attr = DeviceAttr::from_number(number).ok_or_else(|| {
        Error::invalid(format!("attr {number} is no DlhalDeviceAttr; see the header's list"))
    })?;
    if attr == DeviceAttr::Exist {
        return match existing(device) {
            Ok(_) => Ok(Some(Attribute::Bool(true))),
            Err(error) if error.status() == DlhalStatus::NotFound => {
                Ok(Some(Attribute::Bool(false)))
            }
            Err(error) => Err(error),
        };
    }
    Ok(objects::device(device)?.attribute(attr))
}

fn target_property(device: DLDevice, name: &str) -> Result<Attribute> {
    objects::device(device)?
        .target_property(name)
        .ok_or_else(|| Error::not_found(format!("`{name}` is no property of TVM's Vulkan target")))
}
