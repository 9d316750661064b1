//! Foreign tensors in DLPack's structs: taken over, used where they lie, given back by their
//! deleter.

use std::any::Any;
use std::ptr::NonNull;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};

use super::args;
use super::dltensor;
use super::export::compact_strides;
use crate::module::DataType;
use crate::runtime::ownership::{Share, import_host_memory};
use crate::runtime::{DeviceRef, TensorView, system};
use crate::{Error, Result};

/// A managed tensor that still is its giver's.
pub(super) struct Managed {
    tensor: *const DLTensor,
    flags: DlpackFlags,
    owner: Owner,
}

/// A managed tensor that is ours.
pub(super) struct Imported {
    view: Described,
    flags: DlpackFlags,
    /// `None` for a tensor without bytes.
    share: Option<Share>,
    /// Where the share does not hold the owner: what to delete after the last use.
    owner: Option<Owner>,
}

impl Managed {
    /// A tensor of DLPack 1.x. One of another major version is deleted at once and refused: that is
    /// all that is known of its layout.
    pub(super) fn versioned(pointer: *mut DLManagedTensorVersioned, name: &str) -> Result<Self> {
        let managed = args::reference(pointer.cast_const(), name)?;
        let owner =
            managed.deleter.map_or(Owner::None, |deleter| Owner::Versioned(deleter, pointer));
        if managed.version.major != dlpark::ffi::DLPACK_MAJOR_VERSION {
            let version = managed.version;
            drop(owner.into_deleting());
            return Err(Error::unsupported(format!(
                "{name} is of DLPack {}.{}, this library knows 1.x; its deleter has been called",
                version.major, version.minor
            )));
        }
        Ok(Self { tensor: &raw const managed.dl_tensor, flags: managed.flags, owner })
    }

    /// A tensor of DLPack before 1.0.
    pub(super) fn legacy(pointer: *mut DLManagedTensor, name: &str) -> Result<Self> {
        let managed = args::reference(pointer.cast_const(), name)?;
        let owner = managed.deleter.map_or(Owner::None, |deleter| Owner::Legacy(deleter, pointer));
        Ok(Self { tensor: &raw const managed.dl_tensor, flags: DlpackFlags::empty(), owner })
    }
}

/// Takes a tensor over for use on `target`. On failure it stays its giver's.
pub(super) fn import(managed: Managed, target: DeviceRef) -> Result<Imported> {
    let Managed { tensor, flags, owner } = managed;
    let view = dltensor::view(tensor, "managed->dl_tensor")?;
    check_representation(&view, flags)?;
    let device = system::device(target)?;
    let read_only = flags.contains(DlpackFlags::READ_ONLY);
    if view.device.device_type == DeviceRef::VULKAN {
        if view.device != target {
            return Err(Error::invalid(format!(
                "the tensor is on {}; import it there, or copy it to {target}",
                view.device
            )));
        }
        let (share, kept_read_only) = match view.nbytes() {
            0 => (None, false),
            _ => Share::of_range(&device, &view).map(|(share, kept)| (Some(share), kept))?,
        };
        let flags = if kept_read_only { flags | DlpackFlags::READ_ONLY } else { flags };
        let view = Described::new(&view, view.data, view.byte_offset);
        return Ok(Imported { view, flags, share, owner: Some(owner) });
    }
    if !view.device.is_cpu() {
        return Err(Error::unsupported(format!(
            "tensors on {} cannot be used on {target}; copy them to the host",
            view.device
        )));
    }
    let on_target = view.on(target);
    let Some((first, size)) = host_range(&view)? else {
        let view = Described::new(&on_target, 0, 0);
        return Ok(Imported { view, flags, share: None, owner: Some(owner) });
    };
    // SAFETY: the giver keeps the memory alive until the deleter is called, which `keep` puts off
    // until the allocation's last use; before `keep`, nobody else knows the address.
    let share = unsafe { import_host_memory(&device, first, size, read_only) }?;
    let skipped = view.address() - first.as_ptr().addr() as u64;
    let view = Described::new(&on_target, share.address(), skipped);
    share.keep(Box::new(owner.into_deleting()))?;
    Ok(Imported { view, flags, share: Some(share), owner: None })
}

