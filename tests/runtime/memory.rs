//! Allocations: alignment, neighbours, look-up, reuse, counts.

use std::collections::HashSet;

use dlhal::DlhalStatus;
use dlhal::hal::MemoryKind;
use dlhal::null::Options;
use dlhal::runtime::thread;

use crate::support::{Rig, assert_error};

fn variants() -> [Rig; 2] {
    [true, false]
        .map(|addresses| Rig::new(Options { device_addresses: addresses, ..Options::default() }))
}

#[test]
fn allocations_are_aligned_and_do_not_overlap() {
    let sizes = (0..300).chain((8..=24).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]));
    let sizes: Vec<u64> = sizes.collect();
    for rig in variants() {
        for alignment in [1, 4, 64, 256, 4096, 1 << 17] {
            let mut ranges = Vec::new();
            for &size in &sizes {
                let address = rig.device.allocate(size, alignment, MemoryKind::Device).unwrap();
                assert_eq!(address % alignment, 0, "{size} bytes at a multiple of {alignment}");
                ranges.push((address, address + size.max(1)));
            }
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            ranges.iter().for_each(|range| rig.device.free(range.0).unwrap());
        }
        assert_eq!(rig.device.memory_statistics().live_bytes, 0);
    }
}

#[test]
fn twenty_thousand_small_tensors_take_a_handful_of_memory_objects() {
    let rig = Rig::new(Options::default());
    let addresses: HashSet<u64> = (0..20_000).map(|_| rig.alloc(64)).collect();
    assert_eq!(addresses.len(), 20_000);
    assert!(rig.device.memory_statistics().memory_objects <= 4);
    addresses.into_iter().for_each(|address| rig.device.free(address).unwrap());
    rig.device.trim();
    assert_eq!(rig.device.memory_statistics().memory_objects, 0);
}

#[test]
fn an_address_inside_an_allocation_is_found_and_its_end_is_another_matter() {
    for rig in variants() {
        let stream = thread::stream(&rig.device).unwrap();
        let address = rig.alloc(1000);
        rig.write(address, &[1; 1000], &stream).unwrap();
        rig.write(address + 999, &[9], &stream).unwrap();
        assert_eq!(rig.read(address + 998, 2, &stream).unwrap(), [1, 9]);
        let past = DlhalStatus::InvalidArgument;
        assert_error(rig.read(address + 999, 2, &stream), past, "1 are left");
        let unknown = DlhalStatus::NotFound;
        assert_error(rig.read(address + 1000, 1, &stream), unknown, "past an allocation's end");
        assert_error(rig.read(0x1000, 1, &stream), unknown, "0x1000");
        assert_error(rig.device.free(address + 8), past, "8 bytes inside");
        rig.device.free(address).unwrap();
        assert_error(rig.read(address, 1, &stream), unknown, "freed");
        assert_error(rig.device.free(address), unknown, "freed");
    }
}

#[test]
fn a_zero_byte_allocation_has_an_address_of_its_own() {
    let rig = Rig::new(Options::default());
    let (a, b) = (rig.alloc(0), rig.alloc(0));
    assert_ne!(a, b);
    rig.device.free(a).unwrap();
    rig.device.free(b).unwrap();
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_refused() {
    let rig = Rig::new(Options::default());
    for alignment in [0, 3, 48] {
        let refused = rig.device.allocate(64, alignment, MemoryKind::Device);
        assert_error(refused, DlhalStatus::InvalidArgument, "power of two");
    }
}

#[test]
fn memory_that_was_used_in_other_sizes_is_whole_again_after_a_trim() {
    let rig = Rig::new(Options { total_memory: 64 << 20, ..Options::default() });
    for round in 0..50u64 {
        let sizes = (1..200).map(|i| (i * 7919 * (round + 1)) % (96 << 10));
        let addresses: Vec<u64> = sizes.map(|size| rig.alloc(size)).collect();
        addresses.into_iter().for_each(|address| rig.device.free(address).unwrap());
    }
    rig.device.trim();
    let statistics = rig.device.memory_statistics();
    assert_eq!((statistics.live_bytes, statistics.reserved_bytes), (0, 0));
}

#[test]
fn available_memory_falls_by_what_is_allocated_and_never_exceeds_the_total() {
    for budget in [true, false] {
        let rig = Rig::new(Options { memory_budget: budget, ..Options::default() });
        let before = rig.device.available_memory();
        let address = rig.alloc(512 << 20);
        let during = rig.device.available_memory();
        assert!(during <= before - (500 << 20), "{during} of {before} with budget {budget}");
        rig.device.free(address).unwrap();
        rig.device.trim();
        assert!(rig.device.available_memory() >= before - (64 << 20));
        assert!(before <= rig.device.properties().total_memory);
    }
}

#[test]
fn pinned_memory_is_seen_by_host_and_device() {
    let rig = Rig::new(Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let pinned = rig.device.allocate(4096, 64, MemoryKind::Host).unwrap();
    let host = rig.device.host_pointer(pinned + 16).unwrap();
    // SAFETY: the pointer is to the allocation's memory, which nothing else uses.
    unsafe { host.write(42) };
    let device = rig.alloc(4096);
    rig.move_bytes(pinned, device, 4096, &stream).unwrap();
    assert_eq!(rig.read(device + 16, 1, &stream).unwrap(), [42]);
    let refused = rig.device.host_pointer(device);
    assert_error(refused, DlhalStatus::Unsupported, "memory scope");
}
