//! Joins a signature and a shader into a function, and refuses the two if they disagree.

use std::collections::HashSet;
use std::sync::Arc;

use super::dtype::DataType;
use super::function::{ArgKind, Function, GRID_FOLD_PROCESS, GridFold, ScalarBlock};
use super::signature::{LaunchTag, Signature};
use super::spirv::{
    self, BindingKind, Block, EntryPoint, MemberType, ScalarKind, ScalarType, Shader,
};
use super::{Image, KernelSource, Kind, Module, Origin};
use crate::{DlhalStatus, Error, Result};

/// The shader's flags: the scalars are in a uniform buffer.
pub(super) const UNIFORM_SCALARS: u32 = 1;

/// A shader on its way into a function.
pub(super) struct Code {
    pub(super) words: Arc<[u32]>,
    pub(super) shader: Arc<Shader>,
    pub(super) flags: u32,
    pub(super) source: Option<Arc<str>>,
    /// Whether it follows TVM's rules for WebGPU: a hidden grid size, narrowed integers.
    pub(super) webgpu: bool,
    /// Who is to blame if signature and shader disagree: the file, or the caller.
    pub(super) blame: DlhalStatus,
}

/// Makes a module of bare SPIR-V.
pub(super) fn from_spirv(words: &[u32], signatures: &[Signature]) -> Result<Module> {
    if signatures.is_empty() {
        return Err(Error::invalid("a module from SPIR-V needs a signature for each kernel"));
    }
    let words: Arc<[u32]> = spirv::native_order(words)?.into();
    let shader = Arc::new(spirv::read(&words)?);
    let mut functions = Vec::with_capacity(signatures.len());
    for signature in signatures {
        let (words, shader) = entry_called(&words, &shader, &signature.name)?;
        let uniform = shader
            .entry_points
            .iter()
            .any(|entry| entry.name == signature.name && uniform_block(entry).is_some());
        functions.push(Arc::new(function(
            signature.clone(),
            Code {
                words,
                shader,
                flags: if uniform { UNIFORM_SCALARS } else { 0 },
                source: None,
                webgpu: false,
                blame: DlhalStatus::InvalidArgument,
            },
        )?));
    }
    module(Kind::Vulkan, Origin::Spirv, functions, None)
}

/// Makes a module of kernels that each have a shader of their own.
pub(super) fn from_kernels(kernels: &[KernelSource<'_>]) -> Result<Module> {
    if kernels.is_empty() {
        return Err(Error::invalid("a module needs at least one kernel"));
    }
    let mut functions = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        let name = &kernel.signature.name;
        let within = |error: Error| error.within(format!("kernel `{name}`"));
        let mut words = spirv::from_bytes(kernel.code).map_err(within)?;
        if let Some(entry) = kernel.entry_point.filter(|entry| entry != name) {
            words = spirv::native_order(&words).map_err(within)?.to_vec();
            if !spirv::read(&words).map_err(within)?.entry_points.iter().any(|e| e.name == entry) {
                let message = format!("the shader has no entry point `{entry}`");
                return Err(within(Error::invalid(message)));
            }
            words = spirv::rename_entry_point(&words, entry, name).map_err(within)?;
        }
        let one = from_spirv(&words, std::slice::from_ref(&kernel.signature))?;
        functions.extend(one.functions);
    }
    module(Kind::Vulkan, Origin::Spirv, functions, None)
}

/// `function` with its push constants moved into a uniform buffer after its buffers.
pub(super) fn with_uniform_scalars(function: &Function) -> Result<Function> {
    let block = match (&function.entry.push_constants, function.scalars) {
        (Some(block), ScalarBlock::PushConstants { .. }) => block,
        _ => return Ok(function.clone()),
    };
    if block.members.iter().any(|member| member.size < 4) {
        // Small numbers need one capability as push constants and another in uniform buffers.
        return Err(Error::unsupported(format!(
            "kernel `{}` has scalars of fewer than 32 bits, which cannot move into a uniform \
             buffer; rebuild the module with a uniform buffer",
            function.name()
        )));
    }
    let binding = function.buffers().count() as u32;
    let words = spirv::push_constants_to_uniform(&function.spirv, binding)?;
    with_words(function, words, function.flags | UNIFORM_SCALARS)
}

/// `function` with its shader rewritten to `words`.
pub(super) fn with_words(function: &Function, words: Vec<u32>, flags: u32) -> Result<Function> {
    let code = Code {
        shader: Arc::new(spirv::read(&words)?),
        words: words.into(),
        flags,
        source: function.source.clone(),
        webgpu: matches!(function.grid_fold, Some(GridFold::HiddenExtent { .. })),
        blame: DlhalStatus::Internal,
    };
    self::function(function.signature.clone(), code)
}

