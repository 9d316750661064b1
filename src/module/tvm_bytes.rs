//! TVM's bytes form of kind `vulkan`: a format string, the signatures, the shaders.

use std::collections::HashMap;
use std::sync::Arc;

use super::bind::{self, Code};
use super::bytes::{Reader, Writer};
use super::dtype::DataType;
use super::function::{ArgKind, Function};
use super::signature::Signature;
use super::{FormatVersion, Image, Kind, Module, Origin, spirv};
use crate::{DlhalStatus, Error, Result};

/// What the format string says in every release.
const FMT: &str = "vulkan";

/// A signature and the name it is filed under.
pub(super) struct Keyed {
    pub(super) key: String,
    pub(super) signature: Signature,
}

impl Keyed {
    /// The signature, if it is filed under its own name.
    ///
    /// This is asked once the layout is settled: a wrong layout fails by its structure, and must
    /// not look nearer to the truth for failing later.
    pub(super) fn check(self) -> Result<Signature> {
        let Self { key, signature } = self;
        if key != signature.name {
            let name = signature.name;
            return Err(Error::data_loss(format!(
                "function `{key}` has the signature of `{name}`"
            )));
        }
        Ok(signature)
    }
}

/// A shader as it stands in a file.
pub(super) struct RawShader {
    pub(super) name: String,
    pub(super) flags: u32,
    pub(super) words: Vec<u32>,
}

/// Whether `bytes` begin with a short printable string, as this form does and no other.
pub(super) fn has_format_string(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    match reader.u64("length").and_then(|len| reader.take(len.min(64), "format string")) {
        Ok(text) => text.len() > 1 && text.iter().take(FMT.len()).all(u8::is_ascii_graphic),
        Err(_) => false,
    }
}

/// Reads a module. Which release wrote it is found by which layout fills the input exactly.
pub(super) fn read(bytes: &[u8]) -> Result<Module> {
    let mut body = Reader::new(bytes);
    let fmt = body.str("format string")?.to_owned();
    let mut furthest: Option<(usize, Error)> = None;
    for version in [FormatVersion::V0_24, FormatVersion::V0_21, FormatVersion::V0_8] {
        let mut reader = body.clone();
        let parts = read_signatures(&mut reader, version).and_then(|signatures| {
            let shaders = read_shaders(&mut reader, version)?;
            reader.clone().finish()?;
            Ok((signatures, shaders))
        });
        match parts {
            Ok((signatures, shaders)) => {
                let image = Image { fmt: Some(fmt), ..Image::default() };
                let signatures = signatures.into_iter().map(Keyed::check).collect::<Result<_>>()?;
                return assemble(signatures, shaders, Origin::Bytes(version), image);
            }
            Err(error) => {
                let left = reader.remaining();
                if furthest.as_ref().is_none_or(|(least, _)| left < *least) {
                    furthest = Some((left, error));
                }
            }
        }
    }
    let (_, error) = furthest.unwrap_or((0, Error::internal("no layout was tried")));
    if fmt != FMT {
        return Err(error.within(format!("a module of format `{fmt}`, not `{FMT}`")));
    }
    Err(error.within("no layout of TVM 0.6.1 to 0.27 fits; the nearest"))
}

/// Writes the bytes form. Which functions there are and their order do not depend on `version`.
pub(super) fn write(module: &Module, version: FormatVersion) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.blob(module.image.fmt.as_deref().unwrap_or(FMT).as_bytes());
    write_signatures(&mut writer, module, version);
    write_shaders(&mut writer, module, version);
    writer.finish()
}

pub(super) fn read_signatures(
    reader: &mut Reader<'_>,
    version: FormatVersion,
) -> Result<Vec<Keyed>> {
    // A key and a name of no bytes, and two or three empty lists.
    let count = reader.count(32, "signature table")?;
    let mut signatures = Vec::new();
    for _ in 0..count {
        let key = reader.str("function name")?.to_owned();
        let name = reader.str("function name")?.to_owned();
        let args = reader.count(4, "argument types")?;
        let arg_types = (0..args).map(|_| read_dtype(reader)).collect::<Result<_>>()?;
        let tags = reader.count(8, "launch tags")?;
        let launch_tags = (0..tags)
            .map(|_| reader.str("launch tag").map(str::to_owned))
            .collect::<Result<_>>()?;
        let mut extra_tags = Vec::new();
        if version.has_extra_tags() {
            let extras = reader.count(4, "argument extra tags")?;
            for _ in 0..extras {
                extra_tags.push(reader.u32("argument extra tag")? as i32);
            }
        }
        let signature = Signature { name, arg_types, launch_tags, extra_tags };
        signatures.push(Keyed { key, signature });
    }
    Ok(signatures)
}

