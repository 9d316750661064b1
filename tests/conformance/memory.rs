//! Memory on a real driver.

use std::ptr::NonNull;

use dlhal::DlhalStatus;
use dlhal::hal::{Deadline, MemoryKind};
use dlhal::runtime::ownership::import_host_memory;
use dlhal::runtime::{Attribute, DeviceAttr};

use crate::common::{Api, add_args, add_function, assert_error, rounds};

pub(crate) fn edges_are_written_and_neighbours_kept(api: &Api) {
    let stream = api.stream();
    let sizes: Vec<u64> = (1..rounds(40, 300) as u64)
        .chain((8..=rounds(20, 24)).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]))
        .collect();
    for alignment in [1, 4, 64, 256, 4096] {
        let addresses: Vec<u64> = sizes
            .iter()
            .map(|&size| api.device.allocate(size, alignment, MemoryKind::Device).unwrap())
            .collect();
        for (index, (&address, &size)) in addresses.iter().zip(&sizes).enumerate() {
            api.write(address, &[index as u8], &stream).unwrap();
            api.write(address + size - 1, &[index as u8], &stream).unwrap();
        }
        for (index, (&address, &size)) in addresses.iter().zip(&sizes).enumerate() {
            assert_eq!(address % alignment, 0);
            assert_eq!(api.read(address, 1, &stream).unwrap(), [index as u8]);
            assert_eq!(api.read(address + size - 1, 1, &stream).unwrap(), [index as u8]);
        }
        addresses.into_iter().for_each(|address| api.device.free(address).unwrap());
    }
}

