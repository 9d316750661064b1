//! Devices with little memory, small limits or an odd account of them.

use dlhal::DlhalStatus;
use dlhal::hal::{Deadline, MemoryKind};
use dlhal::runtime::copy::{Side, copy};

use crate::common::{Api, add_args, add_function, assert_error, host, on_device, rounds};
use crate::{Layer, api, copies, memory, streams, timers};

const BLOCK: u64 = 32 << 20;

/// C = A + B gives what it should.
fn works(api: &Api) {
    let stream = api.stream();
    let [a, b, c] = [0; 3].map(|_| api.alloc(256));
    let words = |value: f32| [value; 64].map(f32::to_le_bytes).concat();
    api.write(a, &words(1.0), &stream).unwrap();
    api.write(b, &words(2.0), &stream).unwrap();
    api.add(a, b, c, &stream).unwrap();
    assert!(api.read(c, 256, &stream).unwrap() == words(3.0));
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

pub(crate) fn a_full_device() {
    let api = api();
    let total = api.device.properties().total_memory;
    assert_eq!(total, 512 << 20, "the fault layer's limit does not hold");
    works(&api);
    for kind in [MemoryKind::Device, MemoryKind::Host] {
        let allocate = |size| api.device.allocate(size, 64, kind);
        for size in [2 * total, 1 << 40, u64::MAX, u64::MAX - 4095] {
            let refused = allocate(size);
            assert_error(refused, DlhalStatus::OutOfMemory, &size.to_string());
        }
        for _ in 0..2 {
            let mut blocks = Vec::new();
            let refused = loop {
                match allocate(BLOCK) {
                    Ok(address) => blocks.push(address),
                    Err(error) => break error,
                }
                assert!(blocks.len() as u64 * BLOCK <= total, "more than there is");
            };
            assert_eq!(refused.status(), DlhalStatus::OutOfMemory, "{refused}");
            for part in [&BLOCK.to_string(), "heap", "free", "live allocations"] {
                assert!(refused.message().contains(part), "{refused} lacks {part}");
            }
            assert!(blocks.len() >= 10, "{} blocks of 32 MiB in 512 MiB", blocks.len());
            let half = blocks.len() / 2;
            blocks.drain(..half).for_each(|address| api.device.free(address).unwrap());
            blocks.push(allocate(BLOCK).unwrap());
            works(&api);
            blocks.into_iter().for_each(|address| api.device.free(address).unwrap());
        }
    }
    // Streams that were freed are gone then.
    api.device.sync().unwrap();
    api.device.trim();
    let statistics = api.device.memory_statistics();
    assert_eq!((statistics.live_bytes, statistics.reserved_bytes), (0, 0));
    assert_eq!(Layer::get().live(c"bytes"), 0);
}

pub(crate) fn pinned_to_the_end() {
    let api = api();
    let stream = api.stream();
    let total = api.device.properties().total_memory;
    let step = 64 << 20;
    let target = api.alloc(step);
    let mut pinned = Vec::new();
    while (pinned.len() as u64 + 2) * step <= total / 10 * 9 {
        let address = api.device.allocate(step, 64, MemoryKind::Host).unwrap();
        let pointer = api.device.host_pointer(address).unwrap();
        let shape = [step as i64];
        // SAFETY: the allocation is that long; nothing else uses it.
        unsafe { pointer.write_bytes(pinned.len() as u8 + 1, step as usize) };
        // SAFETY: the source is pinned memory that outlives the copy.
        unsafe {
            copy(
                &Side { view: host(pointer as u64, &shape), device: None },
                &Side { view: on_device(target, &shape), device: Some(&api.device) },
                &stream,
            )
        }
        .unwrap();
        assert_eq!(api.read(target + step - 1, 1, &stream).unwrap(), [pinned.len() as u8 + 1]);
        pinned.push(address);
    }
    let refused = api.device.allocate(2 * total, 64, MemoryKind::Host);
    assert_error(refused, DlhalStatus::OutOfMemory, &(2 * total).to_string());
    let refused = api.device.allocate(total / 4, 64, MemoryKind::Host);
    assert_error(refused, DlhalStatus::OutOfMemory, "free");
    works(&api);
    pinned.into_iter().for_each(|address| api.device.free(address).unwrap());
    api.device.free(target).unwrap();
}

pub(crate) fn the_budget_holds_together() {
    let api = api();
    let total = api.device.properties().total_memory;
    for _ in 0..3 {
        assert_eq!(api.device.properties().total_memory, total);
        assert!(api.device.available_memory() <= total);
        match api.device.allocate(16 << 20, 64, MemoryKind::Device) {
            Ok(address) => {
                assert!(api.device.available_memory() <= total);
                api.device.free(address).unwrap();
            }
            Err(error) => assert_eq!(error.status(), DlhalStatus::OutOfMemory, "{error}"),
        }
    }
}

pub(crate) fn available_memory_falls() {
    let api = api();
    let stream = api.stream();
    let before = api.device.available_memory();
    assert!(before <= api.device.properties().total_memory);
    let size = 512 << 20;
    let address = api.alloc(size);
    api.write(address + size - 4096, &[1; 4096], &stream).unwrap();
    let during = api.device.available_memory();
    assert!(during <= before - (500 << 20), "{during} of {before}");
    stream.sync(Deadline::Never).unwrap();
    api.device.free(address).unwrap();
    api.device.trim();
    let after = api.device.available_memory();
    assert!(after + (64 << 20) >= before, "{after} after {before}");
}

pub(crate) fn few_memory_objects() {
    let api = api();
    assert_eq!(api.device.properties().max_memory_objects, 16);
    memory::many_small_tensors(&api);
    assert!(Layer::get().live(c"VkDeviceMemory") <= 16);
    api.device.sync().unwrap();
    api.device.trim();
    assert_eq!(Layer::get().live(c"VkDeviceMemory"), 0);
}

pub(crate) fn both_ends_of_a_large_buffer() {
    let api = api();
    let stream = api.stream();
    let add = add_function();
    let range = 1 << 20;
    let size = range + 4096;
    let words = |count: u64, value: f32| value.to_le_bytes().repeat(count as usize);
    let [a, b, c] = [0; 3].map(|_| api.alloc(size));
    api.write(a, &words(size / 4, 1.0), &stream).unwrap();
    api.write(b, &words(size / 4, 2.0), &stream).unwrap();
    api.write(c, &words(size / 4, 0.0), &stream).unwrap();
    let half = size / 2;
    api.launch(&add, &add_args(a, b, c, half as i64 / 4), &stream).unwrap();
    let end = size - 4096;
    api.launch(&add, &add_args(a + end, b + end, c + end, 1024), &stream).unwrap();
    let result = api.read(c, size as usize, &stream).unwrap();
    let (first, rest) = result.split_at(half as usize);
    let (middle, last) = rest.split_at((end - half) as usize);
    assert!(first == words(half / 4, 3.0), "the first half");
    assert!(middle == words((end - half) / 4, 0.0), "between");
    assert!(last == words(1024, 3.0), "the last 4 KiB");
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

pub(crate) fn too_large_at_once() {
    let api = api();
    // The least that a device may say.
    let largest = 1 << 30;
    let refused = api.device.allocate(largest + (1 << 20), 64, MemoryKind::Device);
    assert_error(refused, DlhalStatus::OutOfMemory, &(largest + (1 << 20)).to_string());
    let address = api.device.allocate(largest, 64, MemoryKind::Device).unwrap();
    works(&api);
    api.device.free(address).unwrap();
}

pub(crate) fn copies_by_a_kernel() {
    let api = api();
    copies::within_the_device_at_any_offset(&api);
    copies::large(&api);
    copies::strided_in_every_direction(&api);
}

pub(crate) fn copies_where_memory_is_not_coherent() {
    let api = api();
    copies::any_size_at_any_offset(&api);
    copies::strided_in_every_direction(&api);
    copies::beside_what_the_device_wrote(&api);
    copies::large(&api);
    copies::sizes_around_powers_of_two(&api);
    copies::pinned(&api);
    memory::edges_are_written_and_neighbours_kept(&api);
    memory::neighbours_are_written_from_several_threads(&api);
    memory::results_in_pinned_memory_are_copied_out(&api);
    streams::freed_before_its_copy_runs(&api);
    works(&api);
}

pub(crate) fn the_backlog_is_bounded() {
    let api = api();
    let stream = api.stream();
    let add = add_function();
    let [a, b, c] = [0; 3].map(|_| api.alloc(4096));
    let round = |launches: usize| {
        streams::backlog_is_bounded(&api);
        for _ in 0..launches {
            api.launch(&add, &add_args(a, b, c, 1024), &stream).unwrap();
        }
    };
    round(1000);
    let (resident, held) = (resident_bytes(), Layer::get().live(c"bytes"));
    round(rounds(20_000, 100_000));
    let (resident_after, held_after) = (resident_bytes(), Layer::get().live(c"bytes"));
    assert!(resident_after <= resident + (64 << 20), "{resident_after} after {resident}");
    assert!(held_after <= held + (64 << 20), "{held_after} after {held}");
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// The library recycles what it has: at most 32 pools of 128 slots, none without timestamps.
pub(crate) fn many_timers() {
    let api = api();
    timers::any_number_of_timers(&api);
    let most = if api.device.properties().fallbacks.no_timestamps { 0 } else { 32 };
    let pools = Layer::get().calls("vkCreateQueryPool");
    assert!(pools <= most, "{pools} query pools");
    assert_eq!(Layer::get().live(c"VkQueryPool"), pools);
}
