//! Executables: one kernel made ready for one device.

use std::any::Any;

/// What a binding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// Read and written by the kernel; any size up to the device's storage range.
    StorageBuffer,
    /// Read by the kernel; small.
    UniformBuffer,
}

/// A binding of descriptor set 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BindingDesc {
    /// The binding number that the shader declares.
    pub binding: u32,
    /// What it is.
    pub kind: BindingKind,
}

/// What to create. The shader has been checked against the device's limits
/// ([`crate::module`]); a driver trusts it as far as the specification lets it.
#[derive(Clone, Copy, Debug)]
pub struct ExecutableDesc<'a> {
    /// A name for messages and debuggers.
    pub name: &'a str,
    /// The shader.
    pub spirv: &'a [u32],
    /// The entry point to run.
    pub entry_point: &'a str,
    /// The bindings that the entry point uses, by rising number.
    pub bindings: &'a [BindingDesc],
    /// Bytes of the push-constant block; 0 without one.
    pub push_constant_bytes: u32,
    /// A subgroup size to demand, within the device's range; `None` for the driver's choice.
    pub required_subgroup_size: Option<u32>,
}

/// A kernel made ready for a device.
pub trait Executable: Send + Sync + 'static {
    /// The name given at creation.
    fn name(&self) -> &str;
    /// The bindings, in the order in which a dispatch lists its ranges.
    fn bindings(&self) -> &[BindingDesc];
    /// Bytes of push constants that a dispatch brings.
    fn push_constant_bytes(&self) -> u32;
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
