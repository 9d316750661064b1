//! Tensors that change hands as DLPack's managed structs: made, handed out, taken over.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use dlpark::ffi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor};

use super::args::Out;
use super::boundary::boundary;
use super::dltensor;
use super::export;
use super::handles;
use super::import::{self, Managed};
use super::last_error;
use super::types::DlhalTensor;
use crate::DlhalStatus;

/// Allocates a compact tensor that owns its memory.
///
/// @param prototype  its device (kDLVulkan), element type and shape; data, strides and byte_offset
///                   are not looked at.
/// @param tensor     gets the tensor, of DLPack 1.3, with strides. Its owner calls the deleter
///                   once, on any thread, also after dlhal_shutdown().
/// @return as dlhal_alloc_data_space().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_tensor_allocate(
    prototype: *const DLTensor,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> DlhalStatus {
    boundary(|| {
        let tensor = Out::new(tensor, "tensor")?;
        tensor.write(export::allocate(&dltensor::prototype(prototype, "prototype")?)?);
        Ok(())
    })
}

/// dlhal_tensor_allocate() with the struct of DLPack before 1.0.
///
/// @param prototype  as for dlhal_tensor_allocate().
/// @param tensor     gets the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_tensor_allocate_legacy(
    prototype: *const DLTensor,
    tensor: *mut *mut DLManagedTensor,
) -> DlhalStatus {
    boundary(|| {
        let tensor = Out::new(tensor, "tensor")?;
        tensor.write(export::allocate(&dltensor::prototype(prototype, "prototype")?)?);
        Ok(())
    })
}

/// dlhal_tensor_allocate() in the form of DLPack's DLPackManagedTensorAllocator, for its exchange
/// API.
///
/// @param prototype  as for dlhal_tensor_allocate().
/// @param out        gets the tensor; null on failure.
/// @param error_ctx  handed to SetError.
/// @param SetError   called once on failure, with the status's name as the kind and the last error
///                   message; may be null.
/// @return 0, or -1 on failure.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "DLPack calls the parameter so")]
pub unsafe extern "C" fn dlhal_dlpack_managed_tensor_allocator(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    SetError: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>,
) -> c_int {
    let status = boundary(|| {
        let out = Out::new(out, "out")?;
        out.write(std::ptr::null_mut());
        out.write(export::allocate(&dltensor::prototype(prototype, "prototype")?)?);
        Ok(())
    });
    if status == DlhalStatus::Ok {
        return 0;
    }
    if let Some(set_error) = SetError {
        // The message is copied, for the callback may call this library and replace it.
        let message = last_error::to_c_string();
        // SAFETY: the caller vouches for the callback with this context; both strings are
        // terminated and outlive the call.
        unsafe { set_error(error_ctx, status.c_name().as_ptr(), message.as_ptr()) };
    }
    -1
}

/// Hands out a view of an allocation as a tensor that shares its ownership: the memory lives until
/// the deleter has been called and every other owner has freed it.
///
/// No stream is synchronised: the receiver uses the tensor through this library, or after a
/// synchronise.
///
/// @param view    a tensor on a kDLVulkan device whose data lies in a live allocation or imported
///                tensor. It is copied, strides and byte_offset included.
/// @param flags   DLPACK_FLAG_BITMASK_READ_ONLY or 0. A read-only import stays read-only.
/// @param tensor  gets the tensor, of DLPack 1.3.
/// @return DLHAL_STATUS_NOT_FOUND for data in no live allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_dlpack_export(
    view: *const DLTensor,
    flags: u64,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> DlhalStatus {
    boundary(|| {
        let tensor = Out::new(tensor, "tensor")?;
        tensor.write(export::share(&dltensor::view(view, "view")?, flags)?);
        Ok(())
    })
}

