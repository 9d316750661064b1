//! Memory on a real driver.

use std::ptr::NonNull;

use dlhal::DlhalStatus;
use dlhal::hal::MemoryKind;
use dlhal::runtime::ownership::import_host_memory;

use crate::common::{Api, add_args, add_function, assert_error};

pub(crate) fn edges_are_written_and_neighbours_kept(api: &Api) {
    let stream = api.stream();
    let sizes: Vec<u64> =
        (1..40).chain((8..=20).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1])).collect();
    for alignment in [1, 64, 4096] {
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
