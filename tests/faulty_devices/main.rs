//! The device API on a driver that fails, or on a device that has little or tells nonsense: the
//! fault layer of `c_tests/fault_layer` makes it so. Each test runs in a process of its own, behind
//! validation.
//!
//! With `DLHAL_TEST_SOAK=1` each takes its long form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
#[path = "../conformance/copies.rs"]
mod copies;
#[path = "../hal/fault_layer.rs"]
mod fault_layer;
mod limits;
#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "../conformance/memory.rs"]
mod memory;
mod profiles;
mod scarcity;
#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "../conformance/streams.rs"]
mod streams;
#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "../conformance/timers.rs"]
mod timers;
#[path = "../common/trace.rs"]
mod trace;

use dlhal::runtime::{DeviceRef, system};
use dlhal::vulkan;

use common::Api;
use fault_layer::Layer;

const SMALL_HEAP: &str = "DLHAL_FAULT_LIMITS=heapSize=536870912";

#[test]
fn a_full_device_refuses_and_works_on_once_something_is_freed() {
    in_a_process("full", &[SMALL_HEAP]);
}

#[test]
fn a_full_device_refuses_and_works_on_by_the_librarys_own_account() {
    in_a_process("full", &[SMALL_HEAP, "DLHAL_FORCE_OWN_BUDGET=1"]);
}

#[test]
fn pinned_memory_stops_at_the_budget_and_the_device_works_on() {
    in_a_process("pinned_to_the_end", &["DLHAL_FAULT_LIMITS=heapSize=1073741824"]);
}

#[test]
fn free_memory_is_between_nothing_and_all_whatever_the_driver_says() {
    for budget in ["over", "under", "zero"] {
        in_a_process("budget", &[&format!("DLHAL_FAULT_BUDGET={budget}")]);
    }
    in_a_process("budget", &["DLHAL_FAULT_HIDE_EXTENSIONS=VK_EXT_memory_budget"]);
}

#[test]
fn free_memory_follows_what_is_allocated_where_the_driver_does_not_tell() {
    let hidden = "DLHAL_FAULT_HIDE_EXTENSIONS=VK_EXT_memory_budget";
    in_a_process("available_falls", &[hidden]);
}

#[test]
fn thousands_of_tensors_and_launches_need_few_memory_objects() {
    in_a_process("few_objects", &["DLHAL_FAULT_LIMITS=maxMemoryAllocationCount=16"]);
}

#[test]
fn a_buffer_larger_than_a_binding_may_be_is_used_at_both_ends() {
    let limits = "DLHAL_FAULT_LIMITS=maxStorageBufferRange=1048576";
    in_a_process("both_ends", &[limits]);
    in_a_process("both_ends", &[limits, "DLHAL_FORCE_DESCRIPTOR_POOLS=1"]);
}

#[test]
fn copies_by_a_kernel_keep_within_small_limits() {
    let limits = "DLHAL_FAULT_LIMITS=maxStorageBufferRange=1048576,\
                  minStorageBufferOffsetAlignment=256,maxComputeWorkGroupCount[0]=3";
    in_a_process("kernel_copies", &[limits, "DLHAL_COPY_KERNEL=1"]);
}

#[test]
fn an_allocation_that_the_driver_refuses_by_its_size_is_out_of_memory() {
    in_a_process("too_large_at_once", &["DLHAL_FAULT_LIMITS=maxMemoryAllocationSize=1073741824"]);
}

#[test]
fn every_copy_flushes_and_invalidates_where_memory_is_not_coherent() {
    for atom in [64, 256] {
        let limits = format!("DLHAL_FAULT_LIMITS=nonCoherentAtomSize={atom}");
        in_a_process("incoherent", &["DLHAL_FAULT_NONCOHERENT=1", &limits]);
    }
    let unmapped = "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY=1";
    in_a_process("incoherent", &["DLHAL_FAULT_NONCOHERENT=1", unmapped]);
    let threads = "DLHAL_COPY_THREADS=4";
    in_a_process("incoherent", &["DLHAL_FAULT_NONCOHERENT=1", threads]);
    in_a_process("incoherent", &["DLHAL_FAULT_NONCOHERENT=1", threads, unmapped]);
}

#[test]
fn a_call_that_the_driver_fails_is_told_and_nothing_is_left_behind() {
    in_a_process("sweep", &[]);
}