/// dlhal_dlpack_export() with the struct of DLPack before 1.0, which cannot say read-only.
///
/// @param view    as for dlhal_dlpack_export().
/// @param tensor  gets the tensor.
/// @return DLHAL_STATUS_FAILED_PRECONDITION for a read-only tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_dlpack_export_legacy(
    view: *const DLTensor,
    tensor: *mut *mut DLManagedTensor,
) -> DlhalStatus {
    boundary(|| {
        let tensor = Out::new(tensor, "tensor")?;
        tensor.write(export::share_legacy(&dltensor::view(view, "view")?)?);
        Ok(())
    })
}

/// Takes a tensor over, for use on a device.
///
/// On success the handle owns the tensor: its deleter is called once, after the handle was freed
/// and the last use on the device has passed, on whatever thread notices, under no lock. On failure
/// the caller still owns it, with one exception, DLPack's own rule: of a tensor with another major
/// version than 1 the deleter is called at once and nothing else is read.
///
/// Of a read-only host tensor, writes are refused, and exports are read-only again. A read-only
/// tensor of this library's own memory keeps its flag for its receiver to heed: at its address,
/// a write by the receiver looks like one by the owner.
///
/// @param managed  a tensor of this library's kDLVulkan memory, or of the host (kDLCPU): the
///                 latter is used where it lies, without a copy, on devices that can import host
///                 memory. A deleter of null is not called, and the struct is not read after this
///                 call; the memory is its giver's again once dlhal_device_sync() has returned after
///                 the handle was freed.
/// @param target   the kDLVulkan device to use it on.
/// @param tensor   gets the handle. Free it with dlhal_tensor_free().
/// @return DLHAL_STATUS_UNSUPPORTED where the memory cannot be used without a copy: allocate and
///         copy then; DLHAL_STATUS_NOT_FOUND for a kDLVulkan tensor of another library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_dlpack_import(
    managed: *mut DLManagedTensorVersioned,
    target: DLDevice,
    tensor: *mut DlhalTensor,
) -> DlhalStatus {
    boundary(|| {
        let tensor = Out::new(tensor, "tensor")?;
        let managed = Managed::versioned(managed, "managed")?;
        tensor.write(handles::insert(Arc::new(import::import(
            managed,
            dltensor::device_ref(target),
        )?))?);
        Ok(())
    })
}

/// dlhal_dlpack_import() of the struct of DLPack before 1.0.
///
/// @param managed  as for dlhal_dlpack_import().
/// @param target   the kDLVulkan device to use it on.
/// @param tensor   gets the handle. Free it with dlhal_tensor_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_dlpack_import_legacy(
    managed: *mut DLManagedTensor,
    target: DLDevice,
    tensor: *mut DlhalTensor,
) -> DlhalStatus {
    boundary(|| {
        let tensor = Out::new(tensor, "tensor")?;
        let managed = Managed::legacy(managed, "managed")?;
        tensor.write(handles::insert(Arc::new(import::import(
            managed,
            dltensor::device_ref(target),
        )?))?);
        Ok(())
    })
}

/// An imported tensor as its device sees it, for copies and launches.
///
/// @param tensor  the tensor.
/// @param view    gets it; its shape and strides are the handle's and live as long. byte_offset may
///                differ from the imported one's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_tensor_get_view(
    tensor: DlhalTensor,
    view: *mut DLTensor,
) -> DlhalStatus {
    boundary(|| {
        let view = Out::new(view, "view")?;
        view.write(handles::get(tensor)?.dl_tensor());
        Ok(())
    })
}

/// An imported tensor's DLPack flags; 0 for the struct before 1.0.
///
/// @param tensor  the tensor.
/// @param flags   gets them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_tensor_get_flags(
    tensor: DlhalTensor,
    flags: *mut u64,
) -> DlhalStatus {
    boundary(|| {
        let flags = Out::new(flags, "flags")?;
        flags.write(handles::get(tensor)?.flags());
        Ok(())
    })
}

/// Frees an imported tensor, without waiting; its deleter is called when the device is done with
/// it.
///
/// @param tensor  the tensor; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_tensor_free(tensor: DlhalTensor) -> DlhalStatus {
    boundary(|| handles::remove(tensor).map(drop))
}
