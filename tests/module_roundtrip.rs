//! What was read is written back to the byte, and other layouts hold the same functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod module_support;

use dlhal::DlhalStatus;
use dlhal::module::{ArgKind, FormatVersion, Kind, Module, Origin, ScalarBlock};
use module_support::{bytes_fixtures, file_fixtures, fixture, same_functions, text};

#[test]
fn every_bytes_form_is_written_back_to_the_byte() {
    let fixtures = bytes_fixtures();
    assert_eq!(fixtures.len(), 19);
    for (name, bytes) in fixtures {
        let module = Module::from_bytes(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let saved = module.to_bytes(module.version()).unwrap();
        assert!(saved == bytes, "{name} changed on the way");
    }
}

#[test]
fn every_file_form_is_written_back_to_the_byte() {
    let fixtures = file_fixtures();
    assert_eq!(fixtures.len(), 5);
    for (name, bytes, meta) in fixtures {
        let module =
            Module::from_file_parts(&bytes, &meta).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (saved, saved_meta) = module.to_file_parts(module.version()).unwrap();
        assert!(saved == bytes, "{name} changed on the way");
        assert_eq!(saved_meta, meta, "{name}");
    }
}

#[test]
fn the_release_is_found_from_the_content() {
    let version = |name: &str| Module::from_bytes(&fixture(name)).unwrap().origin();
    assert_eq!(version("add_f32.vulkan.bin"), Origin::Bytes(FormatVersion::V0_24));
    assert_eq!(version("v0.8/add_f32.bin"), Origin::Bytes(FormatVersion::V0_8));
    assert_eq!(version("v0.8/scalars_20.bin"), Origin::Bytes(FormatVersion::V0_8));
    assert_eq!(version("v0.6.1/demo.bin"), Origin::Bytes(FormatVersion::V0_6_1));
    assert_eq!(version("webgpu/mlp_f32.webgpu.bin"), Origin::Bytes(FormatVersion::V0_24));
    for (name, bytes, meta) in file_fixtures() {
        let origin = Module::from_file_parts(&bytes, &meta).unwrap().origin();
        let wanted =
            if name.contains("0.6.1") { FormatVersion::V0_6_1 } else { FormatVersion::V0_8 };
        assert_eq!(origin, Origin::File(wanted), "{name}");
    }
}

#[test]
fn every_layout_loads_back_to_the_same_functions() {
    for (name, bytes) in bytes_fixtures() {
        let module = Module::from_bytes(&bytes).unwrap();
        for version in FormatVersion::ALL {
            match module.to_bytes(version) {
                Ok(saved) => {
                    let again = Module::from_bytes(&saved).unwrap();
                    same_functions(&module, &again, version, &name);
                    assert!(again.to_bytes(version).unwrap() == saved, "{name} as {version}");
                }
                Err(error) => {
                    assert_eq!(error.status(), DlhalStatus::Unsupported);
                    assert_eq!((module.kind(), version), (Kind::WebGpu, FormatVersion::V0_6_1));
                }
            }
            match module.to_file_parts(version) {
                Ok((file, meta)) => {
                    let again = Module::from_file_parts(&file, &meta).unwrap();
                    same_functions(&module, &again, version, &name);
                    assert_eq!(again.to_file_parts(version).unwrap(), (file, meta));
                }
                Err(error) => {
                    assert_eq!(error.status(), DlhalStatus::Unsupported);
                    assert!(module.kind() == Kind::WebGpu || version == FormatVersion::V0_24);
                }
            }
        }
    }
}

#[test]
fn the_bytes_form_and_the_file_form_of_one_module_agree() {
    for name in ["v0.8/add_f32", "v0.8/scalars_4", "v0.8/mlp_f32", "v0.6.1/demo"] {
        let bytes = Module::from_bytes(&fixture(&format!("{name}.bin"))).unwrap();
        let file = Module::from_file_parts(
            &fixture(&format!("{name}.vulkan")),
            &text(&format!("{name}.tvm_meta.json")),
        )
        .unwrap();
        same_functions(&bytes, &file, FormatVersion::V0_8, name);
    }
}

#[test]
fn scalars_stand_where_the_shader_reads_them() {
    let offsets = |name: &str, function: &str| -> Vec<u32> {
        let module = Module::from_bytes(&fixture(name)).unwrap();
        let function = module.function(function).unwrap();
        function
            .args
            .iter()
            .filter_map(|arg| match arg {
                ArgKind::Scalar { offset, .. } => Some(*offset),
                ArgKind::Buffer { .. } => None,
            })
            .collect()
    };
    assert_eq!(offsets("v0.6.1/demo.bin", "matmul"), [0, 4, 8]);
    assert_eq!(offsets("scalars_4.vulkan.bin", "main_kernel"), [0, 8, 16, 24, 32]);
    let twenty: Vec<u32> = (0..21).map(|i| i * 8).collect();
    assert_eq!(offsets("scalars_20.vulkan.bin", "main_kernel"), twenty);
}

#[test]
fn the_scalar_block_is_push_constants_or_the_binding_after_the_buffers() {
    let scalars = |name: &str| {
        Module::from_bytes(&fixture(name)).unwrap().function("main_kernel").unwrap().scalars
    };
    assert_eq!(scalars("scalars_4.vulkan.bin"), ScalarBlock::PushConstants { size: 36 });
    assert_eq!(scalars("scalars_20.vulkan.bin"), ScalarBlock::Uniform { binding: 2, size: 164 });
}

#[test]
fn only_the_output_of_an_addition_is_written() {
    for name in ["add_f32", "add_f16", "add_i8", "add_i64"] {
        let module = Module::from_bytes(&fixture(&format!("{name}.vulkan.bin"))).unwrap();
        let function = module.function("main_kernel").unwrap();
        let written: Vec<_> = function.buffers().map(|(_, binding, w)| (binding, w)).collect();
        assert_eq!(written, [(0, false), (1, false), (2, true)], "{name}");
        assert_eq!(function.local_size(), [64, 1, 1]);
    }
}

#[test]
fn webgpu_write_access_agrees_with_what_the_shader_does() {
    use dlhal::module::{GridFold, LaunchTag};
    for name in ["mlp_f32", "mlp_f16", "attention_f32"] {
        let module = Module::from_bytes(&fixture(&format!("webgpu/{name}.webgpu.bin"))).unwrap();
        assert_eq!(module.kind(), Kind::WebGpu);
        for function in module.functions() {
            let Some(LaunchTag::ParamWriteAccess(flags)) = function.launch_tags.last() else {
                panic!("{name}: the last tag of {} is no write access", function.name());
            };
            let by_shader: Vec<bool> = function.entry.bindings[..flags.len()]
                .iter()
                .map(|binding| binding.written)
                .collect();
            assert_eq!(&by_shader, flags, "{name}: {}", function.name());
            let offset = function.scalars.size() - 4;
            assert_eq!(function.grid_fold, Some(GridFold::HiddenExtent { offset }));
            assert!(matches!(function.scalars, ScalarBlock::Uniform { binding, .. }
                if binding as usize == flags.len()));
        }
    }
}

#[test]
fn a_module_saved_to_disk_loads_by_its_path() {
    let dir = std::env::temp_dir().join(format!("dlhal-module-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let module = Module::from_bytes(&fixture("scalars_20.vulkan.bin")).unwrap();
    let path = dir.join("lib.v1.vulkan");
    module.save_file(&path, FormatVersion::V0_21).unwrap();
    assert!(dir.join("lib.v1.tvm_meta.json").exists());
    let again = Module::load(&path).unwrap();
    assert_eq!(again.origin(), Origin::File(FormatVersion::V0_21));
    same_functions(&module, &again, FormatVersion::V0_21, "scalars_20");

    let path = dir.join("lib.bin");
    module.save_bytes(&path, FormatVersion::V0_24).unwrap();
    same_functions(&module, &Module::load(&path).unwrap(), FormatVersion::V0_24, "scalars_20");

    let missing = Module::load(&dir.join("absent")).unwrap_err();
    assert_eq!(missing.status(), DlhalStatus::NotFound);
    assert!(missing.message().contains("absent"));
    let is_a_folder = Module::load(&dir).unwrap_err();
    assert_eq!(is_a_folder.status(), DlhalStatus::Io);
    assert_eq!(
        module.save_bytes(&dir, FormatVersion::V0_24).unwrap_err().status(),
        DlhalStatus::Io
    );
    std::fs::remove_dir_all(&dir).unwrap();
}
