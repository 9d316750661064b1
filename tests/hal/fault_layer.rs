//! The fault layer of `c_tests/fault_layer`, built on first use.
#![allow(dead_code, reason = "not every user steers it from inside")]

use std::ffi::{CStr, CString, c_char, c_int};
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

/// The fault layer in this process.
pub(crate) struct Layer {
    configure: unsafe extern "C" fn(*const c_char) -> c_int,
    calls: unsafe extern "C" fn(*const c_char) -> u64,
    live: unsafe extern "C" fn(*const c_char) -> u64,
}

impl Layer {
    /// Kinds of objects that the layer counts.
    const KINDS: &[&CStr] = &[
        c"VkDevice",
        c"VkDeviceMemory",
        c"VkBuffer",
        c"VkSemaphore",
        c"VkFence",
        c"VkEvent",
        c"VkQueryPool",
        c"VkCommandPool",
        c"VkDescriptorPool",
        c"VkDescriptorSetLayout",
        c"VkDescriptorUpdateTemplate",
        c"VkPipelineLayout",
        c"VkPipelineCache",
        c"VkShaderModule",
        c"VkPipeline",
    ];

    pub(crate) fn get() -> &'static Self {
        static LAYER: OnceLock<Layer> = OnceLock::new();
        LAYER.get_or_init(|| {
            let name = c"libVkLayer_dlhal_fault.so";
            // SAFETY: asks for a library that the loader has opened; opens nothing.
            let library =
                unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
            assert!(!library.is_null(), "the fault layer is not loaded");
            let symbol = |name: &CStr| {
                // SAFETY: the library is open and never closed.
                let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
                assert!(!symbol.is_null(), "{name:?}");
                symbol
            };
            let (configure, calls, live) = (
                symbol(c"dlhal_fault_configure"),
                symbol(c"dlhal_fault_calls"),
                symbol(c"dlhal_fault_live"),
            );
            Self {
                // SAFETY: the function's type in dlhal_fault.h.
                configure: unsafe {
                    std::mem::transmute::<
                        *mut libc::c_void,
                        unsafe extern "C" fn(*const c_char) -> c_int,
                    >(configure)
                },
                // SAFETY: the function's type in dlhal_fault.h.
                calls: unsafe {
                    std::mem::transmute::<
                        *mut libc::c_void,
                        unsafe extern "C" fn(*const c_char) -> u64,
                    >(calls)
                },
                // SAFETY: the function's type in dlhal_fault.h.
                live: unsafe {
                    std::mem::transmute::<
                        *mut libc::c_void,
                        unsafe extern "C" fn(*const c_char) -> u64,
                    >(live)
                },
            }
        })
    }

    pub(crate) fn configure(&self, faults: &str) {
        let text = CString::new(faults).unwrap();
        // SAFETY: a C string, read during the call.
        let outcome = unsafe { (self.configure)(text.as_ptr()) };
        assert_eq!(outcome, 0, "{faults} cannot be read");
    }

    pub(crate) fn calls(&self, call: &str) -> u64 {
        let text = CString::new(call).unwrap();
        // SAFETY: a C string, read during the call.
        let count = unsafe { (self.calls)(text.as_ptr()) };
        assert_ne!(count, u64::MAX, "{call} is not watched");
        count
    }

    /// How many of a kind live, or how many bytes of device memory for "bytes".
    pub(crate) fn live(&self, kind: &CStr) -> u64 {
        // SAFETY: a C string, read during the call.
        let count = unsafe { (self.live)(kind.as_ptr()) };
        assert_ne!(count, u64::MAX, "{kind:?} is not counted");
        count
    }

    pub(crate) fn live_counts(&self) -> Vec<(&'static CStr, u64)> {
        Self::KINDS.iter().map(|&kind| (kind, self.live(kind))).collect()
    }

    pub(crate) fn nothing_lives(&self, after: &str) {
        for (kind, count) in self.live_counts() {
            assert_eq!(count, 0, "{kind:?} live after {after}");
        }
    }
}
