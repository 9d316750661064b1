//! Tensors of ours in DLPack's structs: the receiver's deleter gives up a share of the allocation.

use std::ffi::c_void;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};

use super::boundary::callback;
use super::dltensor;
use crate::hal::MemoryKind;
use crate::runtime::ownership::Share;
use crate::runtime::{TensorView, system};
use crate::{Error, Result};

/// The version that exported tensors are of.
const VERSION: DLPackVersion = DLPackVersion {
    major: dlpark::ffi::DLPACK_MAJOR_VERSION,
    minor: dlpark::ffi::DLPACK_MINOR_VERSION,
};

/// What DLPack says that data is aligned to.
const ALIGNMENT: u64 = 256;

/// One of DLPack's two structs.
pub(super) trait ManagedStruct: Sized {
    /// The struct around a tensor, with the deleter that frees the [`Exported`] at `context`.
    fn around(tensor: DLTensor, flags: DlpackFlags, context: *mut c_void) -> Self;
}

/// Allocates a compact tensor.
pub(super) fn allocate<M: ManagedStruct>(prototype: &TensorView<'_>) -> Result<*mut M> {
    let device = system::device(prototype.device)?;
    let address = device.allocate(prototype.nbytes(), ALIGNMENT, MemoryKind::Device)?;
    let share = Share::from_allocation(&device, address);
    let view = prototype.compact_at(address);
    Ok(hand_out(&view, DlpackFlags::empty(), share))
}

/// Hands a view of an allocation out.
pub(super) fn share(view: &TensorView<'_>, flags: u64) -> Result<*mut DLManagedTensorVersioned> {
    let asked =
        DlpackFlags::from_bits(flags).filter(|flags| DlpackFlags::READ_ONLY.contains(*flags));
    let asked = asked.ok_or_else(|| {
        Error::invalid(format!(
            "flags {flags:#x}: only DLPACK_FLAG_BITMASK_READ_ONLY ({:#x}) can be asked for",
            DlpackFlags::READ_ONLY.bits()
        ))
    })?;
    let (share, kept) = share_of(view)?;
    Ok(hand_out(view, asked | kept, share))
}

/// Hands a view of an allocation out in the struct that has no flags.
pub(super) fn share_legacy(view: &TensorView<'_>) -> Result<*mut DLManagedTensor> {
    let (share, kept) = share_of(view)?;
    if kept.contains(DlpackFlags::READ_ONLY) {
        return Err(Error::precondition(
            "the tensor was imported read-only, which DLPack's struct before 1.0 cannot say; \
             export the versioned one",
        ));
    }
    Ok(hand_out(view, kept, share))
}

/// The tensor with what it points to. The struct comes first, so both have one address.
#[repr(C)]
struct Exported<M> {
    managed: M,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    share: Share,
}

fn share_of(view: &TensorView<'_>) -> Result<(Share, DlpackFlags)> {
    let device = system::device(view.device)?;
    let (share, read_only) = Share::of_range(&device, view)?;
    let kept = if read_only { DlpackFlags::READ_ONLY } else { DlpackFlags::empty() };
    Ok((share, kept))
}

fn hand_out<M: ManagedStruct>(view: &TensorView<'_>, flags: DlpackFlags, share: Share) -> *mut M {
    let shape: Box<[i64]> = view.shape.into();
    let strides = view.strides.map_or_else(|| compact_strides(view.shape), Into::into);
    let tensor = DLTensor {
        data: dltensor::pointer(view.data),
        device: dltensor::to_dl_device(view.device),
        ndim: view.shape.len() as i32,
        dtype: dltensor::to_dl_dtype(view.dtype),
        shape: shape.as_ptr().cast_mut(),
        strides: strides.as_ptr().cast_mut(),
        byte_offset: view.byte_offset,
    };
    let room = Box::<Exported<M>>::new_uninit();
    let context = Box::into_raw(room).cast::<Exported<M>>();
    let managed = M::around(tensor, flags, context.cast());
    // SAFETY: the room was made for this type just above, and holds nothing yet.
    unsafe { context.write(Exported { managed, shape, strides, share }) };
    context.cast()
}

/// Row-major strides, in elements.
pub(super) fn compact_strides(shape: &[i64]) -> Box<[i64]> {
    let mut strides = vec![1i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides.into()
}

impl ManagedStruct for DLManagedTensorVersioned {
    fn around(dl_tensor: DLTensor, flags: DlpackFlags, manager_ctx: *mut c_void) -> Self {
        Self { version: VERSION, manager_ctx, deleter: Some(delete_versioned), flags, dl_tensor }
    }
}

impl ManagedStruct for DLManagedTensor {
    fn around(dl_tensor: DLTensor, _: DlpackFlags, manager_ctx: *mut c_void) -> Self {
        Self { dl_tensor, manager_ctx, deleter: Some(delete_legacy) }
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    delete(tensor);
}

unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
    delete(tensor);
}

/// Called once by whoever owns the tensor (DLPack's rule), on any thread, at any time.
fn delete<M>(tensor: *mut M) {
    if tensor.is_null() {
        return;
    }
    callback(|| {
        // SAFETY: this deleter is only in tensors that `hand_out` made, whose struct comes first in
        // the `Exported`, and DLPack has it called once.
        drop(unsafe { Box::from_raw(tensor.cast::<Exported<M>>()) });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_strides_are_row_major_and_survive_empty_shapes() {
        assert_eq!(&*compact_strides(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(&*compact_strides(&[]), [0i64; 0]);
        assert_eq!(&*compact_strides(&[3, 0, 2]), [2, 2, 1]);
    }
}
