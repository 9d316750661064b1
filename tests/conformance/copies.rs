//! Copies: the bytes that arrive, and those that must not change.

use dlhal::hal::MemoryKind;
use dlhal::module::DataType;
use dlhal::runtime::copy::{Side, copy};
use dlhal::runtime::{DeviceRef, TensorView};

use crate::common::{Api, host, on_device};

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

pub(crate) fn any_size_at_any_offset(api: &Api) {
    let stream = api.stream();
    let size = 70_000;
    let address = api.alloc(size as u64);
    for len in [1usize, 2, 3, 4, 5, 6, 7, 8, 9, 96, 257, 65_535, 65_536, 65_537] {
        for offset in [0, 1, 63, 64, 255, 4001] {
            let mut expected = vec![0xAA; size];
            api.write(address, &expected, &stream).unwrap();
            let bytes = pattern(len);
            api.write(address + offset as u64, &bytes, &stream).unwrap();
            expected[offset..offset + len].copy_from_slice(&bytes);
            assert!(api.read(address, size, &stream).unwrap() == expected, "{len} at {offset}");
        }
    }
    api.device.free(address).unwrap();
}

/// Between two tensors and within one; the gaps between the copies must not change.
pub(crate) fn within_the_device_at_any_offset(api: &Api) {
    let stream = api.stream();
    let lens = [1usize, 15, 16, 31, 63, 64, 65, 79, 96, 257, 4099, 65_536, 150_001];
    let places = |first: usize| {
        lens.iter().scan(first, |next, len| {
            let place = *next;
            *next += (len + 64).next_multiple_of(64);
            Some(place)
        })
    };
    let room = 300_000;
    let bytes = pattern(room);
    let (a, b) = (api.alloc(room as u64), api.alloc(room as u64));
    api.write(a, &bytes, &stream).unwrap();
    let offsets = [0usize, 1, 2, 3, 4, 16, 30];
    for (from, to) in offsets.iter().flat_map(|a| offsets.iter().map(move |b| (*a, *b))) {
        let mut expected = vec![0xAA; room];
        api.write(b, &expected, &stream).unwrap();
        for ((len, from), to) in lens.iter().zip(places(from)).zip(places(to)) {
            api.move_bytes(a + from as u64, b + to as u64, *len as i64, &stream).unwrap();
            expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
        }
        assert!(api.read(b, room, &stream).unwrap() == expected, "from {from} to {to}");
        let half = room / 2;
        let len = half - 64;
        api.move_bytes(b + from as u64, b + (half + to) as u64, len as i64, &stream).unwrap();
        expected.copy_within(from..from + len, half + to);
        assert!(api.read(b, room, &stream).unwrap() == expected, "within, from {from} to {to}");
    }
    api.device.free(a).unwrap();
    api.device.free(b).unwrap();
}

pub(crate) fn strided_in_every_direction(api: &Api) {
    let stream = api.stream();
    let dtype = DataType::new(DataType::FLOAT, 32);
    let shape = [7i64, 5];
    let room = 64usize;
    let layouts: [(Option<[i64; 2]>, u64); 4] =
        [(None, 0), (Some([8, 1]), 1), (Some([1, 7]), 0), (Some([-8, 1]), 50)];
    let words: Vec<u8> = (0..room as u32).flat_map(u32::to_le_bytes).collect();
    for (from_strides, from_first) in &layouts {
        for (to_strides, to_first) in &layouts {
            let place = |strides: &Option<[i64; 2]>, first: u64, i: i64, j: i64| {
                let [a, b] = strides.unwrap_or([5, 1]);
                4 * (first as i64 + i * a + j * b) as usize
            };
            let mut expected = vec![0xEE; 4 * room];
            for (i, j) in (0..7).flat_map(|i| (0..5).map(move |j| (i, j))) {
                let from = place(from_strides, *from_first, i, j);
                let to = place(to_strides, *to_first, i, j);
                expected[to..to + 4].copy_from_slice(&words[from..from + 4]);
            }
            let (a, b) = (api.alloc(4 * room as u64), api.alloc(4 * room as u64));
            api.write(a, &words, &stream).unwrap();
            api.write(b, &vec![0xEE; 4 * room], &stream).unwrap();
            let view = |device, data, strides: &'static Option<[i64; 2]>, first: u64| {
                let strides = strides.as_ref().map(|strides| &strides[..]);
                TensorView::new(device, data, 4 * first, &[7, 5], strides, dtype).unwrap()
            };
            let leak = |strides: &Option<[i64; 2]>| -> &'static Option<[i64; 2]> {
                Box::leak(Box::new(*strides))
            };
            let (from_strides, to_strides) = (leak(from_strides), leak(to_strides));
            let (cpu, gpu) = (DeviceRef::cpu(), DeviceRef::vulkan(0));
            // SAFETY: host sides are vectors that outlive the calls.
            let run = |from, on_from: bool, to, on_to: bool| unsafe {
                let side = |view, on: bool| Side { view, device: on.then_some(&api.device) };
                copy(&side(from, on_from), &side(to, on_to), &stream).unwrap();
            };
            run(
                view(gpu, a, from_strides, *from_first),
                true,
                view(gpu, b, to_strides, *to_first),
                true,
            );
            assert!(
                api.read(b, 4 * room, &stream).unwrap() == expected,
                "on the device, {shape:?}"
            );
            api.write(b, &vec![0xEE; 4 * room], &stream).unwrap();
            let source = words.as_ptr() as u64;
            run(
                view(cpu, source, from_strides, *from_first),
                false,
                view(gpu, b, to_strides, *to_first),
                true,
            );
            assert!(api.read(b, 4 * room, &stream).unwrap() == expected, "to the device");
            let mut target = vec![0xEE; 4 * room];
            let data = target.as_mut_ptr() as u64;
            run(
                view(gpu, a, from_strides, *from_first),
                true,
                view(cpu, data, to_strides, *to_first),
                false,
            );
            assert!(target == expected, "from the device");
            api.device.free(a).unwrap();
            api.device.free(b).unwrap();
        }
    }
}

