//! The plan, tested on recorded devices and on variants of them that lack something.

use ash::vk::{MemoryPropertyFlags as Flags, QueueFlags};

use super::super::snapshot::recorded::{h200, lavapipe, lavapipe_22, minimum_1_1};
use super::super::snapshot::{MemoryHeap, MemoryType};
use super::*;
use crate::DlhalStatus;

fn planned(snapshot: &Snapshot) -> Plan {
    plan(snapshot, &Options::default()).unwrap()
}

fn with(base: Snapshot, change: impl FnOnce(&mut Snapshot)) -> Snapshot {
    let mut snapshot = base;
    change(&mut snapshot);
    snapshot
}

fn forced(change: impl FnOnce(&mut Options)) -> Plan {
    let mut options = Options::default();
    change(&mut options);
    plan(&lavapipe(), &options).unwrap()
}

fn family(flags: QueueFlags, count: u32, timestamp_valid_bits: u32) -> QueueFamily {
    QueueFamily { flags: flags.as_raw(), count, timestamp_valid_bits }
}

const ALL: QueueFlags = QueueFlags::from_raw(
    QueueFlags::GRAPHICS.as_raw() | QueueFlags::COMPUTE.as_raw() | QueueFlags::TRANSFER.as_raw(),
);
const ASYNC: QueueFlags =
    QueueFlags::from_raw(QueueFlags::COMPUTE.as_raw() | QueueFlags::TRANSFER.as_raw());

/// `(family, count, role)` of each planned family.
fn roles(plan: &Plan) -> Vec<(u32, u32, QueueRole)> {
    plan.queues.iter().map(|queue| (queue.family, queue.count, queue.role)).collect()
}

#[test]
fn lavapipe_gets_everything_it_has() {
    let plan = planned(&lavapipe());
    assert_eq!(plan.api_version, vk::API_VERSION_1_3);
    assert_eq!(roles(&plan), [(0, 1, QueueRole::Compute)]);
    assert_eq!((plan.device_memory_types, plan.host_memory_types), (vec![0], vec![0]));
    assert!(plan.map_device_memory && plan.memory_budget && plan.push_descriptors);
    assert_eq!(plan.max_push_descriptors, 32);
    assert_eq!(plan.host_import_alignment, Some(4096));
    assert!(plan.features.timeline_semaphore && plan.features.buffer_device_address);
    assert!(!plan.features.robust_buffer_access, "it costs speed, nobody asked");
    assert_eq!(
        plan.extensions,
        [
            "VK_KHR_push_descriptor",
            "VK_EXT_memory_budget",
            "VK_EXT_external_memory_host",
            "VK_EXT_shader_atomic_float"
        ],
        "everything else is in the core of 1.3"
    );
}

#[test]
fn the_h200_gets_compute_queues_and_copy_engines() {
    let plan = planned(&h200());
    assert_eq!(roles(&plan)[0].2, QueueRole::Compute);
    assert_eq!(roles(&plan)[0].1, MAX_COMPUTE_QUEUES);
    assert_eq!(roles(&plan)[1..], [(1, 2, QueueRole::Transfer)]);
    assert!(plan.features.cooperative_matrix);
    assert!(plan.extensions.contains(&"VK_KHR_cooperative_matrix"));
    assert!(plan.pipelines_between_submissions);
}

#[test]
fn on_the_h200_device_memory_is_the_large_heap_and_host_memory_is_cached() {
    let plan = planned(&h200());
    let heap = |index: u32| h200().memory_types[index as usize].heap;
    assert!(plan.device_memory_types.iter().all(|&index| heap(index) == 0), "never the window");
    let best = h200().memory_types[plan.host_memory_types[0] as usize];
    let wanted = Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED;
    assert!(Flags::from_raw(best.flags).contains(wanted));
    assert_eq!(best.heap, 1);
}

#[test]
fn debian_12s_lavapipe_can_be_planned_without_its_missing_parts() {
    let plan = planned(&lavapipe_22());
    assert_eq!(plan.api_version, vk::API_VERSION_1_3);
    assert_eq!(roles(&plan), [(0, 1, QueueRole::Compute)]);
}

