//! Modules: kernels with their signatures, in TVM's file formats or from shaders.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::args::{self, Out};
use super::boundary::boundary;
use super::dltensor;
use super::handles;
use super::output::Buffer;
use super::types::{DlhalFunction, DlhalKernelDesc, DlhalModule};
use crate::module::{self, FormatVersion, KernelSource, Module, Signature};
use crate::runtime::Function;
use crate::{DlhalStatus, Error, Result};

/// Loads a module from a file of any known format, found by its content: the file and bytes forms
/// of TVM 0.6 to 0.27 (`vulkan`) and of its WebGPU modules. The file form's meta file
/// NAME.tvm_meta.json is read beside it.
///
/// @param path    the file.
/// @param module  gets the module. Free it with dlhal_module_free().
/// @return DLHAL_STATUS_NOT_FOUND or DLHAL_STATUS_IO for the file, DLHAL_STATUS_DATA_LOSS for its
///         content.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_load_from_file(
    path: *const c_char,
    module: *mut DlhalModule,
) -> DlhalStatus {
    boundary(|| {
        let path = args::path(path, "path")?;
        let module = Out::new(module, "module")?;
        write(&module, Module::load(path)?)
    })
}

/// Saves a module to a file: in the file form where its version has one and it was not loaded from
/// bytes, else in the bytes form. A module saved in the version that it was loaded from gives the
/// same bytes.
///
/// @param module   the module.
/// @param path     the file; a meta file NAME.tvm_meta.json is written beside a file form.
/// @param version  TVM's version, for example "0.8"; null for the one it was loaded from, or the
///                 newest.
/// @return DLHAL_STATUS_IO when the file cannot be written; DLHAL_STATUS_UNSUPPORTED for a version
///         that cannot express the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_save_to_file(
    module: DlhalModule,
    path: *const c_char,
    version: *const c_char,
) -> DlhalStatus {
    boundary(|| {
        let path = args::path(path, "path")?;
        let version = args::optional_string(version, "version")?;
        handles::get(module)?.save(path, format_version(version)?)
    })
}

/// Loads a module from its bytes form.
///
/// @param bytes, size  the bytes; they need not be aligned.
/// @param module       gets the module. Free it with dlhal_module_free().
/// @return DLHAL_STATUS_DATA_LOSS when the bytes are corrupt or of no known format.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_load_from_bytes(
    bytes: *const c_void,
    size: usize,
    module: *mut DlhalModule,
) -> DlhalStatus {
    boundary(|| {
        let bytes = args::bytes(bytes, size, "bytes")?;
        let module = Out::new(module, "module")?;
        write(&module, Module::from_bytes(bytes)?)
    })
}

/// Saves a module to its bytes form.
///
/// @param module   the module.
/// @param version  as for dlhal_module_save_to_file().
/// @param buffer, capacity, needed  get the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_save_to_bytes(
    module: DlhalModule,
    version: *const c_char,
    buffer: *mut c_void,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let version = args::optional_string(version, "version")?;
        let buffer = Buffer::bytes(buffer, capacity, needed)?;
        let module = handles::get(module)?;
        let version = format_version(version)?.unwrap_or_else(|| module.version());
        buffer.write_bytes(&module.to_bytes(version)?)
    })
}

/// Makes a module of SPIR-V shaders and their signatures.
///
/// @param kernels  the kernels; each one's `struct_size` must be set.
/// @param count    how many; at least 1.
/// @param module   gets the module. Free it with dlhal_module_free().
/// @return DLHAL_STATUS_INVALID_ARGUMENT when a signature and its shader disagree,
///         DLHAL_STATUS_DATA_LOSS when a shader is corrupt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_create_from_spirv(
    kernels: *const DlhalKernelDesc,
    count: usize,
    module: *mut DlhalModule,
) -> DlhalStatus {
    boundary(|| {
        let module = Out::new(module, "module")?;
        let kernels = args::slice(kernels, count, "kernels")?;
        let kernels = kernels
            .iter()
            .enumerate()
            .map(|(n, desc)| kernel(desc).map_err(|e| e.within(format_args!("kernels[{n}]"))))
            .collect::<Result<Vec<_>>>()?;
        write(&module, Module::from_kernels(&kernels)?)
    })
}