impl Imported {
    /// The tensor as C sees it; its arrays are this object's.
    pub(super) fn dl_tensor(&self) -> DLTensor {
        let Described { device, data, byte_offset, shape, strides, dtype } = &self.view;
        DLTensor {
            data: dltensor::pointer(*data),
            device: dltensor::to_dl_device(*device),
            ndim: shape.len() as i32,
            dtype: dltensor::to_dl_dtype(*dtype),
            shape: shape.as_ptr().cast_mut(),
            strides: strides.as_ptr().cast_mut(),
            byte_offset: *byte_offset,
        }
    }

    /// Its DLPack flags.
    pub(super) fn flags(&self) -> u64 {
        self.flags.bits()
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        let owner: Box<dyn Any + Send> = Box::new(owner.into_deleting());
        match &self.share {
            Some(share) => share.drop_after_uses(owner),
            None => drop(owner),
        }
    }
}

/// A tensor's description that owns its arrays.
struct Described {
    device: DeviceRef,
    data: u64,
    byte_offset: u64,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    dtype: DataType,
}

impl Described {
    fn new(view: &TensorView<'_>, data: u64, byte_offset: u64) -> Self {
        Self {
            device: view.device,
            data,
            byte_offset,
            shape: view.shape.into(),
            strides: view.strides.map_or_else(|| compact_strides(view.shape), Into::into),
            dtype: view.dtype,
        }
    }
}

/// A giver's struct and its deleter, read while the struct is known to be alive: a giver without
/// one may take the struct away as soon as the import has returned.
enum Owner {
    Versioned(unsafe extern "C" fn(*mut DLManagedTensorVersioned), *mut DLManagedTensorVersioned),
    Legacy(unsafe extern "C" fn(*mut DLManagedTensor), *mut DLManagedTensor),
    None,
}

/// Calls the deleter when it is dropped.
struct Deleting(Owner);

// SAFETY: DLPack's deleters may be called from any thread, and nothing else is done with the
// pointers once the tensor is ours.
unsafe impl Send for Owner {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for Owner {}

impl Owner {
    /// From here on the tensor is deleted when the result is dropped.
    fn into_deleting(self) -> Deleting {
        Deleting(self)
    }
}

impl Drop for Deleting {
    fn drop(&mut self) {
        match self.0 {
            // SAFETY: called once, by its owner, on the struct that it came from.
            Owner::Versioned(deleter, managed) => unsafe { deleter(managed) },
            // SAFETY: as above.
            Owner::Legacy(deleter, managed) => unsafe { deleter(managed) },
            Owner::None => {}
        }
    }
}

/// Refuses what the view's byte counts would be wrong for.
fn check_representation(view: &TensorView<'_>, flags: DlpackFlags) -> Result<()> {
    let padded = flags.contains(DlpackFlags::IS_SUBBYTE_TYPE_PADDED);
    if padded && view.dtype.bits < 8 {
        return Err(Error::unsupported(format!(
            "{} padded to bytes (DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED): pack the elements",
            view.dtype
        )));
    }
    Ok(())
}

/// The first byte of a host tensor and how many bytes its elements span; `None` without any.
fn host_range(view: &TensorView<'_>) -> Result<Option<(NonNull<u8>, u64)>> {
    let (first, end) = view.span();
    if first == end {
        return Ok(None);
    }
    let lane = u64::from(view.dtype.bits / 8).next_power_of_two();
    if !view.address().is_multiple_of(lane) {
        return Err(Error::invalid(format!(
            "data + byte_offset is {:#x}, which is not a multiple of {}'s {lane} bytes",
            view.address(),
            view.dtype
        )));
    }
    // The view has been checked: neither bound leaves the address space.
    let start = view.address().wrapping_add_signed(first);
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(start as usize);
    let pointer = NonNull::new(pointer).ok_or_else(|| Error::invalid("data is null"))?;
    Ok(Some((pointer, end.abs_diff(first))))
}
