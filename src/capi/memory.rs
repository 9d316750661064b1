//! Memory of devices, and copies.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use dlpark::ffi::{DLDataType, DLDevice, DLTensor};

use super::args::{self, Out, SizedOut};
use super::boundary::boundary;
use super::dltensor;
use super::objects::{self, BorrowedStream};
use super::types::{DlhalAddressInfo, DlhalStream};
use crate::hal::MemoryKind;
use crate::runtime::copy::{self, Side};
use crate::runtime::system::{self, Borrowed};
use crate::runtime::{Device, DeviceRef, TensorView, workspace};
use crate::{DlhalStatus, Error, Result};

/// Allocates memory of a device.
///
/// The pointer is an address of the device, not of the host: the host may add offsets to it and
/// must not follow it. It is what DLTensor::data holds. Any address inside a live allocation is
/// good wherever an address is asked for.
///
/// @param device     a kDLVulkan device.
/// @param nbytes     bytes; 0 is legal, and gives an address that can be freed.
/// @param alignment  a power of two that the address is to be a multiple of; 0 for any.
/// @param type_hint  what the memory will hold; it changes nothing at present.
/// @param ptr        gets the address. Free it with dlhal_free_data_space().
/// @return DLHAL_STATUS_OUT_OF_MEMORY after cached memory was given back and was not enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_alloc_data_space(
    device: DLDevice,
    nbytes: usize,
    alignment: usize,
    type_hint: DLDataType,
    ptr: *mut *mut c_void,
) -> DlhalStatus {
    boundary(|| {
        let ptr = Out::new(ptr, "ptr")?;
        let _ = type_hint;
        let (size, alignment) = (nbytes as u64, alignment.max(1) as u64);
        let device = objects::device(device)?;
        let address = device.allocate(size, alignment, MemoryKind::Device)?;
        ptr.write(dltensor::pointer(address));
        Ok(())
    })
}

/// Allocates memory for a compact tensor in a memory scope.
///
/// @param device     a kDLVulkan device.
/// @param ndim       dimensions; 0 is one element.
/// @param shape      `ndim` extents; may be null when `ndim` is 0.
/// @param dtype      the element type.
/// @param mem_scope  null, "" or "global" for the device's memory; "host" for pinned memory of the
///                   host that the device reaches, see dlhal_get_host_pointer().
/// @param ptr        gets the address. Free it with dlhal_free_data_space().
/// @return as dlhal_alloc_data_space(); DLHAL_STATUS_UNSUPPORTED for another scope.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_alloc_data_space_with_scope(
    device: DLDevice,
    ndim: i32,
    shape: *const i64,
    dtype: DLDataType,
    mem_scope: *const c_char,
    ptr: *mut *mut c_void,
) -> DlhalStatus {
    boundary(|| {
        let ptr = Out::new(ptr, "ptr")?;
        let view = dltensor::compact(device, ndim, shape, dtype)?;
        let kind = memory_kind(args::optional_string(mem_scope, "mem_scope")?)?;
        let address = objects::device(device)?.allocate(view.nbytes(), ALIGNMENT, kind)?;
        ptr.write(dltensor::pointer(address));
        Ok(())
    })
}

/// Frees an allocation, without waiting: the device finishes what was started with it.
///
/// @param device  the device that it was allocated on.
/// @param ptr     what an allocation gave; null is legal.
/// @return DLHAL_STATUS_NOT_FOUND for an address that is not the start of a live allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_free_data_space(device: DLDevice, ptr: *mut c_void) -> DlhalStatus {
    boundary(|| match objects::device_to_free_on(device)? {
        Some(device) if !ptr.is_null() => device.free(ptr.addr() as u64),
        _ => Ok(()),
    })
}

/// Where the host sees memory of scope "host".
///
/// @param device  the device that it was allocated on.
/// @param ptr     an address in it.
/// @param host    gets the host's pointer to the same byte. It is good until the memory is freed;
///                the caller orders its own reads and writes with the device's by synchronising.
/// @return DLHAL_STATUS_UNSUPPORTED for memory of another scope.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_get_host_pointer(
    device: DLDevice,
    ptr: *mut c_void,
    host: *mut *mut c_void,
) -> DlhalStatus {
    boundary(|| {
        let host = Out::new(host, "host")?;
        host.write(objects::device(device)?.host_pointer(ptr.addr() as u64)?.cast());
        Ok(())
    })
}

/// What lies behind an address: its allocation, and the driver's buffer for interoperation.
///
/// @param device  the device.
/// @param ptr     an address in a live allocation.
/// @param info    gets it; its `struct_size` must be set.
/// @return DLHAL_STATUS_NOT_FOUND for an address in no live allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_resolve_address(
    device: DLDevice,
    ptr: *const c_void,
    info: *mut DlhalAddressInfo,
) -> DlhalStatus {
    boundary(|| {
        let info = SizedOut::new(info, "info")?;
        info.write(objects::device(device)?.resolve(ptr.addr() as u64)?.into());
        Ok(())
    })
}

/// Copies a tensor to another of the same element type and number of elements, in stream order.
///
/// Each may be on the host (kDLCPU) or on a kDLVulkan device, the same or another one. Both start
/// at data + byte_offset; null strides are compact, other strides are followed. Host memory needs
/// no alignment. A copy to the host is complete when the call returns; after a copy from the host,
/// the source may be changed when the call returns. Copies between devices go by way of the host.
///
/// @param from    the source.
/// @param to      the target.
/// @param stream  where the copy stands in order: a stream of the device that takes part, of the
///                source's device when two do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_copy_data_from_to(
    from: *const DLTensor,
    to: *mut DLTensor,
    stream: DlhalStream,
) -> DlhalStatus {
    boundary(|| {
        let from = dltensor::view(from, "from")?;
        let to = dltensor::view(to, "to")?;
        copy_tensor(from, to, stream)
    })
}