#[test]
fn the_minimum_of_vulkan_1_1_is_enough() {
    let plan = planned(&minimum_1_1());
    assert_eq!(plan.api_version, vk::API_VERSION_1_1);
    assert_eq!(plan.extensions, Vec::<&str>::new());
    assert_eq!(plan.features, EnabledFeatures::default());
    assert_eq!(roles(&plan), [(0, 1, QueueRole::Compute)]);
    assert_eq!(plan.queues[0].timestamp_valid_bits, 0);
    assert_eq!((plan.device_memory_types, plan.host_memory_types), (vec![0], vec![1]));
    assert!(!plan.map_device_memory && !plan.memory_budget && !plan.push_descriptors);
    assert_eq!((plan.max_push_descriptors, plan.host_import_alignment), (0, None));
}

#[test]
fn vulkan_1_0_is_refused_with_its_version() {
    let old = with(lavapipe(), |s| s.api_version = [1, 0, 65]);
    let error = plan(&old, &Options::default()).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::Unsupported);
    assert!(error.message().contains("1.0.65") && error.message().contains("1.1"), "{error}");
}

#[test]
fn an_instance_of_vulkan_1_1_holds_a_newer_device_back() {
    let held = with(h200(), |s| s.instance_api_version = [1, 1, 0]);
    let plan = planned(&held);
    assert_eq!(plan.api_version, vk::API_VERSION_1_1);
    for name in ["VK_KHR_timeline_semaphore", "VK_KHR_buffer_device_address", "VK_KHR_maintenance4"]
    {
        assert!(plan.extensions.contains(&name), "{name} is not in the core of 1.1");
    }
    assert!(plan.features.timeline_semaphore);
}

#[test]
fn extensions_are_asked_for_exactly_where_the_version_lacks_them() {
    let at = |version: [u32; 3]| planned(&with(h200(), |s| s.api_version = version)).extensions;
    let (v11, v12, v13) = (at([1, 1, 0]), at([1, 2, 0]), at([1, 3, 0]));
    for (name, lists) in [
        ("VK_KHR_timeline_semaphore", [true, false, false]),
        ("VK_KHR_8bit_storage", [true, false, false]),
        ("VK_KHR_spirv_1_4", [true, false, false]),
        ("VK_EXT_subgroup_size_control", [true, true, false]),
        ("VK_KHR_maintenance4", [true, true, false]),
        ("VK_KHR_push_descriptor", [true, true, true]),
    ] {
        assert_eq!([&v11, &v12, &v13].map(|list| list.contains(&name)), lists, "{name}");
    }
}

#[test]
fn an_extension_that_the_device_lacks_is_never_asked_for() {
    for base in [lavapipe(), lavapipe_22(), h200()] {
        for version in [[1, 1, 0], [1, 2, 0], [1, 3, 0]] {
            for gone in base.extensions.keys() {
                let without = with(base.clone(), |s| {
                    s.api_version = version;
                    s.extensions.remove(gone);
                });
                let plan = planned(&without);
                assert!(!plan.extensions.contains(&gone.as_str()), "{gone}");
            }
        }
    }
}

#[test]
fn without_timeline_semaphores_fences_do() {
    let plan = planned(&with(lavapipe(), |s| s.features.timeline_semaphore = false));
    assert!(!plan.features.timeline_semaphore);
    assert!(!plan.extensions.contains(&"VK_KHR_timeline_semaphore"));
}

#[test]
fn without_push_descriptors_pools_do() {
    let plan = planned(&with(lavapipe(), |s| {
        s.extensions.remove("VK_KHR_push_descriptor");
        s.max_push_descriptors = None;
    }));
    assert!(!plan.push_descriptors);
    assert_eq!(plan.max_push_descriptors, 0);
}

#[test]
fn without_device_addresses_kernels_get_none() {
    let plan = planned(&with(lavapipe(), |s| s.features.buffer_device_address = false));
    assert!(!plan.features.buffer_device_address);
}

#[test]
fn without_a_memory_budget_it_is_not_asked_for() {
    let plan = planned(&with(lavapipe(), |s| {
        s.extensions.remove("VK_EXT_memory_budget");
    }));
    assert!(!plan.memory_budget);
    assert!(!plan.extensions.contains(&"VK_EXT_memory_budget"));
}

#[test]
fn non_coherent_host_memory_is_used_where_there_is_no_other() {
    let non_coherent = with(lavapipe(), |s| {
        let flags = Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE | Flags::HOST_CACHED;
        s.memory_types = vec![MemoryType { flags: flags.as_raw(), heap: 0 }];
    });
    let plan = planned(&non_coherent);
    assert_eq!((plan.device_memory_types, plan.host_memory_types), (vec![0], vec![0]));
    assert!(plan.map_device_memory);
}