/// A module of `functions`, whose shaders are in the same order.
pub(super) fn module(
    kind: Kind,
    origin: Origin,
    functions: Vec<Arc<Function>>,
    image: Option<Image>,
) -> Result<Module> {
    let mut names = HashSet::new();
    if let Some(twice) = functions.iter().find(|function| !names.insert(function.name())) {
        return Err(Error::invalid(format!("two functions are called `{}`", twice.name())));
    }
    let image = image.unwrap_or_else(|| Image {
        shader_order: (0..functions.len()).collect(),
        ..Image::default()
    });
    Ok(Module { kind, origin, functions, image })
}

/// `shader` with an entry point called `name`: as it is, or with its only entry point renamed.
fn entry_called(
    words: &Arc<[u32]>,
    shader: &Arc<Shader>,
    name: &str,
) -> Result<(Arc<[u32]>, Arc<Shader>)> {
    match &shader.entry_points[..] {
        [only] if only.name != name => {
            let renamed: Arc<[u32]> = spirv::rename_entry_point(words, &only.name, name)?.into();
            let shader = Arc::new(spirv::read(&renamed)?);
            Ok((renamed, shader))
        }
        _ => Ok((words.clone(), shader.clone())),
    }
}

/// Joins `signature` and `code`.
pub(super) fn function(signature: Signature, code: Code) -> Result<Function> {
    let name = signature.name.clone();
    join(signature, code).map_err(|error| error.within(format!("kernel `{name}`")))
}

fn join(signature: Signature, code: Code) -> Result<Function> {
    let blame = code.blame;
    let wrong = |message: String| Error::new(blame, message);
    let Some(entry) = code.shader.entry_points.iter().find(|e| e.name == signature.name).cloned()
    else {
        let names: Vec<_> = code.shader.entry_points.iter().map(|e| e.name.as_str()).collect();
        return Err(wrong(format!(
            "the shader has no entry point of that name; it has {}",
            names.join(", ")
        )));
    };
    let launch_tags: Vec<_> =
        signature.launch_tags.iter().map(|tag| LaunchTag::parse(tag)).collect();
    let handles = signature.arg_types.iter().filter(|dtype| dtype.is_handle()).count();
    check_tags(&launch_tags, &entry, handles).map_err(wrong)?;
    check_bindings(&entry, handles).map_err(wrong)?;
    let scalars = scalar_block(&entry, &code, signature.arg_types.len() > handles)?;
    let (args, hidden) = place(&signature, &entry, &launch_tags, code.webgpu).map_err(wrong)?;
    let own = code.shader.processes.iter().any(|process| process == GRID_FOLD_PROCESS);
    let grid_fold = hidden.or(own.then_some(GridFold::OwnExtent));
    Ok(Function {
        signature,
        args,
        scalars,
        launch_tags,
        grid_fold,
        spirv: code.words,
        shader: code.shader,
        entry,
        flags: code.flags,
        source: code.source,
    })
}

/// The launch tags against each other and the local size.
fn check_tags(
    tags: &[LaunchTag],
    entry: &EntryPoint,
    handles: usize,
) -> std::result::Result<(), String> {
    for (index, tag) in tags.iter().enumerate() {
        if tag.takes_argument() && tags[..index].contains(tag) {
            return Err(format!("launch tag {tag} is there twice"));
        }
        if let LaunchTag::ParamWriteAccess(flags) = tag
            && flags.len() != handles
        {
            return Err(format!(
                "launch tag {tag} is of {} buffers, the signature has {handles}",
                flags.len()
            ));
        }
    }
    for axis in 0..3 {
        let size = entry.local_size[axis];
        if size != 1 && !tags.contains(&LaunchTag::ThreadIdx(axis)) {
            return Err(format!(
                "the shader's local size is {size} in {}, but the signature has no launch tag {}",
                ['x', 'y', 'z'][axis],
                LaunchTag::ThreadIdx(axis)
            ));
        }
    }
    Ok(())
}

/// Storage buffers are the handles in order; the only other resource is the uniform block after
/// them.
fn check_bindings(entry: &EntryPoint, handles: usize) -> std::result::Result<(), String> {
    for binding in &entry.bindings {
        let at = format!("set {}, binding {}", binding.set, binding.binding);
        let index = binding.binding as usize;
        match &binding.kind {
            BindingKind::StorageBuffer if binding.set != 0 || index >= handles => {
                return Err(format!(
                    "the shader has a storage buffer at {at}, but the signature's {handles} \
                     handles are at set 0, binding 0 and up"
                ));
            }
            BindingKind::UniformBuffer(_) if binding.set != 0 || index != handles => {
                return Err(format!(
                    "the shader has a uniform block at {at}, not after the signature's {handles} \
                     handles at set 0, binding {handles}"
                ));
            }
            BindingKind::Other(what) => {
                return Err(format!(
                    "the shader has {what} at {at}; only buffers can be arguments"
                ));
            }
            _ => {}
        }
    }
    match entry.bindings.windows(2).find(|pair| {
        (pair[0].set, pair[0].binding) == (pair[1].set, pair[1].binding)
            && pair[0].kind != pair[1].kind
    }) {
        Some(pair) => {
            Err(format!("the shader has two kinds of resource at binding {}", pair[0].binding))
        }
        None => Ok(()),
    }
}

