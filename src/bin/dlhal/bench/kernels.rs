//! The kernels that are measured, as shaders and as modules of the library.

use dlhal::Result;

use super::api::{Api, Args, Function, KernelSource, Module, Stream, Tensor};

/// `shaders/add.comp`: c = a + b. Each of these by `glslc -O --target-env=vulkan1.1`.
pub(super) const ADD: &[u8] = include_bytes!("shaders/add.spv");
/// `shaders/add_array.comp`: the same, with [`OUTPUTS`] outputs to choose from.
pub(super) const ADD_ARRAY: &[u8] = include_bytes!("shaders/add_array.spv");
/// `shaders/fill.comp`.
pub(super) const FILL: &[u8] = include_bytes!("shaders/fill.spv");
/// `shaders/spin.comp`.
pub(super) const SPIN: &[u8] = include_bytes!("shaders/spin.spv");
/// The library's kernel for copies within a device.
pub(super) const COPY: &[u8] = include_bytes!("../../../runtime/copy_kernel_aligned.spv");
const VARIANT: &[u8] = include_bytes!("shaders/variant.spv");
/// The constant of `shaders/variant.comp` that is another one in each variant.
const SALT: u32 = 0x5A17_C0DE;
/// A constant of `shaders/spin.comp`.
const INCREMENT: u32 = 1_013_904_223;

/// Outputs that launches write in turn where they do not depend on each other.
pub(super) const OUTPUTS: usize = 64;
/// Floats that a launch of the add kernel adds: one group's.
pub(super) const FLOATS: u32 = 64;
/// Bytes of a tensor for the add kernel.
pub(super) const ADD_BYTES: usize = 4 * FLOATS as usize;
/// Threads in a group of the fill, the spin and the copy kernel.
pub(super) const THREADS: u32 = 128;

/// A shader as the words that it is made of.
pub(super) fn words(spirv: &[u8]) -> Vec<u32> {
    spirv.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The add kernel in a module's bytes, as a compiler would have saved it.
pub(super) fn add_module(api: &Api) -> Result<Module> {
    load(api, &[source("add", ADD, 3, 1)])
}

/// A kernel that fills: buffer, count of vectors, value.
pub(super) fn fill_module(api: &Api) -> Result<Module> {
    load(api, &[source("fill", FILL, 1, 2)])
}

/// A kernel that spins: buffer, rounds, value.
pub(super) fn spin_module(api: &Api) -> Result<Module> {
    load(api, &[source("spin", SPIN, 1, 2)])
}

/// A module of `count` kernels that no two values of `salt` share; its bytes.
pub(super) fn variants(api: &Api, count: u32, salt: u32) -> Result<Vec<u8>> {
    let shaders: Vec<(String, Vec<u8>)> =
        (0..count).map(|n| (variant_name(n), variant(salt.wrapping_add(n)))).collect();
    let sources: Vec<_> = shaders.iter().map(|(name, spirv)| source(name, spirv, 3, 1)).collect();
    api.module_bytes(&sources)
}

/// The name of a kernel of [`variants`].
pub(super) fn variant_name(number: u32) -> String {
    format!("variant_{number}")
}

/// What a kernel of [`variants`] works on: one tile of a matrix product.
pub(super) struct Tile {
    args: Args,
    /// What the arguments name.
    _tensors: [Tensor; 3],
}

impl Tile {
    pub(super) fn new(api: &Api) -> Result<Self> {
        const ROWS: u32 = 16;
        let tensor = || api.tensor((4 * ROWS * ROWS) as usize);
        let tensors = [tensor()?, tensor()?, tensor()?];
        let args = Args::new(&tensors.each_ref(), &[ROWS], 1, 64);
        Ok(Self { args, _tensors: tensors })
    }

    pub(super) fn launch(&self, api: &Api, function: &Function, stream: &Stream) -> Result<()> {
        api.launch(function, &self.args, stream)
    }
}

/// The bytes of a module of one small kernel, the spin kernel with another constant.
pub(super) fn small_variant(api: &Api, salt: u32) -> Result<Vec<u8>> {
    api.module_bytes(&[source("spin", &with(SPIN, INCREMENT, salt), 1, 2)])
}

fn variant(salt: u32) -> Vec<u8> {
    with(VARIANT, SALT, salt)
}

/// A shader with one of its words, a constant, replaced.
fn with(spirv: &[u8], old: u32, new: u32) -> Vec<u8> {
    let changed = |word| if word == old { new } else { word };
    words(spirv).into_iter().flat_map(|word| changed(word).to_le_bytes()).collect()
}

fn source<'a>(name: &'a str, spirv: &'a [u8], buffers: usize, numbers: usize) -> KernelSource<'a> {
    KernelSource { name, spirv, buffers, numbers }
}

fn load(api: &Api, sources: &[KernelSource<'_>]) -> Result<Module> {
    api.load(&api.module_bytes(sources)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_differ_in_the_one_constant() {
        for (spirv, constant) in [(VARIANT, SALT), (SPIN, INCREMENT)] {
            let (old, new) = (words(spirv), words(&with(spirv, constant, 77)));
            let differences: Vec<_> = old.iter().zip(&new).filter(|(a, b)| a != b).collect();
            assert_eq!(differences, [(&constant, &77)]);
        }
    }
}