#[test]
fn host_memory_is_coherent_where_it_can_be_and_then_cached() {
    let types = [
        Flags::DEVICE_LOCAL,
        Flags::HOST_VISIBLE | Flags::HOST_COHERENT,
        Flags::HOST_VISIBLE | Flags::HOST_CACHED,
        Flags::HOST_VISIBLE | Flags::HOST_CACHED | Flags::HOST_COHERENT,
    ];
    let snapshot = with(h200(), |s| {
        s.memory_types = types
            .iter()
            .map(|flags| MemoryType {
                flags: flags.as_raw(),
                heap: u32::from(!flags.contains(Flags::DEVICE_LOCAL)),
            })
            .collect();
    });
    let plan = planned(&snapshot);
    assert_eq!(plan.host_memory_types, [3, 1, 2]);
    assert_eq!(plan.device_memory_types, [0]);
    assert!(!plan.map_device_memory);
}

#[test]
fn device_memory_that_the_host_sees_whole_is_mapped() {
    let resizable_bar = with(h200(), |s| {
        s.memory_heaps.truncate(2);
        s.memory_types[4].heap = 0;
    });
    let plan = planned(&resizable_bar);
    assert_eq!(plan.device_memory_types, [4, 1]);
    assert!(plan.map_device_memory);
    assert_eq!(plan.host_memory_types[0], 3, "host memory stays with the host");
}

#[test]
fn protected_and_lazily_allocated_memory_is_left_alone() {
    let snapshot = with(h200(), |s| {
        for flags in [Flags::PROTECTED, Flags::LAZILY_ALLOCATED, Flags::DEVICE_COHERENT_AMD] {
            let flags = (flags | Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE).as_raw();
            s.memory_types.push(MemoryType { flags, heap: 0 });
        }
    });
    let plan = planned(&snapshot);
    assert!(plan.device_memory_types.iter().all(|&index| index < 5));
    assert!(plan.host_memory_types.iter().all(|&index| index < 5));
}

#[test]
fn a_device_without_host_visible_memory_is_refused_with_its_types() {
    let snapshot = with(h200(), |s| {
        s.memory_types = vec![MemoryType { flags: Flags::DEVICE_LOCAL.as_raw(), heap: 0 }];
    });
    let error = plan(&snapshot, &Options::default()).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::Unsupported);
    assert!(error.message().contains("HOST_VISIBLE"), "{error}");
    assert!(error.message().contains("DEVICE_LOCAL in heap 0"), "{error}");
}

#[test]
fn a_memory_type_of_a_heap_that_is_not_there_is_ignored() {
    let snapshot = with(h200(), |s| {
        s.memory_types.push(MemoryType { flags: Flags::HOST_VISIBLE.as_raw(), heap: 9 });
    });
    assert!(!planned(&snapshot).host_memory_types.contains(&5));
}

#[test]
fn a_device_without_a_heap_of_its_own_uses_the_hosts() {
    let snapshot = with(lavapipe(), |s| {
        let flags = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        s.memory_heaps = vec![MemoryHeap { size: 1 << 30, flags: 0 }];
        s.memory_types = vec![MemoryType { flags: flags.as_raw(), heap: 0 }];
    });
    let plan = planned(&snapshot);
    assert_eq!(plan.device_memory_types, [0]);
}

#[test]
fn one_queue_is_enough() {
    let one = with(h200(), |s| s.queue_families = vec![family(ALL, 1, 36)]);
    let plan = planned(&one);
    assert_eq!(roles(&plan), [(0, 1, QueueRole::Compute)]);
    assert_eq!(plan.queues[0].timestamp_valid_bits, 36);
}

#[test]
fn timestamps_are_done_without_where_that_is_asked_for_and_where_a_tick_takes_no_time() {
    let bits = |plan: Plan| plan.queues.iter().map(|q| q.timestamp_valid_bits).max();
    assert_eq!(bits(planned(&h200())), Some(64));
    assert_eq!(bits(planned(&with(h200(), |s| s.limits.timestamp_period = 0.0))), Some(0));
    let options = Options { force_no_timestamps: true, ..Options::default() };
    assert_eq!(bits(plan(&h200(), &options).unwrap()), Some(0));
}

#[test]
fn async_compute_and_transfer_queues_are_found_behind_the_graphics_queue() {
    let snapshot = with(h200(), |s| {
        s.queue_families = vec![
            family(ALL, 1, 64),
            family(QueueFlags::TRANSFER | QueueFlags::SPARSE_BINDING, 1, 0),
            family(ASYNC, 4, 64),
        ];
    });
    assert_eq!(
        roles(&planned(&snapshot)),
        [(2, 4, QueueRole::Compute), (1, 1, QueueRole::Transfer)]
    );
}

