//! Every behaviour of the device API on a real driver, once as the driver is and once for each
//! fallback, forced by its environment variable. The validation layer watches; any message fails.
//!
//! With `DLHAL_TEST_SOAK=1` the tests take their long forms; with `DLHAL_TEST_LARGE=1` they also
//! copy more than 4 GiB at once, which needs 8 GiB of the device and 4 GiB of the host.
//!
//! The driver is whatever the Vulkan loader finds (`VK_DRIVER_FILES` chooses).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
mod compilation;
mod copies;
mod devices;
mod kernels;
mod launches;
mod memory;
mod profiles;
mod scalars;
mod streams;
mod timers;
#[path = "../common/trace.rs"]
mod trace;

use dlhal::runtime::{DeviceRef, system};
use dlhal::vulkan;

use common::Api;

type Behaviour = fn(&Api);

/// The behaviours. Each takes a device and asserts.
const SUITE: &[(&str, Behaviour)] = &[
    ("copies::any_size_at_any_offset", copies::any_size_at_any_offset),
    ("copies::within_the_device_at_any_offset", copies::within_the_device_at_any_offset),
    ("copies::strided_in_every_direction", copies::strided_in_every_direction),
    ("copies::beside_what_the_device_wrote", copies::beside_what_the_device_wrote),
    ("copies::large", copies::large),
    ("copies::pinned", copies::pinned),
    ("copies::sizes_around_powers_of_two", copies::sizes_around_powers_of_two),
    (
        "memory::edges_are_written_and_neighbours_kept",
        memory::edges_are_written_and_neighbours_kept,
    ),
    (
        "memory::neighbours_are_written_from_several_threads",
        memory::neighbours_are_written_from_several_threads,
    ),
    ("memory::many_small_tensors", memory::many_small_tensors),
    ("memory::out_of_memory_is_survived", memory::out_of_memory_is_survived),
    (
        "memory::results_in_pinned_memory_are_never_old",
        memory::results_in_pinned_memory_are_never_old,
    ),
    (
        "memory::results_in_pinned_memory_are_copied_out",
        memory::results_in_pinned_memory_are_copied_out,
    ),
    ("memory::the_largest_allocation_can_be_had", memory::the_largest_allocation_can_be_had),
    ("memory::host_memory_is_used_in_place", memory::host_memory_is_used_in_place),
    ("memory::host_memory_in_shared_pages", memory::host_memory_in_shared_pages),
    ("launches::every_size", launches::every_size),
    ("launches::scalars_of_two_launches", launches::scalars_of_two_launches),
    ("launches::misaligned_views", launches::misaligned_views),
    ("launches::wrong_arguments", launches::wrong_arguments),
    ("launches::zero_sizes", launches::zero_sizes),
    ("launches::prepared", launches::prepared),
    ("launches::folded_grid", launches::folded_grid),
    #[cfg(feature = "wgsl")]
    ("scalars::any_number_of_scalars", scalars::any_number_of_scalars),
    ("kernels::saxpy_matmul_rowmax", kernels::saxpy_matmul_rowmax),
    ("kernels::element_types", kernels::element_types),
    ("kernels::reduction_self_test", kernels::reduction_self_test),
    #[cfg(feature = "wgsl")]
    ("compilation::kernels_come_and_go", compilation::kernels_come_and_go),
    ("kernels::pipeline_cache", kernels::pipeline_cache),
    ("streams::freed_before_its_copy_runs", streams::freed_before_its_copy_runs),
    ("streams::threads_share_a_device", streams::threads_share_a_device),
    ("streams::threads_share_a_stream", streams::threads_share_a_stream),
    ("streams::mixed_copies_keep_every_byte", streams::mixed_copies_keep_every_byte),
    ("streams::streams_hand_memory_over", streams::streams_hand_memory_over),
    ("streams::backlog_is_bounded", streams::backlog_is_bounded),
    ("timers::more_work_takes_longer", timers::more_work_takes_longer),
    ("timers::any_number_of_timers", timers::any_number_of_timers),
    ("timers::threads_time_their_own_streams", timers::threads_time_their_own_streams),
    ("timers::out_of_order", timers::out_of_order),
    ("profiles::two_streams_in_order", profiles::two_streams_in_order),
    ("profiles::kernels_take_what_a_timer_says", profiles::kernels_take_what_a_timer_says),
    ("profiles::start_and_stop_under_load", profiles::start_and_stop_under_load),
];

