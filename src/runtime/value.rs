//! Scalar arguments: the caller's value turned into the bytes that the shader reads, refused when
//! that would change it.

use half::f16;

use crate::module::DataType;
use crate::module::spirv::{ScalarKind, ScalarType};
use crate::{Error, Result};

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
// A narrow tag would be stored as a byte and copied as a word, which stalls the processor.
#[repr(u64)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A signed integer of up to 64 bits.
    Int(i64),
    /// An unsigned integer of up to 64 bits.
    Uint(u64),
    /// A floating-point number of 32 or 64 bits.
    Float(f64),
    /// The bits of an IEEE 754 half.
    Float16(u16),
    /// An address in the device's address space.
    Address(u64),
}

impl Value {
    /// The value as a launch extent.
    pub(crate) fn as_extent(self) -> Result<u32> {
        let extent = match self {
            Self::Int(value) => u32::try_from(value).ok(),
            Self::Uint(value) => u32::try_from(value).ok(),
            _ => None,
        };
        extent.ok_or_else(|| {
            Error::invalid(format!("{self} is no extent; pass an integer from 0 to {}", u32::MAX))
        })
    }

    /// Writes the value where the shader reads it, as a little-endian number of `shader`'s type
    /// that fills all of `target`.
    ///
    /// Integers and truth values must be exact; floats are rounded to nearest, and refused where
    /// a finite one would become infinite.
    #[inline]
    pub(crate) fn store(
        self,
        dtype: DataType,
        shader: ScalarType,
        target: &mut [u8],
    ) -> Result<()> {
        let bits = match self.as_common(dtype, shader) {
            Some(bits) => bits,
            None => self.convert(dtype, shader)?,
        };
        let bytes = bits.to_le_bytes();
        match target.len() {
            4 => target.copy_from_slice(&bytes[..4]),
            length => {
                let known = length.min(bytes.len());
                target[..known].copy_from_slice(&bytes[..known]);
                target[known..].fill(0);
            }
        }
        Ok(())
    }

