//! The HAL conformance suite, on the null driver and on the first Vulkan device, there once with
//! everything and once for each fallback. Each Vulkan run is a process of its own, because the
//! environment says what to do without and because validation messages count for the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hal;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;

use dlhal::hal::{Device, QueueRole};
use dlhal::{null, vulkan};
use hal::TESTS;
use hal::kit::{Context, on_the_host};

#[test]
fn the_null_driver_conforms() {
    let make = || -> Arc<dyn Device> {
        null::Device::new(null::Options {
            queues: vec![QueueRole::Compute, QueueRole::Compute, QueueRole::Transfer],
            kernel: Some(Arc::new(on_the_host)),
            ..null::Options::default()
        })
    };
    run_all(&make, &|| Vec::new());
}

#[test]
fn vulkan_conforms() {
    in_a_process(&[]);
}

#[test]
fn vulkan_conforms_without_validation() {
    in_a_process(&["DLHAL_VALIDATION=0"]);
}

#[test]
fn vulkan_conforms_with_fences() {
    in_a_process(&["DLHAL_FORCE_FENCES"]);
}

#[test]
fn vulkan_conforms_with_descriptor_pools() {
    in_a_process(&["DLHAL_FORCE_DESCRIPTOR_POOLS"]);
}

#[test]
fn vulkan_conforms_with_reserved_addresses_and_unmapped_memory() {
    in_a_process(&["DLHAL_FORCE_RESERVED_ADDRESSES", "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY"]);
}

#[test]
fn vulkan_conforms_on_one_queue_without_import_budget_and_timestamps() {
    in_a_process(&[
        "DLHAL_FORCE_ONE_QUEUE",
        "DLHAL_FORCE_NO_HOST_IMPORT",
        "DLHAL_FORCE_OWN_BUDGET",
        "DLHAL_FORCE_NO_TIMESTAMPS",
    ]);
}

#[test]
fn vulkan_conforms_without_anything_optional() {
    in_a_process(&[
        "DLHAL_FORCE_FENCES",
        "DLHAL_FORCE_DESCRIPTOR_POOLS",
        "DLHAL_FORCE_RESERVED_ADDRESSES",
        "DLHAL_FORCE_UNMAPPED_DEVICE_MEMORY",
        "DLHAL_FORCE_ONE_QUEUE",
        "DLHAL_FORCE_NO_HOST_IMPORT",
        "DLHAL_FORCE_OWN_BUDGET",
        "DLHAL_FORCE_NO_TIMESTAMPS",
        "DLHAL_FORCE_PIPELINES_BETWEEN_SUBMISSIONS",
    ]);
}

#[test]
fn vulkan_conforms_with_incoherent_memory() {
    in_a_process(&["DLHAL_FAULT_NONCOHERENT=1"]);
}

#[test]
fn vulkan_conforms_at_version_1_1() {
    in_a_process(&["DLHAL_FAULT_API_VERSION=1.1"]);
}

#[test]
fn vulkan_conforms_with_small_limits() {
    in_a_process(&[
        "DLHAL_FAULT_LIMITS=maxPushDescriptors=1,maxPushConstantsSize=128,maxMemoryAllocationCount=100",
    ]);
}

/// Tests in which the host signals what another thread or the device is waiting for. Validation
/// layers such as 1.3.239 lose sight of such a signal now and then, wait ten seconds for it, and
/// then complain about themselves. These tests are run without validation.
const NOT_VALIDATED: &[&str] = &[
    "semaphores::an_endless_timeout_waits_for_the_signal_of_another_thread",
    "semaphores::work_waits_for_the_host",
    "semaphores::a_failure_reaches_the_work_that_waits_and_frees_the_queue",
];

/// What the tests above start in their processes.
#[test]
#[ignore = "run by the other tests, with an environment"]
fn on_the_first_vulkan_device() {
    let driver = vulkan::load().unwrap();
    let usable = driver.adapters().iter().position(|adapter| adapter.usable.is_ok()).unwrap();
    let make = || driver.create_device(usable).unwrap();
    let messages = || vulkan::validation_messages();
    let properties = make();
    let properties = properties.properties();
    println!("{} {}: {:?}", properties.name, properties.driver_info, properties.fallbacks);
    run_all(&make, &messages);
}

fn in_a_process(switches: &[&str]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "on_the_first_vulkan_device", "--nocapture"]);
    command.env("DLHAL_VALIDATION", "1");
    for switch in switches {
        let (name, value) = switch.split_once('=').unwrap_or((switch, "1"));
        if name.starts_with("DLHAL_FAULT") {
            hal::fault_layer::insert(&mut command);
        }
        command.env(name, value);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{switches:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs every test, and after each one looks for validation messages and that the device lives.
fn run_all(make: &dyn Fn() -> Arc<dyn Device>, messages: &dyn Fn() -> Vec<String>) {
    let wanted = std::env::var("HAL_TEST").unwrap_or_default();
    let device = make();
    let context = Context { device: &device, another: make };
    let mut failed = Vec::new();
    let mut seen = messages().len();
    let validated = std::env::var("DLHAL_VALIDATION").is_ok_and(|value| value == "1");
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&wanted)) {
        if validated && NOT_VALIDATED.contains(name) {
            continue;
        }
        let start = std::time::Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| test(&context)));
        let new = messages().split_off(seen.min(messages().len()));
        seen += new.len();
        println!(
            "{name}: {} in {:?}",
            if outcome.is_ok() { "ok" } else { "FAILED" },
            start.elapsed()
        );
        new.iter().for_each(|message| println!("  {message}"));
        if outcome.is_err() || !new.is_empty() {
            failed.push(*name);
        }
    }
    device.health().unwrap();
    drop(device);
    assert_eq!(messages().split_off(seen), Vec::<String>::new(), "messages at the device's end");
    assert!(failed.is_empty(), "failed: {failed:?}");
}
