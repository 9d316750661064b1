//! Two devices in one process, both software: two copies of a driver side by side.

use dlhal::hal::Deadline;
use dlhal::module::DataType;
use dlhal::runtime::copy::{Side, copy};
use dlhal::runtime::{DeviceRef, TensorView, system, thread};

use crate::common::{Api, assert_error};

pub(crate) fn both_devices_work_and_copy_to_each_other() {
    assert_eq!(system::device_count().unwrap(), 2);
    let [first, second] =
        [0, 1].map(|id| Api { device: system::device(DeviceRef::vulkan(id)).unwrap() });
    for api in [&first, &second] {
        let stream = thread::stream(&api.device).unwrap();
        let [a, b] = [0; 2].map(|_| api.alloc(256));
        let ones: Vec<u8> = (0..64).flat_map(|_| 1f32.to_le_bytes()).collect();
        api.write(a, &ones, &stream).unwrap();
        api.add(a, a, b, &stream).unwrap();
        assert_eq!(api.read(b, 4, &stream).unwrap(), 2f32.to_le_bytes());
        [a, b].into_iter().for_each(|address| api.device.free(address).unwrap());
    }
    let dtype = DataType::new(DataType::UINT, 8);
    let bytes: Vec<u8> = (0..(20 << 20) + 7).map(|i| (i * 13 + i / 253) as u8).collect();
    let (from, to) = (first.alloc(bytes.len() as u64), second.alloc(bytes.len() as u64));
    let stream = thread::stream(&first.device).unwrap();
    first.write(from, &bytes, &stream).unwrap();
    let across = |shape: &[i64], strides: Option<&[i64]>| {
        let view = |id, data| {
            TensorView::new(DeviceRef::vulkan(id), data, 0, shape, strides, dtype).unwrap()
        };
        let source = Side { view: view(0, from), device: Some(&first.device) };
        let target = Side { view: view(1, to), device: Some(&second.device) };
        // SAFETY: neither side is on the host.
        unsafe { copy(&source, &target, &stream) }.unwrap();
    };
    across(&[bytes.len() as i64], None);
    let reader = thread::stream(&second.device).unwrap();
    assert!(second.read(to, bytes.len(), &reader).unwrap() == bytes);

    second.write(to, &vec![0; bytes.len()], &reader).unwrap();
    across(&[100, 10], Some(&[20, 2]));
    let result = second.read(to, 2000, &reader).unwrap();
    for (index, &byte) in result.iter().enumerate() {
        let copied = index % 2 == 0 && index % 20 < 20;
        assert_eq!(byte, if copied { bytes[index] } else { 0 }, "byte {index}");
    }

    let foreign = second.add(from, from, to, &reader);
    assert_error(foreign, dlhal::DlhalStatus::NotFound, "another device's");
    assert_error(
        first.add(from, from, from, &reader),
        dlhal::DlhalStatus::InvalidArgument,
        "device",
    );
    stream.sync(Deadline::Never).unwrap();
    first.device.free(from).unwrap();
    second.device.free(to).unwrap();
}