    /// What [`Self::convert`] gives for most arguments: a small number where the shader reads 32
    /// bits or more, and a float of 32 bits.
    #[inline]
    fn as_common(self, dtype: DataType, shader: ScalarType) -> Option<u64> {
        match (self, shader.kind) {
            (Self::Int(value @ 0..=0x7fff_ffff), ScalarKind::Int | ScalarKind::Uint) => {
                (dtype.bits >= 32 && shader.bits >= 32).then_some(value as u64)
            }
            (Self::Float(value), ScalarKind::Float) => {
                let rounded = value as f32;
                (shader.bits == 32 && rounded.is_finite()).then(|| rounded.to_bits().into())
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn convert(self, dtype: DataType, shader: ScalarType) -> Result<u64> {
        match shader.kind {
            ScalarKind::Int | ScalarKind::Uint => self.as_integer(dtype, shader),
            ScalarKind::Float => self.as_float(shader.bits),
        }
    }

    fn as_bool(self) -> Result<bool> {
        match self {
            Self::Bool(value) => Ok(value),
            Self::Int(0) | Self::Uint(0) => Ok(false),
            Self::Int(1) | Self::Uint(1) => Ok(true),
            _ => Err(Error::invalid(format!("{self} is no truth value; pass 0, 1 or a bool"))),
        }
    }

    fn as_integer(self, dtype: DataType, shader: ScalarType) -> Result<u64> {
        if dtype.is_bool() {
            return self.as_bool().map(u64::from);
        }
        let value = match self {
            Self::Bool(value) => i128::from(value),
            Self::Int(value) => i128::from(value),
            Self::Uint(value) => i128::from(value),
            Self::Float(value) if value.fract() == 0.0 && value.abs() <= 2f64.powi(64) => {
                value as i128
            }
            Self::Float(_) | Self::Float16(_) | Self::Address(_) => return Err(self.refused(dtype)),
        };
        // The caller's type says the range; the shader's may be wider, or as wide but of the other
        // sign, which then holds the same bits.
        let fits = |bits: u32, signed: bool| match signed {
            true => value >= -(1i128 << (bits - 1)) && value < 1i128 << (bits - 1),
            false => value >= 0 && value < 1i128 << bits,
        };
        let declared = dtype.code != DataType::INT && dtype.code != DataType::UINT
            || fits(u32::from(dtype.bits), dtype.code == DataType::INT);
        let held = fits(shader.bits, true) || fits(shader.bits, false);
        let narrower = u32::from(dtype.bits) > shader.bits;
        if !declared || !held || (narrower && !fits(shader.bits, shader.kind == ScalarKind::Int)) {
            return Err(self.refused(dtype));
        }
        Ok(value as u64)
    }

    fn as_float(self, width: u32) -> Result<u64> {
        let (value, exact) = match self {
            Self::Float(value) => (value, false),
            Self::Float16(bits) => (f16::from_bits(bits).to_f64(), false),
            Self::Int(value) => (value as f64, true),
            Self::Uint(value) => (value as f64, true),
            Self::Bool(value) => (f64::from(u8::from(value)), true),
            Self::Address(_) => return Err(Error::invalid(format!("{self} is no number"))),
        };
        let (bits, back) = match width {
            16 => {
                let nearest = f16::from_f64(value);
                (u64::from(nearest.to_bits()), nearest.to_f64())
            }
            32 => (u64::from((value as f32).to_bits()), f64::from(value as f32)),
            _ => (value.to_bits(), value),
        };
        let integer_lost = exact && self.as_i128() != Some(back as i128);
        if integer_lost || (value.is_finite() && !back.is_finite()) {
            return Err(Error::invalid(format!(
                "{self} is not representable in {width} bits of floating point; pass a smaller one"
            )));
        }
        Ok(bits)
    }

    fn as_i128(self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(value)),
            Self::Uint(value) => Some(i128::from(value)),
            Self::Bool(value) => Some(i128::from(value)),
            _ => None,
        }
    }

    #[cold]
    fn refused(self, dtype: DataType) -> Error {
        Error::invalid(format!("{self} does not fit {dtype} without a change of its value"))
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Float16(bits) => write!(f, "{:?}", f16::from_bits(*bits)),
            Self::Address(address) => write!(f, "address {address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(value: Value, dtype: &str, shader: ScalarType) -> Result<u64> {
        let mut bytes = [0xFF; 8];
        value.store(dtype.parse().unwrap(), shader, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    const I32: ScalarType = ScalarType { kind: ScalarKind::Int, bits: 32 };
    const U32: ScalarType = ScalarType { kind: ScalarKind::Uint, bits: 32 };
    const I64: ScalarType = ScalarType { kind: ScalarKind::Int, bits: 64 };
    const F16: ScalarType = ScalarType { kind: ScalarKind::Float, bits: 16 };
    const F32: ScalarType = ScalarType { kind: ScalarKind::Float, bits: 32 };
    const F64: ScalarType = ScalarType { kind: ScalarKind::Float, bits: 64 };

    #[test]
    fn integers_keep_their_value_or_are_refused() {
        assert_eq!(stored(Value::Int(-1), "int32", I32).unwrap() as u32, u32::MAX);
        assert_eq!(stored(Value::Int(-2), "int64", I64).unwrap(), -2i64 as u64);
        assert_eq!(stored(Value::Uint(7), "int8", I32).unwrap(), 7);
        for (value, dtype) in [
            (Value::Int(1 << 31), "int32"),
            (Value::Int(-1), "uint32"),
            (Value::Int(128), "int8"),
            (Value::Uint(u64::MAX), "int64"),
            (Value::Float(0.5), "int32"),
            (Value::Address(16), "int64"),
        ] {
            assert!(stored(value, dtype, I64).is_err(), "{value} as {dtype}");
        }
    }

    #[test]
    fn a_wide_integer_in_a_narrow_slot_must_fit_the_slot() {
        assert_eq!(stored(Value::Int(5), "int64", I32).unwrap(), 5);
        assert!(stored(Value::Int(1 << 31), "int64", I32).is_err());
        assert!(stored(Value::Int(-1), "int64", U32).is_err());
    }

    #[test]
    fn a_truth_value_is_exactly_0_or_1() {
        assert_eq!(stored(Value::Bool(true), "bool", I32).unwrap(), 1);
        assert_eq!(stored(Value::Int(0), "bool", U32).unwrap(), 0);
        assert!(stored(Value::Int(2), "bool", U32).is_err());
    }

    #[test]
    fn floats_round_to_nearest_and_do_not_overflow() {
        assert_eq!(stored(Value::Float(0.1), "float32", F32).unwrap() as u32, 0.1f32.to_bits());
        assert_eq!(stored(Value::Float(0.1), "float64", F64).unwrap(), 0.1f64.to_bits());
        assert_eq!(stored(Value::Float(1.0), "float16", F16).unwrap(), 0x3c00);
        assert_eq!(stored(Value::Float(f64::INFINITY), "float32", F32).unwrap(), 0x7f80_0000);
        assert!(stored(Value::Float(1e300), "float32", F32).is_err());
        assert!(stored(Value::Float(70000.0), "float16", F16).is_err());
    }

    #[test]
    fn an_integer_that_a_float_cannot_hold_is_refused() {
        assert_eq!(
            stored(Value::Int(1 << 24), "float32", F32).unwrap() as u32,
            16777216f32.to_bits()
        );
        assert!(stored(Value::Int((1 << 24) + 1), "float32", F32).is_err());
        assert!(stored(Value::Int(i64::MAX), "float64", F64).is_err());
    }
}
