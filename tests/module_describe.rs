//! What `inspect` prints is complete and steady.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod module_support;

use dlhal::module::{GridFold, Module};
use module_support::{bytes_fixtures, fixture};

#[test]
fn a_kernel_with_push_constants_is_described_in_full() {
    let module = Module::from_bytes(&fixture("v0.6.1/demo.bin")).unwrap();
    let saxpy = module.function("saxpy").unwrap().to_string();
    assert_eq!(
        saxpy,
        "saxpy
  argument 0: handle, buffer at binding 0 (X), read only, elements aligned to 4
  argument 1: handle, buffer at binding 1 (Y), written, elements aligned to 4
  argument 2: float32, scalar at byte 0, 4 bytes, read as float32
  argument 3: uint32, scalar at byte 4, 4 bytes, read as uint32
  scalars: push constants, 8 bytes
  launch arguments: blockIdx.x, threadIdx.x
  local size: 64 x 1 x 1
  workgroup memory: 0 bytes
  capabilities: Shader
  extensions: none
  SPIR-V 1.0, 1508 bytes
"
    );
}

#[test]
fn a_module_is_described_function_by_function() {
    let module = Module::from_bytes(&fixture("v0.6.1/demo.bin")).unwrap();
    let text = module.to_string();
    assert!(text.starts_with("module of kind vulkan, from bytes form of TVM 0.6.1, 3 functions\n"));
    for function in module.functions() {
        assert!(text.contains(&function.to_string()));
    }
}

#[test]
fn every_argument_and_launch_argument_of_every_fixture_is_listed() {
    for (name, bytes) in bytes_fixtures() {
        let module = Module::from_bytes(&bytes).unwrap();
        for function in module.functions() {
            let text = function.to_string();
            let listed = text.lines().filter(|line| line.starts_with("  argument ")).count();
            assert_eq!(listed, function.args.len(), "{name}");
            for tag in function.launch_args() {
                assert!(text.contains(&tag.to_string()), "{name}: {tag}");
            }
            let hidden = matches!(function.grid_fold, Some(GridFold::HiddenExtent { .. }));
            assert_eq!(text.contains("hidden argument"), hidden, "{name}");
        }
    }
}

#[test]
fn names_from_a_file_cannot_disturb_the_print() {
    let mut bytes = fixture("add_f32.vulkan.bin");
    let at = bytes.windows(5).position(|w| w == b"A_ptr").unwrap();
    bytes[at] = 0x1b;
    let module = Module::from_bytes(&bytes).unwrap();
    assert!(module.to_string().contains("(\\u{1b}_ptr)"));
}