/// The uniform block among the bindings.
pub(super) fn uniform_block(entry: &EntryPoint) -> Option<(u32, &Block)> {
    entry.bindings.iter().find_map(|binding| match &binding.kind {
        BindingKind::UniformBuffer(block) => Some((binding.binding, block)),
        _ => None,
    })
}

/// How the scalars travel, which the shader's flags must agree with.
fn scalar_block(entry: &EntryPoint, code: &Code, has_scalars: bool) -> Result<ScalarBlock> {
    let wrong = |message: &str| Err(Error::new(code.blame, message));
    let flagged = code.flags & UNIFORM_SCALARS != 0;
    // Push constants are set in units of four bytes.
    let rounded = |size: u32| size.checked_next_multiple_of(4).unwrap_or(u32::MAX);
    match (&entry.push_constants, uniform_block(entry)) {
        (Some(_), Some(_)) => {
            wrong("the shader has both a push-constant block and a uniform block for scalars")
        }
        (Some(_), None) if flagged => wrong(
            "the shader's flags say that its scalars are in a uniform buffer, but they are push \
             constants",
        ),
        (None, Some(_)) if !flagged => wrong(
            "the shader has a uniform block, but its flags do not say that its scalars are there",
        ),
        (None, None) if has_scalars => wrong(
            "the signature has scalar arguments, but the shader has neither a push-constant block \
             nor a uniform block",
        ),
        (Some(block), None) => Ok(ScalarBlock::PushConstants { size: rounded(block.size) }),
        (None, Some((binding, block))) => {
            Ok(ScalarBlock::Uniform { binding, size: rounded(block.size) })
        }
        (None, None) => Ok(ScalarBlock::None),
    }
}

/// Where each argument goes, and the hidden grid size.
fn place(
    signature: &Signature,
    entry: &EntryPoint,
    tags: &[LaunchTag],
    webgpu: bool,
) -> std::result::Result<(Vec<ArgKind>, Option<GridFold>), String> {
    let block = entry.push_constants.as_ref().or(uniform_block(entry).map(|(_, block)| block));
    let mut members = block.map_or(&[][..], |block| &block.members[..]);
    let scalars = signature.arg_types.iter().filter(|dtype| !dtype.is_handle()).count();
    let mut grid_fold = None;
    if webgpu && let [rest @ .., last] = members {
        if last.ty != MemberType::Scalar(ScalarType { kind: ScalarKind::Uint, bits: 32 }) {
            return Err("the last scalar of a WebGPU kernel must be the u32 grid size".into());
        }
        grid_fold = Some(GridFold::HiddenExtent { offset: last.offset });
        members = rest;
    }
    if members.len() != scalars {
        return Err(format!(
            "the signature has {scalars} scalar arguments, the shader's block has {} members",
            members.len()
        ));
    }
    let mut members = members.iter();
    let mut binding = 0;
    let mut args = Vec::with_capacity(signature.arg_types.len());
    for (index, dtype) in signature.arg_types.iter().copied().enumerate() {
        if dtype.is_handle() {
            args.push(ArgKind::Buffer { binding, written: written(entry, tags, binding) });
            binding += 1;
        } else if let Some(member) = members.next() {
            let shader = match &member.ty {
                MemberType::Scalar(scalar) if fits(dtype, *scalar, webgpu) => *scalar,
                MemberType::Scalar(scalar) => {
                    return Err(format!("argument {index} is {dtype}, the shader reads {scalar}"));
                }
                MemberType::Other(what) => {
                    return Err(format!("argument {index} is {dtype}, the shader reads {what}"));
                }
            };
            let (offset, size) = (member.offset, member.size);
            args.push(ArgKind::Scalar { dtype, offset, size, shader });
        }
    }
    Ok((args, grid_fold))
}

/// Whether the shader, or its launch tags, say that the buffer at `binding` is written.
fn written(entry: &EntryPoint, tags: &[LaunchTag], binding: u32) -> bool {
    let by_shader = entry.bindings.iter().any(|b| b.binding == binding && b.written);
    let by_tag = tags.iter().any(|tag| match tag {
        LaunchTag::ParamWriteAccess(flags) => flags.get(binding as usize) == Some(&true),
        _ => false,
    });
    by_shader || by_tag
}

/// Whether a scalar argument of type `dtype` can fill what the shader reads.
fn fits(dtype: DataType, shader: ScalarType, narrow: bool) -> bool {
    let bits = u32::from(dtype.bits);
    let integer = shader.kind != ScalarKind::Float;
    if dtype.lanes != 1 {
        return false;
    }
    match dtype {
        _ if dtype.is_bool() => integer,
        _ if dtype.is_integer() => integer && (shader.bits >= bits || narrow),
        _ if dtype.is_float() => !integer && shader.bits == bits,
        _ => dtype.is_opaque_float() && integer && shader.bits == bits,
    }
}
