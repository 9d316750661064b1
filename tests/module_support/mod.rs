//! The module fixtures and what several tests ask of them.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a missing fixture ends the test")]

use std::path::{Path, PathBuf};

use dlhal::hal::KernelLimits;
use dlhal::module::{FormatVersion, Module, Signature};

pub(crate) fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/modules")
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(data_dir().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub(crate) fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).unwrap()
}

/// Every fixture in bytes form, smallest first.
pub(crate) fn bytes_fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> =
        names(".bin").into_iter().map(|name| (name.clone(), fixture(&name))).collect();
    all.sort_by_key(|(_, bytes)| bytes.len());
    all
}

/// Every fixture in file form, with its meta file.
pub(crate) fn file_fixtures() -> Vec<(String, Vec<u8>, String)> {
    names(".vulkan")
        .into_iter()
        .map(|name| {
            let meta = text(&name.replace(".vulkan", ".tvm_meta.json"));
            (name.clone(), fixture(&name), meta)
        })
        .collect()
}

/// Asserts that `b`, which was saved as `version`, holds the functions of `a`.
pub(crate) fn same_functions(a: &Module, b: &Module, version: FormatVersion, name: &str) {
    assert_eq!(a.kind(), b.kind(), "{name}");
    assert_eq!(a.functions().len(), b.functions().len(), "{name}");
    for (a, b) in a.functions().iter().zip(b.functions()) {
        let mut wanted = a.signature.clone();
        if !version.has_extra_tags() {
            wanted.extra_tags.clear();
        }
        let mut got = b.signature.clone();
        if !version.has_extra_tags() {
            got.extra_tags.clear();
        }
        assert_eq!(wanted, got, "{name}");
        assert_eq!(a.args, b.args, "{name}");
        assert_eq!(a.scalars, b.scalars, "{name}");
        assert_eq!(a.grid_fold, b.grid_fold, "{name}");
        assert_eq!(a.entry, b.entry, "{name}");
        assert_eq!((a.flags, &a.source), (b.flags, &b.source), "{name}");
        assert!(a.spirv == b.spirv, "{name}: the SPIR-V changed");
    }
}

fn names(suffix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", "v0.8/", "v0.6.1/", "webgpu/"] {
        for entry in std::fs::read_dir(data_dir().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(suffix) {
                names.push(format!("{folder}{name}"));
            }
        }
    }
    names.sort();
    names
}

/// A signature from argument types and launch tags, both separated by spaces.
pub(crate) fn signature(name: &str, args: &str, tags: &str) -> Signature {
    Signature {
        name: name.to_owned(),
        arg_types: args.split_whitespace().map(|arg| arg.parse().unwrap()).collect(),
        launch_tags: tags.split_whitespace().map(str::to_owned).collect(),
        extra_tags: Vec::new(),
    }
}

/// Limits that no fixture exceeds.
pub(crate) fn all_limits() -> KernelLimits {
    let extensions = ["8bit_storage", "integer_dot_product", "float_controls"];
    let mut limits = KernelLimits::vulkan_1_1_minimum();
    limits.spirv_extensions.extend(extensions.map(|name| format!("SPV_KHR_{name}")));
    KernelLimits {
        max_spirv_version: (1, 6),
        spirv_capabilities: (0..10_000).collect(),
        max_workgroup_size: [1024, 1024, 64],
        max_workgroup_invocations: 1024,
        max_workgroup_memory_bytes: 49152,
        max_push_constant_bytes: 256,
        max_storage_buffers: 1 << 20,
        max_uniform_buffer_range: 65536,
        subgroup_size_range: (32, 32),
        ..limits
    }
}
