//! WGSL to SPIR-V, one entry point at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use naga::back::spv;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, GlobalVariable, Handle, ResourceBinding, ShaderStage};

use super::super::bind::{self, Code, UNIFORM_SCALARS};
use super::super::dtype::DataType;
use super::super::signature::Signature;
use super::super::spirv::{self, Block, EntryPoint, MemberType, ScalarKind};
use super::super::{Kind, Module, Origin};
use crate::{DlhalStatus, Error, Result};

/// The launch tags of every kernel from WGSL: the grid's extents, then the local size.
const LAUNCH_TAGS: [&str; 6] =
    ["blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"];

/// The oldest version that has subgroup operations, which every Vulkan 1.1 device takes.
const SPIRV_VERSION: (u8, u8) = (1, 3);

/// naga tracks immediates by a bit for each of 64 words, and panics on more.
const MAX_IMMEDIATE_BYTES: u32 = 256;

/// Makes a module with a function for each compute entry point of `source`.
pub(in super::super) fn read(source: &str) -> Result<Module> {
    let parsed = parse(source)?;
    let text: Arc<str> = source.into();
    let mut functions = Vec::new();
    for (index, entry) in parsed.module.entry_points.iter().enumerate() {
        if entry.stage == ShaderStage::Compute {
            let function = function(&parsed, index, &text)
                .map_err(|error| error.within(format!("entry point `{}`", entry.name)))?;
            functions.push(Arc::new(function));
        }
    }
    if functions.is_empty() {
        return Err(Error::invalid("the WGSL source has no @compute entry point"));
    }
    bind::module(Kind::Vulkan, Origin::Wgsl, functions, None)
}

/// The SPIR-V of the entry point `name`, with bindings as in the source.
///
/// Division is not guarded against zero: TVM's kernels never divide by it.
pub(in super::super) fn translate_entry(source: &str, name: &str) -> Result<Vec<u32>> {
    let parsed = parse(source)?;
    let known =
        |entry: &naga::EntryPoint| entry.stage == ShaderStage::Compute && entry.name == name;
    if !parsed.module.entry_points.iter().any(known) {
        return Err(Error::invalid("the WGSL has no @compute entry point of that name"));
    }
    parsed.translate(name, &spv::Options { emit_int_div_checks: false, ..options() })
}

/// A module that naga has accepted.
struct Parsed {
    module: naga::Module,
    info: ModuleInfo,
}

fn parse(source: &str) -> Result<Parsed> {
    let source = without_subgroups_directive(source);
    guarded(|| {
        let mut module = naga::front::wgsl::parse_str(&source)
            .map_err(|e| Error::invalid(format!("WGSL: {}", e.emit_to_string(&source))))?;
        large_immediates_to_uniform(&mut module);
        let info = Validator::new(ValidationFlags::all(), Capabilities::all())
            .validate(&module)
            .map_err(|e| Error::invalid(format!("WGSL: {}", e.emit_to_string(&source))))?;
        Ok(Parsed { module, info })
    })
}

impl Parsed {
    fn translate(&self, entry: &str, options: &spv::Options<'_>) -> Result<Vec<u32>> {
        guarded(|| {
            let stage = ShaderStage::Compute;
            let (module, info) = naga::back::pipeline_constants::process_overrides(
                &self.module,
                &self.info,
                Some((stage, entry)),
                &Default::default(),
            )
            .map_err(|e| Error::invalid(format!("WGSL override: {e}")))?;
            let pipeline =
                spv::PipelineOptions { shader_stage: stage, entry_point: entry.to_owned() };
            spv::write_vec(&module, &info, options, Some(&pipeline))
                .map_err(|e| Error::invalid(format!("WGSL cannot become SPIR-V: {e}")))
        })
    }
}

fn options() -> spv::Options<'static> {
    spv::Options {
        lang_version: SPIRV_VERSION,
        // Names cost little and tell a person which buffer is which.
        flags: spv::WriterFlags::DEBUG,
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        // The capability is rare, and no compute kernel has inputs of 16 bits.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    }
}

/// One entry point as a function. Its resources are moved to set 0, buffers first, so that the
/// function looks like any of TVM's.
fn function(parsed: &Parsed, index: usize, source: &Arc<str>) -> Result<super::super::Function> {
    let entry = &parsed.module.entry_points[index];
    let resources = Resources::of(parsed, index)?;
    let mut options = options();
    options.fake_missing_bindings = false;
    let moved = resources.buffers.iter().chain(&resources.uniform).zip(0..);
    options.binding_map = moved
        .map(|(from, binding)| {
            let to = spv::BindingInfo { descriptor_set: 0, binding, binding_array_size: None };
            (*from, to)
        })
        .collect();
    let words: Arc<[u32]> = parsed.translate(&entry.name, &options)?.into();
    let shader = Arc::new(spirv::read(&words)?);
    let scalars = match shader.entry_points.first() {
        Some(entry) => scalar_types(entry)?,
        None => Vec::new(),
    };
    let handles = std::iter::repeat_n(DataType::handle(), resources.buffers.len());
    let signature = Signature {
        name: entry.name.clone(),
        arg_types: handles.chain(scalars).collect(),
        launch_tags: LAUNCH_TAGS.map(str::to_owned).to_vec(),
        extra_tags: Vec::new(),
    };
    let code = Code {
        words,
        shader,
        flags: if resources.uniform.is_some() { UNIFORM_SCALARS } else { 0 },
        source: Some(source.clone()),
        webgpu: false,
        blame: DlhalStatus::InvalidArgument,
    };
    bind::function(signature, code)
}