/// Makes a module of WGSL source: a function for each compute entry point, with its storage buffers
/// in order of group and binding as arguments, then the members of its uniform block.
///
/// @param source, length  the source in UTF-8; `length` bytes, no terminating zero needed.
/// @param module          gets the module. Free it with dlhal_module_free().
/// @return DLHAL_STATUS_INVALID_ARGUMENT with the compiler's message when the source is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_create_from_wgsl(
    source: *const c_char,
    length: usize,
    module: *mut DlhalModule,
) -> DlhalStatus {
    boundary(|| {
        let module = Out::new(module, "module")?;
        let source = args::text(source, length, "source")?;
        write(&module, Module::from_wgsl(source)?)
    })
}

/// How many functions a module has.
///
/// @param module  the module.
/// @param count   gets the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_get_function_count(
    module: DlhalModule,
    count: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let count = Out::new(count, "count")?;
        count.write(handles::get(module)?.functions().len());
        Ok(())
    })
}

/// The name of a module's function.
///
/// @param module  the module.
/// @param index   0 up to the count.
/// @param buffer, capacity, needed  get the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_get_function_name(
    module: DlhalModule,
    index: usize,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let buffer = Buffer::text(buffer, capacity, needed)?;
        buffer.write_text(function_at(&*handles::get(module)?, index)?.name())
    })
}

/// What a module or one of its functions is made of.
///
/// @param module    the module.
/// @param function  a function's name; null for the whole module.
/// @param format    "" for a description in words; "spirv" for a function's shader as bytes;
///                  "wgsl" for the source where the module was made from WGSL.
/// @param buffer, capacity, needed  get the bytes; texts are terminated by a zero.
/// @return DLHAL_STATUS_NOT_FOUND for a function that is not there, DLHAL_STATUS_UNSUPPORTED for a
///         format that is not to be had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_get_source(
    module: DlhalModule,
    function: *const c_char,
    format: *const c_char,
    buffer: *mut c_void,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let function = args::optional_string(function, "function")?;
        let format = args::string(format, "format")?;
        let buffer = Buffer::bytes(buffer, capacity, needed)?;
        buffer.write_source(&handles::get(module)?.source(function, format)?)
    })
}

/// A function of a module.
///
/// @param module    the module; it may be freed before the function.
/// @param name      the function's name.
/// @param function  gets the function. Free it with dlhal_function_free().
/// @return DLHAL_STATUS_NOT_FOUND when the module has no such function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_get_function(
    module: DlhalModule,
    name: *const c_char,
    function: *mut DlhalFunction,
) -> DlhalStatus {
    boundary(|| {
        let name = args::string(name, "name")?;
        let function = Out::new(function, "function")?;
        let found = Function::of(&*handles::get(module)?, name)?;
        function.write(handles::insert(Arc::new(found))?);
        Ok(())
    })
}

/// Frees a module, without waiting: launches of its kernels are finished, and its functions live
/// on.
///
/// @param module  the module; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_module_free(module: DlhalModule) -> DlhalStatus {
    boundary(|| handles::remove(module).map(drop))
}

fn write(target: &Out<DlhalModule>, module: Module) -> Result<()> {
    target.write(handles::insert(Arc::new(module))?);
    Ok(())
}

fn format_version(version: Option<&str>) -> Result<Option<FormatVersion>> {
    version.map(str::parse).transpose()
}

fn function_at(module: &Module, index: usize) -> Result<&module::Function> {
    let functions = module.functions();
    functions.get(index).map(|function| &**function).ok_or_else(|| {
        Error::invalid(format!("index {index}: the module has {} functions", functions.len()))
    })
}

fn kernel(desc: &DlhalKernelDesc) -> Result<KernelSource<'_>> {
    if desc.struct_size < size_of::<DlhalKernelDesc>() {
        return Err(Error::invalid(format!(
            "struct_size is {}: set it to sizeof(DlhalKernelDesc), which is {} here",
            desc.struct_size,
            size_of::<DlhalKernelDesc>()
        )));
    }
    let name = args::string(desc.name, "name")?;
    let types = args::slice(desc.arg_types, desc.num_args, "arg_types")?;
    let tags = args::slice(desc.launch_tags, desc.num_tags, "launch_tags")?;
    let tags = tags.iter().map(|&tag| args::string(tag, "launch_tags").map(str::to_owned));
    Ok(KernelSource {
        signature: Signature {
            name: name.to_owned(),
            arg_types: types.iter().map(|&dtype| dltensor::dtype(dtype)).collect(),
            launch_tags: tags.collect::<Result<_>>()?,
            extra_tags: Vec::new(),
        },
        code: args::bytes(desc.code, desc.code_size, "code")?,
        entry_point: args::optional_string(desc.entry_point, "entry_point")?,
    })
}
