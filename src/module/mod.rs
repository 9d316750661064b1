//! Kernel modules as pure data: file formats, signatures, shaders. Nothing here knows a device.
//!
//! [`Module::load`] and [`Module::from_bytes`] find the format from the content. What comes out is
//! a list of [`Function`]s that say where each argument goes; [`limits::check_function`] tells
//! whether a device can run one.

mod bind;
mod bytes;
mod describe;
pub mod dtype;
pub mod format;
pub mod function;
pub mod limits;
pub mod signature;
pub mod source;
pub mod spirv;
mod tvm_bytes;
mod tvm_file;
mod tvm_meta;
mod webgpu;
mod wgsl;

use std::path::Path;
use std::sync::Arc;

pub use dtype::DataType;
pub use format::{FormatVersion, Kind, Origin};
pub use function::{
    ArgKind, Function, GRID_FOLD_PROCESS, GridFold, OPTIONAL_NAN_PRESERVE, ScalarBlock,
};
pub use limits::{check_dynamic_shared_memory, check_function};
pub use signature::{LaunchTag, Signature};

use crate::{Error, Result};

/// A set of kernels with their signatures, as loaded from a file or made from source.
///
/// It never changes once made, and can be shared between threads.
#[derive(Clone, Debug)]
pub struct Module {
    kind: Kind,
    origin: Origin,
    functions: Vec<Arc<Function>>,
    image: Image,
}

/// What saving needs beyond the functions, so that what was read is written back to the byte.
#[derive(Clone, Debug, Default)]
struct Image {
    /// The format string at the head of the bytes form.
    fmt: Option<String>,
    /// The shaders' order in the file, as indices of functions.
    shader_order: Vec<usize>,
    /// The meta file's text.
    meta: Option<String>,
}

/// A kernel to make a module of.
#[derive(Clone, Debug)]
pub struct KernelSource<'a> {
    /// Its name, argument types and launch tags.
    pub signature: Signature,
    /// The shader's bytes, SPIR-V of either byte order.
    pub code: &'a [u8],
    /// The entry point; `None` for the one of the kernel's name, or the only one.
    pub entry_point: Option<&'a str>,
}

impl Module {
    /// Reads a module from the bytes form of either kind.
    ///
    /// The file form is recognised and refused: its signatures are in the meta file, see
    /// [`Module::from_file_parts`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if tvm_file::is_file_form(bytes) {
            return Err(Error::invalid(
                "this is a module's file form, whose signatures are in the NAME.tvm_meta.json \
                 beside it; load it by its path",
            ));
        }
        if spirv::is_spirv(bytes) {
            return Err(Error::invalid(
                "this is bare SPIR-V, which has no signatures; create the module from SPIR-V and \
                 signatures",
            ));
        }
        if bytes.is_empty() {
            return Err(Error::data_loss("the module has 0 bytes"));
        }
        if tvm_bytes::has_format_string(bytes) {
            tvm_bytes::read(bytes)
        } else {
            webgpu::read(bytes)
        }
    }

    /// Reads a module from the file form and the text of its meta file.
    pub fn from_file_parts(bytes: &[u8], meta: &str) -> Result<Self> {
        tvm_file::read(bytes, meta)
    }

    /// Makes a module of one kernel per signature from SPIR-V words of either byte order.
    ///
    /// A signature whose name is no entry point takes the only compute entry point there is.
    pub fn from_spirv(words: &[u32], signatures: &[Signature]) -> Result<Self> {
        bind::from_spirv(words, signatures)
    }

    /// [`Module::from_spirv`] from bytes.
    pub fn from_spirv_bytes(bytes: &[u8], signatures: &[Signature]) -> Result<Self> {
        bind::from_spirv(&spirv::from_bytes(bytes)?, signatures)
    }

    /// Makes a module of kernels that each have a shader of their own.
    pub fn from_kernels(kernels: &[KernelSource<'_>]) -> Result<Self> {
        bind::from_kernels(kernels)
    }

    /// Makes a module from WGSL: one kernel per compute entry point.
    ///
    /// Arguments are the storage buffers that the entry point uses, in order of group and binding,
    /// then the members of its uniform block or `var<immediate>` in order.
    pub fn from_wgsl(source: &str) -> Result<Self> {
        wgsl::read(source)
    }

    /// Reads the file at `path`, and the meta file beside it where the format has one.
    pub fn load(path: &Path) -> Result<Self> {
        tvm_file::load(path)
    }

    /// The bytes form in the layout of `version`.
    ///
    /// In the version that the module was read from, these are the bytes it was read from.
    pub fn to_bytes(&self, version: FormatVersion) -> Result<Vec<u8>> {
        match self.kind {
            Kind::Vulkan => Ok(tvm_bytes::write(self, version)),
            Kind::WebGpu => webgpu::write(self, version),
        }
    }

    /// The file form in the layout of `version`: the file's bytes and the meta file's text.
    pub fn to_file_parts(&self, version: FormatVersion) -> Result<(Vec<u8>, String)> {
        tvm_file::write(self, version)
    }

    /// Writes the bytes form to `path`.
    pub fn save_bytes(&self, path: &Path, version: FormatVersion) -> Result<()> {
        tvm_file::write_file(path, &self.to_bytes(version)?)
    }

    /// Writes the file form to `path` and its meta file beside it.
    pub fn save_file(&self, path: &Path, version: FormatVersion) -> Result<()> {
        tvm_file::save(self, path, version)
    }

    /// Saves the module to `path` in the layout of `version`, or else in [`Self::version`]: in the
    /// file form where the layout has one and the module was not read from bytes, else in the
    /// bytes form.
    pub fn save(&self, path: &Path, version: Option<FormatVersion>) -> Result<()> {
        let version = version.unwrap_or_else(|| self.version());
        let from_bytes = matches!(self.origin, Origin::Bytes(_));
        if version.has_file_form() && self.kind == Kind::Vulkan && !from_bytes {
            self.save_file(path, version)
        } else {
            self.save_bytes(path, version)
        }
    }

    /// Which runtime the module was compiled for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the module was made from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The layout the module was read from, or else the newest: the natural one to save in.
    pub fn version(&self) -> FormatVersion {
        match self.origin {
            Origin::Bytes(version) | Origin::File(version) => version,
            Origin::Spirv | Origin::Wgsl => FormatVersion::NEWEST,
        }
    }

    /// The functions, in the order of the file.
    pub fn functions(&self) -> &[Arc<Function>] {
        &self.functions
    }

    /// The function called `name`.
    pub fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.iter().find(|function| function.name() == name)
    }
}
