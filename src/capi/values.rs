//! `DlhalValue` to and from the runtime's values.

use dlpark::ffi::DLTensor;

use super::dltensor;
use super::types::{
    DLHAL_VALUE_BOOL, DLHAL_VALUE_FLOAT, DLHAL_VALUE_FLOAT16, DLHAL_VALUE_HANDLE, DLHAL_VALUE_INT,
    DLHAL_VALUE_NONE, DLHAL_VALUE_TENSOR, DLHAL_VALUE_UINT, DlhalValue, DlhalValuePayload,
};
use crate::runtime::{Attribute, Device, DeviceRef, Value};
use crate::{Error, Result};

/// An argument of a launch on `device`.
#[inline(always)]
pub(super) fn from_c(value: &DlhalValue, device: &Device) -> Result<Value> {
    if value.reserved != 0 {
        return Err(Error::invalid(format!("reserved is {:#x}; set it to 0", value.reserved)));
    }
    // SAFETY: every member of the union is 8 bytes for which any bits are legal.
    let bits = unsafe { value.value.as_uint };
    match value.r#type {
        DLHAL_VALUE_HANDLE => Ok(Value::Address(bits)),
        DLHAL_VALUE_INT => Ok(Value::Int(bits as i64)),
        DLHAL_VALUE_TENSOR => address_of_tensor(bits, device).map(Value::Address),
        r#type => number_from_c(r#type, bits),
    }
}

/// An answer as a number; a text is none.
pub(super) fn to_c(answer: Option<&Attribute>) -> DlhalValue {
    let (r#type, as_int) = match answer {
        Some(&Attribute::Bool(truth)) => (DLHAL_VALUE_BOOL, i64::from(truth)),
        Some(&Attribute::Int(number)) => (DLHAL_VALUE_INT, number),
        Some(Attribute::Text(_)) | None => (DLHAL_VALUE_NONE, 0),
    };
    DlhalValue { r#type, reserved: 0, value: DlhalValuePayload { as_int } }
}

/// An answer as text; an unknown one is empty.
pub(super) fn to_text(answer: Option<Attribute>) -> String {
    match answer {
        Some(Attribute::Bool(truth)) => truth.to_string(),
        Some(Attribute::Int(number)) => number.to_string(),
        Some(Attribute::Text(text)) => text,
        None => String::new(),
    }
}

fn address_of_tensor(address_of_struct: u64, device: &Device) -> Result<u64> {
    let tensor = std::ptr::with_exposed_provenance::<DLTensor>(address_of_struct as usize);
    let view = dltensor::view(tensor, "the tensor")?;
    let wanted = DeviceRef::vulkan(device.id());
    if view.device != wanted {
        return Err(Error::invalid(format!(
            "the tensor is on {}, the launch on {wanted}",
            view.device
        )));
    }
    Ok(view.address())
}

fn number_from_c(r#type: i32, bits: u64) -> Result<Value> {
    match r#type {
        DLHAL_VALUE_BOOL => match bits {
            0 | 1 => Ok(Value::Bool(bits == 1)),
            _ => Err(Error::invalid(format!("as_int is {bits}; a truth value is 0 or 1"))),
        },
        DLHAL_VALUE_UINT => Ok(Value::Uint(bits)),
        DLHAL_VALUE_FLOAT => Ok(Value::Float(f64::from_bits(bits))),
        DLHAL_VALUE_FLOAT16 => u16::try_from(bits)
            .map(Value::Float16)
            .map_err(|_| Error::invalid(format!("as_uint is {bits:#x}; a half has 16 bits"))),
        other => Err(Error::invalid(format!(
            "type {other} is no type of an argument: {DLHAL_VALUE_BOOL} (DLHAL_VALUE_BOOL) to \
             {DLHAL_VALUE_TENSOR} (DLHAL_VALUE_TENSOR) are"
        ))),
    }
}
