//! A kernel ready to launch: where each argument goes, and what the device must offer.

use std::sync::Arc;

use super::dtype::DataType;
use super::signature::{LaunchTag, Signature};
use super::spirv::{self, EntryPoint, ScalarType, Shader};
use crate::Result;
use crate::hal::KernelLimits;

/// One kernel of a module.
#[derive(Clone, Debug)]
pub struct Function {
    /// The signature as loaded.
    pub signature: Signature,
    /// Where each argument goes, in the order of `signature.arg_types`.
    pub args: Vec<ArgKind>,
    /// How the scalar arguments reach the kernel.
    pub scalars: ScalarBlock,
    /// The launch tags in order; see [`Function::launch_args`] for the launch arguments.
    pub launch_tags: Vec<LaunchTag>,
    /// Whether and how a grid too long in x can be launched.
    pub grid_fold: Option<GridFold>,
    /// The shader's words. The entry point has the function's name.
    pub spirv: Arc<[u32]>,
    /// What the whole shader declares: version, capabilities, extensions.
    pub shader: Arc<Shader>,
    /// What the entry point uses: local size, bindings, workgroup memory.
    pub entry: EntryPoint,
    /// The shader's flags word as in the file; bit 0: the scalars are in a uniform buffer.
    pub flags: u32,
    /// The source the shader was translated from.
    pub source: Option<Arc<str>>,
}

/// Where an argument goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// A storage buffer at set 0.
    Buffer {
        /// Its binding.
        binding: u32,
        /// Whether the kernel may write it.
        written: bool,
    },
    /// A number in the scalar block.
    Scalar {
        /// The argument's type as the caller passes it.
        dtype: DataType,
        /// Bytes from the block's start.
        offset: u32,
        /// Bytes that the kernel reads there.
        size: u32,
        /// The type that the kernel reads. Integers may be wider than `dtype`; for WebGPU kernels
        /// also narrower, and the launcher must then refuse a value that does not fit. A truth
        /// value is an integer here, exactly 0 or 1.
        shader: ScalarType,
    },
}

/// How scalar arguments reach a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarBlock {
    /// The kernel has no scalar block.
    None,
    /// As push constants.
    PushConstants {
        /// Bytes of the block.
        size: u32,
    },
    /// In a uniform buffer at set 0.
    Uniform {
        /// Its binding.
        binding: u32,
        /// Bytes of the block.
        size: u32,
    },
}

impl ScalarBlock {
    /// Bytes of push constants; 0 where the scalars travel otherwise.
    pub fn push_constants(self) -> u32 {
        match self {
            Self::PushConstants { size } => size,
            Self::None | Self::Uniform { .. } => 0,
        }
    }

    /// Bytes of the block; 0 where there is none.
    pub fn size(self) -> u32 {
        match self {
            Self::None => 0,
            Self::PushConstants { size } | Self::Uniform { size, .. } => size,
        }
    }
}

/// How a kernel lets a grid too long in x be launched as `(⌈x/k⌉, y, k)`.
///
/// It takes `blockIdx.z · gridDim.x + blockIdx.x` for its index in x, and a workgroup beyond the
/// grid's true extent returns at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridFold {
    /// As WebGPU kernels: the launcher gives the last index, `x − 1`, in a hidden `u32`.
    HiddenExtent {
        /// Bytes from the scalar block's start.
        offset: u32,
    },
    /// The kernel knows the extent by its arguments. The shader says so by [`GRID_FOLD_PROCESS`].
    OwnExtent,
}

/// The `OpModuleProcessed` of shaders that fold their grid's x into z by themselves.
pub const GRID_FOLD_PROCESS: &str = "dlhal.grid_fold x z";

/// The `OpModuleProcessed` of shaders that ask for signed zeros, infinities and NaN to be kept, and
/// run on devices that do not promise it, too.
pub const OPTIONAL_NAN_PRESERVE: &str = "dlhal.optional SignedZeroInfNanPreserve";

impl Function {
    /// The function's name.
    pub fn name(&self) -> &str {
        &self.signature.name
    }

    /// Invocations of a workgroup on each axis.
    pub fn local_size(&self) -> [u32; 3] {
        self.entry.local_size
    }

    /// The tags that take a launch argument, in order: the arguments that follow the function's.
    pub fn launch_args(&self) -> impl Iterator<Item = &LaunchTag> {
        self.launch_tags.iter().filter(|tag| tag.takes_argument())
    }

    /// The buffer arguments: argument index, binding, written.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, u32, bool)> + '_ {
        self.args.iter().enumerate().filter_map(|(index, arg)| match *arg {
            ArgKind::Buffer { binding, written } => Some((index, binding, written)),
            ArgKind::Scalar { .. } => None,
        })
    }

    /// The same kernel with its push constants, if it has any, in a uniform buffer instead.
    ///
    /// Every device of Vulkan takes 128 bytes of push constants and 16 KiB of uniform buffer, so
    /// this lets a kernel of many scalars run where its push constants are over the limit. Refused
    /// where a scalar has fewer than 32 bits.
    pub fn with_uniform_scalars(&self) -> Result<Self> {
        super::bind::with_uniform_scalars(self)
    }

    /// The same kernel without what it can do without and `limits` does not have; `None` where
    /// nothing is to be left out.
    pub fn without_optional(&self, limits: &KernelLimits) -> Result<Option<Self>> {
        let asks = self.shader.capabilities.contains(&spirv::NAN_PRESERVE)
            && self.shader.processes.iter().any(|process| process == OPTIONAL_NAN_PRESERVE);
        if !asks || limits.spirv_capabilities.contains(&spirv::NAN_PRESERVE) {
            return Ok(None);
        }
        super::bind::with_words(self, spirv::without_nan_preserve(&self.spirv)?, self.flags)
            .map(Some)
    }

    /// Whether the kernel takes a size of dynamic workgroup memory at launch.
    pub fn takes_dynamic_shared_memory(&self) -> bool {
        self.launch_tags.contains(&LaunchTag::DynSharedMemory)
    }

    /// Bytes of workgroup memory that the shader declares.
    pub fn workgroup_bytes(&self) -> u64 {
        self.entry.workgroup_bytes
    }
}
