//! Element types: DLPack's code, bits and lanes, and the names TVM gives them.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// An element type, laid out as DLPack's `DLDataType`.
///
/// Printing and parsing use TVM's names: `float32`, `int8x4`, `handle`, `bool`, `bfloat16`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataType {
    /// DLPack's type code (`kDLInt` is 0, `kDLFloat` is 2 and so on).
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of a vector; 1 for a scalar.
    pub lanes: u16,
}

/// The codes that have a plain name followed by the bits.
const SIZED: [(u8, &str); 6] = [
    (DataType::INT, "int"),
    (DataType::UINT, "uint"),
    (DataType::FLOAT, "float"),
    (DataType::HANDLE, "handle"),
    (DataType::BFLOAT, "bfloat"),
    (DataType::COMPLEX, "complex"),
];

/// The codes whose name says the width.
const NAMED: [(u8, u8, &str); 11] = [
    (7, 8, "float8_e3m4"),
    (8, 8, "float8_e4m3"),
    (9, 8, "float8_e4m3b11fnuz"),
    (10, 8, "float8_e4m3fn"),
    (11, 8, "float8_e4m3fnuz"),
    (12, 8, "float8_e5m2"),
    (13, 8, "float8_e5m2fnuz"),
    (14, 8, "float8_e8m0fnu"),
    (15, 6, "float6_e2m3fn"),
    (16, 6, "float6_e3m2fn"),
    (17, 4, "float4_e2m1fn"),
];

impl DataType {
    /// `kDLInt`.
    pub const INT: u8 = 0;
    /// `kDLUInt`.
    pub const UINT: u8 = 1;
    /// `kDLFloat`.
    pub const FLOAT: u8 = 2;
    /// `kDLOpaqueHandle`: a buffer argument.
    pub const HANDLE: u8 = 3;
    /// `kDLBfloat`.
    pub const BFLOAT: u8 = 4;
    /// `kDLComplex`.
    pub const COMPLEX: u8 = 5;
    /// `kDLBool`.
    pub const BOOL: u8 = 6;

    /// A scalar type of `code` and `bits`.
    pub const fn new(code: u8, bits: u8) -> Self {
        Self { code, bits, lanes: 1 }
    }

    /// The type of a buffer argument.
    pub const fn handle() -> Self {
        Self::new(Self::HANDLE, 64)
    }

    /// Whether this is a buffer argument's type.
    pub const fn is_handle(self) -> bool {
        self.code == Self::HANDLE
    }

    /// Whether this is a truth value: `kDLBool`, or the one-bit unsigned integer of older TVM.
    pub const fn is_bool(self) -> bool {
        (self.code == Self::BOOL && self.bits == 8) || (self.code == Self::UINT && self.bits == 1)
    }

    /// Whether this is a signed or unsigned integer that is not a truth value.
    pub const fn is_integer(self) -> bool {
        (self.code == Self::INT || self.code == Self::UINT) && !self.is_bool()
    }

    /// Whether this is a small float that shaders have no type for, and carry as an integer.
    pub fn is_opaque_float(self) -> bool {
        self.code == Self::BFLOAT || NAMED.iter().any(|n| n.0 == self.code && n.1 == self.bits)
    }

    /// Whether this is an IEEE floating-point number.
    pub const fn is_float(self) -> bool {
        self.code == Self::FLOAT
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, bits, lanes } = *self;
        if code == Self::HANDLE && bits == 0 && lanes == 0 {
            return f.write_str("void");
        }
        if code == Self::HANDLE && bits == 64 {
            f.write_str("handle")?;
        } else if self.is_bool() {
            f.write_str("bool")?;
        } else if let Some((_, _, name)) = NAMED.iter().find(|n| n.0 == code && n.1 == bits) {
            f.write_str(name)?;
        } else if let Some((_, name)) = SIZED.iter().find(|s| s.0 == code) {
            write!(f, "{name}{bits}")?;
        } else {
            write!(f, "code{code}_{bits}")?;
        }
        if lanes == 1 { Ok(()) } else { write!(f, "x{lanes}") }
    }
}

impl FromStr for DataType {
    type Err = Error;

    /// Reads a TVM type name. `bool` gives the one-bit unsigned integer, as every release with a
    /// file form wrote it.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::invalid(format!("`{text}` is not a type name such as `float32`"));
        if text == "void" {
            return Ok(Self { code: Self::HANDLE, bits: 0, lanes: 0 });
        }
        let named = NAMED.iter().map(|&(code, bits, name)| (code, bits, name)).chain([
            (Self::UINT, 1, "bool"),
            (Self::HANDLE, 64, "handle"),
            (Self::INT, 32, "int"),
            (Self::UINT, 32, "uint"),
            (Self::FLOAT, 32, "float"),
        ]);
        for (code, bits, name) in named {
            match text.strip_prefix(name) {
                Some("") => return Ok(Self::new(code, bits)),
                Some(rest) if rest.starts_with('x') => {
                    let lanes = number(&rest[1..]).ok_or_else(unknown)?;
                    return Ok(Self { code, bits, lanes });
                }
                _ => {}
            }
        }
        for (code, name) in SIZED {
            let Some(rest) = text.strip_prefix(name) else { continue };
            let (bits, lanes) = rest.split_once('x').unwrap_or((rest, "1"));
            let bits = u8::try_from(number(bits).ok_or_else(unknown)?).map_err(|_| unknown())?;
            return Ok(Self { code, bits, lanes: number(lanes).ok_or_else(unknown)? });
        }
        Err(unknown())
    }
}

/// A decimal number in its only spelling: digits alone, no leading zero.
fn number(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_the_type_that_prints_it() {
        for name in [
            "float32",
            "float16x4",
            "int8x4",
            "int64",
            "uint32",
            "bool",
            "boolx4",
            "handle",
            "bfloat16",
            "complex64",
            "void",
            "float8_e4m3fn",
            "float4_e2m1fnx2",
            "uint1x0",
        ] {
            let parsed: DataType = name.parse().unwrap();
            let printed = if name == "uint1x0" { "boolx0" } else { name };
            assert_eq!(parsed.to_string(), printed);
        }
        assert_eq!("int".parse::<DataType>().unwrap(), DataType::new(DataType::INT, 32));
    }

    #[test]
    fn what_is_no_type_name_is_refused_with_the_text() {
        for name in ["", "floaty", "int-8", "int+8", "int008", "int8x", "int8x70000", "float999"] {
            let error = name.parse::<DataType>().unwrap_err();
            assert!(error.message().contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn both_spellings_of_a_truth_value_count_as_one() {
        assert!(DataType::new(DataType::BOOL, 8).is_bool());
        assert!(DataType::new(DataType::UINT, 1).is_bool());
        assert_eq!(DataType::new(DataType::BOOL, 8).to_string(), "bool");
        assert!(!DataType::new(DataType::UINT, 8).is_bool());
    }
}
