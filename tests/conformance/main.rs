//! Every behaviour of the device API on a real driver, once as the driver is and once for each
//! fallback, forced by its environment variable. The validation layer watches; any message fails.
//!
//! The driver is whatever the Vulkan loader finds (`VK_DRIVER_FILES` chooses).
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod copies;
mod kernels;
mod launches;
mod memory;
mod streams;

use std::process::Command;
use std::sync::Arc;

use dlhal::runtime::{Device, DeviceRef, system};

use common::Api;

/// The behaviours. Each takes a device and asserts.
const SUITE: &[(&str, fn(&Api))] = &[
    ("copies::any_size_at_any_offset", copies::any_size_at_any_offset),
    ("copies::strided_in_every_direction", copies::strided_in_every_direction),
    ("copies::large", copies::large),
    ("copies::pinned", copies::pinned),
    (
        "memory::edges_are_written_and_neighbours_kept",
        memory::edges_are_written_and_neighbours_kept,
    ),
    ("memory::many_small_tensors", memory::many_small_tensors),
    ("memory::out_of_memory_is_survived", memory::out_of_memory_is_survived),
    ("memory::host_memory_is_used_in_place", memory::host_memory_is_used_in_place),
    ("launches::every_size", launches::every_size),
    ("launches::scalars_of_two_launches", launches::scalars_of_two_launches),
    ("launches::misaligned_views", launches::misaligned_views),
    ("launches::wrong_arguments", launches::wrong_arguments),
    ("launches::zero_sizes", launches::zero_sizes),
    ("launches::prepared", launches::prepared),
    ("launches::folded_grid", launches::folded_grid),
    ("kernels::saxpy_matmul_rowmax", kernels::saxpy_matmul_rowmax),
    ("kernels::element_types", kernels::element_types),
    ("kernels::reduction_self_test", kernels::reduction_self_test),
    ("kernels::pipeline_cache", kernels::pipeline_cache),
    ("streams::freed_before_its_copy_runs", streams::freed_before_its_copy_runs),
    ("streams::threads_share_a_device", streams::threads_share_a_device),
    ("streams::threads_share_a_stream", streams::threads_share_a_stream),
    ("streams::streams_hand_memory_over", streams::streams_hand_memory_over),
    ("streams::backlog_is_bounded", streams::backlog_is_bounded),
];

#[test]
fn as_the_driver_is() {
    let device = device();
    println!("{}: {}", device.properties().name, device.properties().driver_info);
    let api = Api { device };
    for (name, behaviour) in SUITE {
        println!("{name}");
        behaviour(&api);
    }
    api.device.sync().unwrap();
    drop(api);
    system::shutdown();
    let messages = dlhal::vulkan_validation_messages();
    assert!(messages.is_empty(), "{}", messages.join("\n"));
}

#[test]
fn without_timeline_semaphores() {
    forced("DLHAL_FORCE_FENCES");
}

#[test]
fn without_push_descriptors() {
    forced("DLHAL_FORCE_DESCRIPTOR_POOLS");
}

#[test]
fn without_device_addresses() {
    forced("DLHAL_FORCE_RESERVED_ADDRESSES");
}

#[test]
fn without_host_import() {
    forced("DLHAL_FORCE_NO_HOST_IMPORT");
}

#[test]
fn without_a_memory_budget() {
    forced("DLHAL_FORCE_OWN_BUDGET");
}

#[test]
fn with_device_memory_unseen_by_the_host() {
    forced("DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY");
}

#[test]
fn with_one_queue() {
    forced("DLHAL_FORCE_ONE_QUEUE");
}

/// The first device.
fn device() -> Arc<Device> {
    system::device(DeviceRef::vulkan(0)).unwrap()
}

/// Runs the suite in a process of its own with `variable` set, since the environment is read once.
fn forced(variable: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "as_the_driver_is", "--nocapture"])
        .env(variable, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "with {variable}=1:\n{text}");
    assert!(text.contains("1 passed"), "with {variable}=1 the suite did not run:\n{text}");
}