#[test]
fn of_equal_families_the_one_without_graphics_is_taken() {
    let snapshot =
        with(h200(), |s| s.queue_families = vec![family(ALL, 1, 64), family(ASYNC, 1, 64)]);
    assert_eq!(roles(&planned(&snapshot)), [(1, 1, QueueRole::Compute)]);
}

#[test]
fn video_and_optical_flow_engines_are_not_copy_engines() {
    let snapshot = with(h200(), |s| {
        s.queue_families = vec![
            family(ALL, 1, 64),
            family(QueueFlags::TRANSFER | QueueFlags::VIDEO_DECODE_KHR, 2, 64),
            family(QueueFlags::TRANSFER | QueueFlags::OPTICAL_FLOW_NV, 2, 64),
        ];
    });
    assert_eq!(roles(&planned(&snapshot)), [(0, 1, QueueRole::Compute)]);
}

#[test]
fn a_device_that_cannot_compute_is_refused_with_its_families() {
    for families in [
        vec![family(QueueFlags::GRAPHICS, 1, 64)],
        vec![family(QueueFlags::COMPUTE, 0, 64)],
        vec![],
    ] {
        let snapshot = with(h200(), |s| s.queue_families = families.clone());
        let error = plan(&snapshot, &Options::default()).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::Unsupported);
        let shown = match families.first() {
            Some(first) if first.count == 0 => "COMPUTE x 0",
            Some(_) => "GRAPHICS x 1",
            None => "none",
        };
        assert!(error.message().contains(shown), "{error}");
    }
}

#[test]
fn every_fallback_can_be_forced() {
    assert!(!forced(|o| o.force_fences = true).features.timeline_semaphore);
    let pools = forced(|o| o.force_descriptor_pools = true);
    assert!(!pools.push_descriptors && !pools.extensions.contains(&"VK_KHR_push_descriptor"));
    assert!(!forced(|o| o.force_reserved_addresses = true).features.buffer_device_address);
    let no_import = forced(|o| o.force_no_host_import = true);
    assert_eq!(no_import.host_import_alignment, None);
    assert!(!no_import.extensions.contains(&"VK_EXT_external_memory_host"));
    let own = forced(|o| o.force_own_budget = true);
    assert!(!own.memory_budget && !own.extensions.contains(&"VK_EXT_memory_budget"));
    assert!(!forced(|o| o.force_unmapped_device_memory = true).map_device_memory);
    let between = forced(|o| o.force_pipelines_between_submissions = true);
    assert!(between.pipelines_between_submissions);
    assert!(!planned(&lavapipe()).pipelines_between_submissions);
    assert!(forced(|o| o.robust_buffer_access = true).features.robust_buffer_access);
}

#[test]
fn one_queue_can_be_forced() {
    let options = Options { force_one_queue: true, ..Options::default() };
    let plan = plan(&h200(), &options).unwrap();
    assert_eq!(plan.queues.len(), 1);
    assert_eq!(plan.queues[0].count, 1);
    assert_eq!(plan.queues[0].role, QueueRole::Compute);
}

#[test]
fn forced_unmapped_memory_prefers_types_that_the_host_does_not_see() {
    let resizable_bar = with(h200(), |s| {
        s.memory_heaps.truncate(2);
        s.memory_types[4].heap = 0;
    });
    let options = Options { force_unmapped_device_memory: true, ..Options::default() };
    let plan = plan(&resizable_bar, &options).unwrap();
    assert_eq!(plan.device_memory_types, [1, 4]);
    assert!(!plan.map_device_memory);
}

#[test]
fn a_portability_device_is_created_with_its_subset_extension() {
    let snapshot = with(lavapipe(), |s| {
        s.extensions.insert("VK_KHR_portability_subset".to_owned(), 1);
    });
    assert!(planned(&snapshot).extensions.contains(&"VK_KHR_portability_subset"));
}

#[test]
fn cooperative_matrices_need_the_memory_model() {
    let snapshot = with(h200(), |s| s.features.vulkan_memory_model = false);
    assert!(!planned(&snapshot).features.cooperative_matrix);
}

#[test]
fn a_host_import_alignment_that_is_no_power_of_two_is_not_trusted() {
    for alignment in [0, 3, 4097] {
        let snapshot =
            with(lavapipe(), |s| s.min_imported_host_pointer_alignment = Some(alignment));
        assert_eq!(planned(&snapshot).host_import_alignment, None, "{alignment}");
    }
}
