//! TVM's file form: the shaders in one file, the signatures in a meta file beside it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::bytes::{Reader, Writer};
use super::{FormatVersion, Image, Kind, Module, Origin, spirv, tvm_bytes, tvm_meta};
use crate::{Error, Result};

/// The first four bytes of the file.
const MAGIC: u32 = 0x0270_0027;

/// Whether `bytes` start as the file form does.
pub(super) fn is_file_form(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

/// Reads the file's bytes and the meta file's text.
pub(super) fn read(bytes: &[u8], meta: &str) -> Result<Module> {
    let mut reader = Reader::new(bytes);
    let magic = reader.u32("magic number")?;
    if magic != MAGIC {
        return Err(Error::data_loss(format!(
            "a module's file form starts with {MAGIC:#010x}, this with {magic:#010x}"
        )));
    }
    let (signatures, version) = tvm_meta::read(meta)?;
    let shaders = tvm_bytes::read_shaders(&mut reader, FormatVersion::V0_8)?;
    reader.finish()?;
    let image = Image { meta: Some(meta.to_owned()), ..Image::default() };
    tvm_bytes::assemble(signatures, shaders, Origin::File(version), image)
}

/// Writes the file's bytes and the meta file's text.
pub(super) fn write(module: &Module, version: FormatVersion) -> Result<(Vec<u8>, String)> {
    if module.kind() != Kind::Vulkan {
        return Err(Error::unsupported(format!(
            "modules of kind {} have no file form; save the bytes form",
            module.kind().name()
        )));
    }
    if !version.has_file_form() {
        return Err(Error::unsupported(format!(
            "TVM {version} has no file form; save as 0.23 or older, or save the bytes form"
        )));
    }
    let mut writer = Writer::new();
    writer.u32(MAGIC);
    tvm_bytes::write_shaders(&mut writer, module, version);
    let meta = match &module.image.meta {
        Some(text) if module.origin() == Origin::File(version) => text.clone(),
        _ => tvm_meta::write(module.functions().iter().map(|f| &**f), version)?,
    };
    Ok((writer.finish(), meta))
}

/// Reads the module at `path`, whatever its form.
pub(super) fn load(path: &Path) -> Result<Module> {
    let bytes = read_file(path)?;
    let named = |error: Error| error.within(path.display());
    if is_file_form(&bytes) {
        let meta_path = meta_path(path);
        let meta = String::from_utf8(read_file(&meta_path)?).map_err(|_| {
            Error::data_loss(format!("{}: the meta file is not UTF-8", meta_path.display()))
        })?;
        return read(&bytes, &meta).map_err(named);
    }
    if !spirv::is_spirv(&bytes) && path.extension().is_some_and(|ext| ext == "wgsl") {
        let source = std::str::from_utf8(&bytes)
            .map_err(|e| named(Error::data_loss(format!("the source is not UTF-8: {e}"))))?;
        return Module::from_wgsl(source).map_err(named);
    }
    Module::from_bytes(&bytes).map_err(named)
}

/// Writes the file form to `path` and the meta file beside it.
pub(super) fn save(module: &Module, path: &Path, version: FormatVersion) -> Result<()> {
    let (bytes, meta) = write(module, version)?;
    write_file(path, &bytes)?;
    write_file(&meta_path(path), meta.as_bytes())
}

/// Writes `bytes` to `path`.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes)
        .map_err(|e| Error::io(format!("{} cannot be written: {e}", path.display())))
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::not_found(format!("{}: {e}", path.display())),
        _ => Error::io(format!("{} cannot be read: {e}", path.display())),
    })
}

/// `lib.vulkan` has its signatures in `lib.tvm_meta.json`.
fn meta_path(path: &Path) -> PathBuf {
    path.with_extension("tvm_meta.json")
}