/// What an entry point uses.
struct Resources {
    /// Storage buffers by group and binding.
    buffers: Vec<ResourceBinding>,
    uniform: Option<ResourceBinding>,
}

impl Resources {
    fn of(parsed: &Parsed, index: usize) -> Result<Self> {
        let usage = parsed.info.get_entry_point(index);
        let mut buffers = Vec::new();
        let mut uniforms = Vec::new();
        for (handle, variable) in parsed.module.global_variables.iter() {
            if usage[handle].is_empty() {
                continue;
            }
            match variable.space {
                AddressSpace::Storage { .. } => buffers.push(bound(variable, handle)?),
                AddressSpace::Uniform => uniforms.push(bound(variable, handle)?),
                AddressSpace::Handle => {
                    return Err(Error::invalid(format!(
                        "`{}` is a texture or sampler; kernels take buffers and scalars",
                        variable.name.as_deref().unwrap_or("a variable")
                    )));
                }
                _ => {}
            }
        }
        if uniforms.len() > 1 {
            return Err(Error::invalid(format!(
                "{} uniform variables; put all scalars into one",
                uniforms.len()
            )));
        }
        buffers.sort();
        Ok(Self { buffers, uniform: uniforms.pop() })
    }
}

fn bound(variable: &GlobalVariable, handle: Handle<GlobalVariable>) -> Result<ResourceBinding> {
    variable.binding.ok_or_else(|| {
        Error::invalid(format!(
            "`{}` has no @group and @binding",
            variable.name.clone().unwrap_or_else(|| format!("{handle:?}"))
        ))
    })
}

/// The types of the scalar arguments, from the block that the translated shader has.
fn scalar_types(entry: &EntryPoint) -> Result<Vec<DataType>> {
    let block: Option<&Block> =
        entry.push_constants.as_ref().or(bind::uniform_block(entry).map(|(_, block)| block));
    let members = block.map_or(&[][..], |block| &block.members[..]);
    members
        .iter()
        .enumerate()
        .map(|(index, member)| match &member.ty {
            MemberType::Scalar(scalar) => {
                let code = match scalar.kind {
                    ScalarKind::Int => DataType::INT,
                    ScalarKind::Uint => DataType::UINT,
                    ScalarKind::Float => DataType::FLOAT,
                };
                Ok(DataType::new(code, scalar.bits as u8))
            }
            MemberType::Other(what) => Err(Error::invalid(format!(
                "member {index} of the scalar block is {what}; pass its parts as scalars, or all \
                 of it in a storage buffer"
            ))),
        })
        .collect()
}

/// Makes immediates too large for naga's validator a uniform variable; few devices could take them.
fn large_immediates_to_uniform(module: &mut naga::Module) {
    let is_large = |variable: &GlobalVariable| {
        let size = module.types[variable.ty].inner.try_size(module.to_ctx());
        variable.space == AddressSpace::Immediate
            && size.is_none_or(|size| size > MAX_IMMEDIATE_BYTES)
    };
    let large: Vec<_> = module
        .global_variables
        .iter()
        .filter(|(_, variable)| is_large(variable))
        .map(|(handle, _)| handle)
        .collect();
    for (handle, binding) in large.into_iter().zip(0..) {
        let variable = module.global_variables.get_mut(handle);
        variable.space = AddressSpace::Uniform;
        // A group that no source uses; the translation moves the variable to set 0.
        variable.binding = Some(ResourceBinding { group: u32::MAX, binding });
    }
}

/// The source without `subgroups` in its `enable` directives. naga has the subgroup built-ins but
/// refuses the directive that the language demands for them.
fn without_subgroups_directive(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        let directive = line.trim().strip_prefix("enable ").and_then(|l| l.strip_suffix(';'));
        match directive {
            Some(names) if names.split(',').any(|name| name.trim() == "subgroups") => {
                let kept: Vec<_> =
                    names.split(',').map(str::trim).filter(|name| *name != "subgroups").collect();
                if !kept.is_empty() {
                    out.push_str(&format!("enable {};", kept.join(", ")));
                }
                out.push('\n');
            }
            _ => out.push_str(line),
        }
    }
    out
}

/// Runs a part of naga, which is large and sees hostile input, so that its panic is a status.
fn guarded<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(part))
        .unwrap_or_else(|_| Err(Error::invalid("the WGSL translator failed on this source")))
}
