// What must hold for any input. The fuzz targets run these without end; the tests run them on
// some thousand mutated fixtures.

#![allow(clippy::expect_used, reason = "a broken promise must end the run")]

use dlhal::module::{FormatVersion, Module, spirv};

/// Loading ends in a status. What loads is saved and loaded again to the same bytes, and can be
/// described. Tells whether it loaded.
pub(crate) fn module_from_bytes(bytes: &[u8]) -> bool {
    let Ok(module) = Module::from_bytes(bytes) else { return false };
    assert!(!module.to_string().is_empty());
    let saved = module.to_bytes(module.version()).expect("a loaded module saves as its version");
    assert!(saved == bytes, "saving changed the bytes");
    stable_in_every_version(&module);
    true
}

/// Reading SPIR-V ends in a status. What reads keeps its meaning when an entry point is renamed.
pub(crate) fn spirv(bytes: &[u8]) {
    let Ok(words) = spirv::from_bytes(bytes) else { return };
    let Ok(shader) = spirv::read(&words) else { return };
    for entry in &shader.entry_points {
        let renamed = spirv::rename_entry_point(&words, &entry.name, "a name that none has")
            .expect("a read module can be renamed");
        let back = spirv::rename_entry_point(&renamed, "a name that none has", &entry.name);
        assert_eq!(spirv::read(&back.expect("and back")).as_ref(), Ok(&shader));
    }
}

/// Loading a file and its meta file ends in a status; what loads saves as it was.
pub(crate) fn meta_file(file: &[u8], meta: &[u8]) {
    let Ok(meta) = std::str::from_utf8(meta) else { return };
    let Ok(module) = Module::from_file_parts(file, meta) else { return };
    let parts = module.to_file_parts(module.version()).expect("it saves as its version");
    assert!(parts.0 == file && parts.1 == meta, "saving changed the file");
    stable_in_every_version(&module);
}

/// Translating WGSL ends in a status. What translates saves and loads as a Vulkan module.
#[allow(dead_code, reason = "the mutated fixtures are checked in the WGSL tests")]
pub(crate) fn wgsl(source: &[u8]) {
    let Ok(source) = std::str::from_utf8(source) else { return };
    let Ok(module) = Module::from_wgsl(source) else { return };
    stable_in_every_version(&module);
}

fn stable_in_every_version(module: &Module) {
    for version in FormatVersion::ALL {
        if let Ok(saved) = module.to_bytes(version) {
            let again = Module::from_bytes(&saved).expect("what was saved loads");
            assert_eq!(again.functions().len(), module.functions().len());
            assert!(again.to_bytes(version).as_ref() == Ok(&saved), "as {version}");
        }
        if let Ok((file, meta)) = module.to_file_parts(version) {
            let again = Module::from_file_parts(&file, &meta).expect("what was saved loads");
            assert_eq!(again.to_file_parts(version), Ok((file, meta)));
        }
    }
}