/// Threads write the two halves of one tensor, and tensors that lie side by side, byte by byte.
pub(crate) fn neighbours_are_written_from_several_threads(api: &Api) {
    let tensors: Vec<u64> = (0..8).map(|_| api.alloc(257)).collect();
    let stream = api.stream();
    let write_half = |thread: usize, start: usize, stream: &_| {
        for offset in start..start + 128 {
            for &tensor in &tensors {
                let byte = [(offset * 7 + thread) as u8];
                api.write(tensor + offset as u64, &byte, stream).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        let write_half = &write_half;
        scope.spawn(move || write_half(1, 0, &api.stream()));
        scope.spawn(move || write_half(2, 128, &api.stream()));
    });
    for &tensor in &tensors {
        let got = api.read(tensor, 256, &stream).unwrap();
        for (offset, &byte) in got.iter().enumerate() {
            let thread = 1 + offset / 128;
            assert_eq!(byte, (offset * 7 + thread) as u8, "byte {offset}");
        }
    }
    tensors.into_iter().for_each(|tensor| api.device.free(tensor).unwrap());
}

pub(crate) fn many_small_tensors(api: &Api) {
    let stream = api.stream();
    let add = add_function();
    let ones: Vec<u8> = (0..16).flat_map(|_| 1f32.to_le_bytes()).collect();
    let one = api.alloc(64);
    api.write(one, &ones, &stream).unwrap();
    let objects = api.device.memory_statistics().memory_objects;
    let tensors: Vec<u64> = (0..20_000).map(|_| api.alloc(64)).collect();
    assert!(api.device.memory_statistics().memory_objects <= objects + 4);
    for &tensor in &tensors {
        api.launch(&add, &add_args(one, one, tensor, 16), &stream).unwrap();
    }
    let twos: Vec<u8> = (0..16).flat_map(|_| 2f32.to_le_bytes()).collect();
    for &tensor in tensors.iter().step_by(97) {
        assert_eq!(api.read(tensor, 64, &stream).unwrap(), twos);
    }
    tensors.into_iter().for_each(|tensor| api.device.free(tensor).unwrap());
    api.device.free(one).unwrap();
}

pub(crate) fn out_of_memory_is_survived(api: &Api) {
    let stream = api.stream();
    let total = api.device.properties().total_memory;
    for size in [total.saturating_mul(2), 1 << 46, u64::MAX, u64::MAX - 4095] {
        let refused = api.device.allocate(size, 64, MemoryKind::Device);
        assert_error(refused, DlhalStatus::OutOfMemory, &size.to_string());
    }
    let [a, b, c] = [0; 3].map(|_| api.alloc(256));
    api.add(a, b, c, &stream).unwrap();
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// A kernel counts up in pinned memory, and the host looks after each step.
pub(crate) fn results_in_pinned_memory_are_never_old(api: &Api) {
    let stream = api.stream();
    let add = add_function();
    let [counter, one] = [0; 2].map(|_| api.device.allocate(256, 64, MemoryKind::Host).unwrap());
    let words = |address| -> *mut [f32; 64] { api.device.host_pointer(address).unwrap().cast() };
    // SAFETY: each allocation holds 64 numbers; no work uses them yet.
    unsafe { words(counter).write([0.0; 64]) };
    // SAFETY: as above.
    unsafe { words(one).write([1.0; 64]) };
    for round in 1..=rounds(1000, 100_000) {
        api.launch(&add, &add_args(counter, one, counter, 64), &stream).unwrap();
        stream.sync(Deadline::Never).unwrap();
        // SAFETY: the work is done, and the allocation holds 64 numbers.
        assert_eq!(unsafe { words(counter).read_volatile() }, [round as f32; 64]);
    }
    [counter, one].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// A kernel's result in pinned memory is what a copy from there gives.
pub(crate) fn results_in_pinned_memory_are_copied_out(api: &Api) {
    let stream = api.stream();
    let ones = 1f32.to_le_bytes().repeat(64);
    let (a, c) = (api.alloc(256), api.device.allocate(256, 64, MemoryKind::Host).unwrap());
    api.write(a, &ones, &stream).unwrap();
    api.add(a, a, c, &stream).unwrap();
    assert!(api.read(c, 256, &stream).unwrap() == 2f32.to_le_bytes().repeat(64));
    [a, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// The attribute is the device's number and can be had, unless less is free.
pub(crate) fn the_largest_allocation_can_be_had(api: &Api) {
    let Some(Attribute::Int(largest)) = api.device.attribute(DeviceAttr::MaxAllocation) else {
        panic!("no largest allocation");
    };
    let properties = api.device.properties();
    let most = properties.max_buffer_size.min(properties.total_memory);
    let largest = largest as u64;
    assert!(largest <= most && largest + 256 > most, "{largest} of {most}");
    for size in [largest / 2 + 1, largest] {
        match api.device.allocate(size, 64, MemoryKind::Device) {
            Ok(address) => api.device.free(address).unwrap(),
            Err(error) => {
                assert_eq!(error.status(), DlhalStatus::OutOfMemory);
                // Drivers keep some of it for themselves; what other processes have, only a
                // driver's budget tells.
                let free = api.device.available_memory();
                let knows = !properties.fallbacks.own_budget;
                assert!(!knows || free / 8 * 7 < size, "{error}, though {free} are free");
            }
        }
        api.device.trim();
    }
}

#[repr(C, align(4096))]
struct Pages([u8; 3 * 4096]);

pub(crate) fn host_memory_is_used_in_place(api: &Api) {
    let stream = api.stream();
    let mut pages = Box::new(Pages([0; 3 * 4096]));
    for (index, word) in pages.0.chunks_exact_mut(4).enumerate() {
        word.copy_from_slice(&(index as f32).to_le_bytes());
    }
    let start = NonNull::new(pages.0.as_mut_ptr().wrapping_add(256)).unwrap();
    // SAFETY: the pages outlive the device's use, which ends with the synchronise below.
    let imported = unsafe { import_host_memory(&api.device, start, 256, false) };
    if api.device.properties().host_import_alignment.is_none() {
        return assert_error(imported.map(|_| ()), DlhalStatus::Unsupported, "in place");
    }
    let imported = imported.unwrap();
    let zero = api.alloc(256);
    api.write(zero, &[0; 256], &stream).unwrap();
    let target = api.alloc(256);
    api.add(imported.address(), zero, target, &stream).unwrap();
    let read = api.read(target, 256, &stream).unwrap();
    assert_eq!(read, pages.0[256..512]);
    api.add(target, target, imported.address(), &stream).unwrap();
    stream.sync(dlhal::hal::Deadline::Never).unwrap();
    for (index, word) in pages.0[256..512].chunks_exact(4).enumerate() {
        let value = f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        assert_eq!(value, 2.0 * (64 + index) as f32);
    }
    drop(imported);
    api.device.sync().unwrap();
    api.device.free(zero).unwrap();
    api.device.free(target).unwrap();
}

pub(crate) fn host_memory_in_shared_pages(api: &Api) {
    if api.device.properties().host_import_alignment.is_none() {
        return;
    }
    let stream = api.stream();
    let mut pages = Box::new(Pages([0; 3 * 4096]));
    for (index, word) in pages.0.chunks_exact_mut(4).enumerate() {
        word.copy_from_slice(&(index as f32).to_le_bytes());
    }
    let zero = api.alloc(256);
    api.write(zero, &[0; 256], &stream).unwrap();
    let target = api.alloc(256);
    // All of the pages, a part of the middle one twice, and its neighbour.
    let ranges = [(0, 3 * 4096), (4096, 256), (4096, 256), (4096 + 256, 256)];
    let imported = ranges.map(|(first, size)| {
        let start = NonNull::new(pages.0.as_mut_ptr().wrapping_add(first)).unwrap();
        // SAFETY: the pages outlive the device's use, which ends with the synchronise below.
        unsafe { import_host_memory(&api.device, start, size, false) }.unwrap()
    });
    let places = [(0, 0), (0, 2 * 4096 + 256), (1, 0), (2, 0), (3, 0)];
    for (which, offset) in places {
        api.add(imported[which].address() + offset, zero, target, &stream).unwrap();
        let first = ranges[which].0 + offset as usize;
        assert_eq!(api.read(target, 256, &stream).unwrap(), pages.0[first..first + 256]);
    }
    let [all, first, second, neighbour] = imported;
    drop(first);
    drop(all);
    api.add(second.address(), zero, target, &stream).unwrap();
    api.add(neighbour.address(), zero, target, &stream).unwrap();
    drop((second, neighbour));
    api.device.sync().unwrap();
    api.device.free(zero).unwrap();
    api.device.free(target).unwrap();
}
