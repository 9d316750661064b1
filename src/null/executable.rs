//! Executables: what the closure of a dispatch is told.

use std::any::Any;

use super::{Buffer, Range};
use crate::Result;
use crate::hal::{self, BindingDesc};

/// An executable. Its shader is kept, not run.
pub struct Executable {
    pub(super) name: String,
    pub(super) spirv: Vec<u32>,
    pub(super) bindings: Vec<BindingDesc>,
    pub(super) push_constant_bytes: u32,
}

impl Executable {
    /// The shader that it was created with.
    pub fn spirv(&self) -> &[u32] {
        &self.spirv
    }
}

impl hal::Executable for Executable {
    fn name(&self) -> &str {
        &self.name
    }

    fn bindings(&self) -> &[BindingDesc] {
        &self.bindings
    }

    fn push_constant_bytes(&self) -> u32 {
        self.push_constant_bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One dispatch, as the kernel closure sees it.
pub struct KernelCall<'a> {
    /// The kernel's name.
    pub name: &'a str,
    /// The push-constant block.
    pub constants: &'a [u8],
    /// Workgroups in x, y, z.
    pub groups: [u32; 3],
    pub(super) bindings: Vec<(&'a Buffer, Range)>,
}

impl KernelCall<'_> {
    /// How many bindings there are.
    pub fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    /// A copy of the bytes bound at `index`.
    pub fn read(&self, index: usize) -> Result<Vec<u8>> {
        let (buffer, range) = self.binding(index)?;
        buffer.read(range.offset..range.offset + range.size)
    }

    /// Overwrites the bytes bound at `index`, from `offset` within the bound range on.
    pub fn write(&self, index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let (buffer, range) = self.binding(index)?;
        hal::validate::range("kernel write", offset, bytes.len() as u64, range.size)?;
        buffer.write(range.offset + offset, bytes)
    }

    fn binding(&self, index: usize) -> Result<&(&Buffer, Range)> {
        self.bindings.get(index).ok_or_else(|| {
            crate::Error::invalid(format!(
                "kernel {}: binding {index} asked for, {} are bound",
                self.name,
                self.bindings.len()
            ))
        })
    }
}