const EVERY_FALLBACK: &[&str] = &[
    "DLHAL_FORCE_FENCES",
    "DLHAL_FORCE_DESCRIPTOR_POOLS",
    "DLHAL_FORCE_RESERVED_ADDRESSES",
    "DLHAL_FORCE_NO_HOST_IMPORT",
    "DLHAL_FORCE_OWN_BUDGET",
    "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY",
    "DLHAL_FORCE_ONE_QUEUE",
    "DLHAL_FORCE_NO_TIMESTAMPS",
    "DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS",
];

#[test]
fn as_the_driver_is() {
    suite_with(&[]);
}

#[test]
fn without_timeline_semaphores() {
    suite_with(&["DLHAL_FORCE_FENCES"]);
}

#[test]
fn without_push_descriptors() {
    suite_with(&["DLHAL_FORCE_DESCRIPTOR_POOLS"]);
}

#[test]
fn without_device_addresses() {
    suite_with(&["DLHAL_FORCE_RESERVED_ADDRESSES"]);
}

#[test]
fn without_host_import() {
    suite_with(&["DLHAL_FORCE_NO_HOST_IMPORT"]);
}

#[test]
fn without_a_memory_budget() {
    suite_with(&["DLHAL_FORCE_OWN_BUDGET"]);
}

#[test]
fn with_device_memory_unseen_by_the_host() {
    suite_with(&["DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY"]);
}

#[test]
fn with_one_queue() {
    suite_with(&["DLHAL_FORCE_ONE_QUEUE"]);
}

#[test]
fn without_timestamps() {
    suite_with(&["DLHAL_FORCE_NO_TIMESTAMPS"]);
}

#[test]
fn with_pipelines_created_between_submissions() {
    suite_with(&["DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS"]);
}

#[test]
fn with_copies_by_a_kernel() {
    suite_with(&["DLHAL_COPY_KERNEL"]);
}

#[test]
fn with_copies_by_a_kernel_and_without_anything_optional() {
    suite_with(&[EVERY_FALLBACK, &["DLHAL_COPY_KERNEL"]].concat());
}

#[test]
fn with_copies_by_the_copy_command() {
    suite_with(&["DLHAL_COPY_KERNEL=0"]);
}

#[test]
fn with_host_memory_copied_by_several_threads() {
    suite_with(&["DLHAL_COPY_THREADS=4", "DLHAL_COPY_SLICE=50001", "DLHAL_STREAM_FROM=0"]);
}

#[test]
fn with_host_memory_copied_by_several_threads_through_staging() {
    suite_with(&["DLHAL_COPY_THREADS=4", "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY"]);
}

#[test]
fn with_host_memory_copied_by_the_caller_alone() {
    suite_with(&["DLHAL_COPY_THREADS=1"]);
}

#[test]
fn with_writes_through_staging() {
    suite_with(&["DLHAL_MAPPED_UP_TO=0"]);
}

#[test]
fn with_waits_that_spin() {
    suite_with(&["DLHAL_SPIN_US=50"]);
}

#[test]
fn without_anything_optional() {
    suite_with(EVERY_FALLBACK);
}

#[test]
fn with_two_devices() {
    let drivers = ["DLHAL_TEST_SOFTWARE_DRIVER", "DLHAL_TEST_SOFTWARE_DRIVER_2"]
        .map(|variable| std::env::var(variable).expect("set by .deps/env.sh"));
    child::run("on_two_devices", &[("VK_DRIVER_FILES", &drivers.join(":"))], |_| ());
}

#[test]
#[ignore = "run by the tests above, with an environment"]
fn on_the_first_device() {
    let api = Api { device: system::device(DeviceRef::vulkan(0)).unwrap() };
    let properties = api.device.properties();
    println!("{} {}: {:?}", properties.name, properties.driver_info, properties.fallbacks);
    let wanted = std::env::var("BEHAVIOUR").unwrap_or_default();
    for (name, behaviour) in SUITE.iter().filter(|(name, _)| name.contains(&wanted)) {
        let start = std::time::Instant::now();
        behaviour(&api);
        println!("{name}: {:?}", start.elapsed());
    }
    api.device.sync().unwrap();
    drop(api);
    shut_down_without_complaint();
}

#[test]
#[ignore = "run by the tests above, with an environment"]
fn on_two_devices() {
    devices::both_devices_work_and_copy_to_each_other();
    shut_down_without_complaint();
}

fn shut_down_without_complaint() {
    system::shutdown();
    let messages = vulkan::validation_messages();
    assert!(messages.is_empty(), "{}", messages.join("\n"));
}

/// Runs the suite with switches on, or set to what follows a `=`.
fn suite_with(switches: &[&str]) {
    let environment: Vec<_> =
        switches.iter().map(|switch| switch.split_once('=').unwrap_or((switch, "1"))).collect();
    child::run("on_the_first_device", &environment, |_| ());
}