pub(crate) fn large(api: &Api) {
    let stream = api.stream();
    let bytes = pattern((40 << 20) + 3);
    let (a, b) = (api.alloc(bytes.len() as u64), api.alloc(bytes.len() as u64));
    api.write(a, &bytes, &stream).unwrap();
    api.move_bytes(a, b, bytes.len() as i64, &stream).unwrap();
    assert!(api.read(b, bytes.len(), &stream).unwrap() == bytes);
    api.move_bytes(b, b + 5, bytes.len() as i64 - 5, &stream).unwrap();
    assert!(api.read(b + 5, bytes.len() - 5, &stream).unwrap() == bytes[..bytes.len() - 5]);
    api.device.free(a).unwrap();
    api.device.free(b).unwrap();
}

pub(crate) fn pinned(api: &Api) {
    let stream = api.stream();
    let size = 300_000u64;
    let pinned = api.device.allocate(size, 64, MemoryKind::Host).unwrap();
    let pointer = api.device.host_pointer(pinned).unwrap();
    let bytes = pattern(size as usize);
    // SAFETY: the allocation is that long, and no work uses it.
    unsafe { pointer.copy_from(bytes.as_ptr(), bytes.len()) };
    let address = api.alloc(size);
    let shape = [size as i64];
    let to_device = |from, to| {
        // SAFETY: the host side is pinned memory that outlives the call.
        unsafe {
            copy(
                &Side { view: host(from, &shape), device: None },
                &Side { view: on_device(to, &shape), device: Some(&api.device) },
                &stream,
            )
        }
        .unwrap();
    };
    to_device(pointer as u64, address);
    assert!(api.read(address, size as usize, &stream).unwrap() == bytes);
    let back = api.device.allocate(size, 64, MemoryKind::Host).unwrap();
    let back_pointer = api.device.host_pointer(back).unwrap();
    // SAFETY: as above.
    unsafe {
        copy(
            &Side { view: on_device(address, &shape), device: Some(&api.device) },
            &Side { view: host(back_pointer as u64, &shape), device: None },
            &stream,
        )
    }
    .unwrap();
    // SAFETY: the copy is complete, and the allocation is that long.
    assert!(unsafe { std::slice::from_raw_parts(back_pointer, bytes.len()) } == bytes);
    for address in [pinned, address, back] {
        api.device.free(address).unwrap();
    }
}

/// Copies of sizes at which 32-bit counts wrap; only where `DLHAL_TEST_LARGE` allows it.
pub(crate) fn sizes_around_powers_of_two(api: &Api) {
    let large = std::env::var_os("DLHAL_TEST_LARGE").is_some();
    let powers: &[u32] = if large { &[31, 32] } else { &[22, 24] };
    let stream = api.stream();
    let word = |place: u64| (place as u32).wrapping_mul(0x9E37_79B9) ^ (place >> 32) as u32;
    for &power in powers {
        for size in [(1u64 << power) - 4, 1 << power, (1 << power) + 4] {
            let mut bytes = vec![0u8; size as usize];
            for (place, target) in (0u64..).zip(bytes.chunks_exact_mut(4)) {
                target.copy_from_slice(&word(place).to_le_bytes());
            }
            let (a, b) = (api.alloc(size), api.alloc(size));
            api.write(a, &bytes, &stream).unwrap();
            api.move_bytes(a, b, size as i64, &stream).unwrap();
            bytes.fill(0);
            api.read_into(b, &mut bytes, &stream).unwrap();
            let wrong = (0u64..)
                .zip(bytes.chunks_exact(4))
                .find(|(place, got)| *got != word(*place).to_le_bytes());
            assert_eq!(wrong, None, "of {size} bytes");
            assert!(api.device.memory_statistics().staging_bytes <= 256 << 20);
            api.device.free(a).unwrap();
            api.device.free(b).unwrap();
            api.device.trim();
        }
    }
}

/// What the device wrote stays, where the host then writes beside it in the same cache line.
pub(crate) fn beside_what_the_device_wrote(api: &Api) {
    let stream = api.stream();
    let [source, tensor] = [0; 2].map(|_| api.alloc(256));
    let mut expected = vec![0; 256];
    api.write(tensor, &expected, &stream).unwrap();
    for round in 1..=20 {
        api.write(source, &[round; 256], &stream).unwrap();
        api.move_bytes(source, tensor, 128, &stream).unwrap();
        stream.sync(dlhal::hal::Deadline::Never).unwrap();
        api.write(tensor + 100, &[!round; 60], &stream).unwrap();
        expected[..128].fill(round);
        expected[100..160].fill(!round);
        assert_eq!(api.read(tensor, 256, &stream).unwrap(), expected);
    }
    [source, tensor].into_iter().for_each(|address| api.device.free(address).unwrap());
}