pub(super) fn write_signatures(writer: &mut Writer, module: &Module, version: FormatVersion) {
    writer.count(module.functions.len());
    for function in &module.functions {
        let signature = &function.signature;
        writer.blob(signature.name.as_bytes());
        writer.blob(signature.name.as_bytes());
        writer.count(signature.arg_types.len());
        for dtype in &signature.arg_types {
            writer.u8(dtype.code);
            writer.u8(dtype.bits);
            writer.u16(dtype.lanes);
        }
        writer.count(signature.launch_tags.len());
        for tag in &signature.launch_tags {
            writer.blob(tag.as_bytes());
        }
        if version.has_extra_tags() {
            writer.count(signature.extra_tags.len());
            for tag in &signature.extra_tags {
                writer.u32(*tag as u32);
            }
        }
    }
}

pub(super) fn read_shaders(
    reader: &mut Reader<'_>,
    version: FormatVersion,
) -> Result<Vec<RawShader>> {
    // A name of no bytes, the flags, and no words.
    let count = reader.count(20, "shader table")?;
    let mut shaders = Vec::new();
    for _ in 0..count {
        let name = reader.str("shader name")?.to_owned();
        let (flags, words) = if version.wraps_shaders() {
            let mut inner = Reader::new(reader.blob("shader")?);
            let shader = read_shader(&mut inner)?;
            inner.finish()?;
            shader
        } else {
            read_shader(reader)?
        };
        shaders.push(RawShader { name, flags, words });
    }
    Ok(shaders)
}

pub(super) fn write_shaders(writer: &mut Writer, module: &Module, version: FormatVersion) {
    let shaders = &module.image.shader_order;
    writer.count(shaders.len());
    for function in shaders.iter().filter_map(|index| module.functions.get(*index)) {
        writer.blob(function.name().as_bytes());
        if version.wraps_shaders() {
            let mut inner = Writer::new();
            write_shader(&mut inner, function);
            writer.blob(&inner.finish());
        } else {
            write_shader(writer, function);
        }
    }
}

/// Joins the two tables of a file. `image` gets the shaders' order.
pub(super) fn assemble(
    signatures: Vec<Signature>,
    shaders: Vec<RawShader>,
    origin: Origin,
    mut image: Image,
) -> Result<Module> {
    let mut by_name = HashMap::new();
    for (index, signature) in signatures.iter().enumerate() {
        if by_name.insert(signature.name.clone(), index).is_some() {
            return Err(Error::data_loss(format!("two signatures of `{}`", signature.name)));
        }
    }
    let mut codes: Vec<Option<RawShader>> = signatures.iter().map(|_| None).collect();
    for shader in shaders {
        let Some(&index) = by_name.get(&shader.name) else {
            return Err(Error::data_loss(format!("shader `{}` has no signature", shader.name)));
        };
        image.shader_order.push(index);
        if codes[index].is_some() {
            return Err(Error::data_loss(format!("two shaders of `{}`", shader.name)));
        }
        codes[index] = Some(shader);
    }
    let mut functions = Vec::with_capacity(signatures.len());
    for (signature, code) in signatures.into_iter().zip(codes) {
        let Some(raw) = code else {
            return Err(Error::data_loss(format!("function `{}` has no shader", signature.name)));
        };
        let shader = spirv::read(&raw.words)
            .map_err(|error| error.within(format!("kernel `{}`", signature.name)))?;
        let code = Code {
            words: raw.words.into(),
            shader: Arc::new(shader),
            flags: raw.flags,
            source: None,
            webgpu: false,
            blame: DlhalStatus::DataLoss,
        };
        functions.push(Arc::new(bind::function(signature, code)?));
    }
    let origin = match origin {
        Origin::Bytes(FormatVersion::V0_8) if scalars_are_four_apart(&functions) => {
            Origin::Bytes(FormatVersion::V0_6_1)
        }
        other => other,
    };
    bind::module(Kind::Vulkan, origin, functions, Some(image))
}

/// Whether a scalar stands where only 0.6.1 put one. Its bytes form is otherwise that of 0.8.
fn scalars_are_four_apart(functions: &[Arc<Function>]) -> bool {
    functions.iter().flat_map(|function| &function.args).any(|arg| match arg {
        ArgKind::Scalar { offset, .. } => offset % 8 == 4,
        ArgKind::Buffer { .. } => false,
    })
}

fn read_dtype(reader: &mut Reader<'_>) -> Result<DataType> {
    let what = "argument type";
    Ok(DataType { code: reader.u8(what)?, bits: reader.u8(what)?, lanes: reader.u16(what)? })
}

fn read_shader(reader: &mut Reader<'_>) -> Result<(u32, Vec<u32>)> {
    let flags = reader.u32("shader flags")?;
    let count = reader.count(4, "SPIR-V words")?;
    let bytes = reader.take(count as u64 * 4, "SPIR-V words")?;
    let words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    Ok((flags, words))
}

fn write_shader(writer: &mut Writer, function: &Function) {
    writer.u32(function.flags);
    writer.count(function.spirv.len());
    writer.words(&function.spirv);
}