#[test]
fn a_call_that_the_driver_fails_is_told_and_nothing_is_left_behind_in_the_fallbacks() {
    let fallbacks = [
        "DLHAL_FORCE_FENCES=1",
        "DLHAL_FORCE_DESCRIPTOR_POOLS=1",
        "DLHAL_FORCE_RESERVED_ADDRESSES=1",
        "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY=1",
    ];
    in_a_process("sweep", &fallbacks);
}

#[test]
fn a_call_that_the_driver_fails_is_told_and_nothing_is_left_behind_with_what_hardware_gets() {
    let switches = ["DLHAL_COPY_KERNEL=1", "DLHAL_SPIN_US=50", "DLHAL_MAPPED_UP_TO=0"];
    in_a_process("sweep", &switches);
}

#[test]
fn a_call_that_the_driver_fails_is_told_and_nothing_is_left_behind_with_a_profile_running() {
    let file = format!("dlhal_profile_of_sweep_{}.json", std::process::id());
    let path = std::env::temp_dir().join(file);
    in_a_process("sweep", &[&format!("DLHAL_PROFILE={}", path.display())]);
    let trace = trace::Trace::read(&std::fs::read(&path).unwrap());
    std::fs::remove_file(path).unwrap();
    assert!(trace.count("main_kernel") >= 2);
}

#[test]
fn a_lost_device_still_gives_its_trace() {
    in_a_process("lost_while_profiled", &[]);
    in_a_process("lost_while_profiled", &["DLHAL_FORCE_FENCES=1"]);
}

#[test]
fn launches_without_a_synchronise_create_no_more_objects() {
    in_a_process("flat", &[]);
    in_a_process("flat", &["DLHAL_FORCE_FENCES=1", "DLHAL_FORCE_DESCRIPTOR_POOLS=1"]);
    in_a_process("flat", &["DLHAL_SPIN_US=50"]);
}

#[test]
fn ten_thousand_timers_need_few_query_pools() {
    in_a_process("many_timers", &[]);
    in_a_process("many_timers", &["DLHAL_FORCE_FENCES=1"]);
    in_a_process("many_timers", &["DLHAL_FORCE_NO_TIMESTAMPS=1"]);
    in_a_process("many_timers", &["DLHAL_FAULT_LIMITS=timestampValidBits=0"]);
}

/// Without validation, which keeps books of its own.
#[test]
fn work_without_a_synchronise_takes_bounded_memory() {
    let layers = "VK_INSTANCE_LAYERS=VK_LAYER_DLHAL_fault";
    in_a_process("backlog", &[layers, "DLHAL_VALIDATION=0"]);
}

macro_rules! children {
    ($($name:ident: $body:path;)*) => {$(
        #[test]
        #[ignore = "run by the tests above, with an environment"]
        fn $name() {
            $body();
            system::shutdown();
            Layer::get().nothing_lives("the shutdown");
            assert_eq!(vulkan::validation_messages(), Vec::<String>::new());
        }
    )*};
}

children! {
    full: limits::a_full_device;
    pinned_to_the_end: limits::pinned_to_the_end;
    kernel_copies: limits::copies_by_a_kernel;
    budget: limits::the_budget_holds_together;
    available_falls: limits::available_memory_falls;
    few_objects: limits::few_memory_objects;
    both_ends: limits::both_ends_of_a_large_buffer;
    too_large_at_once: limits::too_large_at_once;
    incoherent: limits::copies_where_memory_is_not_coherent;
    sweep: scarcity::every_call_fails_once;
    backlog: limits::the_backlog_is_bounded;
    many_timers: limits::many_timers;
    lost_while_profiled: profiles::a_lost_device_still_gives_its_trace;
    flat: scarcity::launches_create_no_more_objects;
}

/// The first device.
fn api() -> Api {
    Api { device: system::device(DeviceRef::vulkan(0)).unwrap() }
}

/// Runs one of the ignored tests with the fault layer between validation and driver.
fn in_a_process(test: &str, environment: &[&str]) {
    let environment: Vec<_> =
        environment.iter().map(|variable| variable.split_once('=').unwrap()).collect();
    let text = child::run(test, &environment, fault_layer::insert);
    assert!(!text.contains("DLHAL-FAULT-VIOLATION"), "{test} {environment:?}\n{text}");
}
