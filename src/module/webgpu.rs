//! TVM's bytes form of kind `webgpu`: the signatures, then each kernel's WGSL.

use std::collections::HashMap;
use std::sync::Arc;

use super::bind::{self, Code, UNIFORM_SCALARS};
use super::bytes::{Reader, Writer};
use super::signature::Signature;
use super::tvm_bytes::{self, Keyed};
use super::{FormatVersion, Function, Image, Kind, Module, Origin, spirv, wgsl};
use crate::{DlhalStatus, Error, Result};

/// A kernel's name and its WGSL.
type Source<'a> = (&'a str, &'a str);

/// Reads a module and translates each kernel.
pub(super) fn read(bytes: &[u8]) -> Result<Module> {
    let (version, signatures, sources) = match parse(bytes, FormatVersion::V0_24) {
        Ok((signatures, sources)) => (FormatVersion::V0_24, signatures, sources),
        Err(error) => match parse(bytes, FormatVersion::V0_8) {
            Ok((signatures, sources)) => (FormatVersion::V0_8, signatures, sources),
            Err(_) => return Err(error.within("neither a Vulkan nor a WebGPU module of TVM")),
        },
    };
    let signatures = signatures.into_iter().map(Keyed::check).collect::<Result<Vec<_>>>()?;
    let index_of: HashMap<_, _> =
        signatures.iter().enumerate().map(|(index, s)| (s.name.clone(), index)).collect();
    let mut by_name = HashMap::new();
    let mut image = Image::default();
    for (name, source) in sources {
        let Some(index) = index_of.get(name) else {
            return Err(Error::data_loss(format!("the source of `{name}` has no signature")));
        };
        image.shader_order.push(*index);
        if by_name.insert(name, source).is_some() {
            return Err(Error::data_loss(format!("two sources of `{name}`")));
        }
    }
    let mut functions = Vec::with_capacity(signatures.len());
    for signature in signatures {
        let source = by_name.remove(&signature.name[..]).ok_or_else(|| {
            Error::data_loss(format!("function `{}` has no source", signature.name))
        })?;
        functions.push(Arc::new(function(signature, source)?));
    }
    bind::module(Kind::WebGpu, Origin::Bytes(version), functions, Some(image))
        .map_err(|error| Error::data_loss(error.message()))
}

/// Writes the bytes form.
pub(super) fn write(module: &Module, version: FormatVersion) -> Result<Vec<u8>> {
    if version < FormatVersion::V0_8 {
        return Err(Error::unsupported(format!(
            "TVM {version} has no WebGPU modules; save as 0.8 or newer"
        )));
    }
    let mut writer = Writer::new();
    tvm_bytes::write_signatures(&mut writer, module, version);
    let order = &module.image.shader_order;
    writer.count(order.len());
    for function in order.iter().filter_map(|index| module.functions.get(*index)) {
        writer.blob(function.name().as_bytes());
        writer.blob(function.source.as_deref().unwrap_or_default().as_bytes());
    }
    Ok(writer.finish())
}

fn parse(bytes: &[u8], version: FormatVersion) -> Result<(Vec<Keyed>, Vec<Source<'_>>)> {
    let mut reader = Reader::new(bytes);
    let signatures = tvm_bytes::read_signatures(&mut reader, version)?;
    let count = reader.count(16, "source table")?;
    let mut sources = Vec::new();
    for _ in 0..count {
        sources.push((reader.str("kernel name")?, reader.str("kernel source")?));
    }
    reader.finish()?;
    Ok((signatures, sources))
}

fn function(signature: Signature, source: &str) -> Result<Function> {
    let kernel = format!("kernel `{}`", signature.name);
    let corrupt = |error: Error| match error.status() {
        DlhalStatus::InvalidArgument => Error::data_loss(error.message()).within(&kernel),
        _ => error.within(&kernel),
    };
    let words: Arc<[u32]> = wgsl::translate_entry(source, &signature.name).map_err(corrupt)?.into();
    let shader = Arc::new(spirv::read(&words).map_err(corrupt)?);
    let uniform = shader.entry_points.iter().any(|entry| bind::uniform_block(entry).is_some());
    bind::function(
        signature,
        Code {
            words,
            shader,
            flags: if uniform { UNIFORM_SCALARS } else { 0 },
            source: Some(source.into()),
            webgpu: true,
            blame: DlhalStatus::DataLoss,
        },
    )
}