/// Copies bytes, in stream order; see dlhal_copy_data_from_to().
///
/// @param from, from_offset, from_device  the source: an address, bytes to add, and whose it is.
/// @param to, to_offset, to_device        the target.
/// @param nbytes                          bytes; 0 is legal and copies nothing.
/// @param stream                          where the copy stands in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_copy_bytes(
    from: *const c_void,
    from_offset: usize,
    from_device: DLDevice,
    to: *mut c_void,
    to_offset: usize,
    to_device: DLDevice,
    nbytes: usize,
    stream: DlhalStream,
) -> DlhalStatus {
    boundary(|| {
        let shape = dltensor::byte_shape(nbytes)?;
        let from = dltensor::bytes(from_device, from, from_offset, &shape)
            .map_err(|error| error.within("from"))?;
        let to = dltensor::bytes(to_device, to, to_offset, &shape)
            .map_err(|error| error.within("to"))?;
        copy_tensor(from, to, stream)
    })
}

/// Allocates from the calling thread's workspace: a stack of memory for intermediate results, which
/// costs nothing once it has grown.
///
/// @param device     a kDLVulkan device.
/// @param nbytes     bytes; 0 is legal.
/// @param type_hint  what the memory will hold; it changes nothing at present.
/// @param ptr        gets the address. Free it with dlhal_free_workspace(), on any thread, in any
///                   order; last in, first out is cheapest.
/// @return as dlhal_alloc_data_space().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_alloc_workspace(
    device: DLDevice,
    nbytes: usize,
    type_hint: DLDataType,
    ptr: *mut *mut c_void,
) -> DlhalStatus {
    boundary(|| {
        let ptr = Out::new(ptr, "ptr")?;
        let _ = type_hint;
        let address = workspace::allocate(&*objects::device(device)?, nbytes as u64)?;
        ptr.write(dltensor::pointer(address));
        Ok(())
    })
}

/// Gives memory back to the workspace that it came from.
///
/// @param device  the device that it was allocated on.
/// @param ptr     what dlhal_alloc_workspace() gave; null is legal.
/// @return DLHAL_STATUS_NOT_FOUND for another address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_free_workspace(device: DLDevice, ptr: *mut c_void) -> DlhalStatus {
    boundary(|| match objects::device_to_free_on(device)? {
        Some(device) if !ptr.is_null() => workspace::free(&device, ptr.addr() as u64),
        _ => Ok(()),
    })
}

/// What DLPack says that data is aligned to.
const ALIGNMENT: u64 = 256;

fn memory_kind(scope: Option<&str>) -> Result<MemoryKind> {
    match scope {
        None | Some("" | "global") => Ok(MemoryKind::Device),
        Some("host") => Ok(MemoryKind::Host),
        Some(other) => Err(Error::unsupported(format!(
            "memory scope `{other}`: there are \"global\" (the device's) and \"host\" (pinned)"
        ))),
    }
}

#[inline(always)] // as `TensorView::new`
fn copy_tensor(from: TensorView<'_>, to: TensorView<'_>, stream: DlhalStream) -> Result<()> {
    let (mut from, mut to) = (Side { view: from, device: None }, Side { view: to, device: None });
    let (source, target) = (from.view.device, to.view.device);
    if source.is_cpu() && target.is_cpu() {
        // SAFETY: the caller vouches for both tensors' memory for the length of the call.
        return unsafe { copy::copy_on_host(&from.view, &to.view) };
    }
    let first = if source.is_cpu() { target } else { source };
    let stream = objects::stream_of(first, stream)
        .or_else(|_| stream_of_the_other(source, target, stream))?;
    let own = stream.device();
    let (source, target) = owners(source, target, Some(own))?;
    (from.device, to.device) = (source.device(own), target.device(own));
    // SAFETY: the caller vouches for the memory of a tensor on the host for the length of the call.
    unsafe { copy::copy(&from, &to, &stream) }
}

/// The stream of a copy if it is not the first device's.
#[cold]
fn stream_of_the_other(
    source: DeviceRef,
    target: DeviceRef,
    stream: DlhalStream,
) -> Result<BorrowedStream> {
    let last = if target.is_cpu() { source } else { target };
    objects::stream_of(last, stream).or_else(|error| {
        // A tensor on a device that does not exist is the better reason.
        owners(source, target, None).and(Err(error))
    })
}

fn owners(
    source: DeviceRef,
    target: DeviceRef,
    own: Option<&Arc<Device>>,
) -> Result<(Owner, Owner)> {
    let source = Owner::of(source, own).map_err(|error| error.within("from"))?;
    let target = Owner::of(target, own).map_err(|error| error.within("to"))?;
    Ok((source, target))
}

/// Whose memory one side of a copy is.
enum Owner {
    Host,
    /// The stream's device, as in most copies: it needs no looking up.
    StreamDevice,
    Device(Borrowed),
}

impl Owner {
    fn of(device: DeviceRef, own: Option<&Arc<Device>>) -> Result<Self> {
        if device.is_cpu() {
            Ok(Self::Host)
        } else if own.is_some_and(|own| device == DeviceRef::vulkan(own.id())) {
            Ok(Self::StreamDevice)
        } else {
            system::borrow_device(device).map(Self::Device)
        }
    }

    fn device<'a>(&'a self, own: &'a Arc<Device>) -> Option<&'a Arc<Device>> {
        match self {
            Self::Host => None,
            Self::StreamDevice => Some(own),
            Self::Device(device) => Some(device),
        }
    }
}
