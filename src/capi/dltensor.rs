//! `DLTensor` from C, as the runtime takes it.

use std::ffi::c_void;

use dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLTensor};

use super::args;
use crate::module::DataType;
use crate::runtime::tensor::MAX_NDIM;
use crate::runtime::{DeviceRef, TensorView};
use crate::{Error, Result};

/// A tensor to read from or write to.
#[inline(always)] // as `TensorView::new`
pub(super) fn view<'a>(tensor: *const DLTensor, name: &str) -> Result<TensorView<'a>> {
    checked(tensor, name, true)
}

/// A tensor that does not exist yet: its data pointer and offset are not looked at.
pub(super) fn prototype<'a>(tensor: *const DLTensor, name: &str) -> Result<TensorView<'a>> {
    checked(tensor, name, false)
}

/// A compact tensor that does not exist yet, of a shape and type given apart.
pub(super) fn compact<'a>(
    device: DLDevice,
    ndim: i32,
    shape: *const i64,
    dtype: DLDataType,
) -> Result<TensorView<'a>> {
    let shape = args::slice(shape, rank(ndim)?, "shape")?;
    TensorView::new(device_ref(device), 0, 0, shape, None, self::dtype(dtype))
}

/// The shape of `nbytes` bytes.
pub(super) fn byte_shape(nbytes: usize) -> Result<[i64; 1]> {
    i64::try_from(nbytes)
        .map(|nbytes| [nbytes])
        .map_err(|_| Error::invalid(format!("nbytes {nbytes} is over {}", i64::MAX)))
}

/// Bytes at an address.
pub(super) fn bytes(
    device: DLDevice,
    data: *const c_void,
    offset: usize,
    shape: &[i64; 1],
) -> Result<TensorView<'_>> {
    let byte = DataType::new(DataType::UINT, 8);
    let (data, offset) = (data.addr() as u64, offset as u64);
    let view = TensorView::new(device_ref(device), data, offset, shape, None, byte)?;
    view.require_data()?;
    Ok(view)
}

/// An address for C.
pub(super) fn pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

/// A device for C.
pub(super) fn to_dl_device(device: DeviceRef) -> DLDevice {
    DLDevice { device_type: DLDeviceType(device.device_type as u32), device_id: device.device_id }
}

/// An element type for C.
pub(super) fn to_dl_dtype(dtype: DataType) -> DLDataType {
    DLDataType { code: DLDataTypeCode(dtype.code), bits: dtype.bits, lanes: dtype.lanes }
}

/// A device by value.
pub(super) fn device_ref(device: DLDevice) -> DeviceRef {
    DeviceRef { device_type: device.device_type.0 as i32, device_id: device.device_id }
}

/// An element type by value.
pub(super) fn dtype(dtype: DLDataType) -> DataType {
    DataType { code: dtype.code.0, bits: dtype.bits, lanes: dtype.lanes }
}

fn rank(ndim: i32) -> Result<usize> {
    usize::try_from(ndim)
        .ok()
        .filter(|&ndim| ndim <= MAX_NDIM)
        .ok_or_else(|| Error::invalid(format!("ndim {ndim} is not in 0..={MAX_NDIM}")))
}

#[inline(always)]
fn checked<'a>(tensor: *const DLTensor, name: &str, with_data: bool) -> Result<TensorView<'a>> {
    let tensor = args::reference(tensor, name)?;
    described(tensor, with_data).map_err(|error| error.within(name))
}

#[inline(always)]
fn described<'a>(tensor: &DLTensor, with_data: bool) -> Result<TensorView<'a>> {
    let ndim = rank(tensor.ndim)?;
    let shape = args::slice(tensor.shape.cast_const(), ndim, "shape")?;
    let strides = match tensor.strides.is_null() {
        true => None,
        false => Some(args::slice(tensor.strides.cast_const(), ndim, "strides")?),
    };
    let (data, byte_offset) =
        if with_data { (tensor.data.addr() as u64, tensor.byte_offset) } else { (0, 0) };
    let (device, dtype) = (device_ref(tensor.device), dtype(tensor.dtype));
    let view = TensorView::new(device, data, byte_offset, shape, strides, dtype)?;
    if with_data {
        view.require_data()?;
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    fn float32(shape: &mut [i64]) -> DLTensor {
        DLTensor {
            data: ptr::without_provenance_mut(0x1000),
            device: DLDevice { device_type: DLDeviceType::VULKAN, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: DLDataType { code: DLDataTypeCode::FLOAT, bits: 32, lanes: 1 },
            shape: shape.as_mut_ptr(),
            strides: ptr::null_mut(),
            byte_offset: 60,
        }
    }

    fn message(tensor: &DLTensor) -> String {
        view(tensor, "from").err().map(|error| error.message().to_owned()).unwrap_or_default()
    }

    #[test]
    fn null_strides_are_compact_and_the_offset_is_kept() {
        let mut shape = [2, 3];
        let tensor = float32(&mut shape);
        let view = view(&raw const tensor, "from").unwrap();
        assert_eq!((view.address(), view.nbytes(), view.strides), (0x1000 + 60, 24, None));
    }

    #[test]
    fn rank_zero_needs_no_shape() {
        let tensor = DLTensor { shape: ptr::null_mut(), ..float32(&mut []) };
        assert_eq!(view(&raw const tensor, "from").unwrap().nbytes(), 4);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_argument_and_field() {
        assert!(view(ptr::null(), "from").unwrap_err().message().contains("from is null"));
        let mut shape = [2, 3];
        let tensor = float32(&mut shape);
        assert!(message(&DLTensor { ndim: -1, ..tensor }).contains("from: ndim -1"));
        assert!(message(&DLTensor { ndim: 65, ..tensor }).contains("from: ndim 65"));
        let without_shape = DLTensor { shape: ptr::null_mut(), ..tensor };
        assert!(message(&without_shape).contains("from: shape is null"));
        let odd = tensor.shape.wrapping_byte_add(1);
        assert!(message(&DLTensor { shape: odd, ..tensor }).contains("from: shape is 0x"));
        assert!(message(&DLTensor { strides: odd, ..tensor }).contains("from: strides is 0x"));
        let without_data = DLTensor { data: ptr::null_mut(), ..tensor };
        assert!(message(&without_data).contains("from: data is null"));
    }

    #[test]
    fn a_prototype_needs_no_data() {
        let mut shape = [5];
        let tensor =
            DLTensor { data: ptr::null_mut(), byte_offset: u64::MAX, ..float32(&mut shape) };
        assert_eq!(prototype(&raw const tensor, "prototype").unwrap().nbytes(), 20);
    }
}
