//! What a SPIR-V module says about itself: entry points, bindings, scalar layout, needs.
//!
//! The reader walks the whole module before it believes any of it, and no input makes it panic.

mod float_controls;
mod layout;
mod module;
mod reflect;
mod uniform;
mod usage;
mod verify;
mod words;

use std::fmt;

pub use float_controls::{NAN_PRESERVE, without_nan_preserve};
pub use reflect::read;
pub use uniform::push_constants_to_uniform;
pub(crate) use words::native_order;
pub use words::{from_bytes, is_spirv, rename_entry_point};

/// What one SPIR-V module holds, as far as launching its kernels needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shader {
    /// The SPIR-V version, major and minor.
    pub version: (u8, u8),
    /// The capabilities it declares, by number. [`capability_name`] names one.
    pub capabilities: Vec<u32>,
    /// The SPIR-V extensions it declares.
    pub extensions: Vec<String>,
    /// How the module was made, as its makers say (`OpModuleProcessed`).
    pub processes: Vec<String>,
    /// Its compute entry points in order.
    pub entry_points: Vec<EntryPoint>,
}

/// One compute entry point and what it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// Its name.
    pub name: String,
    /// Invocations of one workgroup on each axis, specialization constants at their defaults.
    pub local_size: [u32; 3],
    /// The resources it uses, by set and binding; declared ones too where it is the only entry
    /// point.
    pub bindings: Vec<Binding>,
    /// The push-constant block it uses.
    pub push_constants: Option<Block>,
    /// Bytes of workgroup memory it uses.
    pub workgroup_bytes: u64,
    /// The subgroup size that an execution mode demands.
    pub subgroup_size: Option<u32>,
}

/// A resource at a set and binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Descriptor set.
    pub set: u32,
    /// Binding in the set.
    pub binding: u32,
    /// What is bound there.
    pub kind: BindingKind,
    /// The debug name of the variable, or else of its block, if the module kept one.
    pub name: Option<String>,
    /// Whether a function that the entry point reaches mentions it.
    pub used: bool,
    /// Whether the entry point may write through it. Never false where it does.
    pub written: bool,
    /// The alignment of its elements in bytes, where the type tells.
    pub element_align: Option<u32>,
}

/// What kind of resource a binding is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// A storage buffer, of either storage class that SPIR-V has for it.
    StorageBuffer,
    /// A uniform buffer and its layout.
    UniformBuffer(Block),
    /// Anything else (an image, a sampler, an array of buffers), described.
    Other(String),
}

/// The layout of a push-constant or uniform block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Bytes from the block's start to the end of its last member.
    pub size: u32,
    /// Its members, nested structures taken apart, in the order of declaration.
    pub members: Vec<Member>,
}

/// One member of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Bytes from the block's start.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// The scalar's type, or a description of what is no scalar.
    pub ty: MemberType,
}

/// What a block's member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberType {
    /// A number that a scalar argument can fill.
    Scalar(ScalarType),
    /// Something that no scalar argument can fill: a vector, an array.
    Other(String),
}

/// A number in a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarType {
    /// How its bits are read.
    pub kind: ScalarKind,
    /// How many there are: 8, 16, 32 or 64.
    pub bits: u32,
}

/// How a shader reads a number's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// Signed integer.
    Int,
    /// Unsigned integer.
    Uint,
    /// IEEE floating point.
    Float,
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ScalarKind::Int => "int",
            ScalarKind::Uint => "uint",
            ScalarKind::Float => "float",
        };
        write!(f, "{kind}{}", self.bits)
    }
}

/// The specification's name of a capability, or its number where the name is not known.
pub fn capability_name(capability: u32) -> String {
    match ::spirv::Capability::from_u32(capability) {
        Some(known) => format!("{known:?}"),
        None => format!("capability {capability}"),
    }
}
