//! Copies of every shape, compared with the same copy done by hand.

use dlhal::module::DataType;
use dlhal::null::Options;
use dlhal::runtime::copy::{Side, copy};
use dlhal::runtime::{DeviceRef, TensorView, Tuning, thread};
use dlhal::{DlhalStatus, Result};

use crate::support::{Rig, assert_error, host, on_device};

fn variants() -> Vec<Rig> {
    let options =
        |mapped, coherent| Options { map_device_memory: mapped, coherent, ..Options::default() };
    vec![
        Rig::new(options(false, true)),
        Rig::new(options(true, true)),
        Rig::new(options(false, false)),
        Rig::new(options(true, false)),
    ]
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn any_size_at_any_offset_arrives_and_nothing_else_changes() {
    for rig in variants() {
        let stream = thread::stream(&rig.device).unwrap();
        let size = 70_000;
        let address = rig.alloc(size as u64);
        for len in [1usize, 2, 3, 4, 5, 6, 7, 8, 9, 255, 4095, 65_535, 65_536, 65_537] {
            for offset in [0, 1, 63, 64, 255, 4001] {
                let mut expected = vec![0xAA; size];
                rig.write(address, &expected, &stream).unwrap();
                let bytes = pattern(len);
                rig.write(address + offset as u64, &bytes, &stream).unwrap();
                expected[offset..offset + len].copy_from_slice(&bytes);
                assert!(rig.read(address, size, &stream).unwrap() == expected, "{len} at {offset}");
            }
        }
    }
}

#[test]
fn large_copies_go_through_bounded_staging() {
    large_copies(&Tuning { copy_threads: Some(1), ..Tuning::default() });
}

#[test]
fn large_copies_by_several_threads_go_through_bounded_staging() {
    large_copies(&Tuning { copy_threads: Some(4), ..Tuning::default() });
}

fn large_copies(tuning: &Tuning) {
    let rig = Rig::tuned(Options::default(), tuning);
    let stream = thread::stream(&rig.device).unwrap();
    let bytes = pattern(150 << 20);
    let address = rig.alloc(bytes.len() as u64);
    rig.write(address, &bytes, &stream).unwrap();
    assert!(rig.read(address, bytes.len(), &stream).unwrap() == bytes);
    assert!(rig.device.memory_statistics().staging_bytes <= 64 << 20);
}

#[test]
fn strided_tensors_are_copied_whole_by_several_threads() {
    let bytes = pattern(12 << 20);
    for mapped in [false, true] {
        let tuning = Tuning { copy_threads: Some(4), copy_slice: Some(4096), ..Tuning::default() };
        let options = Options { map_device_memory: mapped, ..Options::default() };
        let rig = Rig::tuned(options, &tuning);
        let stream = thread::stream(&rig.device).unwrap();
        let address = rig.alloc(bytes.len() as u64);
        // Every second row of 3,000 bytes, on either side.
        let (rows, columns) = (1500, 3000);
        let (wide, packed) = ([2 * columns, 1], [columns, 1]);
        let shape = [rows, columns];
        let view = |device, data, strides| {
            TensorView::new(device, data, 0, &shape, Some(strides), crate::common::byte()).unwrap()
        };
        let row =
            |place: i64| place as usize * columns as usize..(place + 1) as usize * columns as usize;
        for (on_host, on_the_device) in [(&wide, &packed), (&packed, &wide)] {
            rig.write(address, &vec![0xEE; bytes.len()], &stream).unwrap();
            let host = view(DeviceRef::cpu(), bytes.as_ptr() as u64, &on_host[..]);
            let device = view(DeviceRef::vulkan(0), address, &on_the_device[..]);
            let device_side = Side { view: device, device: Some(&rig.device) };
            // SAFETY: the source is a vector that outlives the call.
            unsafe { copy(&Side { view: host, device: None }, &device_side, &stream) }.unwrap();
            let mut back = vec![0xDD; bytes.len()];
            let target = view(DeviceRef::cpu(), back.as_mut_ptr() as u64, &on_host[..]);
            // SAFETY: as above.
            unsafe { copy(&device_side, &Side { view: target, device: None }, &stream) }.unwrap();
            let there = rig.read(address, bytes.len(), &stream).unwrap();
            let step = |strides: &[i64; 2]| strides[0] / columns;
            for index in 0..rows {
                let expected = &bytes[row(index * step(on_host))];
                assert!(there[row(index * step(on_the_device))] == *expected, "row {index}");
                assert!(back[row(index * step(on_host))] == *expected, "row {index}, back");
            }
            for index in (1..2 * rows - 1).step_by(2) {
                let gap = if step(on_host) == 2 { &back } else { &there };
                let kept = if step(on_host) == 2 { 0xDD } else { 0xEE };
                assert!(gap[row(index)].iter().all(|byte| *byte == kept), "gap {index}");
            }
        }
    }
}

#[test]
fn nothing_is_copied_for_zero_bytes_whatever_the_pointers() {
    let rig = Rig::new(Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    rig.write(0, &[], &stream).unwrap();
    assert!(rig.read(0, 0, &stream).unwrap().is_empty());
    rig.move_bytes(0, 0, 0, &stream).unwrap();
    assert!(rig.null.log().is_empty());
}

#[test]
fn overlapping_copies_on_a_device_behave_like_memmove() {
    let rig = Rig::new(Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let address = rig.alloc(1000);
    let bytes = pattern(1000);
    rig.write(address, &bytes, &stream).unwrap();
    rig.move_bytes(address, address + 10, 900, &stream).unwrap();
    let mut expected = bytes.clone();
    expected.copy_within(0..900, 10);
    assert_eq!(rig.read(address, 1000, &stream).unwrap(), expected);
    rig.move_bytes(address + 10, address, 900, &stream).unwrap();
    expected.copy_within(10..910, 0);
    assert_eq!(rig.read(address, 1000, &stream).unwrap(), expected);
}

#[test]
fn strides_that_reach_further_than_any_allocation_are_refused() {
    let rig = Rig::new(Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let real = rig.alloc(4);
    let shape = [2, 2];
    let far = [-(1 << 62), 1 << 62];
    let dtype = DataType::new(DataType::UINT, 8);
    let view = |strides| TensorView::new(DeviceRef::vulkan(0), 1 << 63, 0, &shape, strides, dtype);
    let side = |view| Side { view, device: Some(&rig.device) };
    let (from, to) = (side(view(Some(&far[..])).unwrap()), side(on_device(real, &shape)));
    // SAFETY: neither side is on the host.
    let copied = unsafe { copy(&from, &to, &stream) };
    assert_error(copied, DlhalStatus::InvalidArgument, "strides");
}

#[test]
fn sizes_that_differ_are_refused() {
    let rig = Rig::new(Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let address = rig.alloc(64);
    let bytes = [0u8; 64];
    // SAFETY: the source is an array that outlives the call.
    let result = unsafe {
        copy(
            &Side { view: host(bytes.as_ptr() as u64, &[64]), device: None },
            &Side { view: on_device(address, &[63]), device: Some(&rig.device) },
            &stream,
        )
    };
    assert_error(result, DlhalStatus::InvalidArgument, "64 bytes");
}

/// A layout of a tensor of 16-bit elements: where element (i, j, k) lies.
#[derive(Clone, Copy)]
struct Layout {
    strides: Option<[i64; 3]>,
    first: usize,
}

const SHAPE: [i64; 3] = [3, 4, 5];
const ROOM: usize = 600;

const LAYOUTS: [Layout; 6] = [
    Layout { strides: None, first: 0 },
    Layout { strides: None, first: 7 },
    Layout { strides: Some([40, 5, 1]), first: 2 },
    Layout { strides: Some([1, 3, 12]), first: 0 },
    Layout { strides: Some([-30, 7, 1]), first: 70 },
    Layout { strides: Some([70, -14, 2]), first: 50 },
];

impl Layout {
    fn view(&self, device: DeviceRef, data: u64) -> TensorView<'_> {
        let dtype = DataType::new(DataType::INT, 16);
        let strides = self.strides.as_ref().map(|strides| &strides[..]);
        let offset = 2 * self.first as u64;
        TensorView::new(device, data, offset, &SHAPE, strides, dtype).unwrap()
    }

    fn places(&self) -> Vec<usize> {
        let [a, b, c] = self.strides.unwrap_or([20, 5, 1]);
        let mut places = Vec::new();
        for (i, j, k) in
            (0..3).flat_map(|i| (0..4).flat_map(move |j| (0..5).map(move |k| (i, j, k))))
        {
            places.push((self.first as i64 + i * a + j * b + k * c) as usize);
        }
        places
    }
}

#[test]
fn strided_tensors_are_copied_in_every_direction() {
    for rig in variants() {
        let stream = thread::stream(&rig.device).unwrap();
        let (a, b) = (rig.alloc(2 * ROOM as u64), rig.alloc(2 * ROOM as u64));
        for from in LAYOUTS {
            for to in LAYOUTS {
                let source: Vec<u16> = (0..ROOM as u16).collect();
                let mut expected = vec![0xFFFFu16; ROOM];
                for (source_place, place) in from.places().into_iter().zip(to.places()) {
                    expected[place] = source[source_place];
                }
                let as_bytes = |words: &[u16]| -> Vec<u8> {
                    words.iter().flat_map(|word| word.to_le_bytes()).collect()
                };
                let (source, blank) = (as_bytes(&source), as_bytes(&[0xFFFF; ROOM]));
                let expected = as_bytes(&expected);
                rig.write(a, &source, &stream).unwrap();
                let run = |from_view, on_from, to_view, on_to| -> Result<()> {
                    let side = |view, on: bool| Side { view, device: on.then_some(&rig.device) };
                    // SAFETY: host sides are vectors that outlive the call.
                    unsafe { copy(&side(from_view, on_from), &side(to_view, on_to), &stream) }
                };
                let (cpu, gpu) = (DeviceRef::cpu(), DeviceRef::vulkan(0));

                rig.write(b, &blank, &stream).unwrap();
                run(from.view(cpu, source.as_ptr() as u64), false, to.view(gpu, b), true).unwrap();
                assert!(rig.read(b, 2 * ROOM, &stream).unwrap() == expected, "to the device");

                let mut target = blank.clone();
                let data = target.as_mut_ptr() as u64;
                run(from.view(gpu, a), true, to.view(cpu, data), false).unwrap();
                assert!(target == expected, "from the device");

                rig.write(b, &blank, &stream).unwrap();
                run(from.view(gpu, a), true, to.view(gpu, b), true).unwrap();
                assert!(rig.read(b, 2 * ROOM, &stream).unwrap() == expected, "on the device");

                let mut target = blank.clone();
                let data = target.as_mut_ptr() as u64;
                run(from.view(cpu, source.as_ptr() as u64), false, to.view(cpu, data), false)
                    .unwrap();
                assert!(target == expected, "on the host");
            }
        }
    }
}

#[test]
fn pinned_host_memory_is_used_in_place() {
    let rig = Rig::new(Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let size = 1 << 20;
    let pinned = rig.device.allocate(size, 64, dlhal::hal::MemoryKind::Host).unwrap();
    let pointer = rig.device.host_pointer(pinned).unwrap();
    let bytes = pattern(size as usize);
    // SAFETY: the allocation is that long and nothing else uses it.
    unsafe { pointer.copy_from(bytes.as_ptr(), bytes.len()) };
    let address = rig.alloc(size);
    let shape = [size as i64];
    // SAFETY: the host side is pinned memory that outlives the call.
    unsafe {
        copy(
            &Side { view: host(pointer as u64, &shape), device: None },
            &Side { view: on_device(address, &shape), device: Some(&rig.device) },
            &stream,
        )
    }
    .unwrap();
    assert_eq!(rig.device.memory_statistics().staging_bytes, 0);
    assert!(rig.read(address, size as usize, &stream).unwrap() == bytes);
}
