//! A kernel that a device cannot run is refused by the need and the limit; its neighbours are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod module_support;

use std::collections::BTreeSet;

use dlhal::hal::KernelLimits;
use dlhal::module::spirv::capability_name;
use dlhal::module::{FormatVersion, Module, check_dynamic_shared_memory, check_function};
use dlhal::{DlhalStatus, Error};
use module_support::{all_limits, bytes_fixtures, fixture, signature};

fn refusal(module: &Module, function: &str, limits: &KernelLimits) -> Error {
    let error = check_function(module.function(function).unwrap(), limits).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::Unsupported);
    assert!(error.message().contains(&format!("kernel `{function}`")), "{error}");
    error
}

fn load(name: &str) -> Module {
    Module::from_bytes(&fixture(name)).unwrap()
}

#[test]
fn every_fixture_runs_where_nothing_is_missing() {
    for (name, bytes) in bytes_fixtures() {
        for function in Module::from_bytes(&bytes).unwrap().functions() {
            check_function(function, &all_limits()).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn without_16_bit_storage_the_f32_kernels_of_a_module_still_pass() {
    let signatures = [
        signature("first", "handle handle", ""),
        signature("second", "handle uint32 float16", "threadIdx.x threadIdx.y threadIdx.z"),
    ];
    let f16 = Module::from_spirv_bytes(&fixture("spirv/two_entries.spv"), &signatures).unwrap();
    let storage16 = spirv::Capability::StorageBuffer16BitAccess as u32;
    let mut limits = all_limits();
    limits.spirv_capabilities.remove(&storage16);
    let message = refusal(&f16, "first", &limits).message().to_owned();
    assert!(message.contains("StorageBuffer16BitAccess"), "{message}");
    for function in load("mlp_f32.vulkan.bin").functions() {
        check_function(function, &limits).unwrap();
    }
    for function in load("mlp_f16.vulkan.bin").functions() {
        let needs = function.shader.capabilities.contains(&storage16);
        assert_eq!(check_function(function, &limits).is_err(), needs, "{}", function.name());
    }
}

#[test]
fn a_missing_capability_is_named_by_the_specifications_name() {
    let limits = KernelLimits { spirv_capabilities: BTreeSet::new(), ..all_limits() };
    let error = refusal(&load("add_i64.vulkan.bin"), "main_kernel", &limits);
    assert!(error.message().contains("Shader"), "{error}");
    assert!(error.message().contains("Int64"), "{error}");
    assert_eq!(capability_name(4_000_000_000), "capability 4000000000");
}

#[test]
fn a_device_of_minimum_limits_runs_the_f32_addition() {
    let limits = KernelLimits::vulkan_1_1_minimum();
    let module = load("add_f32.vulkan.bin");
    check_function(module.function("main_kernel").unwrap(), &limits).unwrap();
    let error = refusal(&load("add_f16.vulkan.bin"), "main_kernel", &limits);
    assert!(error.message().contains("Float16"), "{error}");
}

#[test]
fn push_constants_over_the_limit_are_refused_with_both_numbers() {
    let limits = KernelLimits { max_push_constant_bytes: 35, ..all_limits() };
    let module = load("scalars_4.vulkan.bin");
    let error = refusal(&module, "main_kernel", &limits);
    assert!(error.message().contains("need 36 bytes, the device allows 35"), "{error}");
    let at_limit = KernelLimits { max_push_constant_bytes: 36, ..all_limits() };
    check_function(module.function("main_kernel").unwrap(), &at_limit).unwrap();
}

#[test]
fn a_uniform_block_over_the_limit_is_refused_with_both_numbers() {
    let limits = KernelLimits { max_uniform_buffer_range: 163, ..all_limits() };
    let error = refusal(&load("scalars_20.vulkan.bin"), "main_kernel", &limits);
    assert!(error.message().contains("needs 164 bytes, the device allows 163"), "{error}");
}

#[test]
fn workgroup_memory_counts_declared_and_dynamic_bytes() {
    let module = load("v0.6.1/demo.bin");
    let matmul = module.function("matmul").unwrap();
    let declared = matmul.workgroup_bytes();
    assert_eq!(declared, 2 * 16 * 16 * 4);
    let limits = |max: u64| KernelLimits { max_workgroup_memory_bytes: max as u32, ..all_limits() };
    check_function(matmul, &limits(declared)).unwrap();
    let error = refusal(&module, "matmul", &limits(declared - 4));
    assert!(error.message().contains("2048 bytes"), "{error}");
    assert!(error.message().contains("2044"), "{error}");
    check_dynamic_shared_memory(matmul, 52, &limits(declared + 52)).unwrap();
    for over in [56, u64::MAX] {
        let error = check_dynamic_shared_memory(matmul, over, &limits(declared + 52)).unwrap_err();
        assert!(error.message().contains(&format!("{over} dynamic bytes")), "{error}");
    }
}

#[test]
fn workgroups_over_a_limit_are_refused_by_axis_and_by_product() {
    let module = load("v0.6.1/demo.bin");
    let limits = KernelLimits { max_workgroup_size: [16, 15, 64], ..all_limits() };
    let error = refusal(&module, "matmul", &limits);
    assert!(error.message().contains("local size 16 in y exceeds the device's 15"), "{error}");
    let limits = KernelLimits { max_workgroup_invocations: 255, ..all_limits() };
    let error = refusal(&module, "matmul", &limits);
    assert!(error.message().contains("is 256 invocations, the device allows 255"), "{error}");
}

#[test]
fn too_many_buffers_too_new_a_version_and_unknown_tags_are_refused() {
    let module = load("add_f32.vulkan.bin");
    let limits = KernelLimits { max_storage_buffers: 2, ..all_limits() };
    let error = refusal(&module, "main_kernel", &limits);
    assert!(error.message().contains("3 buffer arguments exceed the device's 2"), "{error}");

    let bytes = fixture("spirv/two_entries.spv");
    let first = Module::from_spirv_bytes(&bytes, &[signature("first", "handle handle", "")]);
    let limits = KernelLimits { max_spirv_version: (1, 2), ..all_limits() };
    let error = refusal(&first.unwrap(), "first", &limits);
    assert!(error.message().contains("SPIR-V 1.3, the device takes up to 1.2"), "{error}");

    let tagged = signature("first", "handle handle", "clusterCtaIdx.x");
    let module = Module::from_spirv_bytes(&bytes, &[tagged]).unwrap();
    let error = refusal(&module, "first", &all_limits());
    assert!(error.message().contains("`clusterCtaIdx.x`"), "{error}");
}

#[test]
fn a_missing_extension_is_named() {
    let module = load("add_f32.vulkan.bin");
    let limits = KernelLimits { spirv_extensions: BTreeSet::new(), ..all_limits() };
    let error = refusal(&module, "main_kernel", &limits);
    assert!(error.message().contains("extension SPV_KHR_storage_buffer_storage_class"), "{error}");
}

#[test]
fn an_argument_tag_that_demands_more_than_an_address_is_refused_but_kept() {
    let mut first = signature("first", "handle handle", "");
    first.extra_tags = vec![0, 1];
    let bytes = fixture("spirv/two_entries.spv");
    let module = Module::from_spirv_bytes(&bytes, &[first]).unwrap();
    let error = refusal(&module, "first", &all_limits());
    assert!(error.message().contains("argument 1 has the extra tag 1"), "{error}");
    let saved = module.to_bytes(FormatVersion::V0_24).unwrap();
    assert_eq!(Module::from_bytes(&saved).unwrap().functions()[0].signature.extra_tags, [0, 1]);
}
