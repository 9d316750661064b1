//! The fault layer of `c_tests/fault_layer`, built on first use.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Puts the layer between validation and driver in the process to be started.
pub(crate) fn insert(command: &mut Command) {
    command
        .env("VK_ADD_LAYER_PATH", folder())
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation:VK_LAYER_DLHAL_fault");
}

fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("c_tests/fault_layer");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("fault_{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = ["calls", "chain", "counters", "memory", "pretend", "settings"]
            .map(|name| source.join(name).with_extension("c"));
        let library = folder.join("libVkLayer_dlhal_fault.so");
        let built = Command::new("cc")
            .args(["-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-O1"])
            .args(["-Wl,-z,nodelete", "-Wl,-soname,libVkLayer_dlhal_fault.so", "-o"])
            .arg(&library)
            .args(&files)
            .status()
            .unwrap();
        assert!(built.success(), "the fault layer does not compile");
        let manifest = "VkLayer_dlhal_fault.json";
        std::fs::copy(source.join(manifest), folder.join(manifest)).unwrap();
        folder
    })
}
